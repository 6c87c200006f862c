//! Whom a todo is for, what a gate holds up, and the words a todo takes (docs/spec/kernel.md 4.1, 4.4, 5.2).

use serde_json::Value;

use crate::support::world::{GOAL, World};

fn add(words: &[&str]) -> Vec<String> {
    let head = ["todo", "add", "--goal-id", GOAL, "--text", "something"];
    let all = head.iter().chain(words);
    all.map(|word| (*word).to_owned()).collect()
}

fn run(world: &World, words: &[String]) -> Value {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    world.run(&words).packet()
}

fn misused(world: &World, words: &[String]) {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    world.run(&words).misused("invalid_arguments");
}

#[test]
fn a_global_gate_without_a_class_is_a_user_gate_and_holds_everybody_up() {
    for flags in [&["--global-gate"][..], &["--blocks-agent", "lane-a"]] {
        let (world, _) = World::with_todo();
        let gate = run(&world, &add(&[&["--role", "user"], flags].concat()));
        assert_eq!(gate["todo"]["task_class"], "user_gate");
        assert_eq!(
            world.decide(&[])["effective_action"],
            "operator_gate_notify"
        );
        let id = gate["todo_id"].as_str().expect("an id");
        let close = ["--todo-id", id, "--status", "done"];
        world
            .run(&[&["todo", "update", "--goal-id", GOAL][..], &close].concat())
            .refused("gate_decision_required");
    }
}

#[test]
fn what_only_a_gate_can_do_is_refused_on_any_other_todo() {
    let world = World::new();
    for role in [
        &["--role", "agent"][..],
        &["--role", "user", "--task-class", "user_action"],
    ] {
        misused(&world, &add(&[role, &["--global-gate"]].concat()));
        misused(
            &world,
            &add(&[role, &["--blocks-agent", "lane-a"]].concat()),
        );
    }
}

#[test]
fn a_gate_that_names_no_target_says_that_it_holds_nothing_up() {
    let world = World::new();
    let gate = ["--role", "user", "--task-class", "user_gate"];
    let bare = run(&world, &add(&gate));
    assert!(bare["next_step"].to_string().contains("--decision-scope"));
    let scoped = [&gate[..], &["--decision-scope", "production:goal:release"]].concat();
    assert_eq!(run(&world, &add(&scoped))["next_step"], Value::Null);
}

#[test]
fn no_writer_gives_a_todo_to_an_agent_it_is_not_for() {
    for keeps_away in [["--bound-agent", "lane-b"], ["--exclude-agent", "lane-a"]] {
        let world = World::new();
        world.register("lane-b");
        let todo = world.todo("for lane-b alone", &keeps_away);
        let at = ["--goal-id", GOAL, "--todo-id", &todo];
        let lease = ["--owner", "lane-a", "--idempotency-key", "k1"];
        for (head, tail) in [
            (["todo", "claim"], &["--agent-id", "lane-a"][..]),
            (["todo", "complete"], &["--agent-id", "lane-a"]),
            (
                ["todo", "update"],
                &["--agent-id", "lane-a", "--status", "done"],
            ),
            (["task-lease", "acquire"], &lease),
        ] {
            world
                .run(&[&head[..], &at, tail].concat())
                .refused("claim_owner_mismatch");
        }
        let theirs = ["--owner", "lane-b", "--idempotency-key", "k2"];
        world
            .run(&[&["task-lease", "acquire"][..], &at, &theirs].concat())
            .packet();
        let to = ["--new-owner", "lane-a", "--new-idempotency-key", "k3"];
        world
            .run(&[&["task-lease", "transfer"][..], &at, &theirs, &to].concat())
            .flag(&["--expected-version", "1"])
            .refused("claim_owner_mismatch");
        let complete = ["--agent-id", "lane-b", "--task-lease-idempotency-key", "k2"];
        world
            .run(&[&["todo", "complete"][..], &at, &complete].concat())
            .packet();
    }
}

#[test]
fn an_owner_that_is_kept_away_is_refused_from_the_start() {
    let world = World::new();
    world.register("lane-b");
    let owned = ["--role", "agent", "--claimed-by", "lane-a"];
    misused(
        &world,
        &add(&[&owned[..], &["--bound-agent", "lane-b"]].concat()),
    );
    misused(
        &world,
        &add(&[&owned[..], &["--exclude-agent", "lane-a"]].concat()),
    );
}

