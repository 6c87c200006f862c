//! What only one place may do, and how large a place may grow.

use std::fs;
use std::path::Path;

use super::source::{self, Source};

const PROVIDER_WORDS: [&str; 6] = ["lark", "feishu", "miaoda", "openviking", "botmux", "slack"];
const SQL_WORDS: [&str; 6] = [
    "SELECT ", "INSERT ", "UPDATE ", "DELETE ", "CREATE ", "PRAGMA ",
];
/// Rooms whose items the integration tests drive.
const PUBLIC_ROOMS: [&str; 7] = [
    "contract",
    "kernel",
    "port",
    "store",
    "flow",
    "workspace",
    "failpoint",
];

fn check(rule: impl Fn(&Source) -> Vec<String>) {
    let mut faults = Vec::new();
    for source in source::all() {
        faults.extend(
            rule(&source)
                .into_iter()
                .map(|fault| format!("{}: {fault}", source.name)),
        );
    }
    faults.sort();
    faults.dedup();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn uses(source: &Source, wanted: &str) -> bool {
    let inner = format!("{wanted}::");
    source
        .paths
        .iter()
        .any(|path| path == wanted || path.starts_with(&inner))
}

fn ends_with_path(source: &Source, wanted: &str) -> bool {
    let inner = format!("::{wanted}");
    source
        .paths
        .iter()
        .any(|path| path == wanted || path.ends_with(&inner))
}

fn only_in(source: &Source, places: &[&str]) -> bool {
    places.iter().any(|place| source.name.starts_with(place))
}

#[test]
fn only_the_digest_file_hashes() {
    check(|source| {
        let hashes = uses(source, "sha2") || uses(source, "sha1");
        let fault = hashes && source.name != "contract/digest.rs";
        fault
            .then(|| "uses a hash crate".to_owned())
            .into_iter()
            .collect()
    });
}

#[test]
fn only_the_process_file_spawns() {
    check(|source| {
        let spawns = uses(source, "std::process::Command") || uses(source, "tokio::process");
        let fault = spawns && source.room() != "process";
        fault.then(|| "spawns".to_owned()).into_iter().collect()
    });
}

#[test]
fn only_the_environment_file_reads_variables() {
    const READERS: [&str; 4] = [
        "std::env::var",
        "std::env::var_os",
        "std::env::vars",
        "std::env::vars_os",
    ];
    check(|source| {
        let reads = READERS.iter().any(|reader| uses(source, reader));
        let reads =
            reads || ends_with_path(source, "env::var") || ends_with_path(source, "env::var_os");
        let fault = reads && source.name != "workspace/env.rs";
        fault
            .then(|| "reads the environment".to_owned())
            .into_iter()
            .collect()
    });
}

#[test]
fn only_the_clock_reads_the_time() {
    const CLOCKS: [&str; 4] = ["Utc::now", "Local::now", "SystemTime::now", "Zoned::now"];
    check(|source| {
        let mut faults = Vec::new();
        if CLOCKS.iter().any(|clock| ends_with_path(source, clock))
            && source.name != "port/clock.rs"
        {
            faults.push("reads the wall clock".to_owned());
        }
        let may_measure = source.room() == "process" || source.name == "store/lock.rs";
        if ends_with_path(source, "Instant::now") && !may_measure {
            faults.push("measures time".to_owned());
        }
        faults
    });
}

#[test]
fn only_the_store_speaks_sql() {
    check(|source| {
        let speaks = source.literals.iter().any(|text| {
            let start = text.trim_start();
            SQL_WORDS.iter().any(|word| start.starts_with(word))
        });
        let fault = speaks && source.room() != "store";
        fault.then(|| "holds SQL".to_owned()).into_iter().collect()
    });
}

#[test]
fn private_values_are_opened_in_few_places() {
    const PLACES: [&str; 7] = [
        "provider/",
        "store/document/",
        "contract/channel/body.rs",
        "contract/channel/ids.rs",
        "contract/channel/mention.rs",
        "contract/digest.rs",
        "contract/inbox/drained.rs",
    ];
    check(|source| {
        let opens = source.calls.iter().any(|call| call == "expose");
        let may = only_in(source, &PLACES) || source.name == "contract/private.rs";
        (opens && !may)
            .then(|| "calls expose()".to_owned())
            .into_iter()
            .collect()
    });
}

#[test]
fn proofs_are_made_only_by_those_who_checked() {
    const PLACES: [&str; 2] = ["provider/", "kernel/periodic_report/editorial.rs"];
    check(|source| {
        let attests =
            source.calls.iter().any(|call| call == "attest") || ends_with_path(source, "attest");
        (attests && !only_in(source, &PLACES))
            .then(|| "calls attest".to_owned())
            .into_iter()
            .collect()
    });
}

#[test]
fn provider_words_stay_at_the_rim() {
    // Failpoints name the commands that reach them.
    const RIM: [&str; 4] = ["provider/", "compose.rs", "cli/", "failpoint.rs"];
    check(|source| {
        if only_in(source, &RIM) || source.name == "lib.rs" {
            return Vec::new();
        }
        let holds = |text: &String| {
            let folded = text.to_lowercase();
            PROVIDER_WORDS
                .iter()
                .find(|word| folded.contains(**word))
                .copied()
        };
        let mut faults: Vec<String> = Vec::new();
        let names = source.words.iter().chain(std::iter::once(&source.name));
        faults.extend(
            names.filter_map(|name| holds(name).map(|word| format!("{name} names {word}"))),
        );
        if source.room() != "contract" {
            let texts = source.literals.iter();
            faults.extend(
                texts.filter_map(|text| holds(text).map(|word| format!("a text holds {word}"))),
            );
        }
        faults
    });
}

#[test]
fn files_stay_readable_in_one_sitting() {
    check(|source| {
        let lines = source.text.lines().count();
        let mut faults = Vec::new();
        if lines > 600 {
            faults.push(format!("{lines} lines; split it by meaning"));
        }
        if !source.text.starts_with("//!") && source.name != "main.rs" {
            faults.push("has no module documentation".to_owned());
        }
        if source.name == "main.rs" && lines > 15 {
            faults.push("does more than start".to_owned());
        }
        faults
    });
}

#[test]
fn module_roots_hold_no_logic() {
    check(|source| {
        let is_root = source.name.ends_with("/mod.rs") || source.name == "lib.rs";
        (is_root && source.logic > 0)
            .then(|| "holds logic; give it a file of its own".to_owned())
            .into_iter()
            .collect()
    });
}

#[test]
fn rooms_at_the_rim_show_nothing_outside_the_crate() {
    check(|source| {
        let is_public_room = PUBLIC_ROOMS.contains(&source.room()) || source.name == "lib.rs";
        let extra = source
            .public
            .iter()
            .filter(|name| !(source.room() == "cli" && *name == "run"));
        match is_public_room {
            true => Vec::new(),
            false => extra.map(|name| format!("{name} is pub")).collect(),
        }
    });
}

#[test]
fn every_error_code_is_explained_and_every_explained_code_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/errors.md")).expect("docs/errors.md");
    let explained: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    let known: Vec<&str> = loopx::contract::error::ErrorCode::ALL
        .iter()
        .map(|code| code.as_str())
        .collect();
    let missing: Vec<&&str> = known
        .iter()
        .filter(|code| !explained.contains(code))
        .collect();
    let stale: Vec<&&str> = explained
        .iter()
        .filter(|code| !known.contains(code))
        .collect();
    assert!(missing.is_empty(), "not in docs/errors.md: {missing:?}");
    assert!(
        stale.is_empty(),
        "in docs/errors.md, but no code: {stale:?}"
    );
}

