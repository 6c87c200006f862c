//! `lark-inbox send` and `reply`: one message, verified by exact readback.
//!
//! 1. text rules  2. configuration, right to run, route  3. key; a plain preview returns here  4. sender and membership  5. mentions by the
//!    chat's own member list  6. the provider's own preview; a preflight returns here  7. lock of the attempt  8. a pending attempt older
//!    than the provider's window: read first  9. intent recorded, send  10. readback, judged  11. receipt  12. reply: own marks removed

use std::collections::BTreeMap;

use crate::contract::channel::ids::MessageId;
use crate::contract::channel::outbound::{LengthRule, OutboundKey, OutboundText, Placement};
use crate::contract::channel::outcome::ExternalWriteOutcome;
use crate::contract::channel::route::{ResolvedRoute, VerifiedRoute};
use crate::contract::extension::{Activation, Permission};
use crate::contract::inbox::config::PlacementPolicy;
use crate::contract::inbox::event::StoredEvent;
use crate::contract::inbox::fault::InboxFault;
use crate::contract::inbox::mark_packet::MarkStatus;
use crate::contract::inbox::outbound_packet::{
    OutboundBlocker as Blocker, OutboundCommand, OutboundKind, OutboundPacket, OutboundProgress,
};
use crate::contract::time::Timestamp;
use crate::failpoint;
use crate::failpoint::Point;
use crate::flow::inbox::ack::claim;
use crate::flow::inbox::context::{BoundInbox, ContextArgs, Desk, Source};
use crate::flow::inbox::error::InboxError;
use crate::flow::inbox::marks::{Marked, after};
use crate::flow::inbox::pending::{self, Found};
use crate::flow::inbox::ports::Providers;
use crate::kernel::channel::readback::{self, Expected, Verdict};
use crate::port::channel::{ChannelProvider, OutboundMessage, VerifyRefusal};
use crate::store::inbox::{Attempt, AttemptState, Exporter, Inbox};
use crate::store::lock::{self, Outbound};

/// How long the provider surely joins a repeat under the same key, in seconds.
const SAME_KEY_SECONDS: i64 = 50 * 60;

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
    pub depth: Depth,
}

/// Runs `send`.
pub fn send(
    desk: &Desk<'_>,
    providers: &dyn Providers,
    request: &Request<'_>,
    route_key: Option<&str>,
) -> Result<(OutboundPacket, Activation), InboxError> {
    let text = OutboundText::parse(request.text, LengthRule::ChatRoot).map_err(InboxFault::Text)?;
    let (_, activation, source) = desk.open(request.context, &[Permission::ReplySend])?;
    let inbox = send_route(&source, route_key)?;
    let store = inbox.store()?;
    let job = Job {
        desk,
        inbox,
        store,
        text,
        source: None,
        depth: request.depth,
    };
    Ok((
        job.run(providers.channel(source.program()).as_ref())?,
        activation,
    ))
}

/// Runs `reply`.
pub fn reply(
    desk: &Desk<'_>,
    providers: &dyn Providers,
    request: &Request<'_>,
    message_id: &str,
) -> Result<(OutboundPacket, Activation), InboxError> {
    let text = OutboundText::parse(request.text, LengthRule::Reply).map_err(InboxFault::Text)?;
    let (_, activation, source) = desk.open(request.context, &[Permission::ReplySend])?;
    let inbox = source.holder(message_id)?;
    let store = inbox.store()?;
    let event = match MessageId::new(message_id) {
        Some(_) => store.event(message_id)?,
        None => None,
    };
    let event = event.ok_or(InboxFault::SourceNotCaptured)?;
    let job = Job {
        desk,
        inbox,
        store,
        text,
        source: Some(event),
        depth: request.depth,
    };
    Ok((
        job.run(providers.channel(source.program()).as_ref())?,
        activation,
    ))
}

fn send_route<'a>(source: &'a Source, key: Option<&str>) -> Result<&'a BoundInbox, InboxError> {
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

