//! The one place that calls the provider program.
//!
//! Each call is an argument vector with an explicit profile, runs in an empty folder of its own outside the project, sees no
//! credential of this process's environment, and ends within its deadline. What it prints on standard error is classified and
//! forgotten (`docs/spec/lark-cli.md` 1).

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::failure;
use crate::contract::channel::ids::ProfileName;
use crate::contract::channel::outcome::ExternalWriteOutcome;
use crate::port::channel::{ProgramChoice, ProviderError, ProviderErrorKind};
use crate::process::{self, Cancel, Ending, Environment, Invocation};
use crate::workspace::{env, scratch};

/// The usual name of the program.
const PROGRAM: &str = "lark-cli";
/// The first line of a program that a script interpreter runs.
const SCRIPT_LINE: &[u8] = b"#!/usr/bin/env node";
/// Credentials and defaults that would win over the named profile.
const WITHHELD: [&str; 8] = [
    "LARKSUITE_CLI_APP_ID",
    "LARKSUITE_CLI_APP_SECRET",
    "LARKSUITE_CLI_BRAND",
    "LARKSUITE_CLI_DEFAULT_AS",
    "LARKSUITE_CLI_PROFILE",
    "LARKSUITE_CLI_STRICT_MODE",
    "LARKSUITE_CLI_TENANT_ACCESS_TOKEN",
    "LARKSUITE_CLI_USER_ACCESS_TOKEN",
];
const ADDED: [(&str, &str); 4] = [
    ("LARKSUITE_CLI_NO_UPDATE_NOTIFIER", "1"),
    ("LARKSUITE_CLI_NO_SKILLS_NOTIFIER", "1"),
    ("LARK_CLI_NO_PROXY_WARN", "1"),
    ("TZ", "UTC"),
];
/// Flags that carry a secret; no call has one.
const SECRET_FLAGS: [&str; 10] = [
    "--access-key",
    "--access-token",
    "--ak",
    "--app-secret",
    "--authorization",
    "--bearer-token",
    "--client-secret",
    "--secret-key",
    "--tenant-access-token",
    "--user-access-token",
];

/// Deadlines by kind of call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Deadline {
    Usual,
    Mark,
    Version,
    Of(Duration),
}

impl Deadline {
    fn duration(self) -> Duration {
        let shortened =
            env::test_hook(env::TEST_PROVIDER_TIMEOUT_MS).and_then(|text| text.parse().ok());
        if let Some(millis) = shortened {
            return Duration::from_millis(millis);
        }
        match self {
            Self::Usual => Duration::from_secs(30),
            Self::Mark => Duration::from_secs(10),
            Self::Version => Duration::from_secs(5),
            Self::Of(duration) => duration,
        }
    }
}

/// The program as it was found: perhaps an interpreter before it.
#[derive(Clone, Debug)]
pub(super) struct Program {
    words: Vec<OsString>,
    cancel: Cancel,
}

/// What a finished call printed.
#[derive(Clone)]
pub(super) struct Answer {
    pub(super) ending: Ending,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Answer {
    /// Returns the failure of a call that did not end with 0.
    pub(super) fn success(self) -> Result<Self, ProviderError> {
        match self.ending {
            Ending::Exit(0) => Ok(self),
            ending => Err(failure::ended(ending, &self.stdout, &self.stderr)),
        }
    }

    /// Reads the whole envelope of an API call: exit 0 and `ok:true`, or a failure.
    pub(super) fn envelope(self) -> Result<Value, ProviderError> {
        let answer = self.success()?;
        let value = failure::one_object(&answer.stdout)?;
        match value.get("ok") {
            Some(Value::Bool(true)) => Ok(value),
            _ => Err(failure::unreadable()),
        }
    }

    /// Reads the object of a command without an envelope.
    pub(super) fn bare(self) -> Result<Value, ProviderError> {
        failure::one_object(&self.success()?.stdout)
    }
}

impl Program {
    /// Finds the program; none when nothing can be started.
    pub(super) fn find(choice: &ProgramChoice) -> Option<Self> {
        let path = locate(choice.executable.as_deref().unwrap_or(PROGRAM))?;
        let mut words = Vec::new();
        if is_script(&path) {
            let interpreter = choice.interpreter.as_deref().unwrap_or("node");
            words.push(locate(interpreter)?.into_os_string());
        }
        words.push(path.into_os_string());
        Some(Self {
            words,
            cancel: Cancel::default(),
        })
    }

