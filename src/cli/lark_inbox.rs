//! `loopx lark-inbox …`: one arm a command. The collector's and the document's arms are in `lark_collector`.

use std::io::Read;

use serde_json::json;

use super::args::Global;
use super::args::lark_inbox::{
    ContextFlags, HistoryArgs, LarkInboxArgs, LarkInboxCommand as Command, MarkArgs,
    MessagePurpose as PurposeFlag, OutboundFlags, ProgramFlags,
};
use super::emit::Reply;
use super::inbox_reply::{Answer, PROVIDERS, activated, mode, packet};
use super::lark_collector;
use super::progress::TerminalProgress;
use crate::compose::{self, InboxProviders};
use crate::contract::channel::body::ContentFormat;
use crate::contract::extension::Activation;
use crate::contract::inbox::fault::InboxFault;
use crate::contract::inbox::guidance::MessagePurpose;
use crate::contract::inbox::packet::ERROR_SCHEMA;
use crate::contract::inbox::sentence;
use crate::contract::packet::coded;
use crate::flow::Mode;
use crate::flow::inbox::context::{ContextArgs, Desk};
use crate::flow::inbox::error::InboxError;
use crate::flow::inbox::{
    ack, catch_up, drain, export, ingest, marks, material_review, notify, outbound,
};
use crate::flow::place::Place;

/// The largest batch of events that is read, in bytes.
const MAX_INPUT: u64 = 256 << 20;
/// Runs one inbox command.
pub(super) fn run(args: &LarkInboxArgs, global: &Global) -> Reply {
    let place = match Place::locate(global.registry.as_deref(), global.runtime_root.as_deref()) {
        Ok(place) => place,
        Err(_) => {
            let error = "the current folder cannot be read; change into another one";
            return Reply::packet(
                &json!({"ok": false, "schema_version": ERROR_SCHEMA, "error": error, "external_write_outcome": "none",
                    "error_code": "input_unreadable"}),
            );
        }
    };
    let desk = Desk {
        place: &place,
        placement: &compose::PLACEMENT,
        now: compose::now(),
    };
    if let Command::CollectorLog(args) = &args.command {
        return lark_collector::log(&desk, args, global.format);
    }
    match answer(&desk, &args.command) {
        Ok(packet) => Reply::value(sentence::explained(coded(packet))),
        Err(error) => Reply::packet(&error.packet()),
    }
}

fn answer(desk: &Desk<'_>, command: &Command) -> Answer {
    match command {
        Command::Drain(args) => match drain::run(desk, &context(&args.context), args.limit)? {
            (packet, Some(activation)) => Ok(activated(packet, &activation)),
            (packet, None) => Ok(packet),
        },
        Command::Ack(args) => packet(ack::run(
            desk,
            &context(&args.context),
            &args.message_id,
            mode(args.act.execute),
        )?),
        Command::MaterialReview(args) => {
            let effect = material_review::Effect {
                receipt: args.effect_receipt_json.clone(),
                no_follow_up: args.no_follow_up.clone(),
            };
            let subject = (args.message_id.as_str(), &effect);
            packet(material_review::run(
                desk,
                &context(&args.context),
                subject,
                mode(args.act.execute),
            )?)
        }
        Command::Ingest(args) => {
            let input = standard_input()?;
            packet(ingest::run(
                desk,
                &context(&args.context),
                &input,
                mode(args.act.execute),
            )?)
        }
        Command::Export(args) => packet(export::run(
            desk,
            &context(&args.context),
            mode(args.act.execute),
        )?),
        other => answer_outside(desk, other),
    }
}

/// The commands that speak to the provider.
fn answer_outside(desk: &Desk<'_>, command: &Command) -> Answer {
    match command {
        Command::Send(args) => {
            let context = context(&args.context);
            let request = request(&context, &args.outbound);
            packet(outbound::send(
                desk,
                &PROVIDERS,
                &request,
                args.route_key.as_deref(),
            )?)
        }
        Command::Reply(args) => {
            let context = context(&args.context);
            let request = request(&context, &args.outbound);
            packet(outbound::reply(
                desk,
                &PROVIDERS,
                &request,
                &args.message_id,
            )?)
        }
        Command::NotifyReviewer(args) => {
            let context = context(&args.context);
            let request = notify::Request {
                context: &context,
                route_key: args.route_key.as_deref(),
                text: &args.text,
                address: &args.pull_request_url,
                reader: args.reader_profile.as_deref(),
                depth: depth(args.act.execute, args.provider_preflight),
            };
            packet(notify::run(desk, &PROVIDERS, &request)?)
        }
        Command::Processing(args) => marked(desk, args, marks::processing),
        Command::ReactionComplete(args) => marked(desk, args, marks::complete),
        Command::HistoryCatchUp(args) => history(desk, args),
        other => lark_collector::answer(desk, other),
    }
}

type MarkRun =
    fn(
        &Desk<'_>,
        &dyn crate::flow::inbox::ports::Channels,
        (&ContextArgs, &str),
        Mode,
    ) -> Result<(crate::contract::inbox::mark_packet::MarkPacket, Activation), InboxError>;

fn marked(desk: &Desk<'_>, args: &MarkArgs, run: MarkRun) -> Answer {
    let subject = (&context(&args.context), args.message_id.as_str());
    packet(run(desk, &PROVIDERS, subject, mode(args.act.execute))?)
}

fn history(desk: &Desk<'_>, args: &HistoryArgs) -> Answer {
    let providers = choice(&args.program);
    let request = catch_up::CatchUpRequest {
        context: &context(&args.context),
        route_key: &args.route_key,
        start: &args.start,
        page_size: args.page_size,
        mode: mode(args.act.execute),
    };
    let progress = TerminalProgress::new();
    packet(catch_up::run(desk, (&providers, &progress), &request)?)
}

fn request<'a>(context: &'a ContextArgs, flags: &'a OutboundFlags) -> outbound::Request<'a> {
    outbound::Request {
        context,
        text: &flags.text,
        format: ContentFormat::Text,
        depth: depth(flags.act.execute, flags.provider_preflight),
        purpose: match flags.message_purpose {
            PurposeFlag::Unspecified => MessagePurpose::Unspecified,
            PurposeFlag::Help => MessagePurpose::Help,
            PurposeFlag::Progress => MessagePurpose::Progress,
            PurposeFlag::Urgent => MessagePurpose::Urgent,
        },
        reviewed: flags.reviewed_guidance_digest.as_deref(),
    }
}

const fn depth(execute: bool, preflight: bool) -> outbound::Depth {
    match (execute, preflight) {
        (true, _) => outbound::Depth::Execute,
        (false, true) => outbound::Depth::Preflight,
        (false, false) => outbound::Depth::Preview,
    }
}

fn choice(flags: &ProgramFlags) -> InboxProviders {
    compose::providers(
        flags.lark_cli_executable.clone(),
        flags.node_executable.clone(),
    )
}

fn context(flags: &ContextFlags) -> ContextArgs {
    ContextArgs {
        project: flags.project.clone(),
        config: flags.config.clone(),
        goal_id: flags.goal_id.clone(),
        agent_id: flags.agent_id.clone(),
    }
}

fn standard_input() -> Result<Vec<u8>, InboxFault> {
    let mut bytes = Vec::new();
    let read = std::io::stdin()
        .lock()
        .take(MAX_INPUT + 1)
        .read_to_end(&mut bytes);
    match read {
        Ok(_) if bytes.len() as u64 <= MAX_INPUT => Ok(bytes),
        _ => Err(InboxFault::InputUnreadable),
    }
}
