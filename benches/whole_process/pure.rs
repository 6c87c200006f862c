//! The pure commands against the floor, and one page of the largest size.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use super::table::{Verdict, median, memory, say, time};
use loopx::contract::digest::short_id;
use loopx::flow::report_contract::ReportContract;

const LOOPX: &str = env!("CARGO_BIN_EXE_loopx");
const FLOOR: &str = env!("CARGO_BIN_EXE_bench-floor");
const RUNS: usize = 60;
const MEMORY_BUDGET_KIB: i64 = 6 * 1024;
/// The largest page holds about this many items of ordinary size.
const ITEMS: usize = 1_000;

/// Times every pure command on a golden input.
pub(crate) fn commands(verdict: &mut Verdict) {
    say("command            floor ms  loopx ms  ratio  +KiB");
    for contract in ReportContract::ALL {
        let input = golden(contract.name()).to_string();
        let flag = match contract {
            ReportContract::InspectProfile => "--profile-json",
            _ => "--request-json",
        };
        let args = [
            "periodic-report",
            contract.name(),
            flag,
            "-",
            "--format",
            "json",
        ];
        let floor_args = ["read", "--request-json", "-"];
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            theirs.push(time(Command::new(FLOOR).args(floor_args), input.as_bytes()));
            ours.push(time(Command::new(LOOPX).args(args), input.as_bytes()));
        }
        let (ours, theirs) = (median(ours), median(theirs));
        let more = memory(Path::new(LOOPX), &args, input.as_bytes())
            - memory(Path::new(FLOOR), &floor_args, input.as_bytes());
        let name = contract.name();
        say(&format!(
            "{name:<18} {theirs:>8.2} {ours:>9.2} {:>6.2} {more:>5}",
            ours / theirs
        ));
        let allowed = (1.8 * theirs).max(theirs + 1.5);
        verdict.check(
            ours <= allowed,
            &format!("{name} takes {ours:.2} ms, {allowed:.2} ms are allowed"),
        );
        verdict.check(
            more <= MEMORY_BUDGET_KIB,
            &format!("{name} takes {more} KiB more than the floor"),
        );
    }
}

fn golden(command: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden/periodic-report");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the fixtures are part of the project")
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .collect();
    files.sort();
    for file in files {
        let bytes = std::fs::read(file).expect("a fixture can be read");
        let cases: Vec<Value> = serde_json::from_slice(&bytes).expect("a fixture is a list");
        let fits = |case: &&Value| {
            case["command"][1] == command
                && case["expect"]["ok"] == true
                && !case["input"].is_null()
        };
        if let Some(case) = cases.iter().find(fits) {
            return case["input"].clone();
        }
    }
    panic!("no golden case for {command}");
}

/// Renders a page of about a thousand items: in this process, and as a whole command.
pub(crate) fn large_page(verdict: &mut Verdict) {
    let request = large_request();
    let (mut steps, mut wholes) = (Vec::new(), Vec::new());
    for _ in 0..9 {
        let begun = Instant::now();
        let answer = ReportContract::Render.answer(&request);
        steps.push(begun.elapsed());
        assert!(answer.is_ok(), "the large page is refused");
    }
    let input = request.to_string();
    let args = [
        "periodic-report",
        "render",
        "--request-json",
        "-",
        "--format",
        "json",
    ];
    for _ in 0..9 {
        wholes.push(time(Command::new(LOOPX).args(args), input.as_bytes()));
    }
    let (step, whole) = (median(steps), median(wholes));
    say(&format!(
        "\npage of {ITEMS} items: rendering step {step:.1} ms, whole process {whole:.1} ms"
    ));
    verdict.check(
        step <= 50.0,
        &format!("the rendering step takes {step:.1} ms of 50"),
    );
    verdict.check(
        whole <= 120.0,
        &format!("the whole process takes {whole:.1} ms of 120"),
    );
}

fn large_request() -> Value {
    let items: Vec<Value> = (0..ITEMS)
        .map(|index| {
            json!({"item_id": format!("i{index:04}"), "title": format!("Route {index:04} runs on the new timetable"),
                "summary": "Both boats keep the new times; no passenger waited longer than before.",
                "value_rank": 500, "status": "done", "content_kind": "outcome",
                "source_ref": format!("https://tracker.example/item/{index}"),
                "details": [{"label": "Before", "text": "Two sailings a day."},
                    {"label": "After", "text": "Three sailings a day."}]})
        })
        .collect();
    let sections = json!([{"schema_version": "periodic_report_section_v0", "section_id": "progress",
        "title": "Progress", "order": 10, "items": items}]);
    let digest = short_id("snapshot", &sections).expect("integers are canonical");
    let parts = json!({"title": "Week", "generated_at": "2026-07-27T07:30:00Z",
        "period_window": {"start_at": "2026-07-20T00:00:00Z", "end_at": "2026-07-27T00:00:00Z"},
        "profile": {"profile_id": "weekly", "profile_version": "v1"},
        "sources": [{"schema_version": "periodic_report_source_result_v0", "source_id": "ledger",
            "source_kind": "work_ledger", "status": "complete", "observed_at": "2026-07-27T07:00:00Z",
            "snapshot_digest": digest, "sections": sections}]});
    let built = ReportContract::BuildDocument
        .answer(&parts)
        .expect("the parts are valid");
    json!({"renderer_id": "html_artifact_v0", "document": built["document"]})
}
