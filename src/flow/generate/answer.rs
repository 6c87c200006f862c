//! The packet of a generation, with the next useful step.

use super::again::command_for;
use super::command::GenerateCommand;
use super::compose::Composed;
use super::publish::{Place, file_name};
use super::setting::Setting;
use super::sources::Readings;
use crate::contract::periodic_report::generate::{
    GenerateEffects, GenerateResult, GenerateResultSchema, GeneratedArtifact, GeneratedSource,
    KindCount, NextStep,
};
use crate::contract::periodic_report::item::Item;
use crate::contract::periodic_report::vocabulary::{ContentKind, ReportKind, Yes};
use crate::contract::time::{Timestamp, Window};
use crate::kernel::zone::Zone;

/// The order in which kinds are counted out.
const KINDS: [ContentKind; 6] = [
    ContentKind::Outcome,
    ContentKind::Decision,
    ContentKind::CapabilityChange,
    ContentKind::Progress,
    ContentKind::Risk,
    ContentKind::NextAction,
];

/// What the answer is made of.
pub(super) struct Made<'a> {
    pub command: &'a GenerateCommand,
    pub setting: &'a Setting,
    pub window: Window,
    pub readings: &'a Readings,
    pub composed: &'a Composed,
    pub has_goal: bool,
    pub choice_of_goals: usize,
}

/// Says what was made and where.
pub(super) fn answer(made: &Made<'_>, place: Option<Place>) -> GenerateResult {
    let items = || {
        made.composed
            .document
            .sections
            .iter()
            .flat_map(|section| &section.items)
    };
    let primary: Vec<&Item> = items().filter(|item| item.is_primary()).collect();
    let kinds = KINDS.iter().map(|kind| KindCount {
        content_kind: *kind,
        count: primary.iter().filter(|item| item.is_kind(*kind)).count(),
    });
    let editorial = made.composed.document.editorial.as_ref();
    GenerateResult {
        ok: Yes,
        schema_version: GenerateResultSchema,
        generation_id: made.composed.generation_id.clone(),
        report_kind: ReportKind::ManualUpdate,
        generated_at: made.setting.generated_at,
        period_window: made.window,
        timezone: made.setting.zone.name().to_owned(),
        out: place.as_ref().map(|place| place.out.clone()),
        artifacts: artifacts(made.composed),
        sources: sources(made.readings),
        primary_item_count: primary.len(),
        supporting_item_count: items().count() - primary.len(),
        primary_item_kinds: kinds.filter(|kind| kind.count > 0).collect(),
        summary: editorial.and_then(|editorial| editorial.summary.clone()),
        newest_fact_at: made.readings.newest,
        already_generated: place.as_ref().is_some_and(|place| place.already_generated),
        effects: match place.as_ref().is_some_and(|place| place.state_written) {
            true => GenerateEffects::WRITTEN,
            false => GenerateEffects::NONE,
        },
        next_step: next_step(made, items().count()),
    }
}

fn artifacts(composed: &Composed) -> Vec<GeneratedArtifact> {
    let artifacts = composed.artifacts.iter();
    artifacts
        .map(|(adapter, artifact)| GeneratedArtifact {
            artifact_id: adapter.artifact_id(),
            renderer_kind: adapter.renderer_kind(),
            file: file_name(*adapter),
            content_digest: artifact.content_digest.clone(),
            bytes: artifact.content.len(),
        })
        .collect()
}

fn sources(readings: &Readings) -> Vec<GeneratedSource> {
    let readings = readings.readings.iter();
    readings
        .map(|reading| GeneratedSource {
            source_id: reading.result.source_id.clone(),
            source_kind: reading.result.source_kind.clone(),
            status: reading.result.status,
            item_count: reading.result.item_count,
            omitted_count: reading.omitted,
            withheld_count: reading.withheld,
            reason: reading.reason,
        })
        .collect()
}

/// An empty window first: a report about nothing helps nobody. Then the goal that is missing.
fn next_step(made: &Made<'_>, items: usize) -> Option<NextStep> {
    let command = |text: &str| format!("loopx {text}");
    match made.readings.newest {
        Some(newest) if items == 0 => Some(NextStep {
            reason: format!(
                "Nothing is recorded in this window; the newest fact is of {}. This covers it:",
                day(&made.setting.zone, newest)
            ),
            commands: vec![command_for(made.command, "latest")],
        }),
        _ if made.choice_of_goals > 0 => Some(NextStep {
            reason: format!(
                "{} goals are active; name one with --goal-id to report on it:",
                made.choice_of_goals
            ),
            commands: vec![command("status"), command("periodic-report generate --goal-id GOAL")],
        }),
        _ if !made.has_goal => Some(NextStep {
            reason: "A goal makes the next report say what was achieved, what is next and what is needed:"
                .to_owned(),
            commands: vec![
                command("bootstrap --goal-id my-goal --title \"What we want\" --objective \"Why it matters\" --project ."),
                command("todo add --goal-id my-goal --role agent --task-class advancement_task --text \"First step\""),
                command("todo complete --goal-id my-goal --todo-id TODO --agent-id me --evidence \"What proves it\""),
                command("periodic-report generate"),
            ],
        }),
        _ => None,
    }
}

fn day(zone: &Zone, instant: Timestamp) -> String {
    let day = zone.day_of(instant).map(|day| day.to_string());
    day.unwrap_or_else(|| instant.to_string())
}