struct Job<'a> {
    desk: &'a Desk<'a>,
    inbox: &'a BoundInbox,
    store: Inbox,
    text: OutboundText,
    source: Option<StoredEvent>,
    depth: Depth,
}

/// A blocker, or nothing.
type Step<T = ()> = Result<T, Blocker>;

impl Job<'_> {
    fn command(&self) -> OutboundCommand {
        OutboundCommand {
            kind: if self.source.is_some() {
                OutboundKind::Reply
            } else {
                OutboundKind::Send
            },
            execute: self.depth == Depth::Execute,
        }
    }

    fn placement(&self) -> Placement {
        let in_context =
            self.inbox.config.guidance.placement_policy == PlacementPolicy::SourceContext;
        match &self.source {
            None => Placement::ChatRoot,
            Some(event)
                if in_context && event.parent_id().is_none() && event.root_id().is_none() =>
            {
                Placement::ChatRoot
            }
            Some(_) => Placement::SourceThread,
        }
    }

    fn run(&self, channel: &dyn ChannelProvider) -> Result<OutboundPacket, InboxError> {
        let mut progress = OutboundProgress {
            format_passed: true,
            ..OutboundProgress::default()
        };
        let Some(route) = self.route() else {
            let blocker = Some(Blocker::SenderUnconfigured);
            return Ok(OutboundPacket::new(self.command(), None, progress, blocker));
        };
        let placement = self.placement();
        let source_id = self.source.as_ref().map(StoredEvent::message_id);
        let source_id = source_id.map(|id| id.as_str());
        let key = OutboundKey::derive(source_id, placement, &self.text);
        let packet = |progress, blocker| {
            OutboundPacket::new(self.command(), Some((&key, placement)), progress, blocker)
        };
        if self.depth == Depth::Preview {
            return Ok(packet(progress, None));
        }
        let provider_key = key.provider_key();
        let source = self
            .source
            .as_ref()
            .map(StoredEvent::message_id)
            .filter(|_| placement == Placement::SourceThread);
        let message = OutboundMessage {
            source,
            text: &self.text,
            key: &provider_key,
        };
        let (verified, aliases) = match check(channel, &route, &message, &mut progress) {
            Ok(checked) => checked,
            Err(blocker) => return Ok(packet(progress, Some(blocker))),
        };
        if self.depth == Depth::Preflight {
            return Ok(packet(progress, None));
        }
        let delivery = Delivery {
            job: self,
            channel,
            route: &verified,
            message: &message,
            aliases: &aliases,
            key: &key,
        };
        let mut out = Exporter::default();
        let blocker = delivery.execute(&mut progress, &mut out)?;
        progress.export_pending = out.is_pending();
        Ok(packet(progress, blocker))
    }

    fn route(&self) -> Option<ResolvedRoute> {
        let reply = self.inbox.config.reply.as_ref()?;
        Some(ResolvedRoute {
            profile: reply.profile.clone(),
            chat: reply.chat.clone(),
            display_name: self.inbox.config.bot.display_name.clone()?,
            app: self.inbox.config.bot.app.clone(),
        })
    }
}

type Checked = (VerifiedRoute, BTreeMap<String, String>);

/// Everything that is asked before a send: who speaks, where, whom it names, what would go out.
fn check(
    channel: &dyn ChannelProvider,
    route: &ResolvedRoute,
    message: &OutboundMessage<'_>,
    progress: &mut OutboundProgress,
) -> Step<Checked> {
    let verified = channel.verify(route).map_err(|refusal| {
        progress.sender_verified = refusal == VerifyRefusal::NotInChat;
        match refusal {
            VerifyRefusal::SenderIdentity => Blocker::SenderIdentityMismatch,
            VerifyRefusal::NotInChat => Blocker::SenderNotInChat,
        }
    })?;
    progress.sender_verified = true;
    progress.membership_verified = true;
    let aliases = resolve_mentions(channel, &verified, message)?;
    progress.preview_performed = true;
    let texts = channel
        .preview(&verified, message)
        .map_err(|_| Blocker::PreviewMismatch)?;
    progress.preview_verified = texts.iter().any(|text| text == message.text.as_str());
    match progress.preview_verified {
        true => Ok((verified, aliases)),
        false => Err(Blocker::PreviewMismatch),
    }
}

