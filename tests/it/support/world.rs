//! One goal with its agents, todos and hosts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::Value;

use super::{Run, Sandbox};

pub(crate) const GOAL: &str = "demo-goal";

/// A sandbox with one goal in it.
pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
}

impl World {
    /// A goal with one agent and nothing to do.
    pub(crate) fn new() -> Self {
        let world = Self {
            sandbox: Sandbox::new(),
        };
        world
            .run(&["bootstrap", "--goal-id", GOAL, "--title", "Demo"])
            .packet();
        world.register("lane-a");
        world
    }

    /// The same with one runnable todo.
    pub(crate) fn with_todo() -> (Self, String) {
        let world = Self::new();
        let todo = world.todo("Measure the first step", &[]);
        (world, todo)
    }

    pub(crate) fn register(&self, agent: &str) {
        let args = ["register-agent", "--goal-id", GOAL, "--agent-id", agent];
        self.run(&args).execute().packet();
    }

    pub(crate) fn run(&self, args: &[&str]) -> Kernel<'_> {
        Kernel {
            world: self,
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: Vec::new(),
        }
    }

    pub(crate) fn todo(&self, words: &str, more: &[&str]) -> String {
        let head = [
            "todo",
            "add",
            "--goal-id",
            GOAL,
            "--role",
            "agent",
            "--text",
            words,
        ];
        let packet = self.run(&[&head[..], more].concat()).packet();
        packet["todo_id"].as_str().expect("an id").to_owned()
    }

    pub(crate) fn gate(&self, words: &str, more: &[&str]) -> String {
        let head = [
            "todo",
            "add",
            "--goal-id",
            GOAL,
            "--role",
            "user",
            "--task-class",
            "user_gate",
            "--text",
            words,
        ];
        let packet = self.run(&[&head[..], more].concat()).packet();
        packet["todo_id"].as_str().expect("an id").to_owned()
    }

    pub(crate) fn configure(&self, more: &[&str]) {
        let head = ["configure-goal", "--goal-id", GOAL];
        self.run(&[&head[..], more].concat()).execute().packet();
    }

    /// Asks as `lane-a`.
    pub(crate) fn decide(&self, more: &[&str]) -> Value {
        self.ask("lane-a", more).packet()
    }

    pub(crate) fn ask(&self, agent: &str, more: &[&str]) -> Kernel<'_> {
        let head = [
            "quota",
            "should-run",
            "--goal-id",
            GOAL,
            "--agent-id",
            agent,
        ];
        self.run(&[&head[..], more].concat())
    }

    pub(crate) fn spent(&self) -> i64 {
        self.decide(&[])["quota"]["spent_slots"]
            .as_i64()
            .expect("a number")
    }

    pub(crate) fn refresh(&self, todo: &str, turn: &str, more: &[&str]) -> Kernel<'_> {
        let head = [
            "refresh-state",
            "--goal-id",
            GOAL,
            "--agent-id",
            "lane-a",
            "--todo-id",
            todo,
            "--turn-instance-id",
            turn,
            "--classification",
            "step_done",
            "--delivery-outcome",
            "outcome_progress",
        ];
        self.run(&[&head[..], more].concat())
    }

    pub(crate) fn spend(&self, todo: &str, turn: &str) -> Kernel<'_> {
        self.run(&[
            "quota",
            "spend-slot",
            "--goal-id",
            GOAL,
            "--agent-id",
            "lane-a",
            "--todo-id",
            todo,
            "--turn-instance-id",
            turn,
            "--execute",
        ])
    }

    /// A host script: `body` may use `$result`, a sound result of this Turn.
    pub(crate) fn host(&self, name: &str, body: &str) -> String {
        let script = format!(
            "#!/bin/sh\ncat > request-$$.json\necho call >> calls\nresult='{{\"schema_version\":\"loopx_turn_result_v0\",\"turn_key\":\"'$LOOPX_TURN_KEY'\",\
             \"result_kind\":\"validated_progress\",\"completed_phases\":[\"host_execute\",\"typed_result\"],\"classification\":\"host_progress\",\
             \"recommended_action\":\"Read on\",\"next_action\":\"Go on\",\"delivery_batch_scale\":\"implementation\",\
             \"delivery_outcome\":\"outcome_progress\",\"path_delta_mode\":\"unchanged\",\"vision_unchanged_reason\":\"Scope stays\"}}'\n{body}\n"
        );
        let path = self.sandbox.file(name, script);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
        format!("[\"./{name}\"]")
    }

    /// A Turn with a host that does what it says.
    pub(crate) fn turn(&self, turn: &str) -> Kernel<'_> {
        let host = self.host("good.sh", "printf '%s' \"$result\"");
        self.turn_with(turn, &host, "[\"/bin/true\"]")
    }

    pub(crate) fn turn_with(&self, turn: &str, host: &str, validator: &str) -> Kernel<'_> {
        self.run(&[
            "turn",
            "run-once",
            "--goal-id",
            GOAL,
            "--agent-id",
            "lane-a",
            "--turn-instance-id",
            turn,
            "--project",
            ".",
            "--host-command-json",
            host,
            "--validation-command-json",
            validator,
            "--execute",
        ])
    }

    /// How often hosts were started.
    pub(crate) fn host_calls(&self) -> usize {
        let calls = self.sandbox.project().join("calls");
        fs::read_to_string(calls).map_or(0, |text| text.lines().count())
    }

    pub(crate) fn runtime(&self) -> PathBuf {
        self.sandbox.project().join(".loopx/runtime")
    }

    /// The classifications of the exported runs, sorted.
    pub(crate) fn runs(&self) -> Vec<String> {
        let path = self
            .runtime()
            .join("goals")
            .join(GOAL)
            .join("runs/index.jsonl");
        let text = fs::read_to_string(path).unwrap_or_default();
        let mut runs: Vec<String> = text
            .lines()
            .map(|line| {
                let run: Value = serde_json::from_str(line).expect("a run");
                run["classification"].as_str().expect("a class").to_owned()
            })
            .collect();
        runs.sort();
        runs
    }

    /// The exported events' kinds, in order.
    pub(crate) fn events(&self) -> Vec<Value> {
        let path = self
            .runtime()
            .join("goals")
            .join(GOAL)
            .join("rollout-event-log.jsonl");
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).expect("an event"))
            .collect()
    }

    /// The key of the only stored Turn.
    pub(crate) fn turn_key(&self) -> String {
        let files = self.files_below("turns", |name| name.ends_with(".json"));
        assert_eq!(files.len(), 1, "one journal");
        let name = files[0].file_stem().expect("a name").to_string_lossy();
        format!("sha256:{name}")
    }

    pub(crate) fn captures(&self) -> Vec<PathBuf> {
        self.files_below("turn-captures", |_| true)
    }

    fn files_below(&self, folder: &str, keep: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut open = vec![self.runtime().join("goals").join(GOAL).join(folder)];
        while let Some(folder) = open.pop() {
            let Ok(entries) = fs::read_dir(folder) else {
                continue;
            };
            for entry in entries {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    open.push(path);
                } else if keep(&path.to_string_lossy()) {
                    found.push(path);
                }
            }
        }
        found
    }

    pub(crate) fn store(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.runtime().join("state.sqlite3")).expect("the store")
    }

    /// What must be equal however a command was interrupted and repeated.
    pub(crate) fn outcome(&self) -> (i64, Vec<String>, Vec<(String, String)>, String) {
        let list = self.run(&["todo", "list", "--goal-id", GOAL]).packet();
        let todos = list["todos"].as_array().expect("todos");
        let mut todos: Vec<(String, String)> = todos
            .iter()
            .map(|todo| (todo["text"].to_string(), todo["status"].to_string()))
            .collect();
        todos.sort();
        let sound: String = self
            .store()
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .expect("a check");
        (self.spent(), self.runs(), todos, sound)
    }
}

