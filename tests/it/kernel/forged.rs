//! A stored plan that no other check can tell from ours: row, journal file, capture and every digest agree, as they would
//! in a store that another version wrote or that was edited with care. The agreement check before dispatch is what is
//! left, and it starts nothing (docs/spec/kernel.md 7.1, 7.4).

use std::fs;
use std::path::PathBuf;

use loopx::contract::digest::{content_digest, digest};
use serde_json::{Value, json};

use crate::support::world::{GOAL, World};

const GOOD: &str = "[\"/bin/true\"]";

/// What is changed in a document, under a name.
type Change<'a> = (&'a str, &'a dyn Fn(&mut Value));

/// One Turn that was captured and opened, whose host was not started yet.
struct Opened {
    world: World,
    journal: Value,
    capture: Value,
    paths: [PathBuf; 2],
}

impl Opened {
    fn new() -> Self {
        let (world, _) = World::with_todo();
        let host = world.host("good.sh", "printf '%s' \"$result\"");
        let killed = world
            .turn_with("turn-1", &host, GOOD)
            .env("LOOPX_FAILPOINT", "journal_opened")
            .prepared()
            .run();
        assert_eq!(killed.code, None, "{}", killed.text());
        let name = format!("{}.json", &world.turn_key()["sha256:".len()..]);
        let journal = world.runtime().join("goals").join(GOAL).join("turns");
        let paths = [
            journal.join(name),
            world.captures().pop().expect("a capture"),
        ];
        let read = |path| -> Value {
            let bytes = fs::read(path).expect("a file");
            serde_json::from_slice(&bytes).expect("an object")
        };
        Self {
            world,
            journal: read(&paths[0]),
            capture: read(&paths[1]),
            paths,
        }
    }

    fn envelope(&mut self) -> &mut Value {
        &mut self.journal["plan"]["turn_envelope"]
    }

    /// Gives the source another decision and renews every digest that names it.
    fn change_decision(&mut self, change: &dyn Fn(&mut Value)) {
        let envelope = self.envelope();
        change(&mut envelope["source"]["decision"]);
        let source = envelope["source"].clone();
        let [whole, decision] = [&source, &source["decision"]].map(hash);
        envelope["source_binding"]["source_digest"] = json!(whole);
        envelope["source_binding"]["source_decision_hash"] = json!(decision);
        envelope["action_signature"]["source_decision_hash"] = json!(decision);
        self.capture["source"] = source;
        self.capture["source_digest"] = json!(whole);
        self.capture["source_decision_hash"] = json!(decision);
        self.journal["decision_capture"]["source_digest"] = json!(whole);
        self.journal["decision_capture"]["source_decision_hash"] = json!(decision);
    }

    /// Puts the changed documents in place, with rows that agree with them.
    fn store(&mut self) {
        let capture = self.capture.to_string();
        let sha = content_digest(capture.as_bytes()).hex();
        self.journal["decision_capture"]["sha256"] = json!(sha);
        self.journal["decision_capture"]["byte_len"] = json!(capture.len());
        let journal = self.journal.to_string();
        let rows = self.world.store();
        let length = i64::try_from(capture.len()).expect("a length");
        let word = |name: &str| self.capture[name].as_str().expect("a word").to_owned();
        rows.execute(
            "UPDATE captures SET byte_len=?1,sha256=?2,source_digest=?3,source_decision_hash=?4",
            (
                length,
                sha,
                word("source_digest"),
                word("source_decision_hash"),
            ),
        )
        .expect("a row");
        rows.execute(
            "UPDATE turns SET journal_json=?1,journal_sha256=?2",
            (&journal, content_digest(journal.as_bytes()).hex()),
        )
        .expect("a row");
        for (path, text) in self.paths.iter().zip([journal, capture]) {
            fs::write(path, text).expect("a file");
        }
    }

    /// What a start or a spend would change.
    fn effects(&self) -> (usize, Vec<i64>) {
        let sql = [
            "SELECT COUNT(*) FROM admissions",
            "SELECT COUNT(*) FROM runs",
            "SELECT COUNT(*) FROM writebacks",
            "SELECT COUNT(*) FROM spends",
            "SELECT COUNT(*) FROM events",
            "SELECT host_attempt_count FROM turns",
        ];
        let rows = self.world.store();
        let number = |sql: &str| rows.query_row(sql, [], |row| row.get(0)).expect("a number");
        (self.world.host_calls(), sql.map(number).to_vec())
    }

    /// Every way to go on with the Turn is refused by this code and leaves no effect.
    fn refuses(&self, code: &str, what: &str) {
        let before = self.effects();
        assert_eq!(before.0, 0, "{what}");
        let key = self.world.turn_key();
        for more in [&[][..], &["--retry-failed-turn"]] {
            let packet = self.world.turn("turn-1").flag(more).refusal();
            assert_eq!(packet["error_code"], code, "{what}: {packet}");
            for effect in ["host_invoked", "state_written", "quota_spent"] {
                assert_eq!(packet["effects"][effect], false, "{what}: {packet}");
            }
        }
        let host = self.world.host("good.sh", "printf '%s' \"$result\"");
        let resumed = [
            "turn",
            "run-once",
            "--goal-id",
            GOAL,
            "--agent-id",
            "lane-a",
        ];
        let packet = self
            .world
            .run(&resumed)
            .flag(&["--resume-turn-key", &key, "--project", ".", "--execute"])
            .flag(&["--host-command-json", &host])
            .refusal();
        assert_eq!(packet["error_code"], code, "{what}: {packet}");
        assert_eq!(self.effects(), before, "{what}");
        assert_eq!(self.world.spent(), 0, "{what}");
    }
}