#[test]
fn conditions_and_cadences_that_mean_nothing_are_refused() {
    let (world, todo) = World::with_todo();
    misused(
        &world,
        &add(&["--role", "agent", "--resume-when", "garbage"]),
    );
    misused(&world, &add(&["--role", "agent", "--cadence", "sometimes"]));
    let update = ["todo", "update", "--goal-id", GOAL, "--todo-id", &todo];
    world
        .run(&[&update[..], &["--resume-when", "later"]].concat())
        .misused("invalid_arguments");
    run(&world, &add(&["--role", "agent", "--cadence", "30m"]));
}

#[test]
fn a_goal_that_waits_for_nobody_says_how_it_works_again() {
    let world = World::new();
    let clear = ["configure-goal", "--goal-id", GOAL, "--clear-waiting-on"];
    let cleared = world.run(&clear).execute().packet();
    assert_eq!(cleared["waiting_on"], Value::Null);
    let next = cleared["next_step"].as_str().expect("a sentence");
    assert!(next.contains("--waiting-on codex --execute"), "{next}");
    assert_eq!(world.decide(&[])["state"], "waiting");
    let back = ["configure-goal", "--goal-id", GOAL, "--waiting-on", "codex"];
    assert_eq!(
        world.run(&back).execute().packet()["next_step"],
        Value::Null
    );
}

#[test]
fn every_lease_command_takes_its_own_flags_alone() {
    let (world, todo) = World::with_todo();
    let at = ["--goal-id", GOAL, "--todo-id", &todo];
    let holder = ["--owner", "lane-a", "--idempotency-key", "k1"];
    for (action, foreign) in [
        ("acquire", ["--new-owner", "lane-b"]),
        ("renew", ["--write-scope", "src"]),
        ("release", ["--ttl-seconds", "60"]),
        ("transfer", ["--ttl-seconds", "60"]),
    ] {
        world
            .run(&[&["task-lease", action][..], &at, &holder, &foreign].concat())
            .misused("invalid_arguments");
    }
}

#[test]
fn a_host_that_cannot_be_started_is_named_and_was_not_invoked() {
    let (world, _) = World::with_todo();
    let failed = world
        .turn_with("turn-1", "[\"./absent\"]", "[\"/bin/true\"]")
        .refusal();
    assert_eq!(failed["host_failure"]["cause"], "program_not_started");
    assert_eq!(failed["effects"]["host_invoked"], false);
    assert_eq!(failed["recovery"]["can_continue"], true);
    assert_eq!(failed["recovery"]["reason"], "retry_failed_phase");
    let told = failed["error"].to_string();
    assert!(told.contains("could not be started"), "{told}");
}

#[test]
fn the_exit_code_of_a_host_and_the_missing_validator_are_named() {
    let (world, _) = World::with_todo();
    let host = world.host("fails.sh", "exit 7");
    let failed = world
        .turn_with("turn-1", &host, "[\"/bin/true\"]")
        .refusal();
    assert_eq!(failed["host_failure"]["cause"], "exit_status");
    assert_eq!(failed["host_failure"]["exit_code"], 7);
    assert_eq!(failed["effects"]["host_invoked"], true);
    let validator = world.turn_with("turn-2", &host, "[\"./absent\"]").refusal();
    assert_eq!(validator["host_failure"]["exit_code"], 7);
    let good = world.host("good.sh", "printf '%s' \"$result\"");
    let run = [
        "turn",
        "run-once",
        "--goal-id",
        GOAL,
        "--agent-id",
        "lane-a",
    ];
    let rest = ["--project", ".", "--host-command-json", &good];
    let bare = [&run[..], &rest].concat();
    let preview = world.run(&bare).packet();
    let next = preview["next_step"].to_string();
    assert!(next.contains("--validation-command-json"), "{next}");
    let instance = ["--turn-instance-id", "turn-3"];
    let failed = world.run(&bare).flag(&instance).execute().refusal();
    let told = failed["error"].to_string();
    assert!(told.contains("--validation-command-json"), "{told}");
}

#[test]
fn a_printed_settlement_names_its_turn_and_every_flag_it_needs() {
    let (world, _) = World::with_todo();
    let wake = world.decide(&["--turn-instance-id", "turn-1"]);
    let command = wake["interaction_contract"]["cli_channel"]["next_cli_actions"][0].to_string();
    for part in [
        "--turn-instance-id turn-1",
        "--delivery-outcome <outcome>",
        "--classification <word>",
    ] {
        assert!(command.contains(part), "{command}");
    }
}

#[test]
fn a_later_outcome_does_not_keep_the_reason_of_an_earlier_one() {
    let (world, _) = World::with_todo();
    let gate = world.gate("Go?", &["--global-gate"]);
    let update = ["todo", "update", "--goal-id", GOAL, "--todo-id", &gate];
    let reject = ["--decision-outcome", "reject", "--reason", "too early"];
    let rejected = world.run(&[&update[..], &reject].concat()).packet();
    assert_eq!(rejected["todo"]["reason"], "too early");
    let approve = ["--decision-outcome", "approve"];
    let approved = world.run(&[&update[..], &approve].concat()).packet();
    assert_eq!(approved["todo"]["reason"], Value::Null);
}

