//! Shapes of credentials in running text.
//!
//! Word characters are `[A-Za-z0-9_]`; every shape is matched without regard to ASCII case. Each
//! scanner looks at one candidate start, so a text is read a small, fixed number of times.

use super::is_value_character;
use crate::contract::text::is_space;

/// A fixed prefix, the characters that must follow it and how many at least.
struct Prefixed {
    prefix: &'static str,
    tail: fn(u8) -> bool,
    at_least: usize,
    ends_word: bool,
}

const fn shape(prefix: &'static str, tail: fn(u8) -> bool, at_least: usize) -> Prefixed {
    Prefixed {
        prefix,
        tail,
        at_least,
        ends_word: false,
    }
}

const fn word(prefix: &'static str) -> Prefixed {
    Prefixed {
        prefix,
        tail: is_alphanumeric,
        at_least: 16,
        ends_word: true,
    }
}

const PREFIXED: [Prefixed; 18] = [
    word("ghp_"),
    word("gho_"),
    word("ghu_"),
    word("ghs_"),
    word("ghr_"),
    shape("github_pat_", is_word, 20),
    shape("xoxb-", is_dashed, 10),
    shape("xoxa-", is_dashed, 10),
    shape("xoxp-", is_dashed, 10),
    shape("xoxr-", is_dashed, 10),
    shape("xoxs-", is_dashed, 10),
    shape("aiza", is_word_or_dash, 20),
    shape("sk_live_", is_alphanumeric, 12),
    shape("sk_test_", is_alphanumeric, 12),
    shape("rk_live_", is_alphanumeric, 12),
    shape("rk_test_", is_alphanumeric, 12),
    shape("npm_", is_alphanumeric, 20),
    shape("pypi-", is_word_or_dash, 20),
];

/// Names before `=` or `:`, and the least length of the value behind it.
const NAMED: [(&str, usize); 15] = [
    ("accesskey", 1),
    ("access_key", 1),
    ("access-key", 1),
    ("apikey", 1),
    ("api_key", 1),
    ("api-key", 1),
    ("secretkey", 1),
    ("secret_key", 1),
    ("secret-key", 1),
    ("ak", 1),
    ("sk", 1),
    ("password", 12),
    ("secret", 12),
    ("token", 12),
    // `access_token` and its kin start a word before the plain name does.
    ("accesstoken", 12),
];

const NAMED_TOKENS: [&str; 5] = [
    "access_token",
    "access-token",
    "refreshtoken",
    "refresh_token",
    "refresh-token",
];

/// Tells whether a text holds the shape of a credential.
pub(super) fn found_in(text: &str) -> bool {
    let folded = text.to_ascii_lowercase();
    let bytes = folded.as_bytes();
    let mut web_tokens = WebTokens::default();
    (0..bytes.len()).any(|at| match bytes[at] {
        b'-' => starts_private_key(&folded, at),
        byte if is_word(byte) && starts_word(bytes, at) => {
            starts_credential(&folded, at) || web_tokens.starts(bytes, at)
        }
        _ => false,
    })
}

fn starts_word(bytes: &[u8], at: usize) -> bool {
    at == 0 || !is_word(bytes[at - 1])
}

fn starts_credential(text: &str, at: usize) -> bool {
    let rest = &text[at..];
    // Every shape starts with one of these letters; the others need no closer look.
    match rest.as_bytes()[0] {
        b'a' | b'r' | b's' | b't' | b'p' => {
            is_named(rest) || is_short_key(rest) || is_prefixed(rest) || is_aws_key(rest)
        }
        b'g' | b'x' | b'n' => is_prefixed(rest),
        b'b' => is_bearer(rest),
        _ => false,
    }
}

fn is_prefixed(rest: &str) -> bool {
    PREFIXED.iter().any(|shape| {
        let Some(tail) = rest.strip_prefix(shape.prefix) else {
            return false;
        };
        if !shape.ends_word {
            return bounded_run(tail, shape.tail, shape.at_least);
        }
        let length = run(tail, shape.tail);
        let ends = tail
            .as_bytes()
            .get(length)
            .is_none_or(|byte| !is_word(*byte));
        length >= shape.at_least && ends
    })
}

fn is_named(rest: &str) -> bool {
    let plain = NAMED.iter().copied();
    let tokens = NAMED_TOKENS.iter().map(|name| (*name, 12));
    plain.chain(tokens).any(|(name, at_least)| {
        rest.strip_prefix(name)
            .and_then(after_assignment)
            .is_some_and(|value| starts_value(value, at_least))
    })
}

/// Steps over an optional quote, white space, `=` or `:`, white space and an optional quote.
fn after_assignment(rest: &str) -> Option<&str> {
    let rest = rest.strip_prefix(['"', '\'']).unwrap_or(rest);
    let rest = rest.trim_start_matches(is_space).strip_prefix(['=', ':'])?;
    let rest = rest.trim_start_matches(is_space);
    Some(rest.strip_prefix(['"', '\'']).unwrap_or(rest))
}

fn starts_value(rest: &str, at_least: usize) -> bool {
    rest.chars()
        .take_while(|c| is_value_character(*c))
        .take(at_least)
        .count()
        == at_least
}

fn is_short_key(rest: &str) -> bool {
    let tail = rest.strip_prefix("ak").or_else(|| rest.strip_prefix("sk"));
    tail.and_then(|tail| tail.strip_prefix(['-', '_', '=', ':']))
        .is_some_and(|tail| bounded_run(tail, |byte| is_word_or_dash(byte) || byte == b'=', 10))
}

