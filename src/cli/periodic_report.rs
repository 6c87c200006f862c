//! `loopx periodic-report …`: the pure contracts, each a function of its one input.

use std::path::Path;

use serde_json::Value;

use super::args::{
    Global, InspectProfileArgs, PeriodicReportArgs, PeriodicReportCommand as Command,
};
use super::emit::{Layout, REPORT_ERROR_SCHEMA, Reply};
use super::{generate, input};
use crate::contract::error::ErrorCode;
use crate::contract::packet::Refusal;
use crate::contract::periodic_report::activation::ProfilePreset;
use crate::contract::periodic_report::identity::value_of;
use crate::flow::report_contract::ReportContract;
use crate::kernel::periodic_report::activation;
use crate::render::{packet_text, report_text};

/// Runs one report command.
pub(super) fn run(args: &PeriodicReportArgs, global: &Global) -> Reply {
    let (contract, request) = match &args.command {
        Command::Generate(args) => return generate::run(args, global),
        Command::InspectProfile(args) => return inspect_profile(args),
        Command::EvaluateTrigger(args) => (ReportContract::EvaluateTrigger, args),
        Command::ComposeRun(args) => (ReportContract::ComposeRun, args),
        Command::BuildSource(args) => (ReportContract::BuildSource, args),
        Command::BuildDocument(args) => (ReportContract::BuildDocument, args),
        Command::Render(args) => (ReportContract::Render, args),
        Command::PlanAudience(args) => (ReportContract::PlanAudience, args),
        Command::Bundle(args) => (ReportContract::Bundle, args),
        Command::Readiness(args) => (ReportContract::Readiness, args),
        Command::DeliveryReceipt(args) => (ReportContract::DeliveryReceipt, args),
        Command::ArchiveBundle(args) => (ReportContract::ArchiveBundle, args),
    };
    reply(contract, answer(contract, &request.request_json))
}

fn answer(contract: ReportContract, request: &Path) -> Result<Value, Refusal> {
    let request = input::json_object(request)?;
    Ok(contract.answer(&request)?)
}

fn reply(contract: ReportContract, answer: Result<Value, Refusal>) -> Reply {
    match answer {
        Ok(packet) => Reply::Packet {
            packet,
            layout: layout(contract),
        },
        Err(refusal) => Reply::refused(refusal, REPORT_ERROR_SCHEMA, contract.name()),
    }
}

fn layout(contract: ReportContract) -> Layout {
    match contract {
        ReportContract::InspectProfile => report_text::activation,
        ReportContract::EvaluateTrigger => report_text::decision,
        ReportContract::ComposeRun => report_text::run,
        ReportContract::Render => report_text::artifact,
        ReportContract::Bundle => report_text::bundle,
        _ => packet_text::general,
    }
}

fn inspect_profile(args: &InspectProfileArgs) -> Reply {
    let contract = ReportContract::InspectProfile;
    match (&args.profile_json, args.preset) {
        (Some(path), _) => reply(contract, answer(contract, path)),
        (None, preset) => {
            let found = preset.and_then(|preset| ProfilePreset::find(preset.as_str()));
            let preset =
                found.ok_or_else(|| Refusal::new(ErrorCode::InvalidArguments, "name a preset"));
            let packet = preset.and_then(|preset| {
                let activation = activation::inspect_preset(preset)?;
                Ok(value_of(&activation)?)
            });
            reply(contract, packet)
        }
    }
}
