//! What is written, when, and what a crash or a full disk leaves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::repository::Repository;
use crate::schemas::Schemas;
use crate::support::Sandbox;

const NAMES: [&str; 3] = ["bundle.json", "report.html", "report.md"];

/// A project with one fact of this week.
pub(super) fn project() -> Sandbox {
    let sandbox = Sandbox::new();
    let mut repository = Repository::at(&sandbox.project());
    repository.commit(
        "2026-09-16T10:00:00Z",
        "feat(pump): add the walrus",
        "pump/w.txt",
    );
    repository.done();
    sandbox
}

pub(super) fn generate(sandbox: &Sandbox, args: &[&str]) -> Value {
    let mut all = vec!["periodic-report", "generate", "--timezone", "UTC"];
    all.extend(args);
    sandbox.loopx(all).packet()
}

pub(super) fn refused(sandbox: &Sandbox, args: &[&str]) -> String {
    let mut all = vec!["periodic-report", "generate", "--timezone", "UTC"];
    all.extend(args);
    let refusal = sandbox.loopx(all).refusal();
    assert_eq!(refusal["schema_version"], "periodic_report_error_v0");
    assert_eq!(refusal["command"], "generate");
    refusal["error_code"].as_str().expect("a code").to_owned()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

fn reports(sandbox: &Sandbox) -> PathBuf {
    sandbox.project().join(".loopx/reports")
}

#[test]
fn three_files_appear_and_the_packet_fits_its_schema() {
    let sandbox = project();
    let packet = generate(&sandbox, &[]);
    assert_eq!(Schemas::load().faults(&packet), Some(Vec::new()));
    let out = packet["out"].as_str().expect("a folder");
    assert_eq!(names(&sandbox.project().join(out)), NAMES);
    let link = fs::read_link(reports(&sandbox).join("latest")).expect("a link");
    assert!(out.ends_with(&*link.to_string_lossy()) && link.is_relative());
    assert_eq!(
        fs::read_to_string(sandbox.project().join(".loopx/.gitignore")).expect("there"),
        "*\n"
    );
    assert_eq!(names(&sandbox.home()), Vec::<String>::new());
    let bundle = fs::read(sandbox.project().join(out).join("bundle.json")).expect("there");
    let bundle: Value = serde_json::from_slice(&bundle).expect("JSON");
    assert_eq!(Schemas::load().faults(&bundle), Some(Vec::new()));
    assert_eq!(
        Schemas::load().faults(&bundle["document"]),
        Some(Vec::new())
    );
}

#[test]
fn a_preview_computes_the_same_and_writes_nothing() {
    let sandbox = project();
    let before = sandbox.tree();
    let preview = generate(&sandbox, &["--preview"]);
    assert_eq!(sandbox.tree(), before);
    let made = generate(&sandbox, &[]);
    assert_eq!(
        (&preview["out"], &preview["effects"]["state_written"]),
        (&Value::Null, &json!(false))
    );
    for name in [
        "generation_id",
        "artifacts",
        "sources",
        "summary",
        "period_window",
    ] {
        assert_eq!(preview[name], made[name], "{name}");
    }
}

#[test]
fn the_same_report_again_is_a_success_without_effect() {
    let sandbox = project();
    generate(&sandbox, &[]);
    let before = sandbox.tree();
    let again = generate(&sandbox, &[]);
    assert_eq!(again["already_generated"], true);
    assert_eq!(again["effects"]["state_written"], false);
    assert_eq!(sandbox.tree(), before);
}

#[test]
fn a_damaged_or_foreign_folder_is_a_conflict_and_stays() {
    let sandbox = project();
    let out = sandbox.project().join("weekly");
    for content in ["", "other"] {
        fs::create_dir_all(&out).expect("made");
        if !content.is_empty() {
            fs::write(out.join("report.md"), content).expect("written");
        }
        let before = sandbox.tree();
        assert_eq!(
            refused(&sandbox, &["--out", "weekly"]),
            "report_out_conflict"
        );
        assert_eq!(sandbox.tree(), before);
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_unwritable() {
    let sandbox = project();
    fs::write(sandbox.project().join("file"), "x").expect("written");
    assert_eq!(
        refused(&sandbox, &["--out", "file/below"]),
        "report_out_unwritable"
    );
}

#[test]
fn a_link_in_the_way_is_never_followed() {
    for name in [".loopx", ".loopx/reports", ".loopx/.gitignore"] {
        let sandbox = project();
        let elsewhere = sandbox.root().join("elsewhere");
        fs::create_dir(&elsewhere).expect("made");
        let link = sandbox.project().join(name);
        fs::create_dir_all(link.parent().expect("a parent")).expect("made");
        std::os::unix::fs::symlink(&elsewhere, &link).expect("linked");
        assert_eq!(refused(&sandbox, &[]), "report_out_unwritable", "{name}");
        assert_eq!(names(&elsewhere), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_disk_that_fills_in_the_middle_leaves_the_old_report_and_no_half_one() {
    let sandbox = project();
    let out = generate(&sandbox, &[])["out"]
        .as_str()
        .expect("a folder")
        .to_owned();
    let before = names(&reports(&sandbox));
    // A file size limit of 4 KiB makes the page's write fail half-way.
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"";
    let loopx = env!("CARGO_BIN_EXE_loopx");
    let args = [
        "periodic-report",
        "generate",
        "--window",
        "last-week",
        "--timezone",
        "UTC",
        "--format",
        "json",
    ];
    let done = Command::new("sh")
        .args(["-c", script, loopx])
        .args(args)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", sandbox.home())
        .env("LOOPX_TEST_NOW", "2026-09-18T09:00:00Z")
        .current_dir(sandbox.project())
        .output()
        .expect("sh starts");
    assert_eq!(
        done.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&done.stdout)
    );
    let refusal: Value = serde_json::from_slice(&done.stdout).expect("a packet");
    assert_eq!(refusal["error_code"], "report_out_unwritable");
    assert_eq!(names(&reports(&sandbox)), before);
    assert_eq!(names(&sandbox.project().join(out)), NAMES);
}

#[test]
fn after_a_crash_the_same_command_ends_in_the_same_report() {
    let clean = project();
    let expected = generate(&clean, &[]);
    for point in ["report_folder_built", "report_published"] {
        let sandbox = project();
        let args = [
            "periodic-report",
            "generate",
            "--timezone",
            "UTC",
            "--format",
            "json",
        ];
        let crashed = sandbox.loopx(args).env("LOOPX_FAILPOINT", point).run();
        assert_eq!(crashed.code, None, "{point} was not reached");
        let packet = generate(&sandbox, &[]);
        for name in ["generation_id", "out", "artifacts"] {
            assert_eq!(packet[name], expected[name], "{point}: {name}");
        }
        let link = fs::read_link(reports(&sandbox).join("latest")).expect("a link");
        assert!(
            packet["out"]
                .as_str()
                .expect("a folder")
                .ends_with(&*link.to_string_lossy())
        );
    }
}

#[test]
fn two_processes_at_once_publish_one_report() {
    let sandbox = project();
    let args = [
        "periodic-report",
        "generate",
        "--timezone",
        "UTC",
        "--format",
        "json",
    ];
    let children: Vec<_> = (0..4)
        .map(|_| {
            sandbox
                .loopx(args)
                .command()
                .spawn()
                .expect("the binary starts")
        })
        .collect();
    let mut created = 0;
    for child in children {
        let output = child.wait_with_output().expect("the binary ends");
        let packet: Value = serde_json::from_slice(&output.stdout).expect("a packet");
        assert_eq!(packet["ok"], true, "{packet}");
        created += usize::from(packet["already_generated"] == false);
    }
    assert_eq!(created, 1);
    assert_eq!(
        names(&reports(&sandbox)).len(),
        2,
        "{:?}",
        names(&reports(&sandbox))
    );
}

#[test]
fn a_printed_artifact_is_the_file_and_nothing_else() {
    let sandbox = project();
    let args = [
        "periodic-report",
        "generate",
        "--print",
        "markdown",
        "--out",
        "weekly",
    ];
    let printed = sandbox.loopx(args).run();
    assert_eq!(printed.code, Some(0));
    let file = fs::read(sandbox.project().join("weekly/report.md")).expect("there");
    assert_eq!(printed.stdout, file);
    let both = sandbox
        .loopx([&args[..], &["--format", "json"]].concat())
        .run();
    assert_eq!(both.code, Some(2));
}

#[test]
fn the_place_time_zone_and_language_of_the_machine_change_no_byte() {
    let sandbox = project();
    let files = |out: &str, envs: &[(&str, &str)]| -> Vec<Vec<u8>> {
        let args = [
            "periodic-report",
            "generate",
            "--timezone",
            "Asia/Kathmandu",
            "--out",
            out,
            "--format",
            "json",
        ];
        let run = sandbox.loopx(args);
        let run = envs
            .iter()
            .fold(run, |run, (name, value)| run.env(name, value));
        assert_eq!(run.run().code, Some(0));
        let folder = sandbox.project().join(out);
        NAMES
            .iter()
            .map(|name| fs::read(folder.join(name)).expect("there"))
            .collect()
    };
    let plain = files("a", &[]);
    let other = files(
        "b",
        &[
            ("LANG", "tr_TR.UTF-8"),
            ("TZ", "Pacific/Chatham"),
            ("HOME", "/nonexistent"),
            ("NO_COLOR", "1"),
        ],
    );
    assert_eq!(plain, other);
}

#[test]
fn the_packet_names_a_folder_outside_by_its_last_name_alone() {
    let sandbox = project();
    let elsewhere = sandbox.root().join("elsewhere");
    fs::create_dir(&elsewhere).expect("made");
    std::os::unix::fs::symlink(&elsewhere, sandbox.project().join("link")).expect("linked");
    for (out, shown) in [
        ("../elsewhere/one", "one"),
        ("link/two", "two"),
        ("pump/../three", "three"),
        ("pump/four", "pump/four"),
    ] {
        assert_eq!(generate(&sandbox, &["--out", out])["out"], shown, "{out}");
    }
}
