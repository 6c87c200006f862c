//! Every status that `collector-plan` and `collector-install` can end with, and what each supervisor is told
//! (docs/spec/lark-inbox.md 8.6).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::collector::CONFIG;
use super::desk::holds;
use crate::support::Run;
use crate::support::lark::{CHAT, CHAT2, Lark, MARK};

const ROUTES: [(&str, &str); 2] = [("alpha", CHAT), ("beta", CHAT2)];
const PLAN: &[&str] = &["collector-plan"];
const PREVIEW: &[&str] = &["collector-install"];
const INSTALL: &[&str] = &["collector-install", "--execute"];

fn desk(extra: Value) -> Lark {
    let lark = Lark::new();
    lark.collector(&ROUTES, extra);
    supervise(&lark, "");
    lark
}

fn script(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(path, text).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("executable");
}

/// Supervisors that note what they are told; a call that holds `refused` fails.
fn supervise(lark: &Lark, refused: &str) {
    let log = told_file(lark);
    for name in ["systemctl", "launchctl"] {
        let refuse = match refused {
            "" => String::new(),
            words => format!("case \"$*\" in *{words}*) exit 1;; esac\n"),
        };
        let text = format!(
            "#!/bin/sh\necho \"{name} $*\" >> '{}'\n{refuse}echo 'state = running'\n",
            log.display()
        );
        script(&lark.sandbox.root().join("lark/bin").join(name), &text);
    }
}

fn told_file(lark: &Lark) -> PathBuf {
    lark.sandbox.root().join("lark/told")
}

/// What the supervisors were told, without what differs between machines.
fn told(lark: &Lark) -> Vec<String> {
    let text = fs::read_to_string(told_file(lark)).unwrap_or_default();
    let root = lark.sandbox.root().to_string_lossy().into_owned();
    let domain = |word: &str| match word.strip_prefix("gui/") {
        Some(rest) => rest
            .split_once('/')
            .map_or("gui/N".to_owned(), |(_, name)| format!("gui/N/{name}")),
        None => word.replace(&root, ""),
    };
    text.lines()
        .map(|line| line.split(' ').map(domain).collect::<Vec<_>>().join(" "))
        .collect()
}

fn act(lark: &Lark, words: &[&str]) -> (Option<i32>, Value) {
    Lark::packet(lark.inbox(words, CONFIG), &[])
}

fn is_ok(exit: Option<i32>, packet: &Value) -> bool {
    assert_eq!(exit == Some(0), packet["ok"] == json!(true), "{packet}");
    exit == Some(0)
}

/// Where each supervisor looks for a service.
fn service(lark: &Lark, supervisor: &str) -> PathBuf {
    let home = lark.sandbox.home();
    match supervisor {
        "launchd" => home.join("Library/LaunchAgents/loopx-lark-collector.plist"),
        _ => home.join(".config/systemd/user/loopx-lark-collector.service"),
    }
}

/// Nobody was told anything, and no service is there.
fn untouched(lark: &Lark) {
    assert_eq!(told(lark), Vec::<String>::new());
    for supervisor in ["launchd", "systemd"] {
        assert!(!service(lark, supervisor).exists(), "{supervisor}");
    }
}

fn switch_off(lark: &Lark, name: &str) {
    let path = lark
        .sandbox
        .project()
        .join(format!(".loopx/config/lark/{name}.json"));
    let mut config: Value =
        serde_json::from_slice(&fs::read(&path).expect("a file")).expect("json");
    config["enabled"] = json!(false);
    fs::write(path, config.to_string()).expect("written");
}

/// A plan that does not hold is the answer of the install too, and nothing is done.
#[test]
fn a_plan_that_does_not_hold_is_refused_by_the_install_with_the_same_status() {
    type Prepare = fn(&Lark);
    let rows: [(&str, Value, Prepare); 3] = [
        ("no_enabled_route", json!({}), |lark| {
            switch_off(lark, "alpha");
            switch_off(lark, "beta");
        }),
        (
            "pinned_runtime_required",
            json!({"operation_callbacks": {"enabled": true}}),
            |_| {},
        ),
        (
            "profile_already_collected",
            json!({"service_name": "loopx-second"}),
            |lark| {
                // Another service of this profile is installed.
                lark.collector(&ROUTES, json!({"service_name": "loopx-first"}));
                let (exit, packet) = act(lark, INSTALL);
                assert!(is_ok(exit, &packet), "{packet}");
                lark.collector(&ROUTES, json!({"service_name": "loopx-second"}));
                fs::remove_file(told_file(lark)).expect("told");
            },
        ),
    ];
    for (status, extra, prepare) in rows {
        let lark = desk(extra);
        prepare(&lark);
        for words in [PLAN, PREVIEW, INSTALL] {
            let before = files(&lark);
            let (exit, packet) = act(&lark, words);
            assert!(!is_ok(exit, &packet), "{status} {words:?}");
            holds(
                &packet,
                &json!({"status": status, "error_code": status, "external_write_outcome": "none", "lark_cli_available": true}),
            );
            assert!(packet["error"].is_string(), "{packet}");
            let name = match words[0] {
                "collector-plan" => "lark_event_collector_plan_v0",
                _ => "lark_event_collector_install_v0",
            };
            assert_eq!(packet["schema_version"], name);
            assert_eq!(files(&lark), before, "{status} {words:?}");
        }
        untouched(&lark);
    }
}

