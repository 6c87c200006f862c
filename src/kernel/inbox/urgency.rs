//! How urgent several inboxes are together, and when a stored message was posted.

use crate::contract::inbox::urgency::Urgency;
use crate::contract::time::Timestamp;

/// Adds two inboxes of one collector.
pub fn sum(one: Urgency, other: Urgency) -> Urgency {
    Urgency {
        pending: one.pending + other.pending,
        attention: one.attention + other.attention,
        direct_question: one.direct_question + other.direct_question,
        direct_mention: one.direct_mention + other.direct_mention,
        reply_to_bot: one.reply_to_bot + other.reply_to_bot,
        material: one.material + other.material,
        material_attachment: one.material_attachment + other.material_attachment,
        oldest: one.oldest.into_iter().chain(other.oldest).min(),
        review_limit: one.review_limit.max(other.review_limit),
    }
}

/// Reads when a message was posted: live events say it in epoch milliseconds, history in UTC to the minute or to the second. None when it
/// is written otherwise.
pub fn posted(text: &str) -> Option<Timestamp> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let millis: i64 = text.parse().ok()?;
        return Timestamp::from_unix(millis.div_euclid(1000));
    }
    let (date, time) = text.split_once(' ')?;
    let seconds = if time.len() == "00:00".len() {
        ":00"
    } else {
        ""
    };
    Timestamp::parse(&format!("{date}T{time}{seconds}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_one_instant_are_that_instant() {
        let instant = Timestamp::from_unix(1_789_000_020);
        assert!(instant.is_some());
        assert_eq!(posted("1789000020999"), instant);
        assert_eq!(posted("2026-09-10 00:27:00"), instant);
        assert_eq!(posted("2026-09-10 00:27"), instant);
        for wrong in ["", "yesterday", "2026-09-10", "99999999999999999999"] {
            assert_eq!(posted(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn inboxes_add_up_and_keep_the_oldest() {
        let at = Timestamp::from_unix;
        let one = Urgency {
            pending: 2,
            attention: 1,
            oldest: at(7),
            review_limit: Some(5),
            ..Urgency::default()
        };
        let other = Urgency {
            pending: 3,
            material: 3,
            oldest: at(4),
            ..Urgency::default()
        };
        let sum = sum(one, other);
        assert_eq!((sum.pending, sum.attention, sum.material), (5, 1, 3));
        assert_eq!((sum.oldest, sum.review_limit), (at(4), Some(5)));
    }
}