/// One command being prepared.
pub(crate) struct Kernel<'a> {
    world: &'a World,
    args: Vec<String>,
    env: Vec<(String, String)>,
}

impl<'a> Kernel<'a> {
    pub(crate) fn execute(mut self) -> Self {
        self.args.push("--execute".to_owned());
        self
    }

    pub(crate) fn flag(mut self, flags: &[&str]) -> Self {
        self.args
            .extend(flags.iter().map(|flag| (*flag).to_owned()));
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn now(self, instant: &str) -> Self {
        self.env("LOOPX_TEST_NOW", instant)
    }

    pub(crate) fn prepared(self) -> Run<'a> {
        let run = self.world.sandbox.loopx(&self.args);
        self.env
            .iter()
            .fold(run, |run, (name, value)| run.env(name, value))
    }

    pub(crate) fn packet(self) -> Value {
        self.prepared().packet()
    }

    pub(crate) fn refusal(self) -> Value {
        self.prepared().refusal()
    }

    /// Requires this code.
    pub(crate) fn refused(self, code: &str) -> Value {
        let packet = self.refusal();
        assert_eq!(packet["error_code"], code, "{packet}");
        packet
    }

    /// Requires exit 2 with this code.
    pub(crate) fn misused(self, code: &str) {
        let finished = self.flag(&["--format", "json"]).prepared().run();
        assert_eq!(finished.code, Some(2), "{}", finished.text());
        assert_eq!(finished.json()["error_code"], code);
    }
}
