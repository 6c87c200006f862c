//! `lark-inbox document-comment-reply`: one answer to a captured comment.
//!
//! Configuration, rights, the event and its address come first, and a preview returns there. Then, under the lock, the answer's
//! journal: `creating` is committed before the call; an answer of unknown outcome is looked for by its key, never created again
//! blindly; the exact reply is read back before it counts as verified.

use serde_json::{Value, json};

use crate::contract::channel::ids::{DocumentId, Opaque};
use crate::contract::channel::outcome::ExternalWriteOutcome;
use crate::contract::digest;
use crate::contract::extension::{Activation, Permission};
use crate::contract::inbox::comment::{
    CommentCard, ShownReply, escaped, is_comment_event_id, reply_key, reply_text,
};
use crate::contract::inbox::comment_packet::{CommentBlocker, ReplyPacket};
use crate::contract::inbox::fault::InboxFault;
use crate::contract::{json as strict, text};
use crate::failpoint;
use crate::failpoint::Point;
use crate::flow::Mode;
use crate::flow::inbox::ack::claim;
use crate::flow::inbox::context::{ContextArgs, Desk};
use crate::flow::inbox::document::{Document, blocker_of};
use crate::flow::inbox::error::InboxError;
use crate::flow::inbox::marks::after;
use crate::flow::inbox::ports::Providers;
use crate::port::channel::ProviderError;
use crate::port::comments::CommentSource;
use crate::store::StoreError;
use crate::store::inbox::{CommentReplyRow, Exporter};
use crate::store::lock::{self, Outbound};

/// The most pages that are read to find an answer.
const MAX_PAGES: usize = 20;

/// Runs the command.
pub fn run(
    desk: &Desk<'_>,
    providers: &dyn Providers,
    (args, event_id, raw): (&ContextArgs, &str, &str),
    mode: Mode,
) -> Result<(Value, Activation), InboxError> {
    let (document, activation) = Document::open(desk, args, &[Permission::ReplySend])?;
    document.require_enabled()?;
    if !document.config.responds {
        return Err(InboxFault::CommentResponseDisabled.into());
    }
    let card = address(&document, event_id)?;
    let key = reply_key(&document.config.source_ref, event_id);
    let packet = |status, blocker| ReplyPacket {
        status,
        execute: mode.is_execute(),
        outcome: ExternalWriteOutcome::None,
        verified: false,
        key: key.clone(),
        blocker,
        export_pending: false,
    };
    let Some(card) = card.filter(|card| card.can_reply) else {
        return Ok((
            packet("blocked", Some(CommentBlocker::ReplyNotSupported)).packet(),
            activation,
        ));
    };
    let Some(text) = reply_text(raw) else {
        return Ok((
            packet("blocked", Some(CommentBlocker::ReplyTextInvalid)).packet(),
            activation,
        ));
    };
    if mode == Mode::Preview {
        return Ok((packet("preview_ready", None).packet(), activation));
    }
    let source = providers.comments(&document.config);
    let mut answer = Answer {
        document: &document,
        source: source.as_ref(),
        card,
        key: &key,
        text: &text,
        outcome: ExternalWriteOutcome::None,
    };
    let (status, blocker, export_pending) = answer.under_lock(desk)?;
    let done = ReplyPacket {
        outcome: answer.outcome,
        verified: status == "verified",
        export_pending,
        ..packet(status, blocker)
    };
    Ok((done.packet(), activation))
}

fn address(document: &Document, event_id: &str) -> Result<Option<CommentCard>, InboxError> {
    let row = match is_comment_event_id(event_id) {
        true => document.store.event_row(event_id)?,
        false => None,
    };
    let row = row.ok_or(InboxFault::CommentNotCaptured)?;
    let body = strict::parse_object(row.as_bytes())
        .map_err(|_| StoreError::Corrupt("a comment event is not readable"))?;
    let address = body.get("reply_address").and_then(Value::as_str);
    Ok(address.and_then(|address| CommentCard::of_address(address, &document.config.source_ref)))
}

type Ended = (&'static str, Option<CommentBlocker>);

struct Answer<'a> {
    document: &'a Document,
    source: &'a dyn CommentSource,
    card: CommentCard,
    key: &'a str,
    text: &'a str,
    outcome: ExternalWriteOutcome,
}