/// Every file but those of the stand-in.
fn files(lark: &Lark) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = lark.sandbox.tree();
    files.retain(|(path, _)| !path.starts_with(lark.state_folder()));
    files
}

#[test]
fn a_missing_program_is_a_plan_with_a_hint_and_no_install() {
    let lark = desk(json!({}));
    let path = std::env::var("PATH").unwrap_or_default();
    let bare = |words: &[&str]| Lark::packet(lark.inbox(words, CONFIG).env("PATH", &path), &[]);
    let (exit, packet) = bare(PLAN);
    assert!(is_ok(exit, &packet));
    holds(
        &packet,
        &json!({"status": "dependency_missing", "lark_cli_available": false}),
    );
    let hint = packet["install_hint"].as_str().unwrap_or_default();
    assert!(hint.contains("1.0.69"), "{packet}");
    for words in [PREVIEW, INSTALL] {
        let (exit, packet) = bare(words);
        assert!(!is_ok(exit, &packet));
        holds(
            &packet,
            &json!({"status": "dependency_missing", "error_code": "dependency_missing", "write_performed": false}),
        );
    }
    untouched(&lark);
}

/// Too old, of no version, or without the stream: known only when it is asked, and it is asked only by an install that acts.
#[test]
fn a_program_that_cannot_do_it_is_incompatible_and_no_service_is_written() {
    let dependency = |found: Value| json!({"program": "lark-cli", "found_version": found, "needed_version": "1.0.69"});
    let rows = [
        ("echo lark-cli version 1.0.68", dependency(json!("1.0.68"))),
        ("echo lark-cli version dev", dependency(Value::Null)),
        (
            "case \"$1\" in --version) echo lark-cli version 1.0.86;; *) exit 2;; esac",
            Value::Null,
        ),
        ("exit 1", Value::Null),
    ];
    for (body, expected) in rows {
        let lark = desk(json!({}));
        let program = lark.sandbox.root().join("lark/bin/lark-cli");
        fs::remove_file(&program).expect("a link");
        let calls = lark.sandbox.root().join("lark/asked");
        script(
            &program,
            &format!("#!/bin/sh\necho \"$*\" >> '{}'\n{body}\n", calls.display()),
        );
        for (words, status) in [(PLAN, "install_ready"), (PREVIEW, "preview_ready")] {
            let (exit, packet) = act(&lark, words);
            assert!(is_ok(exit, &packet), "{body}");
            assert_eq!(packet["status"], status, "{body}");
        }
        assert!(!calls.exists(), "a plan asks nobody: {body}");
        let (exit, packet) = act(&lark, INSTALL);
        assert!(!is_ok(exit, &packet), "{body}");
        holds(
            &packet,
            &json!({"status": "dependency_incompatible", "error_code": "dependency_incompatible", "write_performed": false,
                "dependency": expected, "external_write_outcome": "none"}),
        );
        assert!(packet["error"].is_string(), "{packet}");
        untouched(&lark);
    }
}

/// Words in the order in which a file must have them.
fn has_in_order(text: &str, words: &[&str]) {
    let mut at = 0;
    for word in words {
        let found = text[at..].find(word);
        at += found.unwrap_or_else(|| panic!("{word} in order in {text}")) + word.len();
    }
}

