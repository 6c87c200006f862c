//! `lark-inbox send` and `reply`: one message, verified by exact readback.
//!
//! 1. text rules  2. configuration, right to run, route  3. key; a plain preview returns here  4. sender, membership, mentions  5. the
//!    provider's own preview  6. guidance that has to be reviewed stops here, a preflight too  7. delivery  8. reply: own marks removed

use super::clearance::Cleared;
use super::context::{BoundInbox, ContextArgs, Desk, Source};
use super::delivery::Delivery;
use super::error::InboxError;
use super::marks::Marked;
use super::ports::Channels;
use crate::contract::channel::body::{ContentFormat, OutboundBody};
use crate::contract::channel::ids::MessageId;
use crate::contract::channel::key::{OutboundKey, Placement};
use crate::contract::channel::outbound::LengthRule;
use crate::contract::channel::outcome::ExternalWriteOutcome;
use crate::contract::channel::route::ResolvedRoute;
use crate::contract::extension::{Activation, Permission};
use crate::contract::inbox::config::PlacementPolicy;
use crate::contract::inbox::event::StoredEvent;
use crate::contract::inbox::fault::InboxFault;
use crate::contract::inbox::guidance::{Guidance, MessagePurpose};
use crate::contract::inbox::mark_packet::MarkStatus;
use crate::contract::inbox::outbound_packet::{
    OutboundBlocker as Blocker, OutboundCommand, OutboundKind, OutboundPacket, OutboundProgress,
};
use crate::kernel::inbox::guidance;
use crate::port::channel::{Encoding, OutboundMessage};
use crate::store::inbox::{AttemptKind, Exporter, Inbox};

/// How far a command goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// No call at all.
    Preview,
    /// Reads and the provider's own preview.
    Preflight,
    /// Sends.
    Execute,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub context: &'a ContextArgs,
    pub text: &'a str,
    pub format: ContentFormat,
    pub depth: Depth,
    pub purpose: MessagePurpose,
    /// The digest of the guidance the writer has looked at.
    pub reviewed: Option<&'a str>,
}

/// Runs `send`.
pub fn send(
    desk: &Desk<'_>,
    providers: &dyn Channels,
    request: &Request<'_>,
    route_key: Option<&str>,
) -> Result<(OutboundPacket, Activation), InboxError> {
    let written = Written::parse(request, LengthRule::ChatRoot)?;
    let (_, activation, source) = desk.open(request.context, &[Permission::ReplySend])?;
    let inbox = send_route(&source, route_key)?;
    let job = Job {
        desk,
        inbox,
        store: inbox.store()?,
        written,
        source: None,
        request,
    };
    Ok((job.run(providers, source.program())?, activation))
}

/// Runs `reply`.
pub fn reply(
    desk: &Desk<'_>,
    providers: &dyn Channels,
    request: &Request<'_>,
    message_id: &str,
) -> Result<(OutboundPacket, Activation), InboxError> {
    let written = Written::parse(request, LengthRule::Reply)?;
    let (_, activation, source) = desk.open(request.context, &[Permission::ReplySend])?;
    let inbox = source.holder(message_id)?;
    let store = inbox.store()?;
    let event = match MessageId::new(message_id) {
        Some(_) => store.event(message_id)?,
        None => None,
    };
    let job = Job {
        desk,
        inbox,
        store,
        written,
        source: Some(event.ok_or(InboxFault::SourceNotCaptured)?),
        request,
    };
    Ok((job.run(providers, source.program())?, activation))
}

/// Finds the inbox a message without a source is sent through.
pub(super) fn send_route<'a>(
    source: &'a Source,
    key: Option<&str>,
) -> Result<&'a BoundInbox, InboxError> {
    match source {
        Source::Single(inbox) => match key {
            None | Some("" | "default") => Ok(inbox),
            Some(_) => Err(InboxFault::DefaultRouteOnly.into()),
        },
        Source::Routed(collector) => {
            let key = key.ok_or(InboxFault::RouteKeyRequired)?;
            Ok(collector.route(key)?.ok_or(InboxFault::RouteKeyRequired)?)
        }
    }
}

/// Returns where an inbox speaks and as whom; none when it does not.
pub(super) fn resolved(inbox: &BoundInbox) -> Option<ResolvedRoute> {
    let reply = inbox.config.reply.as_ref()?;
    Some(ResolvedRoute {
        profile: reply.profile.clone(),
        chat: reply.chat.clone(),
        display_name: inbox.config.bot.display_name.clone()?,
        app: inbox.config.bot.app.clone(),
    })
}

/// The checked words and what became of their format.
struct Written {
    body: OutboundBody,
    progress: OutboundProgress,
}

impl Written {
    fn parse(request: &Request<'_>, rule: LengthRule) -> Result<Self, InboxFault> {
        let (body, fallback) = OutboundBody::parse(request.text, request.format, rule)?;
        let progress = OutboundProgress {
            format_passed: true,
            format: body.format(),
            fallback,
            ..OutboundProgress::default()
        };
        Ok(Self { body, progress })
    }
}

