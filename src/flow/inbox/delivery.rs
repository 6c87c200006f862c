//! A cleared message on its way: intent, send, readback, receipt, under the lock of its attempt.
//!
//! 1. lock of the attempt  2. a verified one is only read back; a pending one older than the provider's window is looked for  3. intent
//!    recorded, send  4. readback, judged  5. receipt  6. export

use super::ack::claim;
use super::clearance::Cleared;
use super::error::InboxError;
use super::pending::{self, Found};
use crate::contract::channel::ids::MessageId;
use crate::contract::channel::key::OutboundKey;
use crate::contract::channel::outcome::ExternalWriteOutcome;
use crate::contract::inbox::outbound_packet::{OutboundBlocker as Blocker, OutboundProgress};
use crate::contract::time::Timestamp;
use crate::failpoint;
use crate::failpoint::Point;
use crate::flow::inbox::marks::after;
use crate::kernel::channel::readback::{self, Verdict};
use crate::store::inbox::{Attempt, AttemptKind, AttemptState, Exporter, Inbox};
use crate::store::lock::{self, Held, Outbound};

/// How long the provider surely joins a repeat under the same key, in seconds.
const SAME_KEY_SECONDS: i64 = 50 * 60;

/// A blocker, or nothing.
type Step<T = ()> = Result<T, Blocker>;

/// One message that may be sent.
pub(super) struct Delivery<'a> {
    pub(super) store: &'a Inbox,
    pub(super) now: Timestamp,
    pub(super) kind: AttemptKind,
    pub(super) cleared: &'a Cleared<'a>,
    pub(super) key: &'a OutboundKey,
}

impl Delivery<'_> {
    /// Delivers the message once, however often this is called.
    pub(super) fn run(
        &self,
        progress: &mut OutboundProgress,
        out: &mut Exporter,
    ) -> Result<Option<Blocker>, InboxError> {
        let _held = self.lock()?;
        let delivered = self.deliver(progress);
        self.store
            .export_attempt(out, self.key.attempt())
            .map_err(after(progress.outcome))?;
        delivered
    }

    /// Takes a message that was found elsewhere for this one, if it reads back as such.
    pub(super) fn adopt(
        &self,
        id: MessageId,
        progress: &mut OutboundProgress,
        out: &mut Exporter,
    ) -> Result<Option<Blocker>, InboxError> {
        let _held = self.lock()?;
        if let Some(blocker) = self.read_back(&id, progress) {
            return Ok(Some(blocker));
        }
        let known = self.store.attempt(self.key.attempt())?;
        self.settle(id, known.as_ref())?;
        self.store.export_attempt(out, self.key.attempt())?;
        Ok(None)
    }

    fn lock(&self) -> Result<Held<Outbound>, InboxError> {
        let name = format!("{}.lock", self.key.attempt());
        let path = self.store.folder().join("outbound").join(name);
        let now = self.now.to_string();
        Ok(lock::acquire::<Outbound>(&path, &claim("outbound", &now))?)
    }

    fn deliver(&self, progress: &mut OutboundProgress) -> Result<Option<Blocker>, InboxError> {
        let known = self.store.attempt(self.key.attempt())?;
        let id = match &known {
            Some(Attempt {
                state: AttemptState::Verified,
                message_id: Some(id),
                ..
            }) => {
                return Ok(self.read_back(id, progress));
            }
            Some(attempt) if self.is_old(attempt) => {
                match pending::find(self.cleared, (attempt.attempted_at, self.now)) {
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
            .map_err(after(progress.outcome))?;
        failpoint!(Point::SendReceiptSaved);
        Ok(None)
    }

    fn is_old(&self, attempt: &Attempt) -> bool {
        // A clock that went back proves nothing about the provider's window.
        self.now < attempt.attempted_at
            || self.now.seconds_since(attempt.attempted_at) >= SAME_KEY_SECONDS
    }

    /// Records the intent and sends. A refusal removes the intent, unless an earlier send may have arrived.
    fn send(
        &self,
        known: Option<&Attempt>,
        progress: &mut OutboundProgress,
    ) -> Result<Step<MessageId>, InboxError> {
        let attempt_key = self.key.attempt();
        if known.is_none() {
            self.store.put_attempt(
                attempt_key,
                &self.attempt(AttemptState::Pending, self.now, None),
            )?;
        }
        failpoint!(Point::SendIntentRecorded);
        let sent = self
            .cleared
            .channel
            .send(&self.cleared.route, self.cleared.message);
        match sent {
            Ok(id) => {
                progress.outcome = ExternalWriteOutcome::Performed;
                failpoint!(Point::SendAccepted);
                Ok(Ok(id))
            }
            Err(error) if error.effect == ExternalWriteOutcome::None => {
                if known.is_some() {
                    // This try was refused; the earlier one may have arrived.
                    progress.outcome = ExternalWriteOutcome::Unknown;
                    return Ok(Err(Blocker::OutcomeUnknown));
                }
                self.store.remove_attempt(attempt_key)?;
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
            kind: self.kind,
            state,
            attempted_at,
            verified_at: is_verified.then_some(self.now),
            message_id: id,
        }
    }

    /// Reads a message back and judges it.
    pub(super) fn read_back(
        &self,
        id: &MessageId,
        progress: &mut OutboundProgress,
    ) -> Option<Blocker> {
        progress.verification_performed = true;
        let profile = &self.cleared.route.route().profile;
        let Ok(read) = self.cleared.channel.read_back(profile, &[id]) else {
            return Some(Blocker::NotVerified);
        };
        let needs_raw = self.cleared.message.body.mentions().len() > readback::MAX_SHOWN_MENTIONS
            || read
                .iter()
                .any(|message| message.mention_count() > readback::MAX_SHOWN_MENTIONS);
        let raw = needs_raw
            .then(|| self.cleared.channel.read_raw(profile, id).ok())
            .flatten();
        let expected = self.cleared.expected();
        progress.is_verified =
            readback::judge(&expected, id, &read, raw.as_ref()) == Verdict::Verified;
        (!progress.is_verified).then_some(Blocker::NotVerified)
    }

    /// A verified send is forgotten, since the same words may be meant again later; a reply and a notification are meant once.
    fn settle(
        &self,
        id: MessageId,
        known: Option<&Attempt>,
    ) -> Result<(), crate::store::StoreError> {
        let attempt_key = self.key.attempt();
        if self.kind == AttemptKind::Send {
            return self.store.remove_attempt(attempt_key);
        }
        let started = known.map_or(self.now, |attempt| attempt.attempted_at);
        let attempt = self.attempt(AttemptState::Verified, started, Some(id));
        self.store.put_attempt(attempt_key, &attempt)
    }
}
