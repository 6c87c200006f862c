//! The store's commands against floors that open the same database: one row read, one row committed.

use std::process::Command;

use rusqlite::{Connection, params};
use serde_json::{Value, json};

use super::table::{Verdict, median, say, time};

const LOOPX: &str = env!("CARGO_BIN_EXE_loopx");
const FLOOR: &str = env!("CARGO_BIN_EXE_bench-floor");
const RUNS: usize = 60;
const MANY: usize = 1_000_000;

/// Times a decision on ten and on a million todos, and one durable change.
pub(crate) fn decisions(verdict: &mut Verdict) {
    let few = Goal::new(0);
    let many = Goal::new(MANY);
    let mut timed = [Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    for run in 0..RUNS {
        timed[0].push(few.floor("row"));
        timed[1].push(few.decide());
        timed[2].push(many.decide());
        timed[3].push(few.floor("commit"));
        timed[4].push(few.change(run));
    }
    let [row, ten, million, commit, change] = timed.map(median);
    say(&format!(
        "\none row {row:.2} ms, should-run on 10 todos {ten:.2} ms, on {MANY} {million:.2} ms"
    ));
    say(&format!(
        "one commit {commit:.2} ms, todo update {change:.2} ms"
    ));
    let mut check = |found: f64, allowed: f64, what: &str| {
        verdict.check(
            found <= allowed,
            &format!("{what}: {found:.2} ms of {allowed:.2}"),
        );
    };
    check(
        million,
        ten * 1.3,
        "should-run on a million todos against ten",
    );
    check(ten, row * 2.0, "should-run against one row");
    check(change, commit * 1.5, "a durable change against one commit");
}

struct Goal {
    folder: tempfile::TempDir,
    todo: String,
}

impl Goal {
    /// Ten open todos and `done` finished ones.
    fn new(done: usize) -> Self {
        let mut goal = Self {
            folder: tempfile::tempdir().expect("a folder"),
            todo: String::new(),
        };
        goal.answer(&["bootstrap", "--goal-id", "bench"]);
        goal.answer(&[
            "register-agent",
            "--goal-id",
            "bench",
            "--agent-id",
            "lane-a",
            "--execute",
        ]);
        for index in 0..10 {
            let words = format!("todo {index}");
            let added = goal.answer(&[
                "todo",
                "add",
                "--goal-id",
                "bench",
                "--role",
                "agent",
                "--text",
                &words,
            ]);
            goal.todo = added["todo_id"].as_str().expect("an id").to_owned();
        }
        goal.fill(done);
        // Each runs once before it counts: the first call of a folder has more to make.
        goal.floor("commit");
        goal
    }

    fn fill(&self, done: usize) {
        let mut store = Connection::open(self.store()).expect("the store");
        let tx = store.transaction().expect("a transaction");
        let sql = "INSERT INTO todos(goal_id,todo_id,revision,role,status,priority_rank,append_seq,archive_state,completed_us,completed_seq,body_json)
                   VALUES('bench',?1,1,'agent','done',50,?2,'active',?2,?2,?3)";
        let mut insert = tx.prepare(sql).expect("a statement");
        for index in 0..done {
            let id = format!("todo_{index:012x}");
            let body = json!({
                "schema_version": "todo_item_v0", "todo_id": id, "role": "agent", "status": "done", "done": true, "text": "done",
                "archive_state": "active", "completion_continuation": "active_goal",
            });
            insert
                .execute(params![id, index + 100, body.to_string()])
                .expect("a row");
        }
        drop(insert);
        tx.commit().expect("a commit");
        store
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .expect("a checkpoint");
    }

    fn store(&self) -> std::path::PathBuf {
        self.folder.path().join(".loopx/runtime/state.sqlite3")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(LOOPX);
        command.args(args).current_dir(self.folder.path());
        command
    }

    fn answer(&self, args: &[&str]) -> Value {
        let output = self
            .command(args)
            .args(["--format", "json"])
            .output()
            .expect("loopx starts");
        assert!(output.status.success(), "{args:?}");
        serde_json::from_slice(&output.stdout).expect("a packet")
    }

    fn decide(&self) -> std::time::Duration {
        let args = [
            "quota",
            "should-run",
            "--goal-id",
            "bench",
            "--agent-id",
            "lane-a",
            "--format",
            "json",
        ];
        time(&mut self.command(&args), b"")
    }

    fn change(&self, run: usize) -> std::time::Duration {
        let note = format!("note {run}");
        let args = [
            "todo",
            "update",
            "--goal-id",
            "bench",
            "--todo-id",
            &self.todo,
            "--note",
            &note,
        ];
        time(&mut self.command(&args), b"")
    }

    fn floor(&self, word: &str) -> std::time::Duration {
        let mut command = Command::new(FLOOR);
        command.arg(word).arg("--store").arg(self.store());
        time(&mut command, b"")
    }
}
