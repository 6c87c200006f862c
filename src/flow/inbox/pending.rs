//! A message that may have been sent longer ago than the provider joins repeats: it is looked for before anything is sent again.
//!
//! A reply is looked for in the thread of its source, because the chat history shows a reply only nested under its root and without its
//! parent: its silence there proves nothing. Only a complete read proves an absence (`docs/spec/lark-inbox.md` 6.3).

use crate::contract::channel::ids::{AppId, MessageId, Opaque};
use crate::contract::channel::observed::{Observed, Page};
use crate::contract::time::Timestamp;
use crate::flow::inbox::outbound::Delivery;
use crate::kernel::channel::readback;
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

/// Looks for the message of an old attempt.
pub(super) fn find(delivery: &Delivery<'_>, attempted_at: Timestamp) -> Found {
    let profile = &delivery.route.route().profile;
    let app = match &delivery.route.route().app {
        Some(app) => app.clone(),
        None => match delivery.channel.own_app(profile) {
            Ok(app) => app,
            Err(_) => return Found::Unknown,
        },
    };
    let Some(earliest) = attempted_at.plus_seconds(-TOLERANCE_SECONDS) else {
        return Found::Unknown;
    };
    let search = Search {
        delivery,
        app,
        earliest,
    };
    let found = match delivery.message.source {
        None => search.in_chat(),
        Some(source) => search.in_thread(source),
    };
    match found {
        Ok(Some(id)) => Found::Message(id),
        Ok(None) => Found::Nothing,
        Err(Unreadable) => Found::Unknown,
    }
}

struct Unreadable;

struct Search<'a> {
    delivery: &'a Delivery<'a>,
    app: AppId,
    earliest: Timestamp,
}

type Searched = Result<Option<MessageId>, Unreadable>;

impl Search<'_> {
    fn in_chat(&self) -> Searched {
        let route = self.delivery.route.route();
        self.pages(None, |token| {
            let read = HistoryRead {
                chat: &route.chat,
                start: self.earliest,
                end: None,
                page_size: 50,
                token,
            };
            self.delivery.channel.history(&route.profile, &read)
        })
    }

    fn in_thread(&self, source: &MessageId) -> Searched {
        let profile = &self.delivery.route.route().profile;
        let channel = self.delivery.channel;
        let first = match channel.thread(profile, source.as_str(), None) {
            Ok(page) => page,
            Err(error) if error.kind == ProviderErrorKind::NotFound => {
                // The answer is the same for "no thread yet" and for a source that was not shown: the source itself decides.
                let shown = channel.read_raw(profile, source).map_err(|_| Unreadable)?;
                return if shown.thread.is_none() {
                    Ok(None)
                } else {
                    Err(Unreadable)
                };
            }
            Err(_) => return Err(Unreadable),
        };
        let mut first = Some(first);
        self.pages(Some(source), |token| match first.take() {
            Some(page) => Ok(page),
            None => channel.thread(profile, source.as_str(), token),
        })
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
        let chat = &self.delivery.route.route().chat;
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
        if !message.is_own(Some(&self.app))
            || shown_minute(&message.create_time)
                .is_some_and(|minute| minute < self.earliest_minute())
        {
            return Ok(None);
        }
        let profile = &self.delivery.route.route().profile;
        let is_many = message.mention_count() > readback::MAX_SHOWN_MENTIONS;
        let raw = match source.is_some() || is_many {
            false => None,
            true if !is_many && !readback::is_sent(&self.delivery.expected(), message, None) => {
                return Ok(None);
            }
            true => Some(
                self.delivery
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
        let matches =
            answers && readback::is_sent(&self.delivery.expected(), message, raw.as_ref());
        Ok(matches.then(|| id.clone()))
    }

    /// A row without id or sender that shows these words may be the message: nobody can tell.
    fn unnamed(&self, message: &Observed) -> Searched {
        match readback::is_sent(&self.delivery.expected(), message, None) {
            true => Err(Unreadable),
            false => Ok(None),
        }
    }

    fn earliest_minute(&self) -> i64 {
        self.earliest.unix_seconds().div_euclid(60)
    }
}

/// Reads the shown local time, which is UTC here, as minutes since the epoch; none in another form.
fn shown_minute(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(' ')?;
    let instant = Timestamp::parse(&format!("{date}T{}:00Z", time.get(..5)?))?;
    Some(instant.unix_seconds().div_euclid(60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_times_are_read_by_the_minute() {
        assert_eq!(shown_minute("1970-01-01 00:02"), Some(2));
        assert_eq!(shown_minute("1970-01-01 00:02:59"), Some(2));
        assert_eq!(shown_minute("1767225101000"), None);
    }
}
