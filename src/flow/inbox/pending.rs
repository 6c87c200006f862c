//! A message that may have been sent longer ago than the provider joins repeats: it is looked for before anything is sent again.
//!
//! A reply is looked for in the thread of its source, because the chat history shows a reply only nested under its root and without its
//! parent: its silence there proves nothing. Only a complete read proves an absence (`docs/spec/lark-inbox.md` 6.3).

use crate::contract::channel::ids::{AppId, MessageId, Opaque};
use crate::contract::channel::observed::{Observed, Page};
use crate::contract::time::Timestamp;
use crate::flow::inbox::clearance::Cleared;
use crate::kernel::channel::readback;
use crate::kernel::inbox::gaps;
use crate::port::channel::{HistoryRead, ProviderError, ProviderErrorKind};

/// The most pages of one search.
const MAX_PAGES: usize = 200;
/// How much earlier than the recorded attempt a message may be, in seconds.
const TOLERANCE_SECONDS: i64 = 5 * 60;

/// What a search found.
pub(super) enum Found {
    Message(MessageId),
    /// A complete read without the message.
    Nothing,
    /// The read was refused, failed or cut.
    Unknown,
}

/// Looks for the message of an old attempt. One that was recorded by a clock that was ahead says nothing about when it was sent: a thread
/// is read from its begin, and what a chat shows since yesterday may be the message but proves no absence.
pub(super) fn find(cleared: &Cleared<'_>, (attempted_at, now): (Timestamp, Timestamp)) -> Found {
    let is_ahead = now < attempted_at;
    let earliest = match is_ahead {
        true => Some(gaps::unproved(now)),
        false => attempted_at.plus_seconds(-TOLERANCE_SECONDS),
    };
    let Some(earliest) = earliest else {
        return Found::Unknown;
    };
    let bound = Some(earliest).filter(|_| !is_ahead);
    let searched = Search::new(cleared, bound).and_then(|search| match cleared.message.source {
        None => search.in_chat(earliest),
        Some(source) => search.in_thread(source),
    });
    match Found::of(searched) {
        Found::Nothing if is_ahead && cleared.message.source.is_none() => Found::Unknown,
        found => found,
    }
}

/// Looks for the message of a chat's root in pages that somebody else reads, whenever it was sent.
pub(super) fn find_in(
    cleared: &Cleared<'_>,
    read: impl FnMut(Option<&Opaque>) -> Result<Page, ProviderError>,
) -> Found {
    Found::of(Search::new(cleared, None).and_then(|search| search.pages(None, read)))
}

impl Found {
    fn of(searched: Searched) -> Self {
        match searched {
            Ok(Some(id)) => Self::Message(id),
            Ok(None) => Self::Nothing,
            Err(Unreadable) => Self::Unknown,
        }
    }
}

struct Unreadable;

struct Search<'a> {
    cleared: &'a Cleared<'a>,
    app: AppId,
    /// The instant before which a message is another one.
    earliest: Option<Timestamp>,
}

type Searched = Result<Option<MessageId>, Unreadable>;

impl<'a> Search<'a> {
    fn new(cleared: &'a Cleared<'a>, earliest: Option<Timestamp>) -> Result<Self, Unreadable> {
        let route = cleared.route.route();
        let app = match &route.app {
            Some(app) => app.clone(),
            None => cleared
                .channel
                .own_app(&route.profile)
                .map_err(|_| Unreadable)?,
        };
        Ok(Self {
            cleared,
            app,
            earliest,
        })
    }

    fn in_chat(&self, start: Timestamp) -> Searched {
        let route = self.cleared.route.route();
        self.pages(None, |token| {
            let read = HistoryRead {
                chat: &route.chat,
                start,
                end: None,
                page_size: 50,
                token,
            };
            self.cleared.channel.history(&route.profile, &read)
        })
    }

