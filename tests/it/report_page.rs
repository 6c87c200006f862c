//! The page as bytes: sizes, one script and one style, escaping, cleaning, the carried Markdown.
//!
//! What needs a browser is in `.ci/browser-check`.

use std::path::Path;

use serde_json::{Value, json};

use loopx::contract::digest::{content_digest, policy_source};
use loopx::contract::json as strict;
use loopx::flow::report_contract::ReportContract;

fn answer(contract: ReportContract, request: &Value) -> Value {
    contract
        .answer(request)
        .unwrap_or_else(|error| panic!("{}: {error}", contract.name()))
}

/// Builds the document of a sample in `fixtures/page`.
fn sample(name: &str) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(root.join("fixtures/page").join(name)).expect("a fixture");
    let mut sample = strict::parse(&bytes).expect("JSON");
    let projections = sample["projections"].take();
    let sources: Vec<Value> = projections
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| {
            answer(
                ReportContract::BuildSource,
                &json!({"project_progress": one}),
            )["source_result"]
                .clone()
        })
        .collect();
    sample
        .as_object_mut()
        .expect("an object")
        .remove("projections");
    sample["sources"] = json!(sources);
    document(&sample)
}

fn document(parts: &Value) -> Value {
    answer(ReportContract::BuildDocument, parts)["document"].clone()
}

fn render(renderer: &str, document: &Value) -> Value {
    let request = json!({"renderer_id": renderer, "document": document});
    answer(ReportContract::Render, &request)["artifact"].clone()
}

fn page(document: &Value) -> String {
    text(&render("html_artifact_v0", document))
}

fn text(artifact: &Value) -> String {
    artifact["content"].as_str().expect("a text").to_owned()
}

fn between<'a>(page: &'a str, start: &str, end: &str) -> &'a str {
    let (_, rest) = page
        .split_once(start)
        .unwrap_or_else(|| panic!("no {start}"));
    rest.split_once(end).unwrap_or_else(|| panic!("no {end}")).0
}

fn unescape(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#x27;", "'")
        .replace("&amp;", "&")
}

fn source(items: &[Value]) -> Value {
    let mut sections = json!([{"schema_version": "periodic_report_section_v0", "section_id": "progress",
        "title": "Progress", "order": 10, "items": items}]);
    for item in sections[0]["items"].as_array_mut().expect("a list") {
        if item.get("value_rank").is_none() {
            item["value_rank"] = json!(500);
        }
    }
    let recipe = serde_json::from_str(&sections.to_string()).expect("JSON");
    let digest = loopx::contract::digest::short_id("snapshot", &recipe).expect("canonical");
    json!({"schema_version": "periodic_report_source_result_v0", "source_id": "ledger",
        "source_kind": "work_ledger", "status": "complete", "observed_at": "2026-07-27T07:00:00Z",
        "snapshot_digest": digest, "sections": sections})
}

fn parts(items: &[Value]) -> Value {
    json!({"title": "Week", "generated_at": "2026-07-27T07:30:00Z",
        "period_window": {"start_at": "2026-07-20T00:00:00Z", "end_at": "2026-07-27T00:00:00Z"},
        "profile": {"profile_id": "weekly", "profile_version": "v1"}, "sources": [source(items)]})
}

/// Items of ordinary size: two details and a link.
fn many(count: usize) -> Vec<Value> {
    (0..count)
        .map(|index| {
            json!({"item_id": format!("i{index:04}"), "title": format!("Route {index:04} runs on the new timetable"),
                "summary": "Both boats keep the new times; no passenger waited longer.", "content_kind": "outcome",
                "status": "done", "source_ref": format!("https://tracker.example/{index}"),
                "details": [{"label": "Before", "text": "Two sailings."}, {"label": "After", "text": "Three sailings."}]})
        })
        .collect()
}

#[test]
fn shell_sample_and_item_keep_within_their_budgets() {
    let shell = page(&document(&parts(&[])));
    assert!(shell.len() < 20_000, "the shell has {} bytes", shell.len());
    assert!(between(&shell, "<style>", "</style>").len() < 11_000);
    assert!(between(&shell, "<script>", "</script>").len() < 2_000);
    let sample = page(&sample("en.json"));
    assert!(
        sample.len() < 40_000,
        "the sample has {} bytes",
        sample.len()
    );
    let (some, more) = (
        page(&document(&parts(&many(10)))),
        page(&document(&parts(&many(110)))),
    );
    let each = (more.len() - some.len()) / 100;
    assert!(each < 1_000, "an item has {each} bytes");
}

#[test]
fn a_page_over_the_limit_is_refused_by_name_and_never_cut() {
    let request =
        json!({"renderer_id": "html_artifact_v0", "document": document(&parts(&many(1_400)))});
    let error = ReportContract::Render
        .answer(&request)
        .expect_err("too large");
    assert_eq!(error.code.as_str(), "report_artifact_too_large");
    assert!(error.to_string().contains("1000000"));
}