fn is_aws_key(rest: &str) -> bool {
    let tail = rest
        .strip_prefix("akia")
        .or_else(|| rest.strip_prefix("asia"));
    tail.is_some_and(|tail| run(tail, is_word) == 16 && run(tail, is_alphanumeric) == 16)
}

fn is_bearer(rest: &str) -> bool {
    let Some(tail) = rest.strip_prefix("bearer") else {
        return false;
    };
    let value = tail.trim_start_matches(is_space);
    let is_text = |byte: u8| is_word_or_dash(byte) || b".~+/=".contains(&byte);
    value.len() < tail.len() && bounded_run(value, is_text, 16)
}

/// Three long dotted parts that start with `eyj`. What follows a run of its characters is looked at once
/// per run, so that a text of many starts is still read once.
#[derive(Default)]
struct WebTokens {
    end: usize,
    goes_on: bool,
}

impl WebTokens {
    fn starts(&mut self, bytes: &[u8], at: usize) -> bool {
        if !bytes[at..].starts_with(b"eyj") {
            return false;
        }
        if at >= self.end {
            self.end = end_of_part(bytes, at);
            let second = self.end + 1;
            let third = end_of_part(bytes, second) + 1;
            self.goes_on = is_dot(bytes, self.end)
                && third - 1 - second.min(third - 1) >= 10
                && is_dot(bytes, third - 1)
                && bytes
                    .get(third..third + 10)
                    .is_some_and(|part| part.iter().all(|byte| is_word_or_dash(*byte)));
        }
        // `eyj` and at least ten more.
        self.goes_on && self.end - at >= 13
    }
}

fn end_of_part(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or(&[]);
    from + rest
        .iter()
        .take_while(|byte| is_word_or_dash(**byte))
        .count()
}

fn is_dot(bytes: &[u8], at: usize) -> bool {
    bytes.get(at) == Some(&b'.')
}

fn starts_private_key(text: &str, at: usize) -> bool {
    // Only the start of a run of dashes is looked at.
    if at > 0 && text.as_bytes()[at - 1] == b'-' {
        return false;
    }
    let dashes = run(&text[at..], |byte| byte == b'-');
    if dashes < 3 {
        return false;
    }
    let rest = text[at + dashes..].trim_start_matches(is_space);
    let Some(header) = rest.strip_prefix("begin ") else {
        return false;
    };
    // A type such as `RSA` or `ENCRYPTED` may stand between; it is short.
    let line = crate::contract::text::prefix(header, 64);
    let line = line.split(['\n', '-']).next().unwrap_or("");
    line.starts_with("private key") || line.contains(" private key")
}

fn run(text: &str, accepts: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|byte| accepts(*byte)).count()
}

/// Tells whether a text starts with this many accepted bytes, without reading further.
fn bounded_run(text: &str, accepts: impl Fn(u8) -> bool, at_least: usize) -> bool {
    let start = text.as_bytes().get(..at_least);
    start.is_some_and(|start| start.iter().all(|byte| accepts(*byte)))
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_word_or_dash(byte: u8) -> bool {
    is_word(byte) || byte == b'-'
}

fn is_dashed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_listed_shape_is_found_at_its_shortest() {
        let tail = |count: usize| "a1".repeat(count / 2 + 1)[..count].to_owned();
        let shapes = [
            format!("Bearer  {}", tail(16)),
            "api_key=x".to_owned(),
            "ACCESS-KEY : \"x".to_owned(),
            "secretkey='v'".to_owned(),
            "ak=1".to_owned(),
            "sk: v".to_owned(),
            format!("sk-{}", tail(10)),
            format!("(ak_{})", tail(10)),
            format!("ghp_{}", tail(16)),
            format!("github_pat_{}", tail(20)),
            format!("AKIA{}", tail(16)),
            format!("xoxb-{}", tail(10)),
            format!("AIza{}", tail(20)),
            format!("rk_live_{}", tail(12)),
            format!("npm_{}", tail(20)),
            format!("pypi-{}", tail(20)),
            format!("eyJ{}.{}.{}", tail(10), tail(10), tail(10)),
            format!("refresh_token={}", tail(12)),
            format!("password: {}", tail(12)),
            format!("token = \"{}", tail(12)),
            "-----BEGIN RSA PRIVATE KEY-----".to_owned(),
            "--- BEGIN PRIVATE KEY".to_owned(),
        ];
        for text in shapes {
            assert!(found_in(&text), "{text}");
            assert!(found_in(&format!("see ({text}) there")), "inside: {text}");
        }
    }

    #[test]
    fn ordinary_words_pass() {
        for text in [
            "the bearer of good news",
            "task-runner-for-everyone",
            "ask: what next",
            "risk-of-a-delay-there",
            "token = short",
            "password reset",
            "ghp_short",
            "AKIA and more",
            "a key: value pair",
            "BEGIN PRIVATE KEY",
            "eyjafjallajokull.is.tall",
            "mask_of_many_colours",
        ] {
            assert!(!found_in(text), "{text}");
        }
    }

    #[test]
    fn a_long_text_of_starts_is_read_once() {
        for unit in [
            "-",
            "eyj-",
            "eyj",
            "xoxb-",
            "ak-",
            "bearer ",
            "token ",
            "--- begin ",
            "ghp_",
            "sk_live_",
        ] {
            let text = unit.repeat(2_000_000 / unit.len());
            let _ = found_in(&text);
        }
        let text = format!("{}.aaaaaaaaaaa.bbbbbbbbbb", "eyj-".repeat(100_000));
        assert!(found_in(&text));
    }

    proptest! {
        #[test]
        fn any_text_is_scanned_without_a_panic(text in "\\PC{0,80}") {
            let _ = found_in(&text);
        }
    }
}