struct Job<'a> {
    desk: &'a Desk<'a>,
    inbox: &'a BoundInbox,
    store: Inbox,
    written: Written,
    source: Option<StoredEvent>,
    request: &'a Request<'a>,
}

impl Job<'_> {
    fn command(&self) -> OutboundCommand {
        OutboundCommand {
            kind: match self.source {
                Some(_) => OutboundKind::Reply,
                None => OutboundKind::Send,
            },
            execute: self.request.depth == Depth::Execute,
        }
    }

    fn placement(&self) -> Placement {
        let policy = self.inbox.config.guidance.placement_policy;
        match &self.source {
            None => Placement::ChatRoot,
            Some(event)
                if policy == PlacementPolicy::SourceContext
                    && event.parent_id().is_none()
                    && event.root_id().is_none() =>
            {
                Placement::ChatRoot
            }
            Some(_) => Placement::SourceThread,
        }
    }

    fn guidance(&self) -> Option<Guidance> {
        let (config, request) = (&self.inbox.config, self.request);
        let reply = config.reply.as_ref()?;
        guidance::consult(reply, config.guidance, request.purpose, request.reviewed)
    }

    fn run(
        &self,
        providers: &dyn Channels,
        program: Option<String>,
    ) -> Result<OutboundPacket, InboxError> {
        let mut progress = self.written.progress;
        let Some(route) = resolved(self.inbox) else {
            let blocker = Some(Blocker::SenderUnconfigured);
            return Ok(OutboundPacket::new(self.command(), None, progress, blocker));
        };
        let placement = self.placement();
        let source = self.source.as_ref().map(StoredEvent::message_id);
        let key = OutboundKey::derive(source.map(|id| id.as_str()), placement, &self.written.body);
        let guidance = self.guidance();
        let packet = |progress, blocker| {
            OutboundPacket::new(self.command(), Some((&key, placement)), progress, blocker)
                .with_guidance(guidance.clone())
        };
        if self.request.depth == Depth::Preview {
            return Ok(packet(progress, None));
        }
        let chat = providers.open(program);
        let provider_key = key.provider_key();
        let message = OutboundMessage {
            source: source.filter(|_| placement == Placement::SourceThread),
            body: &self.written.body,
            encoding: Encoding::Literal,
            key: &provider_key,
        };
        let cleared = Cleared::ask(chat.channel.as_ref(), &route, &message, &mut progress)
            .and_then(|cleared| cleared.preview(&mut progress).map(|()| cleared));
        let cleared = match cleared {
            Ok(cleared) => cleared,
            Err(refusal) => {
                chat.refuse_old()?;
                return Ok(packet(progress, Some(refusal.blocker())));
            }
        };
        progress.review_required = guidance.as_ref().is_some_and(Guidance::holds_back);
        if progress.review_required || self.request.depth == Depth::Preflight {
            return Ok(packet(progress, None));
        }
        let mut out = Exporter::default();
        let blocker = self.deliver((&cleared, &key), &mut progress, &mut out)?;
        progress.export_pending = out.is_pending();
        if blocker.is_some() && progress.outcome == ExternalWriteOutcome::None {
            chat.refuse_old()?;
        }
        Ok(packet(progress, blocker))
    }

    fn deliver(
        &self,
        (cleared, key): (&Cleared<'_>, &OutboundKey),
        progress: &mut OutboundProgress,
        out: &mut Exporter,
    ) -> Result<Option<Blocker>, InboxError> {
        let delivery = Delivery {
            store: &self.store,
            now: self.desk.now,
            kind: match self.source {
                Some(_) => AttemptKind::Reply,
                None => AttemptKind::Send,
            },
            cleared,
            key,
        };
        match (delivery.run(progress, out)?, &self.source) {
            (None, Some(source)) => self.clean(source, cleared, (progress, out)),
            (blocker, _) => Ok(blocker),
        }
    }

    fn clean(
        &self,
        source: &StoredEvent,
        cleared: &Cleared<'_>,
        (progress, out): (&mut OutboundProgress, &mut Exporter),
    ) -> Result<Option<Blocker>, InboxError> {
        let now = self.desk.now.to_string();
        let marked = Marked {
            store: &self.store,
            marks: &self.inbox.config.marks,
            profile: &cleared.route.route().profile,
            message: source.message_id(),
            channel: cleared.channel,
            now: &now,
        };
        if let Ok((status, counts)) = &marked.finish(out) {
            progress.outcome = progress.outcome.and(counts.outcome);
            progress.cleanup_verified =
                matches!(status, MarkStatus::Completed | MarkStatus::AlreadyComplete);
        }
        Ok((!progress.cleanup_verified).then_some(Blocker::CleanupPending))
    }
}
