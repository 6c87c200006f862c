//! Readers of a captured decision that was kept, changed or swapped (docs/spec/kernel.md 8.3-8.5).

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::world::{GOAL, Kernel, World};

/// A Turn whose host failed once, on the replanning that follows a closed vision.
struct Review {
    world: World,
    key: String,
    reader_ref: String,
    obligation: String,
}

impl Review {
    fn new() -> Self {
        let world = World::new();
        let closed = json!({"schema_version": "goal_vision_replan_contract_v0", "state": "vision_closed",
            "vision_patch": {"vision_summary": "See the whole table", "acceptance_summary": "Every row measured twice"},
            "path_delta": {"schema_version": "goal_path_delta_v0", "outcome": "continue", "prior_assumption": "One pass is not enough",
                "observed_reality": "Two passes agree", "retained": ["the method"], "evidence_refs": ["evidence:rows-1-40"]}});
        world.sandbox.file("closed.json", closed.to_string());
        let close = ["refresh-state", "--goal-id", GOAL, "--agent-id", "lane-a"];
        world
            .run(&close)
            .flag(&["--agent-vision-json", "closed.json", "--project", "."])
            .packet();
        let obligation = world.decide(&[])["autonomous_replan_obligation"]["obligation_id"].clone();
        let (key, reader_ref) = fail(&world, "turn-1");
        Self {
            world,
            key,
            reader_ref,
            obligation: obligation.as_str().expect("an obligation").to_owned(),
        }
    }

    fn of(&self, reader_ref: &str) -> Kernel<'_> {
        let head = ["turn", "replan-review", "--goal-id", GOAL];
        self.world
            .run(&head)
            .flag(&["--agent-id", "lane-a", "--reader-ref", reader_ref])
    }

    fn source(&self) -> Value {
        self.detail().packet()["source"].clone()
    }

    fn detail(&self) -> Kernel<'_> {
        let head = ["turn", "detail", "--goal-id", GOAL, "--agent-id", "lane-a"];
        self.world.run(&head).flag(&["--turn-key", &self.key])
    }

    fn against(&self, contract: &Value) -> Kernel<'_> {
        self.world
            .sandbox
            .file("contract.json", contract.to_string());
        self.of(&self.reader_ref)
            .flag(&["--admitted-contract", "contract.json"])
    }
}

/// Fails one Turn at its host; gives back its key and the opaque name of its capture.
fn fail(world: &World, turn: &str) -> (String, String) {
    let host = world.host("fails.sh", "exit 3");
    let failed = world.turn_with(turn, &host, "[\"/bin/true\"]").refusal();
    let key = failed["resume_turn_key"].as_str().expect("a key");
    let capture = failed["decision_capture"]["capture_id"]
        .as_str()
        .expect("a capture");
    (key.to_owned(), format!("turn-capture:{capture}"))
}

/// What no refusal may add to: admissions, debits, events.
fn rows(world: &World) -> (i64, i64, i64) {
    let sql = "SELECT (SELECT COUNT(*) FROM admissions),(SELECT COUNT(*) FROM spends),(SELECT COUNT(*) FROM events)";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    world.store().query_row(sql, [], read).expect("counts")
}

fn file_of(world: &World, key: &str) -> PathBuf {
    let folder = format!("/{}/", key.trim_start_matches("sha256:"));
    let own = |path: &PathBuf| path.to_string_lossy().contains(&folder);
    world.captures().into_iter().find(own).expect("a capture")
}

#[test]
fn an_unchanged_capture_shows_what_the_replan_is_about() {
    let review = Review::new();
    let seen = review.of(&review.reader_ref).packet();
    assert_eq!(seen["obligation_id"], review.obligation.as_str());
    assert_eq!(seen["grants_authority"], false);
    assert_eq!(seen["effects"], json!([]));
    let packet = &review.source()["decision"]["replan_action_packet"];
    for name in [
        "uncovered_frontier",
        "required_outcome",
        "allowed_terminal",
        "bounded_frontier",
    ] {
        assert_ne!(packet[name], Value::Null, "{name}");
        assert_eq!(seen[name], packet[name], "{name}");
    }
    let detail = review.detail().packet();
    assert_eq!(seen["source_revision"], detail["capture"]["source_digest"]);
}

