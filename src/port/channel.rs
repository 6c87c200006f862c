//! A chat provider: verify, read, send, read back, mark.
//!
//! `send` answers "here is a reference" and never "delivered"; only a readback that is judged makes a delivery. Every failed write says
//! whether it may have happened all the same. A provider is handed what it needs and never opens the store.

use crate::contract::channel::body::OutboundBody;
use crate::contract::channel::ids::{AppId, ChatId, MarkId, MessageId, Opaque, ProfileName};
use crate::contract::channel::mention::MemberIdKind;
use crate::contract::channel::observed::{MarkPage, Members, Observed, Page, SentWords};
use crate::contract::channel::outcome::ExternalWriteOutcome;
use crate::contract::channel::route::{ResolvedRoute, VerifiedRoute};
use crate::contract::time::Timestamp;

/// What kind of refusal or failure a provider call met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderErrorKind {
    /// The provider program could not be started.
    NotStarted,
    /// The connection failed or the time was up; a write may have happened.
    Unavailable,
    /// Too many calls; may be repeated later.
    RateLimited,
    /// The application may not read the messages of the group.
    GroupHistoryPermission,
    /// A scope or right is missing.
    PermissionMissing,
    /// The profile is not signed in or its token is not valid.
    AuthorizationMissing,
    /// The bot is not in the chat or may not see it.
    NotInChat,
    /// The thing asked for is not there, without a provider code.
    NotFound,
    /// Refused for another reason.
    Rejected,
    /// The program ended in a way that says nothing about the call.
    Failed,
    /// The answer was not what this call answers.
    PayloadInvalid,
}

/// A failed provider call, without any provider text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the provider call failed")]
pub struct ProviderError {
    pub kind: ProviderErrorKind,
    /// What a write may have done; a read leaves it unused.
    pub effect: ExternalWriteOutcome,
    /// The provider's numeric code.
    pub code: Option<i64>,
    /// How the program ended, when it did.
    pub exit: Option<i32>,
}

/// Why a route is not confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyRefusal {
    /// The profile is not the expected application, or nobody could say who it is.
    SenderIdentity(Option<ProviderErrorKind>),
    /// The chat could not be seen as that application.
    NotInChat(ProviderErrorKind),
}

/// How the words of a text are handed to the provider's program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// As they are.
    #[default]
    Literal,
    /// As an encoded body.
    Encoded,
}

/// One message to send.
#[derive(Clone, Debug)]
pub struct OutboundMessage<'a> {
    /// The message that is answered; none for the chat root.
    pub source: Option<&'a MessageId>,
    pub body: &'a OutboundBody,
    pub encoding: Encoding,
    pub key: &'a str,
}

/// One ascending page of a chat.
#[derive(Clone, Debug)]
pub struct HistoryRead<'a> {
    pub chat: &'a ChatId,
    pub start: Timestamp,
    pub end: Option<Timestamp>,
    pub page_size: u32,
    pub token: Option<&'a Opaque>,
}

/// The provider program a command was told to use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramChoice {
    /// A name on the search path, or a path; none is the provider's usual name.
    pub executable: Option<String>,
    /// The interpreter of a program that is a script for it.
    pub interpreter: Option<String>,
}

/// A chat provider.
pub trait ChannelProvider: Sync {
    /// Ends a call that another thread waits for, and lets every later one fail: nobody waits for an answer any more.
    fn abandon(&self);
    /// Confirms that the profile is the expected application and a member of the chat.
    fn verify(&self, route: &ResolvedRoute) -> Result<VerifiedRoute, VerifyRefusal>;
    /// Reads the members under one identity family, all pages.
    fn members(&self, route: &VerifiedRoute, kind: MemberIdKind) -> Result<Members, ProviderError>;
    /// Lets the provider say what it would send: the decoded bodies of the previewed calls.
    fn preview(
        &self,
        route: &VerifiedRoute,
        message: &OutboundMessage<'_>,
    ) -> Result<Vec<SentWords>, ProviderError>;
    /// Sends one message.
    fn send(
        &self,
        route: &VerifiedRoute,
        message: &OutboundMessage<'_>,
    ) -> Result<MessageId, ProviderError>;
    /// Reads messages by id; unknown ones are left out.
    fn read_back(
        &self,
        profile: &ProfileName,
        ids: &[&MessageId],
    ) -> Result<Vec<Observed>, ProviderError>;
    /// Reads one message as it was sent: raw body, parent, root, thread.
    fn read_raw(&self, profile: &ProfileName, id: &MessageId) -> Result<Observed, ProviderError>;
    /// Reads one page of a chat.
    fn history(&self, profile: &ProfileName, read: &HistoryRead<'_>)
    -> Result<Page, ProviderError>;
    /// Reads one page of a thread, named by itself or by one of its messages.
    fn thread(
        &self,
        profile: &ProfileName,
        thread: &str,
        token: Option<&Opaque>,
    ) -> Result<Page, ProviderError>;
    /// Puts a mark on a message.
    fn add_mark(
        &self,
        profile: &ProfileName,
        id: &MessageId,
        emoji: &str,
    ) -> Result<MarkId, ProviderError>;
    /// Removes a mark.
    fn remove_mark(
        &self,
        profile: &ProfileName,
        id: &MessageId,
        mark: &MarkId,
    ) -> Result<(), ProviderError>;
    /// Reads one page of the marks on a message.
    fn marks(
        &self,
        profile: &ProfileName,
        id: &MessageId,
        token: Option<&Opaque>,
    ) -> Result<MarkPage, ProviderError>;
    /// Says which application a profile is.
    fn own_app(&self, profile: &ProfileName) -> Result<AppId, ProviderError>;
}

/// One page of what a person finds in a chat.
#[derive(Clone, Debug)]
pub struct SearchRead<'a> {
    pub chat: &'a ChatId,
    pub words: &'a str,
    pub token: Option<&'a Opaque>,
}

/// A person's own view of a chat. A search may see what the bot cannot: the bot need not be in the chat yet.
pub trait ChannelReader {
    /// Confirms that a person is signed in under the profile; false when nobody is.
    fn is_signed_in(&self, profile: &ProfileName) -> Result<bool, ProviderError>;
    /// Reads one page of the messages of a chat that hold the words.
    fn search(&self, profile: &ProfileName, read: &SearchRead<'_>) -> Result<Page, ProviderError>;
}