impl Answer<'_> {
    fn under_lock(
        &mut self,
        desk: &Desk<'_>,
    ) -> Result<(&'static str, Option<CommentBlocker>, bool), InboxError> {
        let now = desk.now.to_string();
        let folder = self.document.store.folder();
        let path = folder.join(".state").join("comment-reply.lock");
        let _held = lock::acquire::<Outbound>(&path, &claim("document-comment-reply", &now))?;
        let ended = self.run();
        let mut out = Exporter::default();
        self.document
            .store
            .export_comments(&mut out)
            .map_err(after(self.outcome))?;
        let (status, blocker) = ended?;
        Ok((status, blocker, out.is_pending()))
    }

    fn run(&mut self) -> Result<Ended, InboxError> {
        if let Some(row) = self.document.store.comment_reply(self.key)? {
            let body = strict::parse_object(row.body.as_bytes())
                .map_err(|_| StoreError::Corrupt("an answer is not readable"))?;
            if body.get("text_digest").and_then(Value::as_str) != Some(self.digest().as_str()) {
                return Ok(("blocked", Some(CommentBlocker::ReplyDigestMismatch)));
            }
            let reply_id = body
                .get("reply_id")
                .and_then(Value::as_str)
                .and_then(DocumentId::new);
            return match (row.status.as_str(), reply_id) {
                ("verified", _) => Ok(("verified", None)),
                (_, Some(id)) => self.verify(&id),
                _ => self.recover(),
            };
        }
        if !self.source.is_supported() {
            return Ok(("blocked", Some(CommentBlocker::ProgramUnsupported)));
        }
        self.put("creating", None)?;
        failpoint!(Point::CommentReplyRecorded);
        match self
            .source
            .create(&self.card, &escaped(self.text), self.key)
        {
            Ok(id) => {
                self.outcome = ExternalWriteOutcome::Performed;
                failpoint!(Point::CommentReplyAccepted);
                self.put("pending_readback", Some(&id))?;
                self.verify(&id)
            }
            Err(error) if error.effect == ExternalWriteOutcome::None => {
                self.document.store.remove_comment_reply(self.key)?;
                Ok((
                    "blocked",
                    Some(blocker_of(&error, CommentBlocker::ReplyFailed)),
                ))
            }
            Err(_) => {
                self.outcome = ExternalWriteOutcome::Unknown;
                self.recover()
            }
        }
    }

    fn digest(&self) -> String {
        digest::content_digest(self.text.as_bytes()).to_string()
    }

    fn put(&self, status: &str, reply_id: Option<&DocumentId>) -> Result<(), InboxError> {
        let body = json!({
            "source_ref": self.document.config.source_ref,
            "file_token": self.card.file_token.as_str(),
            "file_type": self.card.file_type.as_str(),
            "comment_id": self.card.comment_id.as_str(),
            "text_digest": self.digest(),
            "status": status,
            "reply_id": reply_id.map(DocumentId::as_str),
        });
        let row = CommentReplyRow {
            status: status.to_owned(),
            body: body.to_string(),
        };
        self.document
            .store
            .put_comment_reply(self.key, &row)
            .map_err(after(self.outcome))
    }

    /// Looks for an answer that may have arrived, by the key it carries.
    fn recover(&mut self) -> Result<Ended, InboxError> {
        let found = self.find(|reply| reply.key.as_deref() == Some(self.key));
        match found {
            Ok(Some(reply)) => {
                if self.outcome == ExternalWriteOutcome::Unknown {
                    self.outcome = ExternalWriteOutcome::Performed;
                }
                self.put("pending_readback", Some(&reply.reply_id))?;
                self.verify(&reply.reply_id)
            }
            _ => Ok(("recovery_pending", Some(CommentBlocker::RecoveryPending))),
        }
    }

    /// Reads the exact reply back. Where the id leads to something else, the reply that carries our key decides.
    fn verify(&self, id: &DocumentId) -> Result<Ended, InboxError> {
        let pending = ("pending_readback", Some(CommentBlocker::ReadbackFailed));
        let Ok(named) = self.find(|reply| &reply.reply_id == id) else {
            return Ok(pending);
        };
        let keyed = match &named {
            Some(reply) if self.says_it(reply) => named,
            _ => self
                .find(|reply| reply.key.as_deref() == Some(self.key))
                .unwrap_or(None)
                .filter(|reply| self.says_it(reply)),
        };
        let Some(reply) = keyed else {
            return Ok(pending);
        };
        self.put("verified", Some(&reply.reply_id))?;
        failpoint!(Point::CommentReplyVerified);
        Ok(("verified", None))
    }

    fn says_it(&self, reply: &ShownReply) -> bool {
        let shown = text::collapse(reply.text.as_str());
        [self.text.to_owned(), escaped(self.text)]
            .iter()
            .any(|sent| text::collapse(sent) == shown)
    }

    fn find(
        &self,
        is_it: impl Fn(&ShownReply) -> bool,
    ) -> Result<Option<ShownReply>, ProviderError> {
        let mut token: Option<Opaque> = None;
        for _ in 0..MAX_PAGES {
            let page = self.source.replies(&self.card, token.as_ref())?;
            if let Some(reply) = page.replies.into_iter().find(|reply| is_it(reply)) {
                return Ok(Some(reply));
            }
            match page.next {
                None => return Ok(None),
                next => token = next,
            }
        }
        Ok(None)
    }
}