#[test]
fn an_equal_contract_is_accepted_in_any_order_and_inside_its_envelope() {
    let review = Review::new();
    let source = review.source();
    let expected = review.of(&review.reader_ref).packet();
    assert_eq!(review.against(&source).packet(), expected);
    let wrapped = json!({"turn_envelope": {"source": source}});
    assert_eq!(review.against(&wrapped).packet(), expected);
}

#[test]
fn a_contract_with_one_other_fact_is_not_the_captured_source() {
    let review = Review::new();
    let mut source = review.source();
    source["decision"]["extra"] = json!(true);
    let before = rows(&review.world);
    let refused = review
        .against(&source)
        .refused("turn_replan_source_mismatch");
    assert_eq!(refused["effects"], json!([]));
    assert_eq!(rows(&review.world), before);
}

#[test]
fn a_review_refuses_every_flipped_byte_without_admission_or_spend() {
    let review = Review::new();
    let path = file_of(&review.world, &review.key);
    let good = fs::read(&path).expect("bytes");
    let before = rows(&review.world);
    for place in (0..good.len()).step_by(good.len() / 12) {
        let mut bytes = good.clone();
        bytes[place] ^= 1;
        fs::write(&path, bytes).expect("written");
        review
            .of(&review.reader_ref)
            .refused("turn_capture_corrupt");
    }
    assert_eq!(rows(&review.world), before);
    fs::write(&path, good).expect("written");
    review.of(&review.reader_ref).packet();
}

#[test]
fn a_reference_that_names_no_capture_is_missing() {
    let review = Review::new();
    let path = file_of(&review.world, &review.key);
    let unknown = [
        "turn-capture:00000000000000000000000000000000".to_owned(),
        review.key.clone(),
        path.file_name().expect("a name").to_string_lossy().into(),
    ];
    for reader_ref in unknown {
        let refused = review.of(&reader_ref).refused("turn_capture_missing");
        assert_eq!(refused["effects"], json!([]));
    }
    review
        .of(&path.to_string_lossy())
        .misused("invalid_arguments");
}

#[test]
fn a_reference_to_the_turn_of_another_agent_is_refused() {
    let review = Review::new();
    review.world.register("lane-b");
    let head = ["turn", "replan-review", "--goal-id", GOAL];
    let other = ["--agent-id", "lane-b", "--reader-ref", &review.reader_ref];
    review
        .world
        .run(&head)
        .flag(&other)
        .refused("owner_mismatch");
}

#[test]
fn a_review_leaves_every_byte() {
    let review = Review::new();
    review
        .world
        .sandbox
        .file("contract.json", review.source().to_string());
    let before = review.world.sandbox.tree();
    review.of(&review.reader_ref).packet();
    let equal = ["--admitted-contract", "contract.json"];
    review.of(&review.reader_ref).flag(&equal).packet();
    review.of("turn-capture:none").refusal();
    let plan = ["turn", "plan", "--goal-id", GOAL, "--agent-id", "lane-a"];
    let whole = ["--include-transaction-detail"];
    review.world.run(&plan).flag(&whole).packet();
    assert_eq!(review.world.sandbox.tree(), before);
}

#[test]
fn the_capture_of_another_turn_in_its_place_is_an_identity_mismatch_for_every_reader() {
    let (world, _) = World::with_todo();
    let (key, reader_ref) = fail(&world, "turn-1");
    let (other, _) = fail(&world, "turn-2");
    assert_ne!(key, other);
    let good = fs::read(file_of(&world, &key)).expect("bytes");
    fs::copy(file_of(&world, &other), file_of(&world, &key)).expect("swapped");
    let before = rows(&world);
    let calls = world.host_calls();
    let code = "turn_capture_identity_mismatch";
    let retry = || world.turn("turn-1").flag(&["--retry-failed-turn"]);
    retry().refused(code);
    for (command, flag, value) in [
        ("detail", "--turn-key", &key),
        ("replan-review", "--reader-ref", &reader_ref),
    ] {
        let head = ["turn", command, "--goal-id", GOAL, "--agent-id", "lane-a"];
        world.run(&head).flag(&[flag, value]).refused(code);
    }
    assert_eq!(rows(&world), before);
    assert_eq!(world.host_calls(), calls);
    fs::write(file_of(&world, &key), good).expect("restored");
    retry().packet();
    assert_eq!(world.spent(), 1);
}