    fn in_thread(&self, source: &MessageId) -> Searched {
        let profile = &self.cleared.route.route().profile;
        let channel = self.cleared.channel;
        let first = match channel.thread(profile, source.as_str(), None) {
            Ok(page) => page,
            Err(error) if error.kind == ProviderErrorKind::NotFound => {
                return self.without_thread(source);
            }
            Err(_) => return Err(Unreadable),
        };
        let mut first = Some(first);
        let mut is_empty = true;
        let found = self.pages(Some(source), |token| {
            let page = match first.take() {
                Some(page) => page,
                None => channel.thread(profile, source.as_str(), token)?,
            };
            is_empty &= page.messages.is_empty();
            Ok(page)
        })?;
        match (found, is_empty) {
            (None, true) => self.without_thread(source),
            (found, _) => Ok(found),
        }
    }

    /// Decides about a source whose thread shows nothing: the answer is the same for "no thread yet" and for a thread that was not shown.
    /// The source itself knows whether there is one.
    fn without_thread(&self, source: &MessageId) -> Searched {
        let profile = &self.cleared.route.route().profile;
        let shown = self.cleared.channel.read_raw(profile, source);
        match shown.map_err(|_| Unreadable)?.thread {
            None => Ok(None),
            Some(_) => Err(Unreadable),
        }
    }

    fn pages(
        &self,
        source: Option<&MessageId>,
        mut read: impl FnMut(Option<&Opaque>) -> Result<Page, ProviderError>,
    ) -> Searched {
        let mut token: Option<Opaque> = None;
        for _ in 0..MAX_PAGES {
            let page = read(token.as_ref()).map_err(|_| Unreadable)?;
            for message in &page.messages {
                if let Some(id) = self.candidate(message, source)? {
                    return Ok(Some(id));
                }
            }
            match page.next {
                None => return Ok(None),
                next => token = next,
            }
        }
        Err(Unreadable)
    }

    /// Looks at a message and at the replies nested in it.
    fn candidate(&self, message: &Observed, source: Option<&MessageId>) -> Searched {
        if let Some(id) = self.is_it(message, source)? {
            return Ok(Some(id));
        }
        for reply in message
            .replies
            .iter()
            .flatten()
            .filter(|_| source.is_some())
        {
            if let Some(id) = self.candidate(reply, source)? {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    fn is_it(&self, message: &Observed, source: Option<&MessageId>) -> Searched {
        let chat = &self.cleared.route.route().chat;
        let is_foreign = message.chat.as_ref().is_some_and(|shown| shown != chat);
        if source.is_none() && is_foreign {
            return Err(Unreadable);
        }
        let Some(id) = &message.message_id else {
            return self.unnamed(message);
        };
        if source.is_none() && message.sender_type.is_none() {
            return self.unnamed(message);
        }
        if !message.is_own(Some(&self.app)) || self.is_earlier(message) {
            return Ok(None);
        }
        let profile = &self.cleared.route.route().profile;
        let is_many = message.mention_count() > readback::MAX_SHOWN_MENTIONS;
        let raw = match source.is_some() || is_many {
            false => None,
            true if !is_many && !readback::is_sent(&self.cleared.expected(), message, None) => {
                return Ok(None);
            }
            true => Some(
                self.cleared
                    .channel
                    .read_raw(profile, id)
                    .map_err(|_| Unreadable)?,
            ),
        };
        let answers = match (source, &raw) {
            (Some(source), Some(raw)) => raw.parent_id.as_ref() == Some(source),
            (Some(_), None) => false,
            (None, _) => true,
        };
        let matches = answers && readback::is_sent(&self.cleared.expected(), message, raw.as_ref());
        Ok(matches.then(|| id.clone()))
    }

    /// A row without id or sender that shows these words may be the message: nobody can tell.
    fn unnamed(&self, message: &Observed) -> Searched {
        match readback::is_sent(&self.cleared.expected(), message, None) {
            true => Err(Unreadable),
            false => Ok(None),
        }
    }

    fn is_earlier(&self, message: &Observed) -> bool {
        // What is shown may be cut to the minute: the bound is cut too.
        let minute = |instant: Timestamp| instant.unix_seconds().div_euclid(60);
        let shown = message.created.map(minute);
        let bound = self.earliest.map(minute);
        shown.zip(bound).is_some_and(|(shown, bound)| shown < bound)
    }
}
