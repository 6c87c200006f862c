//! Every effectful command beside every other: many workers on one goal, whose kinds of commands take turns
//! (docs/spec/kernel.md 15). Whatever the order was, the cap holds, one effect has one id and no half is left.

use std::sync::Mutex;

use serde_json::Value;

use crate::support::world::{GOAL, Kernel, World};

const WORKERS: usize = 30;
/// Commands each worker runs, one after the other.
const ROUNDS: usize = 9;
const CAP: i64 = 9;
/// How often a command is given again to a busy store.
const PATIENCE: usize = 20;
const BUSY: [&str; 2] = ["store_busy", "lock_acquire_timeout"];
/// What no order of commands may lead to.
const DAMAGE: [&str; 7] = [
    "internal_error",
    "store_corrupt",
    "store_write_failed",
    "journal_inconsistent",
    "effect_outcome_unknown",
    "malformed_settlement_state",
    "turn_capture_corrupt",
];
const LANES: [&str; 5] = ["lane-0", "lane-1", "lane-2", "lane-3", "lane-4"];

/// What the workers share.
struct Shared {
    world: World,
    /// A todo everybody may take.
    free: String,
    gate: String,
    /// Bound to a Turn that is admitted and not written back.
    admitted: String,
    /// Bound to a Turn that is written back and not paid.
    owed: String,
    host: String,
    succeeded: Mutex<Vec<&'static str>>,
    /// Every refusal, with the command that met it.
    refused: Mutex<Vec<String>>,
}

/// One command of one worker.
struct Step<'a> {
    shared: &'a Shared,
    lane: &'static str,
    other: &'static str,
    /// Different in every step.
    mark: String,
    worker: usize,
}

type Kind = (&'static str, fn(&Step<'_>) -> bool);

/// The kinds, and whether at least one of each has to succeed whatever the others do.
const KINDS: [(Kind, bool); 20] = [
    (("todo add", |step| step.add(&[]).is_some()), true),
    (("register-agent", register), true),
    (("quota should-run", ask), true),
    (("refresh-state", note), true),
    (("configure-goal", configure), true),
    (("todo claim", claim), true),
    (("task-lease of a shared todo", lease_shared), false),
    (("quota spend-slot", spend), true),
    (
        ("todo list", |step| step.ends(&["todo", "list"], &[])),
        true,
    ),
    (("todo update", update), true),
    (("todo complete", complete), true),
    (("todo supersede", supersede), true),
    (("gate decision", decide), true),
    (("operator-gate", operator_gate), true),
    (("task-lease", lease_own), true),
    (("handoff", handoff), false),
    (("turn run-once", turn), false),
    (("refresh-state of a Turn", settle), false),
    (("quota spend-slot of a Turn", pay), false),
    (("todo archive-completed", archive), true),
];

impl Step<'_> {
    /// Runs to an answer. A store that was busy for too long changed nothing, so the same words are given again.
    fn run(&self, words: &[&str], more: &[&str]) -> Option<Value> {
        for _ in 0..PATIENCE {
            let run: Kernel<'_> = self.shared.world.run(words).flag(&["--goal-id", GOAL]);
            let done = run.flag(more).flag(&["--format", "json"]).prepared().run();
            let packet = done.json();
            assert!(matches!(done.code, Some(0 | 1)), "{words:?}: {packet}");
            assert_eq!(packet["ok"], done.code == Some(0), "{words:?}: {packet}");
            if done.code == Some(0) {
                return Some(packet);
            }
            let code = packet["error_code"].as_str().expect("a code");
            assert!(!DAMAGE.contains(&code), "{words:?}: {packet}");
            let mut refused = self.shared.refused.lock().expect("no panic");
            refused.push(format!("{}: {code}", words[..2].join(" ")));
            if !BUSY.contains(&code) {
                return None;
            }
        }
        None
    }

    fn ends(&self, words: &[&str], more: &[&str]) -> bool {
        self.run(words, more).is_some()
    }

    /// A todo of this step alone.
    fn add(&self, more: &[&str]) -> Option<String> {
        let text = format!("Work {}", self.mark);
        let words = ["todo", "add", "--role", "agent", "--text", &text];
        let packet = self.run(&words, more)?;
        packet["todo_id"].as_str().map(str::to_owned)
    }

    fn own(&self) -> String {
        self.add(&["--claimed-by", self.lane])
            .unwrap_or_else(|| panic!("{:?}", self.shared.refused.lock()))
    }
}

fn register(step: &Step<'_>) -> bool {
    step.ends(&["register-agent", "--execute"], &["--agent-id", step.lane])
}

fn ask(step: &Step<'_>) -> bool {
    let turn = format!("asked-{}", step.mark);
    let words = ["quota", "should-run", "--agent-id", step.lane];
    step.ends(&words, &["--turn-instance-id", &turn])
}

fn note(step: &Step<'_>) -> bool {
    let words = ["refresh-state", "--agent-id", step.lane];
    step.ends(&words, &["--classification", "note"])
}

fn configure(step: &Step<'_>) -> bool {
    let cap = CAP.to_string();
    step.ends(
        &["configure-goal", "--execute"],
        &["--quota-allowed-slots", &cap],
    )
}

