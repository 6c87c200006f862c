//! A document whose comments are read and answered.

use crate::contract::channel::ids::{DocumentId, Opaque};
use crate::contract::inbox::comment::{CommentCard, ShownReply};
use crate::port::channel::ProviderError;

/// One card of comments with the replies shown inline.
#[derive(Clone, Debug)]
pub struct ShownCard {
    pub card: CommentCard,
    pub replies: Vec<ShownReply>,
    /// The first page behind the inline replies, where there is one.
    pub more: Option<Opaque>,
}

/// One page of cards.
#[derive(Clone, Debug, Default)]
pub struct CardPage {
    pub cards: Vec<ShownCard>,
    pub next: Option<Opaque>,
}

/// One page of replies.
#[derive(Clone, Debug, Default)]
pub struct ReplyPage {
    pub replies: Vec<ShownReply>,
    pub next: Option<Opaque>,
}

/// Which rights the identity has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommentRights {
    pub may_read: bool,
    pub may_create: bool,
}

/// Why the rights are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RightsFault {
    Unknown,
    Invalid,
    IdentityMismatch,
}

/// The comments of one document under one identity.
pub trait CommentSource {
    /// Says whether the provider program is new enough.
    fn is_supported(&self) -> bool;
    /// Says which rights the identity has.
    fn rights(&self) -> Result<CommentRights, RightsFault>;
    /// Reads one page of cards.
    fn cards(&self, token: &Opaque) -> Result<CardPage, ProviderError>;
    /// Reads one page of the replies of a card.
    fn replies(
        &self,
        card: &CommentCard,
        token: Option<&Opaque>,
    ) -> Result<ReplyPage, ProviderError>;
    /// Answers a card; the new reply's id.
    fn create(
        &self,
        card: &CommentCard,
        text: &str,
        key: &str,
    ) -> Result<DocumentId, ProviderError>;
}
