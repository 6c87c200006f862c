//! What a stop leaves behind: no call of the provider, no folder of one (docs/spec/lark-cli.md 1, docs/spec/lark-inbox.md 8.3).

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use super::collector::{CONFIG, live, run_until, script};
use super::desk::Desk;
use crate::support::Run;
use crate::support::lark::{CHAT, Lark};

fn signal(child: &Child, signal: Signal) {
    let id = Pid::from_raw(child.id().cast_signed());
    kill(id, signal).expect("it lives");
}

/// The processes that still answer for this stand-in.
fn left(lark: &Lark) -> Vec<String> {
    let mark = format!("FAKE_LARK_STATE={}", lark.state_folder().display());
    let processes = fs::read_dir("/proc").expect("a listing").flatten();
    let is_its = |folder: &std::path::Path| {
        let seen = fs::read(folder.join("environ")).unwrap_or_default();
        seen.split(|byte| *byte == 0)
            .any(|entry| entry == mark.as_bytes())
    };
    processes
        .map(|entry| entry.path())
        .filter(|folder| is_its(folder))
        .map(|folder| folder.display().to_string())
        .collect()
}

fn stopped(lark: &Lark, run: Run<'_>, asked: Signal) {
    let scratch = tempfile::tempdir().expect("a folder");
    let text = scratch.path().to_str().expect("text").to_owned();
    let before = lark.calls().len();
    let mut child = run
        .env("TMPDIR", &text)
        .around(&["env", "--default-signal=HUP"])
        .command()
        .spawn()
        .expect("it starts");
    while lark.calls().len() == before {
        assert!(child.try_wait().expect("a child").is_none(), "it runs");
        std::thread::yield_now();
    }
    signal(&child, asked);
    let ended = child.wait().expect("it ends");
    assert_eq!(ended.signal(), Some(asked as i32), "as it was asked to");
    assert_eq!(left(lark), Vec::<String>::new());
    let folders = fs::read_dir(scratch.path()).expect("a listing").count();
    assert_eq!(folders, 0, "the folder of the call goes with it");
}

#[test]
fn a_command_that_is_asked_to_stop_takes_the_call_of_the_provider_along() {
    let desk = Desk::with_message();
    desk.lark.faults(json!([{"on": "*", "do": "hang"}]));
    let rows: [(&[&str], Signal); 3] = [
        (&["send", "--text", "words", "--execute"], Signal::SIGTERM),
        (
            &["processing", "--message-id", "om_zqpa", "--execute"],
            Signal::SIGINT,
        ),
        (
            &[
                "reply",
                "--message-id",
                "om_zqpa",
                "--text",
                "x",
                "--execute",
            ],
            Signal::SIGHUP,
        ),
    ];
    for (words, asked) in rows {
        let run = desk.lark.inbox(words, &desk.config);
        stopped(&desk.lark, run, asked);
    }
}

fn collecting(lark: &Lark) -> Run<'_> {
    let words = ["collector-run", "--lark-cli-executable", "lark-cli"];
    lark.inbox(&[&words[..], &["--format", "json"]].concat(), CONFIG)
}

#[test]
fn a_collector_that_is_asked_to_stop_waits_for_no_lookup_that_hangs() {
    let lark = Lark::new();
    lark.collector(&[("alpha", CHAT)], json!({}));
    lark.faults(json!([{"on": "im +messages-mget", "do": "hang"}]));
    script(
        &lark,
        json!({"events": [live("om_zqpa0", CHAT)], "live": true}),
    );
    let run = collecting(&lark).env("LOOPX_TEST_PROVIDER_TIMEOUT_MS", "600000");
    let packet = run_until(run, || lark.count("im +messages-mget") > 0);
    assert_eq!(packet["stream_status"], "stopped", "{packet}");
    assert_eq!(lark.count("im +messages-mget"), 1, "and asks no more");
    assert_eq!(left(&lark), Vec::<String>::new());
}

#[test]
fn a_run_that_fails_lets_its_consumers_end_by_themselves() {
    let lark = Lark::new();
    lark.collector(&[("alpha", CHAT)], json!({}));
    script(&lark, json!({"events": [], "live": true}));
    let status = ".loopx/runtime/lark-collector/collector-status.json";
    let status = lark.sandbox.project().join(status);
    let run = collecting(&lark);
    let mut child = run.command().spawn().expect("the collector starts");
    let is_ready = || {
        let text = fs::read_to_string(&status).unwrap_or_default();
        text.contains("\"running\"") && text.contains("\"stream_status\": \"running\"")
    };
    while !is_ready() {
        assert!(child.try_wait().expect("a child").is_none(), "it runs");
        std::thread::yield_now();
    }
    fs::remove_file(&status).expect("removed");
    fs::create_dir_all(status.join("in the way")).expect("made");
    lark.seed("om_zqpa0", "words", 1_789_000_000, json!({}));
    lark.edit(|state| {
        state["streams"]["im.message.receive_v1"]["events"] = json!([live("om_zqpa0", CHAT)]);
    });
    let ended = child.wait().expect("it ends");
    assert_eq!(ended.code(), Some(1));
    drop(run);
    let rows = lark.state()["consumers"].clone();
    assert_eq!(rows.as_array().map(Vec::len), Some(0), "{rows}");
}
