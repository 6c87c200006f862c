//! One run of the binary as a black box.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::sandbox::{NOW, Sandbox};

/// Fields that may hold a path or an argv by purpose.
const EXEMPT: [&str; 8] = [
    "command",
    "command_argv",
    "settlement_command",
    "settlement_argv",
    "detail_ref",
    "recovery_command",
    "next_command",
    "argv",
];

/// A run being prepared.
pub(crate) struct Run<'a> {
    sandbox: &'a Sandbox,
    args: Vec<String>,
    envs: Vec<(String, String)>,
    stdin: Vec<u8>,
    folder: PathBuf,
    around: Vec<String>,
}

/// What a run left.
#[derive(Debug)]
pub(crate) struct Finished {
    /// The exit code; none when a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    root: String,
}

impl<'a> Run<'a> {
    pub(super) fn new<S: AsRef<str>>(
        sandbox: &'a Sandbox,
        args: impl IntoIterator<Item = S>,
    ) -> Self {
        Self {
            sandbox,
            args: args
                .into_iter()
                .map(|arg| arg.as_ref().to_owned())
                .collect(),
            envs: vec![("LOOPX_TEST_NOW".to_owned(), NOW.to_owned())],
            stdin: Vec::new(),
            folder: sandbox.project(),
            around: Vec::new(),
        }
    }

    /// Sets a variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.envs.retain(|(known, _)| known != name);
        self.envs.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the clock.
    pub(crate) fn now(self, instant: &str) -> Self {
        self.env("LOOPX_TEST_NOW", instant)
    }

    /// Gives bytes on standard input.
    pub(crate) fn stdin(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.stdin = bytes.as_ref().to_vec();
        self
    }

    /// Starts in another folder.
    pub(crate) fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    /// Runs below other programs, which get the binary and its arguments at the end of theirs.
    pub(crate) fn around(mut self, words: &[&str]) -> Self {
        self.around = words.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// Returns the command, for tests that start several at once.
    pub(crate) fn command(&self) -> Command {
        let binary = env!("CARGO_BIN_EXE_loopx").to_owned();
        let mut words = self.around.iter().chain([&binary]).chain(&self.args);
        let mut command = Command::new(words.next().expect("a program"));
        command
            .args(words)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.sandbox.home())
            .envs(self.envs.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs to the end.
    pub(crate) fn run(self) -> Finished {
        let mut child = self.command().spawn().expect("the binary starts");
        let mut input = child.stdin.take().expect("piped");
        let bytes = self.stdin.clone();
        let writer = std::thread::spawn(move || {
            // The program may end without reading its input.
            let _ = input.write_all(&bytes);
        });
        let finished = self.finish(child);
        writer.join().expect("the writer ends");
        finished
    }

    /// Waits for the end of a run that was started by its command.
    pub(crate) fn finish(self, child: Child) -> Finished {
        let output = child.wait_with_output().expect("the binary ends");
        Finished {
            code: output.status.code(),
            stdout: output.stdout,
            stderr: output.stderr,
            root: self.sandbox.root().to_string_lossy().into_owned(),
        }
    }

    /// Runs with `--format json`, requires exit 0 and returns the packet.
    pub(crate) fn packet(self) -> Value {
        self.json(0)
    }

    /// Runs with `--format json`, requires exit 1 and returns the refusal.
    pub(crate) fn refusal(self) -> Value {
        self.json(1)
    }

    /// Runs with `--format json`, whatever the exit code.
    pub(crate) fn json_run(mut self) -> Finished {
        self.args.extend(["--format".to_owned(), "json".to_owned()]);
        self.run()
    }

    fn json(mut self, code: i32) -> Value {
        self.args.extend(["--format".to_owned(), "json".to_owned()]);
        let shown = self.args.join(" ");
        let finished = self.run();
        assert_eq!(finished.code, Some(code), "{shown}: {}", finished.text());
        finished.json()
    }
}

impl Finished {
    /// Standard output as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text.
    pub(crate) fn errors(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// The one packet on standard output; it must not name a folder of the sandbox.
    pub(crate) fn json(&self) -> Value {
        let packet: Value = serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|_| panic!("no packet: {} {}", self.text(), self.errors()));
        super::schemas::check(&packet);
        let public = without_exempt(&packet).to_string();
        assert!(!public.contains(&self.root), "a path leaves: {packet}");
        assert!(
            !self.errors().contains(&self.root),
            "a path leaves by stderr"
        );
        packet
    }
}

fn without_exempt(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(name, _)| !EXEMPT.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), without_exempt(value)))
            .collect(),
        Value::Array(items) => items.iter().map(without_exempt).collect(),
        other => other.clone(),
    }
}