/// Finds every mention among the members of its own family; learns the pairs of mentioned bots.
fn resolve_mentions(
    channel: &dyn ChannelProvider,
    route: &VerifiedRoute,
    message: &OutboundMessage<'_>,
) -> Step<BTreeMap<String, String>> {
    let mut aliases = BTreeMap::new();
    for kind in message.text.kinds() {
        let members = channel
            .members(route, kind)
            .map_err(|_| Blocker::MentionUnresolved)?;
        let wanted = message
            .text
            .mentions()
            .iter()
            .filter(|(_, of)| **of == kind);
        for (id, _) in wanted {
            if !members.ids.iter().any(|member| member == id.as_str()) {
                return Err(Blocker::MentionUnresolved);
            }
            let own = members
                .aliases()
                .into_iter()
                .filter(|(_, member)| *member == id.as_str());
            aliases.extend(own.map(|(app, member)| (app.to_owned(), member.to_owned())));
        }
    }
    Ok(aliases)
}

/// The part of a job that writes.
pub(super) struct Delivery<'a> {
    job: &'a Job<'a>,
    pub(super) channel: &'a dyn ChannelProvider,
    pub(super) route: &'a VerifiedRoute,
    pub(super) message: &'a OutboundMessage<'a>,
    aliases: &'a BTreeMap<String, String>,
    key: &'a OutboundKey,
}

