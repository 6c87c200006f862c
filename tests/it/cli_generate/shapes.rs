//! Repositories of every shape, and histories that mean harm.

use std::fs;

use super::files::{generate, project, refused};
use super::repository::{Repository, git};
use crate::support::Sandbox;

const DAY: &str = "2026-09-16T10:00:00Z";

fn markdown(sandbox: &Sandbox, args: &[&str]) -> String {
    let mut all = vec![
        "periodic-report",
        "generate",
        "--timezone",
        "UTC",
        "--print",
        "markdown",
        "--preview",
    ];
    all.extend(args);
    let finished = sandbox.loopx(all).run();
    assert_eq!(finished.code, Some(0), "{}", finished.text());
    finished.text()
}

#[test]
fn a_bare_repository_is_read_by_path_and_nothing_is_written_into_it() {
    let sandbox = Sandbox::new();
    let bare = sandbox.root().join("bare.git");
    let mut repository = Repository::with(&bare, &["--bare"]);
    repository.commit(DAY, "feat: add the walrus", "w.txt");
    repository.done();
    let source = format!("git={}", bare.display());
    assert!(markdown(&sandbox, &["--source", &source]).contains("add the walrus"));
    let standing = sandbox
        .loopx(["periodic-report", "generate"])
        .folder(&bare)
        .refusal();
    assert_eq!(standing["error_code"], "report_source_missing");
    assert!(!bare.join(".loopx").exists());
}

#[test]
fn worktree_subfolder_and_detached_head_give_their_history() {
    let sandbox = project();
    let second = sandbox.root().join("second");
    git(
        &sandbox.project(),
        &[
            "worktree",
            "add",
            "-q",
            "--detach",
            &second.to_string_lossy(),
            "HEAD",
        ],
        b"",
    );
    git(
        &sandbox.project(),
        &["checkout", "-q", "--detach", "HEAD"],
        b"",
    );
    for folder in [sandbox.project(), sandbox.project().join("pump"), second] {
        let args = [
            "periodic-report",
            "generate",
            "--timezone",
            "UTC",
            "--preview",
        ];
        let packet = sandbox.loopx(args).folder(&folder).packet();
        assert_eq!(
            packet["sources"][0]["item_count"],
            1,
            "{}",
            folder.display()
        );
    }
}

#[test]
fn an_unborn_head_and_an_empty_repository_are_complete_without_items() {
    let sandbox = project();
    git(
        &sandbox.project(),
        &["symbolic-ref", "HEAD", "refs/heads/not-yet"],
        b"",
    );
    let packet = generate(&sandbox, &["--preview"]);
    assert_eq!(
        (
            &packet["sources"][0]["status"],
            &packet["sources"][0]["item_count"]
        ),
        (&"complete".into(), &0.into())
    );
    let empty = Sandbox::new();
    git(&empty.project(), &["init", "-q"], b"");
    let packet = generate(&empty, &["--preview"]);
    assert_eq!(packet["sources"][0]["status"], "complete");
    assert!(markdown(&empty, &[]).contains("- No items."));
}

#[test]
fn what_is_no_repository_fails_by_name() {
    let sandbox = Sandbox::new();
    assert_eq!(
        refused(&sandbox, &["--source", "git"]),
        "report_sources_failed"
    );
    fs::create_dir(sandbox.project().join(".git")).expect("made");
    assert_eq!(refused(&sandbox, &[]), "report_sources_failed");
}

#[test]
fn hostile_messages_and_names_stay_text() {
    let sandbox = Sandbox::new();
    let mut repository = Repository::at(&sandbox.project());
    let subjects: [&[u8]; 5] = [
        b"fix(e): use token=zqcanary0123456789",
        b"fix(a): <script>alert(1)</script> walrus",
        b"fix(b): \x1b[31mred\x07 \xe2\x80\xaeevil\xe2\x81\xa6 dove",
        b"fix(c): not \xff\xfe utf-8",
        b"feat(d): </pre><style>*{display:none}</style>",
    ];
    for (index, subject) in subjects.iter().enumerate() {
        repository.commit(DAY, subject, &format!("f{index}/x.txt"));
    }
    repository.tag("<svg/onload=alert(1)>");
    repository.tag("--output=made");
    repository.done();
    let packet = generate(&sandbox, &["--out", "weekly"]);
    assert_eq!(packet["sources"][0]["withheld_count"], 1);
    let page = fs::read_to_string(sandbox.project().join("weekly/report.html")).expect("there");
    let text = fs::read_to_string(sandbox.project().join("weekly/report.md")).expect("there");
    for (name, content) in [("page", &page), ("text", &text)] {
        let steers = |c: char| {
            matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
                || (c.is_control() && c != '\n')
        };
        assert!(!content.contains(steers), "{name}");
        assert!(!content.to_lowercase().contains("zqcanary"), "{name}");
    }
    assert_eq!(
        (
            page.matches("<script").count(),
            page.matches("<style").count(),
            page.matches("<svg/").count()
        ),
        (1, 1, 0)
    );
    assert!(!sandbox.project().join("made").exists());
}

#[test]
fn a_commit_message_of_ten_megabytes_is_cut_and_not_kept() {
    let sandbox = Sandbox::new();
    let mut repository = Repository::at(&sandbox.project());
    let mut message = b"fix(a): mend the walrus\n\n".to_vec();
    message.extend(std::iter::repeat_n(b"long words ".as_slice(), 1_000_000).flatten());
    repository.commit(DAY, &message, "a.txt");
    repository.commit(DAY, "fix(b): mend the otter", "b/x.txt");
    repository.done();
    let text = markdown(&sandbox, &[]);
    assert!(
        text.contains("mend the walrus") && text.contains("mend the otter"),
        "{text}"
    );
    assert!(text.len() < 10_000);
}
