//! The provider as a channel: which call answers which question.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::call::{Answer, Deadline, Program, not_started};
use super::failure::unreadable;
use super::oddity::Oddity;
use super::{argv, read, version};
use crate::contract::channel::ids::{AppId, MarkId, MessageId, Opaque, ProfileName};
use crate::contract::channel::mention::MemberIdKind;
use crate::contract::channel::observed::{MarkPage, Members, Observed, Page, SentWords};
use crate::contract::channel::route::{ResolvedRoute, VerifiedRoute};
use crate::port::channel::{
    ChannelProvider, ChannelReader, HistoryRead, OutboundMessage, ProgramChoice, ProviderError,
    SearchRead, VerifyRefusal,
};
use crate::port::tools::{ProgramAge, TooOld};
use crate::process::Cancel;

/// How often a verification that may pass later is asked.
const VERIFY_TRIES: usize = 3;

/// The provider client of one command; its copies share what they found and saw.
#[derive(Clone, Debug)]
pub(crate) struct Lark {
    choice: ProgramChoice,
    program: Arc<OnceLock<Option<Program>>>,
    oddity: Arc<Oddity>,
    cancel: Cancel,
}

impl Lark {
    /// A client of the chosen program; nothing is looked up or started yet.
    pub(crate) fn new(choice: ProgramChoice) -> Self {
        Self {
            choice,
            program: Arc::default(),
            oddity: Arc::default(),
            cancel: Cancel::default(),
        }
    }

    /// Finds the program once.
    pub(super) fn program(&self) -> Result<&Program, ProviderError> {
        let find = || Some(Program::find(&self.choice)?.cancelled_by(&self.cancel));
        let found = self.program.get_or_init(find);
        found.as_ref().ok_or_else(not_started)
    }

    fn call(
        &self,
        profile: &ProfileName,
        tail: &[String],
        deadline: Deadline,
    ) -> Result<Answer, ProviderError> {
        self.program()?.call(Some(profile), tail, deadline)
    }

    /// Calls a command whose answer has no envelope.
    fn bare(&self, profile: &ProfileName, tail: &[String]) -> Result<Value, ProviderError> {
        let answer = self.call(profile, tail, Deadline::Usual);
        self.oddity.look(profile, answer.and_then(Answer::bare))
    }

    fn envelope(&self, profile: &ProfileName, tail: &[String]) -> Result<Value, ProviderError> {
        self.envelope_of(profile, tail, Deadline::Usual)
    }

    /// Every call here speaks as the bot: an answer under another identity is none.
    fn envelope_of(
        &self,
        profile: &ProfileName,
        tail: &[String],
        deadline: Deadline,
    ) -> Result<Value, ProviderError> {
        let answer = self.call(profile, tail, deadline);
        let shown = self.oddity.look(profile, answer.and_then(Answer::envelope));
        read::under("bot", shown?)
    }

    fn verify_sender(&self, route: &ResolvedRoute) -> Result<(), VerifyRefusal> {
        for _ in 0..VERIFY_TRIES {
            let value = self
                .bare(&route.profile, &argv::auth_status())
                .map_err(|error| VerifyRefusal::SenderIdentity(Some(error.kind)))?;
            let bot = read::bot_status(&value);
            if bot.may_be_retried {
                continue;
            }
            let is_app = match (&route.app, &bot.app) {
                (Some(expected), Some(found)) => expected == found,
                _ => true,
            };
            let is_named = bot.name.as_deref() == Some(route.display_name.as_str());
            return match bot.is_ready && is_app && is_named {
                true => Ok(()),
                false => Err(VerifyRefusal::SenderIdentity(None)),
            };
        }
        Err(VerifyRefusal::SenderIdentity(None))
    }
}

impl ChannelProvider for Lark {
    fn abandon(&self) {
        self.cancel.cancel();
    }

    fn verify(&self, route: &ResolvedRoute) -> Result<VerifiedRoute, VerifyRefusal> {
        self.verify_sender(route)?;
        let shown = self.envelope(&route.profile, &argv::chat(&route.chat));
        let shown = shown.and_then(
            |shown| match read::names_chat(&shown["data"], &route.chat) {
                true => Ok(()),
                false => Err(unreadable()),
            },
        );
        match shown {
            Ok(()) => Ok(VerifiedRoute::attest(route.clone())),
            Err(error) => Err(VerifyRefusal::NotInChat(error.kind)),
        }
    }