fn hash(value: &Value) -> String {
    digest(value).expect("canonical").to_string()
}

#[test]
fn an_unknown_control_in_a_stored_plan_refuses_before_its_host() {
    let agent = |contract: &mut Value, channel: &str, name: &str, value: Value| {
        contract["interaction_contract"][channel][name] = value;
    };
    let changes: [Change<'_>; 12] = [
        ("a control of the agent", &|decision| {
            agent(
                decision,
                "agent_channel",
                "second_review_required",
                json!(true),
            );
        }),
        ("a control of the user", &|decision| {
            agent(decision, "user_channel", "must_confirm", json!("operator"));
        }),
        ("a control of the command line", &|decision| {
            agent(
                decision,
                "cli_channel",
                "network_policy",
                json!({"deny": ["*"]}),
            );
        }),
        ("a mode", &|decision| {
            decision["interaction_contract"]["mode"] = json!("unattended_delivery");
        }),
        ("another contract", &|decision| {
            let version = json!("loopx_interaction_contract_v9");
            decision["interaction_contract"]["schema_version"] = version;
        }),
        ("no contract", &|decision| {
            decision["interaction_contract"] = Value::Null;
        }),
        ("an action", &|decision| {
            decision["effective_action"] = json!("release_everything");
        }),
        ("a decision", &|decision| {
            decision["decision"] = json!("run_twice");
        }),
        ("a state", &|decision| {
            decision["state"] = json!("almost_eligible");
        }),
        ("a root mode", &|decision| {
            decision["mode"] = json!("must-run");
        }),
        ("an orchestration", &|decision| {
            let contract = json!({"schema_version": "task_orchestration_contract_v9"});
            decision["task_orchestration_contract"] = contract;
        }),
        ("a portfolio", &|decision| {
            decision["action_portfolio"] = json!({"schema_version": "action_portfolio_v9"});
        }),
    ];
    for (what, change) in changes {
        let mut opened = Opened::new();
        opened.change_decision(change);
        opened.store();
        opened.refuses("turn_source_unsupported_semantics", what);
    }
}

#[test]
fn a_plan_that_asks_its_reader_for_an_unknown_control_refuses_before_its_host() {
    for (what, value) in [
        ("one more", json!(["decision", "second_review"])),
        ("no list", json!("decision")),
        ("no name", json!([1])),
    ] {
        let mut opened = Opened::new();
        opened.envelope()["required_controls"] = value;
        opened.store();
        opened.refuses("turn_source_unsupported_semantics", what);
    }
}

#[test]
fn an_unknown_fact_of_the_same_plan_reaches_the_host_and_the_turn_commits() {
    let mut opened = Opened::new();
    let fact = json!({"weight": 1.50, "words": ["kept"]});
    opened.change_decision(&|decision| {
        decision["future_fact"] = fact.clone();
        // A control that is off asks for nothing.
        decision["interaction_contract"]["agent_channel"]["second_review_required"] = json!(false);
    });
    opened.store();
    let done = opened.world.turn("turn-1").packet();
    assert_eq!(done["status"], "committed", "{done}");
    assert_eq!((opened.world.host_calls(), opened.world.spent()), (1, 1));
    let entries = fs::read_dir(opened.world.sandbox.project()).expect("the project");
    let request = entries
        .map(|entry| entry.expect("an entry").path())
        .find(|path| path.to_string_lossy().contains("/request-"))
        .expect("a request");
    let request: Value = serde_json::from_slice(&fs::read(request).expect("bytes")).expect("JSON");
    let decision = &request["turn_envelope"]["source"]["decision"];
    assert_eq!(decision["future_fact"], fact);
}

#[test]
fn a_stored_plan_whose_parts_disagree_refuses_by_the_part() {
    let changes: [Change<'_>; 8] = [
        ("turn_envelope_unsupported_version", &|plan| {
            plan["turn_envelope"]["schema_version"] = json!("loopx_turn_envelope_v2");
        }),
        ("turn_source_missing", &|plan| {
            plan["turn_envelope"]["execution"]["kind"] = json!("inspection");
        }),
        ("turn_source_digest_mismatch", &|plan| {
            plan["turn_envelope"]["source_binding"]["source_digest"] = json!("sha256:0");
        }),
        ("turn_action_mismatch", &|plan| {
            plan["turn_envelope"]["action"]["primary_action"] = json!("Delete the store");
        }),
        ("turn_identity_mismatch", &|plan| {
            let identity = &mut plan["turn_envelope"]["identity"];
            identity["todo_id"] = json!("todo_other");
            let renewed = json!(hash(identity));
            plan["turn_envelope"]["source_binding"]["identity_digest"] = renewed;
        }),
        ("turn_authority_mismatch", &|plan| {
            let authority = &mut plan["turn_envelope"]["authority"];
            authority["write_scope"] = json!(["/**"]);
            let renewed = json!(hash(authority));
            plan["turn_envelope"]["source_binding"]["authority_digest"] = renewed;
        }),
        ("turn_settlement_mismatch", &|plan| {
            let settlement = &mut plan["turn_envelope"]["settlement"];
            settlement["spend_slots"] = json!(0);
            let renewed = json!(hash(settlement));
            plan["turn_envelope"]["source_binding"]["settlement_digest"] = renewed;
        }),
        ("turn_key_mismatch", &|plan| {
            let other = format!("sha256:{}", "0".repeat(64));
            plan["turn_envelope"]["source_binding"]["turn_key"] = json!(other);
        }),
    ];
    for (code, change) in changes {
        let mut opened = Opened::new();
        change(&mut opened.journal["plan"]);
        opened.store();
        opened.refuses(code, code);
    }
}
