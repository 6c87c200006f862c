//! Everything that is asked before a message is sent: who speaks, where, whom it names, what would go out.
//!
//! One routine for every message that leaves (`docs/spec/lark-inbox.md` 6.4, steps 1 to 4). Each command has its own words for a refusal.

use crate::contract::channel::observed::Aliases;
use crate::contract::channel::route::{ResolvedRoute, VerifiedRoute};
use crate::contract::inbox::outbound_packet::{OutboundBlocker, OutboundProgress};
use crate::kernel::channel::preview;
use crate::kernel::channel::readback::Expected;
use crate::port::channel::{ChannelProvider, OutboundMessage, ProviderErrorKind, VerifyRefusal};

/// Why a message is not cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Sender(Option<ProviderErrorKind>),
    Membership(ProviderErrorKind),
    /// A mentioned identity is not among the members; with a kind, nobody could say.
    Mention(Option<ProviderErrorKind>),
    Preview(Option<ProviderErrorKind>),
}

impl Refusal {
    /// Returns the blocker of a send or reply.
    pub(super) fn blocker(self) -> OutboundBlocker {
        if self.kind() == Some(ProviderErrorKind::NotStarted) {
            return OutboundBlocker::ProviderUnavailable;
        }
        match self {
            Self::Sender(_) => OutboundBlocker::SenderIdentityMismatch,
            Self::Membership(_) => OutboundBlocker::SenderNotInChat,
            Self::Mention(_) => OutboundBlocker::MentionUnresolved,
            Self::Preview(_) => OutboundBlocker::PreviewMismatch,
        }
    }

    /// Returns what the provider call met, where one failed.
    pub(super) fn kind(self) -> Option<ProviderErrorKind> {
        match self {
            Self::Sender(kind) | Self::Mention(kind) | Self::Preview(kind) => kind,
            Self::Membership(kind) => Some(kind),
        }
    }
}

/// A message whose sender, chat and mentions are confirmed.
pub(super) struct Cleared<'a> {
    pub(super) channel: &'a dyn ChannelProvider,
    pub(super) route: VerifiedRoute,
    pub(super) message: &'a OutboundMessage<'a>,
    aliases: Aliases,
}

impl<'a> Cleared<'a> {
    /// Confirms sender, membership and every mention.
    pub(super) fn ask(
        channel: &'a dyn ChannelProvider,
        route: &ResolvedRoute,
        message: &'a OutboundMessage<'a>,
        progress: &mut OutboundProgress,
    ) -> Result<Self, Refusal> {
        let route = channel.verify(route).map_err(|refusal| match refusal {
            VerifyRefusal::SenderIdentity(kind) => Refusal::Sender(kind),
            VerifyRefusal::NotInChat(kind) => {
                progress.sender_verified = true;
                Refusal::Membership(kind)
            }
        })?;
        progress.sender_verified = true;
        progress.membership_verified = true;
        let aliases = resolve_mentions(channel, &route, message)?;
        Ok(Self {
            channel,
            route,
            message,
            aliases,
        })
    }

    /// Lets the provider preview the message and compares.
    pub(super) fn preview(&self, progress: &mut OutboundProgress) -> Result<(), Refusal> {
        progress.preview_performed = true;
        let shown = self
            .channel
            .preview(&self.route, self.message)
            .map_err(|error| Refusal::Preview(Some(error.kind)))?;
        progress.preview_verified = preview::is_previewed(self.message.body, &shown);
        match progress.preview_verified {
            true => Ok(()),
            false => Err(Refusal::Preview(None)),
        }
    }

    /// Returns what the message must be when it is read.
    pub(super) fn expected(&self) -> Expected<'_> {
        Expected {
            body: self.message.body,
            chat: &self.route.route().chat,
            app: self.route.route().app.as_ref(),
            aliases: &self.aliases,
        }
    }
}

/// Finds every mention among the members of its own family; learns the pairs of mentioned bots.
fn resolve_mentions(
    channel: &dyn ChannelProvider,
    route: &VerifiedRoute,
    message: &OutboundMessage<'_>,
) -> Result<Aliases, Refusal> {
    let mut aliases = Aliases::new();
    for kind in message.body.kinds() {
        let members = channel
            .members(route, kind)
            .map_err(|error| Refusal::Mention(Some(error.kind)))?;
        let wanted = message.body.mentions().iter();
        for (id, _) in wanted.filter(|(_, of)| **of == kind) {
            if !members.ids.contains(id) {
                return Err(Refusal::Mention(None));
            }
            let own = members.aliases().into_iter();
            aliases.extend(own.filter(|(_, member)| member == id));
        }
    }
    Ok(aliases)
}