#[test]
fn people_get_a_screen_under_the_name_of_the_command() {
    let (world, todo) = World::with_todo();
    for (words, heading) in [
        (
            &["todo", "list", "--goal-id", GOAL][..],
            "# loopx todo list",
        ),
        (&["status"], "# loopx status"),
        (
            &["turn", "plan", "--goal-id", GOAL, "--agent-id", "lane-a"],
            "# loopx turn plan",
        ),
    ] {
        let finished = world.run(words).prepared().run();
        let text = finished.text();
        assert!(text.contains(heading), "{text}");
        assert!(text.contains(&todo), "{text}");
        assert!(text.contains("--format json"), "{text}");
        assert!(text.lines().count() < 25, "{text}");
    }
}

#[test]
fn a_usage_error_in_json_names_the_flag_and_its_values_under_the_whole_command() {
    let world = World::new();
    let words = ["todo", "add", "--goal-id", GOAL, "--role", "robot-7"];
    let run = world.run(&words).flag(&["--text", "x", "--format", "json"]);
    let finished = run.prepared().run();
    let packet = finished.json();
    assert_eq!(packet["command"], "todo add");
    let told = packet["error"].to_string();
    assert!(told.contains("--role"), "{told}");
    assert!(told.contains("agent"), "{told}");
    assert!(!told.contains("robot-7"), "{told}");
}

#[test]
fn a_rejected_gate_is_named_with_the_command_that_reopens_it() {
    let world = World::new();
    let scope = "production:goal:release";
    world.todo("Ship", &["--required-decision-scope", scope]);
    let gate = world.gate("Ship?", &["--decision-scope", scope]);
    let update = ["todo", "update", "--goal-id", GOAL, "--todo-id", &gate];
    let decide = |outcome: &str| {
        let flag = ["--decision-outcome", outcome];
        world.run(&[&update[..], &flag].concat()).packet();
        world.run(&["status"]).packet()
    };
    let refused = decide("reject");
    assert_eq!(refused["attention_queue"][0]["reason"], "refused_gate");
    let named = &refused["goals"][0]["refused_gates"][0];
    assert_eq!(named["gate_id"], gate.as_str());
    let reopen = named["reopen_command"].to_string();
    assert!(reopen.contains("--decision-outcome approve"), "{reopen}");
    let approved = decide("approve");
    assert_eq!(approved["goals"][0]["refused_gates"], Value::Null);
}

#[test]
fn an_agent_that_waits_because_of_a_rejected_gate_is_told_which_one() {
    let world = World::new();
    world.register("lane-b");
    let scope = "production:goal:release";
    let todo = world.todo("Ship", &["--required-decision-scope", scope]);
    let gate = world.gate("Ship?", &["--decision-scope", scope]);
    let idle = world.gate("Paint?", &["--decision-scope", "direction:goal:colour"]);
    let own = world.gate("May it?", &["--blocks-agent", "lane-b"]);
    let decide = |gate: &str, outcome: &str| {
        let update = ["todo", "update", "--goal-id", GOAL, "--todo-id", gate];
        let flag = ["--decision-outcome", outcome];
        world.run(&[&update[..], &flag].concat()).packet();
    };
    let named = |packet: &Value| -> Vec<String> {
        let gates = packet["agent_scope_frontier"]["refused_gates"].as_array();
        let ids = gates.into_iter().flatten();
        ids.map(|gate| gate["gate_id"].as_str().expect("an id").to_owned())
            .collect()
    };
    decide(&gate, "reject");
    decide(&idle, "reject");
    decide(&own, "cancel");
    let waiting = world.decide(&[]);
    assert_eq!(waiting["effective_action"], "agent_scope_wait");
    assert_eq!(named(&waiting), [gate.as_str()]);
    assert_eq!(waiting["requires_user_action"], false, "nobody is asked");
    let reason = waiting["reason"].to_string();
    assert!(reason.contains("turned down"), "{reason}");
    let reopen = &waiting["agent_scope_frontier"]["refused_gates"][0]["reopen_command"];
    let text = world.ask("lane-a", &[]).prepared().run().text();
    let line = format!("Turned down: {gate} (reject); to approve it after all: ");
    assert!(text.contains(&line), "{text}");
    assert!(text.contains(reopen.as_str().expect("a command")), "{text}");
    let mut both = named(&world.ask("lane-b", &[]).packet());
    both.sort();
    let mut expected = [gate.clone(), own];
    expected.sort();
    assert_eq!(both, expected);
    let asked = world.decide(&["--todo-id", &todo]);
    assert_eq!(named(&asked), [gate.as_str()]);
    // Another reason to wait names no gate.
    let claim = ["todo", "claim", "--goal-id", GOAL, "--todo-id", &todo];
    let foreign = ["--claimed-by", "lane-b", "--agent-id", "lane-b"];
    decide(&gate, "approve");
    world.run(&[&claim[..], &foreign].concat()).packet();
    let waiting = world.decide(&[]);
    assert_eq!(waiting["effective_action"], "agent_scope_wait");
    assert_eq!(waiting["agent_scope_frontier"], Value::Null);
}

