//! `lark-inbox processing` and `reaction-complete`: visible marks on a source message. Never evidence of handling, never an acknowledgement.
//!
//! Per message one shard lock outside and the settlement lock inside, so that no acknowledgement slips between the check and the receipt.
//! A mark is journaled before the call; a call whose answer is lost is never repeated blindly (`docs/spec/lark-inbox.md` 7).

use crate::contract::channel::ids::{MarkId, MessageId, ProfileName};
use crate::contract::channel::outcome::ExternalWriteOutcome;
use crate::contract::digest;
use crate::contract::extension::{Activation, Permission};
use crate::contract::inbox::config::{Marks, ReceivedPolicy};
use crate::contract::inbox::fault::InboxFault;
use crate::contract::inbox::mark_packet::{MarkCommand, MarkCounts, MarkPacket, MarkStatus};
use crate::failpoint;
use crate::failpoint::Point;
use crate::flow::Mode;
use crate::flow::inbox::ack::claim;
use crate::flow::inbox::context::{BoundInbox, ContextArgs, Desk};
use crate::flow::inbox::error::InboxError;
use crate::flow::inbox::ports::Channels;
use crate::port::channel::{ChannelProvider, ProviderError};
use crate::store::StoreError;
use crate::store::inbox::{Exporter, Inbox, Mark, MarkJournal, MarkPhase};
use crate::store::lock::{self, Held, Reaction, Settlement};

/// The most pages of marks that are read to prove an absence.
const MAX_PAGES: usize = 200;

/// One message whose marks are worked on.
pub(super) struct Marked<'a> {
    pub(super) store: &'a Inbox,
    pub(super) marks: &'a Marks,
    pub(super) profile: &'a ProfileName,
    pub(super) message: &'a MessageId,
    pub(super) channel: &'a dyn ChannelProvider,
    pub(super) now: &'a str,
}

/// Runs `processing`.
pub fn processing(
    desk: &Desk<'_>,
    providers: &dyn Channels,
    (args, message_id): (&ContextArgs, &str),
    mode: Mode,
) -> Result<(MarkPacket, Activation), InboxError> {
    run(
        desk,
        providers,
        (args, message_id, MarkCommand::Processing),
        mode,
    )
}

/// Runs `reaction-complete`.
pub fn complete(
    desk: &Desk<'_>,
    providers: &dyn Channels,
    (args, message_id): (&ContextArgs, &str),
    mode: Mode,
) -> Result<(MarkPacket, Activation), InboxError> {
    run(
        desk,
        providers,
        (args, message_id, MarkCommand::Complete),
        mode,
    )
}

fn run(
    desk: &Desk<'_>,
    providers: &dyn Channels,
    (args, message_id, command): (&ContextArgs, &str, MarkCommand),
    mode: Mode,
) -> Result<(MarkPacket, Activation), InboxError> {
    let (_, activation, source) = desk.open(args, &[Permission::ReplySend])?;
    let inbox = source.holder(message_id)?;
    let store = inbox.store()?;
    let message = captured(&store, message_id)?;
    if command == MarkCommand::Processing && !store.is_pending(message_id)? {
        return Err(InboxFault::ProcessingSource.into());
    }
    let idle = |status| MarkPacket::new(command, mode.is_execute(), status, MarkCounts::default());
    let Some(profile) = profile_of(inbox, command) else {
        return Ok((idle(MarkStatus::NotConfigured), activation));
    };
    if mode == Mode::Preview {
        return Ok((preview(&store, inbox, message_id, command)?, activation));
    }
    let chat = providers.open(source.program());
    let now = desk.now.to_string();
    let marked = Marked {
        store: &store,
        marks: &inbox.config.marks,
        profile,
        message: &message,
        channel: chat.channel.as_ref(),
        now: &now,
    };
    let mut out = Exporter::default();
    let (status, counts) = match command {
        MarkCommand::Processing => marked.start(&mut out)?,
        MarkCommand::Complete => marked.finish(&mut out)?,
    };
    if !status.is_ok() && counts.outcome == ExternalWriteOutcome::None {
        chat.refuse_old()?;
    }
    let packet =
        MarkPacket::new(command, true, status, counts).with_export_pending(out.is_pending());
    Ok((packet, activation))
}

fn captured(store: &Inbox, message_id: &str) -> Result<MessageId, InboxError> {
    let is_stored = store.stored(&[message_id])? == [true];
    MessageId::new(message_id)
        .filter(|_| is_stored)
        .ok_or_else(|| InboxFault::SourceNotCaptured.into())
}

fn profile_of(inbox: &BoundInbox, command: MarkCommand) -> Option<&ProfileName> {
    let is_wanted = command == MarkCommand::Complete || inbox.config.marks.processing.is_some();
    inbox
        .config
        .reply
        .as_ref()
        .map(|reply| &reply.profile)
        .filter(|_| is_wanted)
}