#[test]
fn every_error_code_is_given_by_some_room() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = fs::read_to_string(root.join("src/contract/error.rs")).expect("the codes");
    let names: Vec<&str> = list
        .lines()
        .filter_map(|line| line.strip_prefix("    ")?.split_once(" => \""))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names.len(), loopx::contract::error::ErrorCode::ALL.len());
    let sources = source::all();
    let is_given = |name: &&str| {
        let users = sources
            .iter()
            .filter(|source| source.name != "contract/error.rs");
        users
            .flat_map(|source| &source.words)
            .any(|word| word == name)
    };
    let idle: Vec<&str> = names.into_iter().filter(|name| !is_given(name)).collect();
    assert!(idle.is_empty(), "codes that cannot occur: {idle:?}");
}

/// What is said of every chat is said in words that any provider could print; targets and bindings are documents of one.
#[test]
fn the_words_of_every_chat_name_no_provider() {
    check(|source| {
        if !source.name.starts_with("contract/channel/")
            || ["/target.rs", "/binding.rs"]
                .iter()
                .any(|file| source.name.ends_with(file))
        {
            return Vec::new();
        }
        let code = source.text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = code.lines().map(str::trim_start);
        let mut faults = Vec::new();
        for line in lines.filter(|line| !line.starts_with("//")) {
            let folded = line.to_lowercase();
            if PROVIDER_WORDS.iter().any(|word| folded.contains(word)) {
                faults.push(format!("names a provider: {line}"));
            }
        }
        faults
    });
}

/// A point that nothing marks cannot be died at, whatever a test arms.
#[test]
fn every_crash_point_is_marked_in_the_code() {
    let mut code: Vec<String> = Vec::new();
    for source in source::all() {
        if source.name != "failpoint.rs" && source.text.contains("failpoint") {
            let text = source.text.split("#[cfg(test)]").next();
            code.push(text.unwrap_or_default().to_owned());
        }
    }
    let is_marked = |name: &String| {
        let mut found = code
            .iter()
            .flat_map(|text| text.split(name.as_str()).skip(1));
        found.any(|after| !after.starts_with(|next: char| next.is_ascii_alphanumeric()))
    };
    let names = loopx::failpoint::Point::ALL
        .iter()
        .map(|point| format!("Point::{point:?}"));
    let unmarked: Vec<String> = names.filter(|name| !is_marked(name)).collect();
    assert!(unmarked.is_empty(), "{unmarked:?}");
}
