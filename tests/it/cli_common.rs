//! What holds for every command line: help, exit codes, one packet, completions, manual pages.

use std::fs;

use crate::support::Sandbox;

#[test]
fn an_unknown_flag_exits_2_and_prints_a_packet_only_when_asked() {
    let sandbox = Sandbox::new();
    let plain = sandbox.loopx(["completions", "--nonsense"]).run();
    assert_eq!((plain.code, plain.text().as_str()), (Some(2), ""));
    assert!(plain.errors().contains("--nonsense"));
    let asked = sandbox
        .loopx(["completions", "--nonsense", "--format", "json"])
        .run();
    assert_eq!(asked.code, Some(2));
    assert_eq!(asked.json()["error_code"], "invalid_arguments");
    assert_eq!(asked.json()["ok"], false);
}

#[test]
fn a_refused_command_line_names_what_is_missing_or_meant() {
    let sandbox = Sandbox::new();
    let missing = sandbox.loopx(["todo", "list", "--format", "json"]).run();
    let told = missing.json()["error"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(told.contains("--goal-id"), "{told}");
    let typo = sandbox
        .loopx(["todo", "list", "--goal-ib", "demo", "--format", "json"])
        .run();
    let told = typo.json()["error"].as_str().unwrap_or_default().to_owned();
    assert!(told.contains("did you mean --goal-id?"), "{told}");
}

/// docs/spec/lark-inbox.md 16: a message that lands in the wrong place of a command line comes back nowhere.
#[test]
fn a_refused_command_line_repeats_no_value() {
    let sandbox = Sandbox::new();
    let body = "zqpbody of a message";
    let lines: [&[&str]; 8] = [
        &["lark-inbox", "send", "--text", "a", body],
        &["lark-inbox", "send", "--text", "a", "zqpbody"],
        &[
            "lark-inbox",
            "send",
            "--text",
            "a",
            "--message-purpose",
            body,
        ],
        &["lark-inbox", body],
        &[body],
        &["lark-inbox", "drain", "--limit", body],
        &[
            "lark-inbox",
            "send",
            "--text",
            "a",
            "--zqpbody of a message",
        ],
        &["todo", "list", "--goal-id", "demo", "-zqpbody"],
    ];
    for words in lines {
        for format in ["json", "markdown"] {
            let mut words = words.to_vec();
            words.extend(["--format", format]);
            let run = sandbox.loopx(&words).run();
            assert_eq!(run.code, Some(2), "{words:?}");
            let said = run.text() + &run.errors();
            assert!(!said.contains("zqpbody"), "{words:?}: {said}");
        }
    }
}

#[test]
fn help_and_version_are_text_on_standard_output() {
    let sandbox = Sandbox::new();
    let help = sandbox.loopx(["--help"]).run();
    assert_eq!(help.code, Some(0));
    assert!(help.text().contains("Usage:"));
    let version = sandbox.loopx(["--version"]).run();
    assert_eq!(
        version.text(),
        format!("loopx {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn no_command_at_all_shows_the_usage_and_exits_2() {
    let run = Sandbox::new().loopx([] as [&str; 0]).run();
    assert_eq!(run.code, Some(2));
    assert!(run.errors().contains("Usage:"));
}

#[test]
fn completions_are_written_for_every_shell() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = sandbox.loopx(["completions", shell]).run();
        assert_eq!(run.code, Some(0), "{shell}");
        assert!(run.text().contains("loopx"), "{shell}");
    }
}

#[test]
fn the_manual_is_one_page_or_one_page_per_command() {
    let sandbox = Sandbox::new();
    let one = sandbox.loopx(["man"]).run();
    assert!(one.text().contains(".TH loopx 1"), "{}", one.text());
    assert_eq!(sandbox.loopx(["man", "--out", "pages"]).run().code, Some(0));
    let pages = sandbox.project().join("pages");
    assert!(pages.join("loopx.1").is_file() && pages.join("loopx-completions.1").is_file());
    fs::write(sandbox.project().join("taken"), "").expect("a file");
    let refused = sandbox.loopx(["man", "--out", "taken"]).refusal();
    assert_eq!(refused["error_code"], "output_unwritable");
}

/// Walks the whole command tree by asking for help, as a person would.
#[test]
fn every_command_shows_one_real_example() {
    let sandbox = Sandbox::new();
    let mut missing = Vec::new();
    let mut queue: Vec<Vec<String>> = vec![Vec::new()];
    while let Some(words) = queue.pop() {
        let mut args = words.clone();
        args.push("--help".to_owned());
        let help = sandbox.loopx(&args).run().text();
        let children = subcommands(&help);
        let example = help.split_once("Example: ").map(|(_, example)| example);
        if children.is_empty() && !example.is_some_and(|example| is_understood(&sandbox, example)) {
            missing.push(words.join(" "));
        }
        for child in children {
            let mut next = words.clone();
            next.push(child);
            queue.push(next);
        }
    }
    assert!(
        missing.is_empty(),
        "no `Example: loopx …` that is understood in the help of: {missing:#?}"
    );
}

/// Runs an example as a shell would; what it names need not exist, but every word has to be known.
fn is_understood(sandbox: &Sandbox, example: &str) -> bool {
    let line = example.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = [" < ", " > ", " | "]
        .iter()
        .filter_map(|sign| line.find(sign));
    let line = end.min().map_or(&line[..], |end| &line[..end]);
    let script = format!("set -- {line}; shift; printf '%s\\n' \"$@\"");
    let split = std::process::Command::new("sh")
        .args(["-c", &script])
        .output()
        .expect("a shell");
    let words = String::from_utf8(split.stdout).expect("text");
    let finished = sandbox.loopx(words.lines()).stdin("").run();
    line.starts_with("loopx ") && !finished.errors().contains("was not understood")
}

fn subcommands(help: &str) -> Vec<String> {
    let Some((_, list)) = help.split_once("\nCommands:\n") else {
        return Vec::new();
    };
    list.lines()
        .take_while(|line| !line.trim().is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("    "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}