fn claim(step: &Step<'_>) -> bool {
    let words = ["todo", "claim", "--todo-id", &step.shared.free];
    step.ends(&words, &["--claimed-by", step.lane])
}

fn lease_shared(step: &Step<'_>) -> bool {
    let words = ["task-lease", "acquire", "--todo-id", &step.shared.free];
    step.ends(
        &words,
        &["--owner", step.lane, "--idempotency-key", &step.mark],
    )
}

fn spend(step: &Step<'_>) -> bool {
    let words = ["quota", "spend-slot", "--execute", "--agent-id", step.lane];
    step.ends(&words, &["--source", "controller"])
}

fn update(step: &Step<'_>) -> bool {
    let words = ["todo", "update", "--todo-id", &step.shared.free];
    step.ends(&words, &["--note", &step.mark])
}

fn complete(step: &Step<'_>) -> bool {
    let todo = step.own();
    let words = ["todo", "complete", "--todo-id", &todo];
    assert!(
        step.ends(&words, &["--agent-id", step.lane]),
        "it is its own: {:?}",
        step.shared.refused.lock()
    );
    !step.ends(&words, &["--agent-id", step.lane])
}

fn supersede(step: &Step<'_>) -> bool {
    let todo = step.own();
    let words = ["todo", "supersede", "--todo-id", &todo];
    step.ends(&words, &["--reason", "another way"])
}

fn decide(step: &Step<'_>) -> bool {
    let outcome = ["approve", "reject", "cancel"][step.worker % 3];
    let words = ["todo", "update", "--todo-id", &step.shared.gate];
    step.ends(&words, &["--decision-outcome", outcome])
}

fn operator_gate(step: &Step<'_>) -> bool {
    let decision = ["approve", "defer"][step.worker % 2];
    let words = ["operator-gate", "--gate", "release"];
    step.ends(&words, &["--decision", decision])
}

fn lease_own(step: &Step<'_>) -> bool {
    let todo = step.own();
    let proof = [
        "--todo-id",
        &todo,
        "--owner",
        step.lane,
        "--idempotency-key",
        &step.mark,
    ];
    let is_taken = step.ends(&["task-lease", "acquire"], &proof);
    is_taken
        && step.ends(
            &["task-lease", "release", "--expected-version", "1"],
            &proof,
        )
}

fn handoff(step: &Step<'_>) -> bool {
    let todo = step.own();
    let file = format!("note-{}.json", step.mark);
    let world = &step.shared.world;
    world.sandbox.file(&file, r#"{"work_summary":"half done"}"#);
    let at = ["--todo-id", &todo, "--agent-id", step.lane];
    let Some(seen) = step.run(&["todo", "list"], &[]) else {
        return false;
    };
    let revision = |packet: &Value| {
        packet["provider_revision"]
            .as_str()
            .expect("a revision")
            .to_owned()
    };
    let operation = format!("prepare-{}", step.mark);
    let words = [
        "handoff",
        "prepare",
        "--session-id",
        "s1",
        "--from-context",
        &file,
    ];
    let expected = [
        "--operation-id",
        &operation,
        "--expected-revision",
        &revision(&seen),
    ];
    let Some(prepared) = step.run(&words, &[&at[..], &expected].concat()) else {
        return false;
    };
    let operation = format!("adopt-{}", step.mark);
    let words = ["handoff", "adopt", "--session-id", "s2", "--todo-id", &todo];
    let expected = [
        "--operation-id",
        &operation,
        "--expected-revision",
        &revision(&prepared),
    ];
    let adopter = ["--agent-id", step.other, "--target-agent-id", step.other];
    step.run(&words, &[&adopter[..], &expected].concat())
        .is_some_and(|adopted| {
            assert_eq!(adopted["current_authority_verified"], true, "{adopted}");
            true
        })
}

/// Three Turns for all workers: each is run by many.
fn turn(step: &Step<'_>) -> bool {
    let number = step.worker % 3;
    let (lane, instance) = (LANES[2 + number], format!("driven-{number}"));
    let words = [
        "turn",
        "run-once",
        "--execute",
        "--project",
        ".",
        "--agent-id",
        lane,
    ];
    let host = ["--host-command-json", &step.shared.host];
    let more = [
        "--turn-instance-id",
        &instance,
        "--validation-command-json",
        "[\"/bin/true\"]",
    ];
    step.ends(&words, &[&host[..], &more].concat())
}

fn settle(step: &Step<'_>) -> bool {
    let words = [
        "refresh-state",
        "--agent-id",
        "lane-0",
        "--todo-id",
        &step.shared.admitted,
    ];
    let content = [
        "--classification",
        "step_done",
        "--delivery-outcome",
        "outcome_progress",
    ];
    let turn = ["--turn-instance-id", "admitted", "--settle-turn"];
    step.ends(&words, &[&content[..], &turn].concat())
}

fn pay(step: &Step<'_>) -> bool {
    let words = ["quota", "spend-slot", "--execute", "--agent-id", "lane-1"];
    step.ends(
        &words,
        &["--todo-id", &step.shared.owed, "--turn-instance-id", "owed"],
    )
}

fn archive(step: &Step<'_>) -> bool {
    step.ends(&["todo", "archive-completed"], &[])
}

fn shared() -> Shared {
    let world = World::new();
    for lane in LANES {
        world.register(lane);
    }
    world.configure(&["--quota-allowed-slots", &CAP.to_string()]);
    let admit = |lane: &str, turn: &str| {
        let todo = world.todo(turn, &["--claimed-by", lane, "--priority", "P0"]);
        let named = ["--turn-instance-id", turn, "--todo-id", &todo];
        world.ask(lane, &named).packet();
        todo
    };
    let (admitted, owed) = (admit("lane-0", "admitted"), admit("lane-1", "owed"));
    let words = [
        "refresh-state",
        "--goal-id",
        GOAL,
        "--agent-id",
        "lane-1",
        "--todo-id",
        &owed,
    ];
    let more = [
        "--turn-instance-id",
        "owed",
        "--delivery-outcome",
        "outcome_progress",
    ];
    world.run(&words).flag(&more).packet();
    let free = world.todo("Free", &[]);
    let gate = world.gate("Paint?", &["--decision-scope", "direction:goal:colour"]);
    let host = world.host("good.sh", "printf '%s' \"$result\"");
    Shared {
        free,
        gate,
        admitted,
        owed,
        host,
        succeeded: Mutex::new(Vec::new()),
        refused: Mutex::new(Vec::new()),
        world,
    }
}

fn work(shared: &Shared, worker: usize) {
    for round in 0..ROUNDS {
        let ((name, run), _) = KINDS[(worker + round) % KINDS.len()];
        let step = Step {
            shared,
            lane: LANES[worker % LANES.len()],
            other: LANES[(worker + 1) % LANES.len()],
            mark: format!("{worker}-{round}"),
            worker,
        };
        if run(&step) {
            shared.succeeded.lock().expect("no panic").push(name);
        }
    }
}

fn number(world: &World, sql: &str) -> i64 {
    world
        .store()
        .query_row(sql, [], |row| row.get(0))
        .expect(sql)
}

#[test]
fn thirty_mixed_processes_leave_a_sound_store_and_no_command_half_done() {
    let shared = shared();
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let shared = &shared;
            scope.spawn(move || work(shared, worker));
        }
    });
    let world = &shared.world;
    let succeeded = shared.succeeded.lock().expect("no panic");
    for ((name, _), must) in KINDS {
        assert!(!must || succeeded.contains(&name), "none succeeded: {name}");
    }
    invariants(world);
    world.todo("the last", &[]);
    let rows = number(world, "SELECT COUNT(*) FROM events");
    assert_eq!(world.events().len() as i64, rows, "the export is whole");
}