#[test]
fn finishing_by_update_claims_the_todo_as_completing_it_does() {
    let (world, todo) = World::with_todo();
    let update = ["todo", "update", "--goal-id", GOAL, "--todo-id", &todo];
    let done = ["--agent-id", "lane-a", "--status", "done"];
    let packet = world.run(&[&update[..], &done].concat()).packet();
    assert_eq!(packet["todo"]["claimed_by"], "lane-a");
}

#[test]
fn work_that_is_finished_in_nobodys_name_says_that_reports_leave_it_out_and_what_to_do() {
    let (world, todo) = World::with_todo();
    let finish = |todo: &str, more: &[&str]| {
        let update = ["todo", "update", "--goal-id", GOAL, "--todo-id", todo];
        let done = ["--status", "done"];
        world.run(&[&update[..], &done, more].concat())
    };
    let report = |out: &str| {
        let words = [
            "periodic-report",
            "generate",
            "--source",
            "project-progress",
        ];
        let period = ["--timezone", "UTC", "--window", "2026-09-17/2026-09-19"];
        let run = world.run(&[&words[..], &period].concat());
        run.flag(&["--goal-id", GOAL, "--out", out])
            .now("2026-09-20T00:00:00Z")
            .packet();
        let bundle = world.sandbox.project().join(out).join("bundle.json");
        std::fs::read_to_string(bundle).expect("a report")
    };
    let told = finish(&todo, &["--dry-run"]).packet();
    assert!(told["next_step"].is_string(), "before it is too late");
    let named = finish(&todo, &["--agent-id", "lane-a", "--dry-run"]).packet();
    assert_eq!(named["next_step"], Value::Null);
    let told = finish(&todo, &[]).packet();
    let next = told["next_step"].as_str().expect("a next step");
    for word in [
        "reports leave it out",
        "--agent-id",
        "todo add --claimed-by",
    ] {
        assert!(next.contains(word), "{next}");
    }
    assert!(!report("before").contains("Measure the first step"));
    // The next step leads there.
    let again = world.todo("Measure the first step", &["--claimed-by", "lane-a"]);
    let complete = ["todo", "complete", "--goal-id", GOAL, "--todo-id", &again];
    world
        .run(&complete)
        .flag(&["--agent-id", "lane-a"])
        .packet();
    assert!(report("after").contains("Measure the first step"));
    // A person's own item is no agent's outcome.
    let add = [
        "todo",
        "add",
        "--goal-id",
        GOAL,
        "--role",
        "user",
        "--text",
        "Look",
    ];
    let user = world.run(&add).packet();
    let user = user["todo_id"].as_str().expect("an id");
    assert_eq!(finish(user, &[]).packet()["next_step"], Value::Null);
}

#[test]
fn a_monitor_is_put_off_by_nobody_it_is_not_for() {
    let world = World::new();
    world.register("lane-b");
    let poll = |agent: &str, todo: &str| {
        let head = ["quota", "monitor-poll", "--goal-id", GOAL, "--execute"];
        let found = [
            "--result",
            "unchanged",
            "--next-due-at",
            "2099-01-01T00:00:00Z",
        ];
        let who = ["--agent-id", agent, "--todo-id", todo];
        world.run(&head).flag(&found).flag(&who)
    };
    let due = [
        "--task-class",
        "continuous_monitor",
        "--next-due-at",
        "2026-01-01T00:00:00Z",
    ];
    for owned in [
        ["--claimed-by", "lane-a"],
        ["--bound-agent", "lane-a"],
        ["--exclude-agent", "lane-b"],
    ] {
        let todo = world.todo(&format!("watch {}", owned[0]), &[&due[..], &owned].concat());
        poll("lane-b", &todo).refused("claim_owner_mismatch");
        assert_eq!(poll("lane-a", &todo).packet()["changed"], true);
    }
    let free = world.todo("watch", &due);
    assert_eq!(poll("lane-b", &free).packet()["changed"], true);
}
