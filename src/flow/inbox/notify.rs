//! `lark-inbox notify-reviewer`: one mention about one pull request, said once, by the routine every message takes.
//!
//! 1. text rules, address  2. configuration, right to run, route  3. key; a plain preview returns here  4. the reader is signed in
//!    5. sender, membership, mentions  6. search as the reader: found is read back and ends here  7. the provider's own preview; a
//!    preflight returns here  8. delivery

use super::clearance::{Cleared, Refusal};
use super::context::{BoundInbox, Desk};
use super::delivery::Delivery;
use super::error::InboxError;
use super::outbound::{Depth, resolved, send_route};
use super::pending::{self, Found};
use super::ports::{Channels, Chat};
use crate::contract::channel::body::{ContentFormat, OutboundBody};
use crate::contract::channel::ids::{MessageId, ProfileName};
use crate::contract::channel::key::OutboundKey;
use crate::contract::channel::outbound::LengthRule;
use crate::contract::channel::outcome::ExternalWriteOutcome;
use crate::contract::channel::route::ResolvedRoute;
use crate::contract::extension::{Activation, Permission};
use crate::contract::inbox::fault::InboxFault;
use crate::contract::inbox::notification_packet::{
    NotificationBlocker as Blocker, NotificationPacket, NotificationProgress,
};
use crate::contract::inbox::outbound_packet::{OutboundBlocker, OutboundProgress};
use crate::contract::web_address::WebAddress;
use crate::flow::inbox::context::ContextArgs;
use crate::port::channel::{
    ChannelReader, Encoding, OutboundMessage, ProviderErrorKind as Kind, SearchRead,
};
use crate::store::inbox::{AttemptKind, Exporter, Inbox};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub context: &'a ContextArgs,
    pub route_key: Option<&'a str>,
    pub text: &'a str,
    /// The address of the pull request.
    pub address: &'a str,
    /// The profile of the person who searches; else the configured one.
    pub reader: Option<&'a str>,
    pub depth: Depth,
}

/// Runs `notify-reviewer`.
pub fn run(
    desk: &Desk<'_>,
    providers: &dyn Channels,
    request: &Request<'_>,
) -> Result<(NotificationPacket, Activation), InboxError> {
    let address = WebAddress::parse(request.address).ok_or(InboxFault::PullRequestAddress)?;
    let (body, _) = OutboundBody::parse(
        &worded(request.text, &address),
        ContentFormat::Text,
        LengthRule::ChatRoot,
    )
    .map_err(InboxFault::Text)?;
    if body.mentions().is_empty() {
        return Err(InboxFault::ReviewerMentionRequired.into());
    }
    let reader = request.reader.map(ProfileName::new);
    let reader = match reader {
        Some(None) => return Err(InboxFault::ReaderProfile.into()),
        Some(reader) => reader,
        None => None,
    };
    let (_, activation, source) =
        desk.open(request.context, &[Permission::ReviewerNotification])?;
    let inbox = send_route(&source, request.route_key)?;
    let configured = inbox.config.reply.as_ref();
    let notice = Notice {
        desk,
        inbox,
        store: inbox.store()?,
        key: OutboundKey::about(address.as_str(), &body),
        address: &address,
        body,
        reader: reader.or_else(|| configured.and_then(|reply| reply.reader.clone())),
        depth: request.depth,
    };
    let mut progress = NotificationProgress::default();
    progress.outbound.format_passed = true;
    let blocker = notice.run(providers, source.program(), &mut progress)?;
    let key = (blocker != Some(Blocker::DedicatedBotRequired)).then_some(&notice.key);
    let execute = request.depth == Depth::Execute;
    let packet = NotificationPacket::new(execute, key, progress, blocker);
    Ok((packet, activation))
}

/// The words with the address in them, since the search looks for it.
fn worded(text: &str, address: &WebAddress) -> String {
    match text.contains(address.as_str()) {
        true => text.to_owned(),
        false => format!("{text}\n{}", address.as_str()),
    }
}

struct Notice<'a> {
    desk: &'a Desk<'a>,
    inbox: &'a BoundInbox,
    store: Inbox,
    key: OutboundKey,
    address: &'a WebAddress,
    body: OutboundBody,
    reader: Option<ProfileName>,
    depth: Depth,
}

type Ended = Result<Option<Blocker>, InboxError>;