fn invariants(world: &World) {
    let spent = number(world, "SELECT COALESCE(SUM(slots),0) FROM spends");
    assert!((1..=CAP).contains(&spent), "the cap holds: {spent}");
    assert_eq!(world.outcome().3, "ok");
    for (what, left, right) in [
        (
            "every revision has its events",
            "SELECT COUNT(DISTINCT goal_revision) FROM events",
            "SELECT revision FROM goal_heads",
        ),
        (
            "every spend has one event",
            "SELECT COUNT(*) FROM spends",
            "SELECT COUNT(*) FROM events WHERE event_kind='quota_spend'",
        ),
        (
            "every spend has one run",
            "SELECT COUNT(*) FROM spends",
            "SELECT COUNT(*) FROM runs WHERE classification='quota_slot_spent'",
        ),
        (
            "every writeback has one run and its event",
            "SELECT COUNT(*) FROM writebacks",
            "SELECT COUNT(*) FROM writebacks JOIN events USING(event_id) JOIN runs USING(effect_id)
             WHERE classification<>'quota_slot_spent'",
        ),
        (
            "every Turn is settled or was never written back",
            "SELECT COUNT(*) FROM turns WHERE status='committed'",
            "SELECT COUNT(*) FROM turns JOIN writebacks USING(effect_id) JOIN spends USING(effect_id)",
        ),
        (
            "no host was started twice",
            "SELECT COUNT(*) FROM turns WHERE host_attempt_count>1",
            "SELECT 0",
        ),
        (
            "one admission has one effect",
            "SELECT COUNT(*) FROM admissions WHERE effect_id IS NOT NULL",
            "SELECT COUNT(DISTINCT effect_id) FROM admissions WHERE effect_id IS NOT NULL",
        ),
    ] {
        assert_eq!(number(world, left), number(world, right), "{what}");
    }
    let started = number(
        world,
        "SELECT COALESCE(SUM(host_attempt_count),0) FROM turns",
    );
    assert_eq!(world.host_calls() as i64, started, "every host is counted");
    let doctor = world.run(&["doctor"]).packet();
    for check in ["store", "goals", "receipts", "todo_counts", "exports"] {
        let findings = doctor["findings"].as_array().expect("findings").iter();
        let mut found = findings.filter(|finding| finding["check"] == check);
        assert_eq!(found.next().expect(check)["status"], "ok", "{doctor}");
    }
}