    /// Lets the calls be ended from another thread.
    pub(super) fn cancelled_by(self, cancel: &Cancel) -> Self {
        Self {
            cancel: cancel.clone(),
            ..self
        }
    }

    /// Returns the program as it was found, for those who start it themselves.
    pub(super) fn found(&self) -> Option<ProgramChoice> {
        let mut words = self
            .words
            .iter()
            .rev()
            .map(|word| word.to_str().map(str::to_owned));
        Some(ProgramChoice {
            executable: words.next()?,
            interpreter: words.next().flatten(),
        })
    }

    /// Builds one call of the program.
    pub(super) fn invocation(&self, profile: Option<&ProfileName>, tail: &[String]) -> Invocation {
        let mut args: Vec<OsString> = self.words[1..].to_vec();
        if let Some(profile) = profile {
            args.extend(["--profile".into(), profile.as_str().into()]);
        }
        args.extend(tail.iter().map(OsString::from));
        Invocation::new(PathBuf::from(&self.words[0]), args).env(environment())
    }

    /// Calls the program and waits for its answer.
    pub(super) fn call(
        &self,
        profile: Option<&ProfileName>,
        tail: &[String],
        deadline: Deadline,
    ) -> Result<Answer, ProviderError> {
        if tail.iter().any(|word| is_secret_flag(word)) {
            return Err(refused_here());
        }
        let folder = scratch::folder().map_err(|_| not_started())?;
        let invocation = self
            .invocation(profile, tail)
            .own_folder(folder.path())
            .cancel(self.cancel.clone())
            .deadline(deadline.duration());
        let finished = process::run(&invocation).map_err(|error| failure::spawn(&error))?;
        if finished.overflowed {
            return Err(failure::unreadable());
        }
        Ok(Answer {
            ending: finished.ending,
            stdout: String::from_utf8_lossy(&finished.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&finished.stderr).into_owned(),
        })
    }
}

/// The failure of a program that cannot be started.
pub(super) const fn not_started() -> ProviderError {
    ProviderError {
        kind: ProviderErrorKind::NotStarted,
        effect: ExternalWriteOutcome::None,
        code: None,
        exit: None,
    }
}

/// The failure of a call that is not made.
pub(super) const fn refused_here() -> ProviderError {
    ProviderError {
        kind: ProviderErrorKind::Rejected,
        effect: ExternalWriteOutcome::None,
        code: None,
        exit: None,
    }
}

fn environment() -> Environment {
    Environment {
        without: WITHHELD.iter().map(OsString::from).collect(),
        with: ADDED
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
    }
}

fn is_secret_flag(word: &str) -> bool {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    SECRET_FLAGS.contains(&name) || name == "--sk"
}

/// Finds an executable: a path as it is, made absolute; a name on the search path.
pub(crate) fn locate(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return std::path::absolute(name)
            .ok()
            .filter(|path| is_executable(path));
    }
    let path = env::value(env::PATH)?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|path| is_executable(path))
        .and_then(|path| std::path::absolute(path).ok())
}

fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn is_script(path: &Path) -> bool {
    let mut head = Vec::new();
    let limit = SCRIPT_LINE.len() as u64 + 1;
    let read = File::open(path).and_then(|file| file.take(limit).read_to_end(&mut head));
    read.is_ok()
        && head
            .strip_prefix(SCRIPT_LINE)
            .is_some_and(|rest| matches!(rest.first(), None | Some(b'\n' | b'\r')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_that_carries_a_secret_is_recognised_in_both_forms() {
        assert!(is_secret_flag("--app-secret") && is_secret_flag("--sk=x"));
        assert!(!is_secret_flag("--app-secret-stdin") && !is_secret_flag("sk"));
    }

    #[test]
    fn a_script_is_started_through_its_interpreter() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("tool");
        std::fs::write(&path, "#!/usr/bin/env node\n1").expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("mode");
        let choice = ProgramChoice {
            executable: path.to_str().map(str::to_owned),
            interpreter: Some("/bin/sh".to_owned()),
        };
        let program = Program::find(&choice).expect("found");
        assert_eq!(
            program.words,
            [OsString::from("/bin/sh"), path.into_os_string()]
        );
    }
}
