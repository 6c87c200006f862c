//! `loopx lark-inbox collector-…` and `document-comment-…`: one arm a command.

use super::args::Format;
use super::args::lark_inbox::{
    CollectorArgs, CollectorLogArgs, CollectorRunArgs, DocumentArgs, LarkInboxCommand as Command,
    ReconcileArgs,
};
use super::emit::{self, Reply};
use super::inbox_reply::{Answer, PROVIDERS, activated, mode, packet};
use crate::compose::{self, SUPERVISOR};
use crate::contract::inbox::collector_log::LogLine;
use crate::contract::inbox::fault::InboxFault;
use crate::flow::inbox::collector_run::{self, RunRequest};
use crate::flow::inbox::context::{ContextArgs, Desk};
use crate::flow::inbox::{
    collector_log, collector_status, document_comment, document_reply, reconcile, service,
};
use crate::render::log_text;

/// Runs one command of the collector or the document connector.
pub(super) fn answer(desk: &Desk<'_>, command: &Command) -> Answer {
    match command {
        Command::CollectorPlan(args) => packet(service::plan(desk, &PROVIDERS, &context(args))?),
        Command::CollectorInstall(args) => packet(service::install(
            desk,
            (&PROVIDERS, &SUPERVISOR),
            &context(&args.collector),
            mode(args.act.execute),
        )?),
        Command::CollectorStatus(args) => packet(collector_status::run(
            desk,
            (&PROVIDERS, &SUPERVISOR),
            &context(&args.collector),
            args.probe_event_bus,
        )?),
        Command::CollectorRouteReconcile(args) => reconcile(desk, args),
        Command::CollectorRun(args) => run(desk, args),
        other => answer_document(desk, other),
    }
}

fn answer_document(desk: &Desk<'_>, command: &Command) -> Answer {
    match command {
        Command::DocumentCommentStatus(args) => {
            packet(document_comment::status(desk, &PROVIDERS, &document(args))?)
        }
        Command::DocumentCommentCapture(args) => {
            let context = document(&args.document);
            packet(document_comment::capture(
                desk,
                &PROVIDERS,
                &context,
                mode(args.act.execute),
            )?)
        }
        Command::DocumentCommentReply(args) => {
            let subject = (
                &document(&args.document),
                args.event_id.as_str(),
                args.text.as_str(),
            );
            packet(document_reply::run(
                desk,
                &PROVIDERS,
                subject,
                mode(args.act.execute),
            )?)
        }
        Command::DocumentCommentAck(args) => {
            let context = document(&args.document);
            packet(document_comment::ack(
                desk,
                &context,
                &args.event_id,
                mode(args.act.execute),
            )?)
        }
        _ => Err(InboxFault::NotConfigured.into()),
    }
}

/// Shows a collector's log, or prints it as it grows until nobody reads it any more.
pub(super) fn log(desk: &Desk<'_>, args: &CollectorLogArgs, format: Format) -> Reply {
    let (context, count) = (context(&args.collector), usize::from(args.lines));
    if !args.follow {
        return match collector_log::show(desk, &context, count) {
            Ok((shown, activation)) => {
                Reply::with_text(&activated(shown, &activation), log_text::log)
            }
            Err(error) => Reply::packet(&error.packet()),
        };
    }
    let mut take = |line: &LogLine| {
        let entry = line.to_value();
        emit::line(&match format {
            Format::Markdown => log_text::line(&entry),
            Format::Json | Format::Digest => entry.to_string(),
        })
    };
    let mut reader = collector_log::LogReader {
        wait: &compose::wait_while_read,
        take: &mut take,
    };
    match collector_log::follow(desk, &context, count, &mut reader) {
        Ok(()) => Reply::text(String::new()),
        Err(error) => Reply::packet(&error.packet()),
    }
}

fn context(args: &CollectorArgs) -> ContextArgs {
    ContextArgs {
        project: Some(args.project.clone()),
        config: Some(args.config.clone()),
        ..ContextArgs::default()
    }
}

fn document(args: &DocumentArgs) -> ContextArgs {
    ContextArgs {
        project: Some(args.project.clone()),
        config: Some(args.config.clone()),
        ..ContextArgs::default()
    }
}

fn reconcile(desk: &Desk<'_>, args: &ReconcileArgs) -> Answer {
    let candidate = reconcile::Candidate {
        route_key: &args.route_key,
        chat_id: &args.chat_id,
        config: &args.event_inbox_config,
    };
    packet(reconcile::run(
        desk,
        &context(&args.collector),
        &candidate,
        mode(args.act.execute),
    )?)
}

fn run(desk: &Desk<'_>, args: &CollectorRunArgs) -> Answer {
    let providers = compose::providers(
        Some(args.lark_cli_executable.clone()),
        args.node_executable.clone(),
    );
    let context = ContextArgs {
        project: Some(args.project.clone()),
        config: Some(args.config.clone()),
        ..ContextArgs::default()
    };
    let request = RunRequest {
        context: &context,
        continuous: args.continuous,
        clock: &compose::clock(),
    };
    packet(collector_run::run(desk, &providers, &request)?)
}
