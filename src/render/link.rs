//! Which references become links (`docs/spec/report-design.md` 7).
//!
//! The rule is narrow on purpose: user info, other schemes, backslashes and hosts that are not
//! ASCII stay plain text, so what the reader sees is where the link goes.

use super::page::LinkView;
use crate::contract::text;

const MAX_SHOWN: usize = 80;

/// Returns the link of a prepared reference that cleaning left as it was.
pub(super) fn link(reference: &str, prepared: &str) -> Option<LinkView> {
    if text::trim(reference) != prepared {
        return None;
    }
    let (scheme, rest) = prepared.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return None;
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    if !is_authority(authority) || !tail.chars().all(is_tail) {
        return None;
    }
    Some(LinkView {
        href: prepared.to_owned(),
        shown: shown(rest),
    })
}

/// Host and path, cut to 80 characters; the query is left out.
fn shown(rest: &str) -> String {
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let visible = &rest[..end];
    match text::is_longer_than(visible, MAX_SHOWN) {
        true => format!("{}…", text::prefix(visible, MAX_SHOWN)),
        false => visible.to_owned(),
    }
}

fn is_authority(authority: &str) -> bool {
    let (host, port) = match authority.strip_prefix('[') {
        Some(literal) => match literal.split_once(']') {
            Some((address, port)) => {
                return is_ipv6(address) && (port.is_empty() || is_colon_port(port));
            }
            None => return false,
        },
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    is_host(host) && port.is_none_or(is_port)
}

fn is_host(host: &str) -> bool {
    !host.is_empty()
        && !host.starts_with('.')
        && host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-')
}

fn is_ipv6(address: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_hexdigit() || byte == b':' || byte == b'.';
    address.len() <= 45 && address.matches(':').count() >= 2 && address.bytes().all(allowed)
}

fn is_colon_port(text: &str) -> bool {
    text.strip_prefix(':').is_some_and(is_port)
}

fn is_port(port: &str) -> bool {
    (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_tail(character: char) -> bool {
    !text::is_space(character) && !"\\<>\"{}|^`".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown_of(reference: &str) -> Option<String> {
        link(reference, reference).map(|link| link.shown)
    }

    #[test]
    fn an_ordinary_address_is_a_link_that_shows_host_and_path() {
        let cases = [
            ("https://quay.example:8443/t?x=1", "quay.example:8443/t"),
            ("HTTP://quay.example", "quay.example"),
            ("https://[::1]:80/a#b", "[::1]:80/a"),
        ];
        for (reference, expected) in cases {
            assert_eq!(
                shown_of(reference).as_deref(),
                Some(expected),
                "{reference}"
            );
        }
        let long = format!("https://a.example/{}", "x".repeat(90));
        assert_eq!(shown_of(&long).map(|text| text::length(&text)), Some(81));
    }

    #[test]
    fn whatever_could_mislead_stays_text() {
        for reference in [
            "javascript:alert(1)",
            "https://user@evil.example/",
            "https://user:pw@evil.example/x",
            "https://quäy.example/",
            "https://evil.example\\@good.example/",
            "https://evil.example/<x>",
            "//evil.example/x",
            "https://[::1]:99999999/x",
            "https://",
            "https://.example/",
            "https://a.example:/",
            "ftp://a.example/",
        ] {
            assert_eq!(shown_of(reference), None, "{reference}");
        }
        assert!(link("https://a.example/\u{200f}x", "https://a.example/x").is_none());
    }
}
