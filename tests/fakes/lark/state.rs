//! The state of one stand-in: a folder with a lock, so that concurrent calls come one after the other.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// The folder of one stand-in.
pub(crate) struct Folder {
    path: PathBuf,
}

/// Everything the platform knows.
pub(crate) struct State(pub(crate) Value);

/// The state while its lock is held.
pub(crate) struct Held<'a> {
    folder: &'a Folder,
    state: State,
    _lock: File,
}

impl Folder {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    pub(crate) fn read(&self, name: &str) -> Value {
        let bytes = std::fs::read(self.path.join(name)).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_else(|_| json!({}))
    }

    pub(crate) fn write(&self, name: &str, value: &Value) {
        let temp = self.path.join(format!(".{name}.tmp"));
        std::fs::write(&temp, value.to_string()).expect("the state is written");
        std::fs::rename(&temp, self.path.join(name)).expect("the state is replaced");
    }

    pub(crate) fn lock(&self) -> Held<'_> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.path.join("lock"))
            .expect("a lock file");
        file.lock().expect("the lock");
        Held {
            folder: self,
            state: State(self.read("state.json")),
            _lock: file,
        }
    }

    pub(crate) fn log(&self, argv: &[String], command: &str) {
        let line = format!(
            "{}\n",
            json!({"command": command, "argv": argv, "pid": std::process::id()})
        );
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path.join("calls.jsonl"));
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .expect("the call is logged");
    }
}

impl Held<'_> {
    pub(crate) fn save(&self) {
        self.folder.write("state.json", &self.state.0);
    }

    pub(crate) fn faults(&self) -> Value {
        self.folder.read("faults.json")
    }
}

impl Deref for Held<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl State {
    /// Seconds of the platform's own clock.
    pub(crate) fn now(&self) -> i64 {
        let real = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        i64::try_from(real).unwrap_or(0) + self.0["clock_offset"].as_i64().unwrap_or(0)
    }

    /// A number that was never given before.
    pub(crate) fn fresh(&mut self) -> u64 {
        let next = self.0["next"].as_u64().unwrap_or(0) + 1;
        self.0["next"] = json!(next);
        next
    }

    pub(crate) fn profile(&self, name: &str) -> Option<&Value> {
        self.0["profiles"].get(name)
    }

    pub(crate) fn list(&mut self, name: &str) -> &mut Vec<Value> {
        if !self.0[name].is_array() {
            self.0[name] = json!([]);
        }
        self.0[name].as_array_mut().expect("a list was just made")
    }

    pub(crate) fn messages(&self) -> &[Value] {
        self.0["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    pub(crate) fn message(&self, id: &str) -> Option<&Value> {
        self.messages()
            .iter()
            .find(|message| message["message_id"] == id)
    }

    pub(crate) fn option(&self, name: &str, default: usize) -> usize {
        self.0["options"][name]
            .as_u64()
            .and_then(|value| usize::try_from(value).ok())
            .unwrap_or(default)
    }
}