#[test]
fn the_plain_text_is_the_markdown_artifact_byte_for_byte() {
    for name in ["en.json", "zh.json", "ar.json", "hostile.json"] {
        let document = sample(name);
        let artifact = render("html_artifact_v0", &document);
        let page = text(&artifact);
        let carried = unescape(between(
            &page,
            "<pre data-report-markdown translate=\"no\">",
            "</pre>",
        ));
        assert_eq!(carried, text(&render("markdown_v0", &document)), "{name}");
        let digest = content_digest(carried.as_bytes()).to_string();
        assert_eq!(
            artifact["companion_markdown_digest"],
            json!(digest),
            "{name}"
        );
        assert!(page.contains(&digest), "{name}: the digest is not shown");
        assert!(!carried.contains('\r') && !carried.contains('\0') && !carried.starts_with('\n'));
    }
}

#[test]
fn the_policy_names_exactly_the_style_and_script_of_the_page() {
    let page = page(&sample("en.json"));
    let style = policy_source(between(&page, "<style>", "</style>"));
    let script = policy_source(between(&page, "<script>", "</script>"));
    let policy = format!(
        "content=\"default-src 'none'; style-src '{style}'; script-src '{script}'; base-uri 'none'; form-action 'none'\""
    );
    assert!(page.contains(&policy));
    assert!(page.starts_with("<!doctype html>\n") && page.ends_with("</html>\n"));
}

#[test]
fn a_hostile_document_stays_text() {
    let page = page(&sample("hostile.json"));
    let count = |part: &str| page.matches(part).count();
    assert_eq!(
        (count("<script"), count("<style"), count("</html>")),
        (1, 1, 1)
    );
    for part in [
        "<img",
        "<iframe",
        "<link",
        "<base",
        "<form",
        " style=",
        " onerror=\"",
        " onclick=",
        "href=\"javascript",
        "href=\"data",
        "href=\"//",
    ] {
        assert_eq!(count(part), 0, "{part}");
    }
    for href in page.split("href=\"").skip(1) {
        let target = href.split('"').next().expect("an end");
        assert!(
            target.starts_with('#') || target.starts_with("https://tracker.ferry.example/"),
            "{target}"
        );
    }
    let steers = |character: char| {
        matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{feff}')
            || (character.is_control() && character != '\n')
    };
    assert!(!page.contains(steers));
}

#[test]
fn every_field_is_escaped_with_the_spelling_of_the_contract() {
    let raw = "a & b < c > d \" e ' f";
    let escaped = "a &amp; b &lt; c &gt; d &quot; e &#x27; f";
    let item = json!({"item_id": "i", "title": raw, "summary": raw, "content_kind": "risk", "status": raw,
        "next_action": raw, "tags": ["t"], "tag_labels": {"t": raw}, "source_ref": raw,
        "details": [{"label": raw, "text": raw}]});
    let mut parts = parts(&[item]);
    parts["title"] = json!(raw);
    parts["editorial"] = json!({"kicker": raw, "period_label": raw,
        "highlights": [{"highlight_id": "h", "value": raw, "label": raw, "detail": raw}]});
    let page = page(&document(&parts));
    let body = between(&page, "</style>", "<pre");
    assert!(!body.contains(raw));
    // head title, kicker, period, heading, highlight 3; brief risk and next; status, tag, title, summary, detail 2, next, source.
    assert!(
        body.matches(escaped).count() >= 16,
        "{}",
        body.matches(escaped).count()
    );
}

#[test]
fn the_same_document_gives_the_same_bytes() {
    let document = sample("zh.json");
    assert_eq!(page(&document), page(&document));
}

#[test]
fn a_chinese_page_holds_no_english_label() {
    let page = page(&sample("zh.json"));
    let body = between(&page, "<body>", "<script>");
    for label in [
        "Outcome",
        "Risk",
        "Next",
        "Source",
        "Items",
        "Copy",
        "Print",
        "Skip",
        "End of report",
        "Appendix",
        "Notes",
        "Period",
        "Facts",
        "Mon",
        "Press",
    ] {
        assert!(!body.contains(label), "{label}");
    }
}

#[test]
fn nothing_of_the_appendix_stands_outside_it() {
    let document = sample("en.json");
    let page = page(&document);
    let (before, _) = page
        .split_once("<details class=\"supporting\" data-supporting-context>")
        .expect("an appendix");
    for secret in [
        "sha256:",
        "snapshot_",
        "2026-07-27T07:30:00Z",
        "project_progress",
        "weekly_progress",
    ] {
        assert!(
            !before
                .split("</style>")
                .nth(1)
                .expect("a body")
                .contains(secret),
            "{secret}"
        );
    }
}
