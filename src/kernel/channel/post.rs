//! A formatted post, as it comes back: told by its type, so that plain text of the same look is none.

use crate::contract::channel::body::PostText;
use crate::contract::channel::observed::{Observed, SentWords};
use crate::contract::channel::outbound::trim_formatted;

/// The type a provider shows for a formatted message.
const POST: &str = "post";

/// Tells whether a message is a post of exactly these words.
pub(super) fn is_post(post: &PostText, message: &Observed) -> bool {
    message.message_type == POST && post_text(message).is_some_and(|shown| shown == post.as_str())
}

/// The formatted words of a post: as they were sent, else as they are shown.
fn post_text(message: &Observed) -> Option<String> {
    match &message.body {
        None => Some(trim_formatted(&message.content)),
        Some(SentWords::Post(words)) => Some(trim_formatted(words)),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::channel::body::{ContentFormat, OutboundBody};
    use crate::contract::channel::outbound::LengthRule;

    fn proves(message: &Observed) -> bool {
        let parsed =
            OutboundBody::parse("# T\n\n* a", ContentFormat::Markdown, LengthRule::ChatRoot);
        match parsed {
            Ok((OutboundBody::Post(post), None)) => is_post(&post, message),
            other => panic!("no post: {other:?}"),
        }
    }

    fn shown(kind: &str, content: &str) -> Observed {
        Observed {
            message_type: kind.to_owned(),
            content: content.to_owned(),
            ..Observed::default()
        }
    }

    #[test]
    fn a_shown_post_is_compared_after_line_ends_and_ends_are_folded() {
        assert!(proves(&shown("post", "# T\r\n\r\n* a\n")));
        assert!(!proves(&shown("post", "# T\n* a")));
    }

    #[test]
    fn plain_text_of_the_same_look_is_no_post() {
        assert!(!proves(&shown("text", "# T\n\n* a")));
    }

    #[test]
    fn a_post_as_it_was_sent_decides_before_what_is_shown() {
        let sent = |body: SentWords| Observed {
            body: Some(body),
            ..shown("post", "anything")
        };
        assert!(proves(&sent(SentWords::Post("# T\n\n* a".to_owned()))));
        for other in [
            SentWords::Post("# T".to_owned()),
            SentWords::Text("# T\n\n* a".to_owned()),
            SentWords::Other,
        ] {
            assert!(!proves(&sent(other)));
        }
    }
}
