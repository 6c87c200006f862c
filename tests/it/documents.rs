//! Every `sh` fence of README and docs/ runs and succeeds, as a reader pastes them: one shell per document.
//!
//! `console` fences show commands with their output, or commands that need cargo; `.ci/run` runs
//! those of README's opening.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::Sandbox;

fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = vec![root.join("README.md")];
    collect(&root.join("docs"), &mut all);
    all.sort();
    all
}

fn collect(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "spec") {
            collect(&path, all);
        } else if path.extension().is_some_and(|end| end == "md") {
            all.push(path);
        }
    }
}

fn fences(text: &str) -> String {
    let mut script = String::new();
    let mut is_inside = false;
    for line in text.lines() {
        match line.trim_end() {
            "```sh" => is_inside = true,
            "```" => is_inside = false,
            _ if is_inside => {
                script.push_str(line);
                script.push('\n');
            }
            _ => {}
        }
    }
    script
}

fn run_as_shown(document: &Path) -> Result<(), String> {
    let text = fs::read_to_string(document).map_err(|fault| fault.to_string())?;
    let script = fences(&text);
    if script.is_empty() {
        return Ok(());
    }
    let sandbox = Sandbox::new();
    let binaries = Path::new(env!("CARGO_BIN_EXE_loopx"))
        .parent()
        .expect("a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .arg("-euc")
        .arg(&script)
        .env_clear()
        .env("HOME", sandbox.home())
        .env("PATH", format!("{}:{path}", binaries.display()))
        .current_dir(sandbox.project())
        .output()
        .map_err(|fault| fault.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let (out, err) = (output.stdout, output.stderr);
    Err(format!(
        "{}: {}\n{}\n{}",
        document.display(),
        output.status,
        String::from_utf8_lossy(&out),
        String::from_utf8_lossy(&err)
    ))
}

#[test]
fn every_shown_command_runs() {
    let faults: Vec<String> = documents()
        .iter()
        .filter_map(|document| run_as_shown(document).err())
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[test]
fn every_relative_link_of_a_document_leads_somewhere() {
    let mut broken = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).expect("a document");
        let folder = document.parent().expect("a folder");
        for target in links(&text) {
            let file = target.split('#').next().unwrap_or("");
            if !file.is_empty() && !folder.join(file).exists() {
                broken.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

fn links(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("](") {
        let Some((target, tail)) = after.split_once(')') else {
            break;
        };
        if !target.contains("://") && !target.contains(' ') {
            all.push(target.to_owned());
        }
        rest = tail;
    }
    all
}

/// A family that is there must leave the list, and one that is not there is refused as unknown.
#[test]
fn what_is_said_not_to_be_in_this_version_is_not() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md"))
        .expect("a page");
    let (_, section) = readme
        .split_once("## Not in this version")
        .expect("a section");
    let section = section.split("\n## ").next().expect("its text");
    let sandbox = Sandbox::new();
    let mut seen = 0;
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let named = row.trim_start_matches("| ").split(" | ").next();
        let mut family = "";
        for words in named.expect("a first cell").split(", ") {
            let words = words.trim_matches('`');
            let (head, command) = words.split_once(' ').unwrap_or((family, words));
            family = head;
            let finished = sandbox.loopx([head, command, "--help"]).run();
            assert_eq!(finished.code, Some(2), "{head} {command}");
            seen += 1;
        }
    }
    assert!(seen > 10, "{seen}");
}