fn preview(
    store: &Inbox,
    inbox: &BoundInbox,
    message_id: &str,
    command: MarkCommand,
) -> Result<MarkPacket, InboxError> {
    let has =
        |mark| Ok::<_, StoreError>(u32::from(store.mark_receipt(message_id, mark)?.is_some()));
    let is_kept = inbox.config.marks.received_policy == ReceivedPolicy::Retain;
    let received = if is_kept { 0 } else { has(Mark::Received)? };
    let (status, pending_delete) = match command {
        MarkCommand::Processing => (MarkStatus::PreviewReady, received),
        MarkCommand::Complete => match (
            has(Mark::Processing)? + received,
            store.mark_journal(message_id, Mark::Processing)?,
        ) {
            (0, None) => (MarkStatus::AlreadyComplete, 0),
            (count, _) => (MarkStatus::PreviewReady, count),
        },
    };
    Ok(MarkPacket::new(
        command,
        false,
        status,
        MarkCounts {
            pending_delete,
            ..MarkCounts::default()
        },
    ))
}

type Ended = (MarkStatus, MarkCounts);

impl Marked<'_> {
    fn locks(&self) -> Result<(Held<Reaction>, Held<Settlement>), StoreError> {
        let shard = digest::content_digest(self.message.as_str().as_bytes()).short(2);
        let path = self
            .store
            .folder()
            .join("reactions")
            .join(format!("operation-{shard}.lock"));
        let outer = lock::acquire::<Reaction>(&path, &claim("reaction", self.now))?;
        let inner = outer.then::<Settlement>(
            &self.store.settlement_lock_path(),
            &claim("reaction", self.now),
        )?;
        Ok((outer, inner))
    }

    fn id(&self) -> &str {
        self.message.as_str()
    }

    fn start(&self, out: &mut Exporter) -> Result<Ended, InboxError> {
        let _held = self.locks()?;
        if !self.store.is_pending(self.id())? {
            return Err(InboxFault::ProcessingSource.into());
        }
        let mut counts = MarkCounts::default();
        let Some(emoji) = self.marks.processing.as_deref() else {
            return Ok((MarkStatus::NotConfigured, counts));
        };
        let ended = self.ensure((Mark::Processing, emoji), &mut counts);
        self.export(out).map_err(after(counts.outcome))?;
        let status = ended?;
        if !status.is_ok() {
            return Ok((status, counts));
        }
        if self.marks.received_policy == ReceivedPolicy::Transient
            && !self.delete(Mark::Received, &mut counts)?
        {
            self.export(out).map_err(after(counts.outcome))?;
            return Ok((MarkStatus::CleanupPending, counts));
        }
        self.export(out).map_err(after(counts.outcome))?;
        Ok((status, counts))
    }

    /// Shows that the message was read at a turn start: one mark, and none on a message that is settled or worked on.
    pub(super) fn receive(
        &self,
        counts: &mut MarkCounts,
        out: &mut Exporter,
    ) -> Result<MarkStatus, InboxError> {
        let _held = self.locks()?;
        let Some(emoji) = self.marks.received.as_deref() else {
            return Ok(MarkStatus::NotConfigured);
        };
        if !self.store.is_pending(self.id())? || self.has_open(Mark::Processing)? {
            return Ok(MarkStatus::AlreadyComplete);
        }
        let ended = self.ensure((Mark::Received, emoji), counts);
        self.export(out).map_err(after(counts.outcome))?;
        ended
    }

    /// Sets a mark once, or finishes a journal that a crash left.
    fn ensure(
        &self,
        (mark, emoji): (Mark, &str),
        counts: &mut MarkCounts,
    ) -> Result<MarkStatus, InboxError> {
        if self.store.mark_receipt(self.id(), mark)?.is_some() {
            return Ok(MarkStatus::Processing);
        }
        if let Some(journal) = self.store.mark_journal(self.id(), mark)? {
            return self.recover((mark, emoji), &journal);
        }
        let prepared = MarkJournal {
            phase: MarkPhase::Prepared,
            emoji: emoji.to_owned(),
        };
        self.store
            .put_mark_journal((self.id(), mark), &prepared, self.now)?;
        failpoint!(Point::ReactionPrepared);
        match self.channel.add_mark(self.profile, self.message, emoji) {
            Ok(id) => self.created((mark, emoji), id, counts),
            Err(error) if error.effect == ExternalWriteOutcome::None => {
                self.store.clear_mark_journal(self.id(), mark)?;
                Ok(MarkStatus::Failed)
            }
            Err(_) => {
                counts.outcome = ExternalWriteOutcome::Unknown;
                Ok(MarkStatus::ProviderOutcomeUncertain)
            }
        }
    }

    fn created(
        &self,
        (mark, emoji): (Mark, &str),
        id: MarkId,
        counts: &mut MarkCounts,
    ) -> Result<MarkStatus, InboxError> {
        counts.outcome = ExternalWriteOutcome::Performed;
        failpoint!(Point::ReactionAnswered);
        let journal = MarkJournal {
            phase: MarkPhase::Created(id.clone()),
            emoji: emoji.to_owned(),
        };
        if self
            .store
            .put_mark_journal((self.id(), mark), &journal, self.now)
            .is_err()
        {
            // The mark cannot be remembered: it is taken back while its id is still known.
            if self.is_gone(&id, &mut MarkCounts::default()) {
                let _ = self.store.clear_mark_journal(self.id(), mark);
            }
            return Ok(MarkStatus::OperationReceiptFailed);
        }
        counts.created = 1;
        failpoint!(Point::ReactionCreated);
        if self
            .store
            .settle_mark((self.id(), mark), &id, self.now)
            .is_err()
        {
            return Ok(MarkStatus::ReceiptFailed);
        }
        failpoint!(Point::ReactionSettled);
        Ok(MarkStatus::Processing)
    }

    fn recover(
        &self,
        (mark, emoji): (Mark, &str),
        journal: &MarkJournal,
    ) -> Result<MarkStatus, InboxError> {
        match &journal.phase {
            _ if journal.emoji != emoji => Ok(MarkStatus::OperationConfigChanged),
            MarkPhase::Prepared => Ok(MarkStatus::ProviderOutcomeUncertain),
            MarkPhase::Created(id) => {
                self.store.settle_mark((self.id(), mark), id, self.now)?;
                failpoint!(Point::ReactionSettled);
                Ok(MarkStatus::ReceiptRecovered)
            }
        }
    }

    /// Removes the own marks.
    pub(super) fn finish(&self, out: &mut Exporter) -> Result<Ended, InboxError> {
        let mut counts = MarkCounts::default();
        if !self.has_open(Mark::Processing)? && !self.has_open(Mark::Received)? {
            return Ok((MarkStatus::AlreadyComplete, counts));
        }
        let _held = self.locks()?;
        if let Some(journal) = self.store.mark_journal(self.id(), Mark::Processing)? {
            let status = self.recover((Mark::Processing, &journal.emoji), &journal)?;
            if !status.is_ok() {
                return Ok((status, counts));
            }
        }
        let mut is_clean = self.delete(Mark::Processing, &mut counts)?;
        if self.marks.received_policy == ReceivedPolicy::Transient {
            is_clean &= self.delete(Mark::Received, &mut counts)?;
        }
        self.export(out).map_err(after(counts.outcome))?;
        let status = match (is_clean, counts.deleted) {
            (false, _) => MarkStatus::CleanupPending,
            (true, 0) => MarkStatus::AlreadyComplete,
            (true, _) => MarkStatus::Completed,
        };
        Ok((status, counts))
    }

    fn has_open(&self, mark: Mark) -> Result<bool, StoreError> {
        Ok(self.store.mark_receipt(self.id(), mark)?.is_some()
            || self.store.mark_journal(self.id(), mark)?.is_some())
    }

    /// Removes one mark; true when it is gone or never was.
    fn delete(&self, mark: Mark, counts: &mut MarkCounts) -> Result<bool, InboxError> {
        // A crash may have left a mark whose id is known and that has no receipt yet.
        if let Some(MarkJournal {
            phase: MarkPhase::Created(id),
            ..
        }) = self.store.mark_journal(self.id(), mark)?
        {
            self.store.settle_mark((self.id(), mark), &id, self.now)?;
        }
        let Some(id) = self.store.mark_receipt(self.id(), mark)? else {
            return Ok(true);
        };
        if !self.is_gone(&id, counts) {
            counts.pending_delete += 1;
            return Ok(false);
        }
        failpoint!(Point::ReactionDeleted);
        self.store
            .remove_mark_receipt(self.id(), mark)
            .map_err(after(counts.outcome))?;
        counts.deleted += 1;
        Ok(true)
    }

    /// Deletes at the provider; a refused or lost delete is settled by the complete list.
    fn is_gone(&self, id: &MarkId, counts: &mut MarkCounts) -> bool {
        let refused = match self.channel.remove_mark(self.profile, self.message, id) {
            Ok(()) => {
                counts.outcome = counts.outcome.and(ExternalWriteOutcome::Performed);
                return true;
            }
            Err(error) => error,
        };
        let absent = matches!(self.is_listed(id), Ok(false));
        let effect = match (refused.effect, absent) {
            (ExternalWriteOutcome::Unknown, true) => ExternalWriteOutcome::Performed,
            (effect, _) => effect,
        };
        counts.outcome = counts.outcome.and(effect);
        absent
    }

    fn is_listed(&self, id: &MarkId) -> Result<bool, ProviderError> {
        let mut token = None;
        let mut last = None;
        for _ in 0..MAX_PAGES {
            let page = self
                .channel
                .marks(self.profile, self.message, token.as_ref())?;
            if page.marks.contains(id) {
                return Ok(true);
            }
            match page.next {
                None => return Ok(false),
                next => token = next,
            }
            last = token.clone();
        }
        // Too many pages prove nothing.
        Ok(last.is_some())
    }

    fn export(&self, out: &mut Exporter) -> Result<(), StoreError> {
        self.store.export_mark_receipts(out)?;
        self.store
            .export_mark_journal(out, self.id(), Mark::Processing)?;
        self.store
            .export_mark_journal(out, self.id(), Mark::Received)
    }
}

/// A failure of the store keeps what already happened outside.
pub(super) fn after(outcome: ExternalWriteOutcome) -> impl Fn(StoreError) -> InboxError {
    move |source| InboxError::StoreAfter { source, outcome }
}