impl Delivery<'_> {
    pub(super) fn expected(&self) -> Expected<'_> {
        Expected {
            text: self.message.text,
            chat: &self.route.route().chat,
            app: self.route.route().app.as_ref(),
            aliases: self.aliases,
        }
    }

    fn execute(
        &self,
        progress: &mut OutboundProgress,
        out: &mut Exporter,
    ) -> Result<Option<Blocker>, InboxError> {
        let blocker = {
            let name = format!("{}.lock", self.key.attempt());
            let path = self.job.store.folder().join("outbound").join(name);
            let now = self.job.desk.now.to_string();
            let _held = lock::acquire::<Outbound>(&path, &claim("outbound", &now))?;
            let delivered = self.deliver(progress);
            self.job
                .store
                .export_attempt(out, self.key.attempt())
                .map_err(after(progress.outcome))?;
            delivered?
        };
        match (blocker, &self.job.source) {
            (None, Some(source)) => self.clean(source, progress, out),
            (blocker, _) => Ok(blocker),
        }
    }

    fn deliver(&self, progress: &mut OutboundProgress) -> Result<Option<Blocker>, InboxError> {
        let known = self.job.store.attempt(self.key.attempt())?;
        let id = match &known {
            Some(Attempt {
                state: AttemptState::Verified,
                message_id: Some(id),
                ..
            }) => {
                return Ok(self.read_back(id, progress));
            }
            Some(attempt) if self.is_old(attempt) => {
                match pending::find(self, attempt.attempted_at) {
                    Found::Message(id) => Ok(id),
                    Found::Nothing => self.send(None, progress)?,
                    Found::Unknown => {
                        progress.outcome = ExternalWriteOutcome::Unknown;
                        return Ok(Some(Blocker::OutcomeUnknown));
                    }
                }
            }
            known => self.send(known.as_ref(), progress)?,
        };
        let id = match id {
            Ok(id) => id,
            Err(blocker) => return Ok(Some(blocker)),
        };
        if let Some(blocker) = self.read_back(&id, progress) {
            return Ok(Some(blocker));
        }
        failpoint!(Point::SendReadBack);
        self.settle(id, known.as_ref())
            .map_err(|error| match error {
                InboxError::Store(source) => InboxError::StoreAfter {
                    source,
                    outcome: progress.outcome,
                },
                other => other,
            })?;
        failpoint!(Point::SendReceiptSaved);
        Ok(None)
    }

    fn is_old(&self, attempt: &Attempt) -> bool {
        let now = self.job.desk.now;
        // A clock that went back proves nothing about the provider's window.
        now < attempt.attempted_at || now.seconds_since(attempt.attempted_at) >= SAME_KEY_SECONDS
    }

    /// Records the intent and sends. A refusal removes the intent, unless an earlier send may have arrived.
    fn send(
        &self,
        known: Option<&Attempt>,
        progress: &mut OutboundProgress,
    ) -> Result<Step<MessageId>, InboxError> {
        let attempt_key = self.key.attempt();
        if known.is_none() {
            self.job.store.put_attempt(
                attempt_key,
                &self.attempt(AttemptState::Pending, self.job.desk.now, None),
            )?;
        }
        failpoint!(Point::SendIntentRecorded);
        match self.channel.send(self.route, self.message) {
            Ok(id) => {
                progress.outcome = ExternalWriteOutcome::Performed;
                failpoint!(Point::SendAccepted);
                Ok(Ok(id))
            }
            Err(error) if error.effect == ExternalWriteOutcome::None => {
                if known.is_none() {
                    self.job.store.remove_attempt(attempt_key)?;
                }
                Ok(Err(Blocker::ProviderFailed))
            }
            Err(_) => {
                progress.outcome = ExternalWriteOutcome::Unknown;
                Ok(Err(Blocker::OutcomeUnknown))
            }
        }
    }

    fn attempt(
        &self,
        state: AttemptState,
        attempted_at: Timestamp,
        id: Option<MessageId>,
    ) -> Attempt {
        let is_verified = state == AttemptState::Verified;
        Attempt {
            is_reply: self.job.source.is_some(),
            state,
            attempted_at,
            verified_at: is_verified.then_some(self.job.desk.now),
            message_id: id,
        }
    }

    fn read_back(&self, id: &MessageId, progress: &mut OutboundProgress) -> Option<Blocker> {
        progress.verification_performed = true;
        let profile = &self.route.route().profile;
        let Ok(read) = self.channel.read_back(profile, &[id]) else {
            return Some(Blocker::NotVerified);
        };
        let needs_raw = self.message.text.mentions().len() > readback::MAX_SHOWN_MENTIONS
            || read
                .iter()
                .any(|message| message.mention_count() > readback::MAX_SHOWN_MENTIONS);
        let raw = needs_raw
            .then(|| self.channel.read_raw(profile, id).ok())
            .flatten();
        progress.is_verified =
            readback::judge(&self.expected(), id, &read, raw.as_ref()) == Verdict::Verified;
        (!progress.is_verified).then_some(Blocker::NotVerified)
    }

    /// A verified reply is remembered; a verified send is forgotten, since the same words may be meant again later.
    fn settle(&self, id: MessageId, known: Option<&Attempt>) -> Result<(), InboxError> {
        let attempt_key = self.key.attempt();
        match self.job.source {
            Some(_) => {
                let started = known.map_or(self.job.desk.now, |attempt| attempt.attempted_at);
                let attempt = self.attempt(AttemptState::Verified, started, Some(id));
                self.job.store.put_attempt(attempt_key, &attempt)?;
            }
            None => self.job.store.remove_attempt(attempt_key)?,
        }
        Ok(())
    }

    fn clean(
        &self,
        source: &StoredEvent,
        progress: &mut OutboundProgress,
        out: &mut Exporter,
    ) -> Result<Option<Blocker>, InboxError> {
        let now = self.job.desk.now.to_string();
        let marked = Marked {
            store: &self.job.store,
            marks: &self.job.inbox.config.marks,
            profile: &self.route.route().profile,
            message: source.message_id(),
            channel: self.channel,
            now: &now,
        };
        let cleaned = marked.finish(out);
        if let Ok((status, counts)) = &cleaned {
            progress.outcome = progress.outcome.and(counts.outcome);
            progress.cleanup_verified =
                matches!(status, MarkStatus::Completed | MarkStatus::AlreadyComplete);
        }
        Ok((!progress.cleanup_verified).then_some(Blocker::CleanupPending))
    }
}
