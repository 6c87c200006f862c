//! The run that an installed service starts: losses of the source, consumers that are left, a second run, the ends.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::collector::{CONFIG, CONTINUOUS, captured, live, run_until, script, source, status};
use crate::support::Run;
use crate::support::lark::{CHAT, Lark};

const KEY: &str = "im.message.receive_v1";

fn prepared(extra: Value) -> Lark {
    let lark = Lark::new();
    lark.collector(&[("alpha", CHAT)], extra);
    script(&lark, json!({"events": [], "live": true}));
    lark
}

/// The run of the service, with limits and pauses of the given length.
fn service<'a>(lark: &'a Lark, millis: &str) -> Run<'a> {
    lark.inbox(&CONTINUOUS, CONFIG)
        .env("LOOPX_TEST_PROVIDER_TIMEOUT_MS", millis)
}

fn arrives(lark: &Lark, id: &str) {
    let event = live(id, CHAT);
    lark.edit(|state| state["streams"][KEY]["events"] = json!([event]));
}

fn last_event(lark: &Lark) -> bool {
    source(lark)["last_event_at"].is_string()
}

#[test]
fn a_source_that_stays_lost_is_left_for_a_new_bus_and_heals_by_an_event() {
    let lark = prepared(json!({}));
    let (mut step, mut lost) = (0, Value::Null);
    let run = run_until(service(&lark, "1000"), || {
        let seen = source(&lark);
        match step {
            0 if seen["ready"] == true => {
                lark.edit(|state| state["streams"][KEY]["source"] = json!(["disconnected"]));
                step = 1;
            }
            1 if seen["source_healthy"] == false => {
                lost = seen;
                step = 2;
            }
            // The consumer stayed and said nothing more: another bus has to be asked.
            2 if lark.count("event stop") > 0 && seen["ready"] == true => {
                assert_eq!(seen["source_healthy"], false, "readiness heals nothing");
                arrives(&lark, "om_zqpa0");
                step = 3;
            }
            3 => return last_event(&lark) && seen["source_healthy"] == true,
            _ => {}
        }
        false
    });
    assert_eq!(
        (&lost["ready"], &lost["error_code"]),
        (&json!(false), &json!("lark_event_source_disconnected"))
    );
    assert_eq!(
        (
            &run["ok"],
            &run["source_loss_count"],
            &run["captured_count"]
        ),
        (&json!(true), &json!(1), &json!(1)),
        "{run}"
    );
    assert_eq!(
        (&run["source_healthy"], &run["error_code"]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(lark.count("event consume"), 2);
    let calls: Vec<String> = lark
        .calls()
        .iter()
        .filter_map(|call| call["command"].as_str().map(str::to_owned))
        .filter(|command| command.starts_with("event "))
        .collect();
    assert_eq!(
        calls,
        ["event consume", "event stop", "event consume", "event stop"]
    );
    assert_eq!(status(&lark)["history_gap"]["open_count"], 1);
}

#[test]
fn a_source_that_comes_back_by_itself_keeps_its_consumer() {
    let lark = prepared(json!({}));
    let mut step = 0;
    let run = run_until(service(&lark, "20000"), || {
        let seen = source(&lark);
        match step {
            0 if seen["ready"] == true => {
                lark.edit(|state| state["streams"][KEY]["source"] = json!(["reconnecting"]));
                step = 1;
            }
            1 if seen["source_healthy"] == false => {
                lark.edit(|state| {
                    state["streams"][KEY]["source"] = json!(["reconnecting", "connected"]);
                });
                step = 2;
            }
            2 if seen["ready"] == true => {
                arrives(&lark, "om_zqpa0");
                step = 3;
            }
            3 => return last_event(&lark) && seen["source_healthy"] == true,
            _ => {}
        }
        false
    });
    assert_eq!(
        (&run["source_loss_count"], &run["source_reconnect_count"]),
        (&json!(1), &json!(1)),
        "{run}"
    );
    assert_eq!(lark.count("event consume"), 1);
}

#[test]
fn both_consumers_ending_at_once_are_one_loss_each_and_both_start_again() {
    let lark = prepared(json!({"operation_callbacks": {"enabled": true}}));
    let ends = json!({"events": [], "end": {"reason": "signal"}});
    let stays = json!({"events": [], "live": true});
    lark.edit(|state| state["streams"] = json!({KEY: ends, "card.action.trigger": ends}));
    let mut words = vec![
        "--runtime-root",
        ".loopx/runtime",
        "lark-inbox",
        CONTINUOUS[0],
    ];
    words.extend(["--project", ".", "--config", CONFIG]);
    words.extend(&CONTINUOUS[1..]);
    let run = lark
        .run(words)
        .env("LOOPX_TEST_PROVIDER_TIMEOUT_MS", "1000");
    let (mut step, mut code) = (0, Value::Null);
    let run = run_until(run, || {
        let seen = source(&lark);
        match step {
            0 if seen["loss_count"].as_u64() > Some(0) => {
                code = seen["error_code"].clone();
                lark.edit(|state| {
                    state["streams"] = json!({KEY: stays, "card.action.trigger": stays});
                });
                step = 1;
            }
            1 if seen["consumer_pids"]["card.action.trigger"][0].is_u64()
                && seen["ready"] == true =>
            {
                arrives(&lark, "om_zqpa0");
                step = 2;
            }
            2 => return last_event(&lark) && seen["source_healthy"] == true,
            _ => {}
        }
        false
    });
    assert_eq!(code, "lark_event_source_disconnected");
    assert_eq!(
        (&run["ok"], &run["captured_count"]),
        (&json!(true), &json!(1)),
        "{run}"
    );
    assert_eq!(run["operation_callback_listener_ready"], true, "{run}");
}

/// Whether the platform's program still lists a consumer.
fn is_attached(lark: &Lark, pid: u64) -> bool {
    let rows = lark.state()["consumers"].clone();
    let rows = rows.as_array().into_iter().flatten();
    rows.into_iter().any(|row| row["pid"].as_u64() == Some(pid))
}

#[test]
fn consumers_of_a_run_that_was_killed_are_ended_and_nobody_else_is() {
    let lark = prepared(json!({}));
    let mut child = service(&lark, "20000").command().spawn().expect("started");
    while source(&lark)["ready"] != true {
        std::thread::yield_now();
    }
    kill(
        Pid::from_raw(i32::try_from(child.id()).expect("a pid")),
        Signal::SIGKILL,
    )
    .expect("it lives");
    child.wait().expect("it ends");
    let mut left = source(&lark);
    let pid = left["consumer_pids"][KEY][0].as_u64().expect("a pid");
    assert!(is_attached(&lark, pid), "the consumer was left");
    // A process that is no consumer may have got a number of an earlier one.
    let mut stranger = std::process::Command::new("cat")
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("started");
    left["consumer_pids"][KEY] = json!([pid, stranger.id()]);
    lark.write(".loopx/runtime/lark-collector/collector-status.json", &left);
    let run = run_until(service(&lark, "20000"), || {
        let seen = source(&lark);
        seen["ready"] == true && seen["consumer_pids"][KEY][0].as_u64() != Some(pid)
    });
    assert_eq!(run["ok"], true, "{run}");
    assert!(!is_attached(&lark, pid));
    assert!(
        stranger.try_wait().expect("a child").is_none(),
        "no other process is touched"
    );
    drop(stranger.stdin.take());
    stranger.wait().expect("it ends");
    assert_eq!(source(&lark)["consumer_pids"], json!({}));
    assert_eq!(status(&lark)["history_gap"]["open_count"], 1);
}

#[test]
fn a_second_run_is_refused_before_any_call_and_the_first_goes_on() {
    let lark = prepared(json!({}));
    let (mut second, mut calls) = (None, (0, 0));
    let run = run_until(service(&lark, "20000"), || {
        if second.is_none() && source(&lark)["ready"] == true {
            let before = lark.calls().len();
            second = Some(Lark::packet(lark.inbox(&CONTINUOUS[..4], CONFIG), &[]));
            calls = (before, lark.calls().len());
            arrives(&lark, "om_zqpa0");
        }
        last_event(&lark)
    });
    let (exit, packet) = second.expect("a second run");
    assert_eq!(
        (exit, &packet["error_code"]),
        (Some(1), &json!("lock_acquire_timeout"))
    );
    assert_eq!(calls.0, calls.1);
    assert_eq!(run["captured_count"], 1);
}

#[test]
fn a_run_whose_configuration_is_removed_ends_in_peace() {
    let lark = prepared(json!({"consume_timeout": "1s"}));
    let file = lark.sandbox.project().join(CONFIG);
    let run = run_until(service(&lark, "20000"), || {
        if file.exists() && source(&lark)["ready"] == true {
            fs::remove_file(&file).expect("removed");
        }
        false
    });
    assert_eq!(
        (&run["ok"], &run["stream_status"], &run["source_healthy"]),
        (&json!(true), &json!("configuration_removed"), &json!(true)),
        "{run}"
    );
    assert_eq!(source(&lark)["running"], false);
}

#[test]
fn the_ninth_loss_in_a_row_ends_the_run() {
    let lark = prepared(json!({}));
    script(
        &lark,
        json!({"events": [], "refuse": {"lines": ["[event] consuming", "online_instance_cnt=1"]}}),
    );
    let run = service(&lark, "300").run();
    let packet = run.json();
    assert_eq!(
        (run.code, &packet["ok"], &packet["status"]),
        (Some(1), &json!(false), &json!("consumer_failed")),
        "{packet}"
    );
    assert_eq!(
        (&packet["source_loss_count"], &packet["stream_status"]),
        (&json!(9), &json!("stream_not_ready"))
    );
    assert_eq!(lark.count("event consume"), 9);
    assert_eq!(captured(&lark, "alpha"), json!(0));
}