    fn members(&self, route: &VerifiedRoute, kind: MemberIdKind) -> Result<Members, ProviderError> {
        let route = route.route();
        let shown = self.envelope(&route.profile, &argv::members(&route.chat, kind))?;
        read::members(&shown, &route.chat)
    }

    fn preview(
        &self,
        route: &VerifiedRoute,
        message: &OutboundMessage<'_>,
    ) -> Result<Vec<SentWords>, ProviderError> {
        let route = route.route();
        let tail = argv::send(&route.chat, message, &["--dry-run"]);
        let value = self.bare(&route.profile, &tail)?;
        Ok(read::previewed(&read::under("bot", value)?))
    }

    fn send(
        &self,
        route: &VerifiedRoute,
        message: &OutboundMessage<'_>,
    ) -> Result<MessageId, ProviderError> {
        let route = route.route();
        let sent = self.envelope(&route.profile, &argv::send(&route.chat, message, &[]));
        self.oddity
            .acted(sent.and_then(|sent| read::sent_message(&sent)))
    }

    fn read_back(
        &self,
        profile: &ProfileName,
        ids: &[&MessageId],
    ) -> Result<Vec<Observed>, ProviderError> {
        read::read_back(&self.envelope(profile, &argv::read_back(ids))?)
    }

    fn read_raw(&self, profile: &ProfileName, id: &MessageId) -> Result<Observed, ProviderError> {
        read::raw_message(&self.envelope(profile, &argv::read_raw(id))?, id)
    }

    fn history(
        &self,
        profile: &ProfileName,
        read: &HistoryRead<'_>,
    ) -> Result<Page, ProviderError> {
        read::page(&self.envelope(profile, &argv::history(read))?, read.token)
    }

    fn thread(
        &self,
        profile: &ProfileName,
        thread: &str,
        token: Option<&Opaque>,
    ) -> Result<Page, ProviderError> {
        read::page(
            &self.envelope(profile, &argv::thread(thread, token))?,
            token,
        )
    }

    fn add_mark(
        &self,
        profile: &ProfileName,
        id: &MessageId,
        emoji: &str,
    ) -> Result<MarkId, ProviderError> {
        let added = self.envelope_of(profile, &argv::add_mark(id, emoji), Deadline::Mark);
        self.oddity
            .acted(added.and_then(|added| read::mark_id(&added)))
    }

    fn remove_mark(
        &self,
        profile: &ProfileName,
        id: &MessageId,
        mark: &MarkId,
    ) -> Result<(), ProviderError> {
        let removed = self.envelope_of(profile, &argv::remove_mark(id, mark), Deadline::Mark);
        self.oddity.acted(removed.map(drop))
    }

    fn marks(
        &self,
        profile: &ProfileName,
        id: &MessageId,
        token: Option<&Opaque>,
    ) -> Result<MarkPage, ProviderError> {
        let shown = self.envelope_of(profile, &argv::marks(id, token), Deadline::Mark)?;
        read::mark_page(&shown, token)
    }

    fn own_app(&self, profile: &ProfileName) -> Result<AppId, ProviderError> {
        let value = self.bare(profile, &argv::whoami())?;
        read::app_id(&value).ok_or_else(unreadable)
    }
}

impl ChannelReader for Lark {
    fn is_signed_in(&self, profile: &ProfileName) -> Result<bool, ProviderError> {
        Ok(read::is_user_ready(
            &self.bare(profile, &argv::auth_status())?,
        ))
    }

    fn search(&self, profile: &ProfileName, read: &SearchRead<'_>) -> Result<Page, ProviderError> {
        let answer = self.call(profile, &argv::search(read), Deadline::Usual);
        let shown = self.oddity.look(profile, answer.and_then(Answer::envelope));
        read::page(&read::under("user", shown?)?, read.token)
    }
}

impl ProgramAge for Lark {
    fn outdated(&self) -> Option<TooOld> {
        let profile = self.oddity.take()?;
        version::outdated(self.program().ok()?, &profile)
    }
}