#[test]
fn an_install_writes_the_service_of_its_supervisor_and_starts_it_in_order() {
    let rows: [(&str, &[&str], &[&str]); 2] = [
        (
            "systemd",
            &[
                "systemctl --user daemon-reload",
                "systemctl --user enable --now loopx-lark-collector",
            ],
            &[
                "Type=simple",
                "ExecStart=",
                "--runtime-root",
                "lark-inbox collector-run --continuous",
                "--lark-cli-executable",
                "Restart=always\nRestartSec=5",
                "WantedBy=default.target",
            ],
        ),
        (
            "launchd",
            &[
                "launchctl bootout gui/N/loopx-lark-collector",
                "launchctl bootstrap gui/N /home/Library/LaunchAgents/loopx-lark-collector.plist",
                "launchctl kickstart -k gui/N/loopx-lark-collector",
            ],
            &[
                "<key>Label</key>\n  <string>loopx-lark-collector</string>",
                "<string>--runtime-root</string>",
                "<string>collector-run</string>\n    <string>--continuous</string>",
                "<string>--lark-cli-executable</string>",
                "<key>RunAtLoad</key>\n  <true/>",
                "<key>ThrottleInterval</key>\n  <integer>5</integer>",
            ],
        ),
    ];
    for (supervisor, commands, parts) in rows {
        // Callbacks want a pinned root, which then is in the service.
        let extra = json!({"supervisor": supervisor, "operation_callbacks": {"enabled": true}});
        let lark = desk(extra);
        let root = lark.sandbox.root().join("runtime");
        let root = root.to_string_lossy().into_owned();
        pin(&lark, &root);
        let (exit, plan) = Lark::packet(pinned(&lark, PLAN, &root), &[]);
        assert!(is_ok(exit, &plan), "{plan}");
        holds(
            &plan,
            &json!({"status": "install_ready", "supervisor": supervisor, "install_hint": null,
                "operation_callback_event_key": "card.action.trigger"}),
        );
        let (exit, preview) = Lark::packet(pinned(&lark, PREVIEW, &root), &[]);
        assert!(is_ok(exit, &preview));
        holds(
            &preview,
            &json!({"status": "preview_ready", "would_write_service": true, "execute": false}),
        );
        untouched(&lark);
        let (exit, done) = Lark::packet(pinned(&lark, INSTALL, &root), &[]);
        assert!(is_ok(exit, &done), "{done}");
        holds(
            &done,
            &json!({"status": "installed", "write_performed": true, "supervisor_start_performed": true,
                "supervisor_start_succeeded": true, "service_digest": plan["service_digest"], "external_write_outcome": "none"}),
        );
        assert_eq!(told(&lark), commands, "{supervisor}");
        let text = fs::read_to_string(service(&lark, supervisor)).expect("a service");
        has_in_order(&text, parts);
        assert!(!text.contains(MARK), "no profile or chat in the service");
        // The same service again is the same service.
        let (exit, again) = Lark::packet(pinned(&lark, INSTALL, &root), &[]);
        assert!(is_ok(exit, &again));
        holds(&again, &json!({"status": "installed"}));
        let is_there = fs::read_to_string(service(&lark, supervisor)).expect("a service");
        assert_eq!(is_there, text);
        let (_, seen) = Lark::packet(pinned(&lark, &["collector-status"], &root), &[]);
        holds(&seen, &json!({"installed": true, "active": true}));
    }
}

/// Installs the extension below a root that the command line names.
fn pin(lark: &Lark, root: &str) {
    let words = [
        "--runtime-root",
        root,
        "extension",
        "install",
        "--bundled",
        "loopx-lark",
        "--execute",
    ];
    lark.run(words).packet();
}

fn pinned<'a>(lark: &'a Lark, words: &[&str], root: &str) -> Run<'a> {
    let mut all = vec!["--runtime-root", root, "lark-inbox", words[0]];
    all.extend(["--project", ".", "--config", CONFIG]);
    all.extend(&words[1..]);
    lark.run(all)
}

/// A supervisor that refuses leaves the service written, and says so; whichever of its commands it was.
#[test]
fn a_supervisor_that_refuses_is_a_status_of_its_own_and_a_repeat_starts_the_service() {
    let rows = [
        ("systemd", "daemon-reload", 1),
        ("systemd", "enable", 2),
        ("launchd", "bootstrap", 2),
        ("launchd", "kickstart", 3),
    ];
    for (supervisor, refused, calls) in rows {
        let lark = desk(json!({"supervisor": supervisor}));
        supervise(&lark, refused);
        let (exit, packet) = act(&lark, INSTALL);
        assert!(!is_ok(exit, &packet), "{refused}");
        holds(
            &packet,
            &json!({"status": "supervisor_start_failed", "error_code": "supervisor_start_failed", "write_performed": true,
                "supervisor_start_performed": true, "supervisor_start_succeeded": false}),
        );
        assert_eq!(told(&lark).len(), calls, "nothing follows a refusal");
        assert!(service(&lark, supervisor).exists());
        supervise(&lark, "");
        let (exit, packet) = act(&lark, INSTALL);
        assert!(is_ok(exit, &packet), "{packet}");
        assert_eq!(packet["status"], "installed");
    }
    // A service that is not loaded cannot be taken out: that is no failure.
    let lark = desk(json!({"supervisor": "launchd"}));
    supervise(&lark, "bootout");
    let (exit, packet) = act(&lark, INSTALL);
    assert!(is_ok(exit, &packet), "{packet}");
}

#[test]
fn the_bus_is_probed_only_when_asked_and_a_lost_one_is_attention() {
    let lark = desk(json!({}));
    act(&lark, INSTALL);
    let (_, seen) = act(&lark, &["collector-status"]);
    holds(
        &seen,
        &json!({"event_bus_probe_performed": false, "event_bus_healthy": null, "status": "healthy"}),
    );
    assert_eq!(lark.count("event status"), 0);
    let probe = ["collector-status", "--probe-event-bus"];
    let (_, seen) = act(&lark, &probe);
    holds(
        &seen,
        &json!({"event_bus_probe_performed": true, "event_bus_healthy": true, "status": "healthy"}),
    );
    lark.faults(json!([{"on": "event status", "do": "internal"}]));
    let (exit, seen) = act(&lark, &probe);
    assert_eq!(exit, Some(0));
    holds(
        &seen,
        &json!({"ok": true, "event_bus_probe_performed": true, "event_bus_healthy": false, "status": "attention_required"}),
    );
}