impl Notice<'_> {
    fn run(
        &self,
        providers: &dyn Channels,
        program: Option<String>,
        progress: &mut NotificationProgress,
    ) -> Ended {
        let Some(route) = resolved(self.inbox) else {
            return Ok(Some(Blocker::DedicatedBotRequired));
        };
        if self.depth == Depth::Preview {
            return Ok(None);
        }
        let chat = providers.open(program);
        let ended = self.ask(&chat, &route, progress)?;
        if ended.is_some() && progress.outbound.outcome == ExternalWriteOutcome::None {
            chat.refuse_old()?;
        }
        Ok(ended)
    }

    fn ask(
        &self,
        Chat {
            channel, reader, ..
        }: &Chat,
        route: &ResolvedRoute,
        progress: &mut NotificationProgress,
    ) -> Ended {
        let profile = match self.verified_reader(reader.as_ref()) {
            Ok(profile) => profile,
            Err(blocker) => return Ok(Some(blocker)),
        };
        progress.reader_verified = true;
        let provider_key = self.key.provider_key();
        let message = OutboundMessage {
            source: None,
            body: &self.body,
            encoding: Encoding::Encoded,
            key: &provider_key,
        };
        let cleared = Cleared::ask(channel.as_ref(), route, &message, &mut progress.outbound);
        let cleared = match cleared {
            Ok(cleared) => cleared,
            Err(refusal) => return Ok(Some(blocker_of(refusal))),
        };
        let delivery = Delivery {
            store: &self.store,
            now: self.desk.now,
            kind: AttemptKind::Notification,
            cleared: &cleared,
            key: &self.key,
        };
        progress.search_performed = true;
        let found = match self.search(reader.as_ref(), profile, &cleared) {
            Ok(found) => found,
            Err(blocker) => return Ok(Some(blocker)),
        };
        match found {
            Found::Nothing => self.deliver(&delivery, &mut progress.outbound),
            Found::Unknown => Ok(Some(Blocker::DedupeReadbackFailed)),
            Found::Message(id) => {
                let unproved = self.adopt(&delivery, id, &mut progress.outbound)?;
                progress.was_there = unproved.is_none();
                Ok(unproved.map(|_| Blocker::DedupeReadbackFailed))
            }
        }
    }

    /// What was found is read back; a command that acts also remembers it.
    fn adopt(
        &self,
        delivery: &Delivery<'_>,
        id: MessageId,
        progress: &mut OutboundProgress,
    ) -> Result<Option<OutboundBlocker>, InboxError> {
        if self.depth != Depth::Execute {
            return Ok(delivery.read_back(&id, progress));
        }
        let mut out = Exporter::default();
        let unproved = delivery.adopt(id, progress, &mut out)?;
        progress.export_pending = out.is_pending();
        Ok(unproved)
    }

    fn deliver(&self, delivery: &Delivery<'_>, progress: &mut OutboundProgress) -> Ended {
        if let Err(refusal) = delivery.cleared.preview(progress) {
            return Ok(Some(blocker_of(refusal)));
        }
        if self.depth == Depth::Preflight {
            return Ok(None);
        }
        let mut out = Exporter::default();
        let blocker = delivery.run(progress, &mut out)?;
        progress.export_pending = out.is_pending();
        Ok(blocker.map(undelivered))
    }

    fn verified_reader(&self, reader: &dyn ChannelReader) -> Result<&ProfileName, Blocker> {
        let profile = self.reader.as_ref().ok_or(Blocker::ReaderAuthRequired)?;
        match reader.is_signed_in(profile) {
            Ok(true) => Ok(profile),
            Err(error) if is_unavailable(error.kind) => Err(Blocker::ProviderUnavailable),
            _ => Err(Blocker::ReaderAuthRequired),
        }
    }

    /// Looks for this notification in what the reader finds, to the last page.
    fn search(
        &self,
        reader: &dyn ChannelReader,
        profile: &ProfileName,
        cleared: &Cleared<'_>,
    ) -> Result<Found, Blocker> {
        let mut failed = None;
        let found = pending::find_in(cleared, |token| {
            let read = SearchRead {
                chat: &cleared.route.route().chat,
                words: self.address.as_str(),
                token,
            };
            let page = reader.search(profile, &read);
            failed = page.as_ref().err().map(|error| error.kind);
            page
        });
        match failed {
            Some(kind) if is_unavailable(kind) => Err(Blocker::ProviderUnavailable),
            Some(Kind::AuthorizationMissing) => Err(Blocker::ReaderAuthRequired),
            _ => Ok(found),
        }
    }
}

fn is_unavailable(kind: Kind) -> bool {
    matches!(kind, Kind::NotStarted | Kind::Unavailable)
}

/// Names a refusal before the send in this command's words.
fn blocker_of(refusal: Refusal) -> Blocker {
    if refusal.kind().is_some_and(is_unavailable) {
        return Blocker::ProviderUnavailable;
    }
    match refusal {
        Refusal::Sender(_) => Blocker::DedicatedBotMismatch,
        Refusal::Membership(
            Kind::NotInChat | Kind::GroupHistoryPermission | Kind::PermissionMissing,
        )
        | Refusal::Mention(Some(
            Kind::NotInChat | Kind::GroupHistoryPermission | Kind::PermissionMissing,
        )) => Blocker::GroupAccessRequired,
        Refusal::Membership(_) => Blocker::DestinationUnavailable,
        Refusal::Mention(_) => Blocker::IdentityUnresolved,
        Refusal::Preview(_) => Blocker::PreviewMismatch,
    }
}

/// Names what a delivery ended in.
fn undelivered(blocker: OutboundBlocker) -> Blocker {
    match blocker {
        OutboundBlocker::OutcomeUnknown => Blocker::OutcomeUnknown,
        OutboundBlocker::NotVerified => Blocker::NotVerified,
        _ => Blocker::ProviderFailed,
    }
}
