//! A text as a reader will see it: one line, mail addresses masked, cut; and whether it may be seen at all.
//!
//! The guard looks at exactly what is shown, and at what is left of it after the renderers have cleaned it:
//! a cut can complete a path, and a dropped mark can complete a credential.

use crate::contract::clean::clean;
use crate::contract::public_safety::is_public;
use crate::contract::text;

/// Words for one place of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shown {
    Text(String),
    Empty,
    Withheld,
}

/// Prepares a text for a place of at most `max` characters.
pub(super) fn shown(raw: &str, max: usize) -> Shown {
    match told(raw).map(|line| text::cut(&line, max)) {
        None => Shown::Empty,
        Some(line) if may_show(&line) => Shown::Text(line),
        Some(_) => Shown::Withheld,
    }
}

/// Tells whether a text is public as it stands and after cleaning, also with whatever follows it on a page:
/// a name and `=` at its end must not find a value there.
pub(super) fn may_show(line: &str) -> bool {
    let cleaned = text::collapse(&clean(line));
    is_public(line) && is_public(&cleaned) && is_public(&format!("{cleaned} -"))
}

/// The text as one line without mail addresses; none when nothing is left.
pub(super) fn told(raw: &str) -> Option<String> {
    let masked = mask_mail(&text::collapse(raw));
    (!masked.is_empty()).then_some(masked)
}

/// Replaces `name@host.tld`.
fn mask_mail(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('@') {
        let local = rest[..at].len() - rest[..at].trim_end_matches(is_local).len();
        let after = &rest[at + 1..];
        let host = after.len() - after.trim_start_matches(is_host).len();
        let host = after[..host].trim_end_matches(['.', '-']).len();
        let is_address = local > 0
            && after[..host].rsplit_once('.').is_some_and(|(name, end)| {
                !name.is_empty()
                    && end.len() > 1
                    && end.bytes().all(|byte| byte.is_ascii_alphabetic())
            });
        match is_address {
            true => {
                out.push_str(&rest[..at - local]);
                out.push_str("[mail]");
                rest = &after[host..];
            }
            false => {
                out.push_str(&rest[..=at]);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

fn is_local(character: char) -> bool {
    character.is_ascii_alphanumeric() || "._%+-".contains(character)
}

fn is_host(character: char) -> bool {
    character.is_ascii_alphanumeric() || ".-".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_guard_sees_what_a_cut_and_a_cleaning_leave() {
        let cut_to_path = format!("{} see /home/ there", "x".repeat(40));
        assert_eq!(
            shown(&cut_to_path, 52),
            Shown::Withheld,
            "`/home/…` is a path"
        );
        assert!(matches!(shown(&cut_to_path, 200), Shown::Text(_)));
        let hidden = format!("gh\u{200e}p_{}", "a1".repeat(10));
        assert_eq!(shown(&hidden, 200), Shown::Withheld);
        assert_eq!(
            shown("the api_key =", 200),
            Shown::Withheld,
            "a value may follow"
        );
        assert_eq!(shown(" \n", 9), Shown::Empty);
        let beyond = format!("{} password=hunter2-hunter2", "plain words ".repeat(40));
        assert!(
            matches!(shown(&beyond, 100), Shown::Text(_)),
            "what is cut off is not shown"
        );
    }

    #[test]
    fn mail_addresses_are_masked_and_other_at_signs_stay() {
        assert_eq!(
            mask_mail("by <a.b@c.example.org>, @you and x@y"),
            "by <[mail]>, @you and x@y"
        );
    }

    proptest! {
        #[test]
        fn masking_any_text_ends_and_keeps_plain_text(line in "\\PC{0,60}") {
            let masked = mask_mail(&line);
            prop_assert!(line.contains('@') || masked == line);
        }
    }
}
