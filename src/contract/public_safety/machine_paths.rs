//! Paths of a machine in text that is nobody's but the owner's: absolute, home, drive and share paths.
//!
//! Stricter than the roots of the report guard: a text of an event names no absolute path at all
//! (`docs/spec/kernel.md` 3.2). A slash inside a word (`and/or`, `feat/x`), a URL, one lone segment
//! (`/status`) and a route (`/api/v1`) name nothing on a disk.

use super::is_value_character;

/// First segments of routes people write about; no disk of ours has such a root.
const ROUTE_WORDS: [&str; 24] = [
    "admin",
    "api",
    "apis",
    "auth",
    "docs",
    "events",
    "feed",
    "graphql",
    "health",
    "healthz",
    "hooks",
    "login",
    "metrics",
    "oauth",
    "oauth2",
    "open-apis",
    "public",
    "rest",
    "rpc",
    "static",
    "v1",
    "v2",
    "v3",
    "webhooks",
];
const HOME_WORDS: [&str; 4] = ["$HOME", "${HOME}", "%USERPROFILE%", "%HOMEPATH%"];

/// First segments that are the same on every machine and tell nothing of this one.
const COMMON_ROOTS: [&str; 8] = ["bin", "dev", "etc", "lib", "proc", "sbin", "sys", "usr"];

/// Tells whether a text names an absolute or home path of a machine.
pub(super) fn found_in(text: &str) -> bool {
    names_path(text, &[])
}

/// Tells whether a text names a path that is this machine's own.
pub(super) fn own_found_in(text: &str) -> bool {
    names_path(text, &COMMON_ROOTS)
}

fn names_path(text: &str, common: &[&str]) -> bool {
    text.char_indices().any(|(at, character)| {
        let (before, from) = text.split_at(at);
        match character {
            '/' => is_boundary(before) && is_absolute(from, common),
            '~' => is_boundary(before) && is_home(from),
            '\\' => is_boundary(before) && is_share(from),
            '$' | '%' => HOME_WORDS.iter().any(|word| {
                from.strip_prefix(word)
                    .is_some_and(|rest| rest.starts_with(['/', '\\']))
            }),
            'f' | 'F' if is_file_url(from) => true,
            letter if letter.is_ascii_alphabetic() => is_boundary(before) && is_drive(from),
            _ => false,
        }
    })
}

/// True when no word, path or tag goes on here.
fn is_boundary(before: &str) -> bool {
    before
        .chars()
        .next_back()
        .is_none_or(|last| !last.is_ascii_alphanumeric() && !r"/\._-~<%@}".contains(last))
}

/// `/a/b`: two segments at least, the first no route word and no common root.
fn is_absolute(from: &str, common: &[&str]) -> bool {
    let Some((first, rest)) = from.get(1..).and_then(|path| path.split_once('/')) else {
        return false;
    };
    let is_segment = first.starts_with(|start: char| start.is_alphabetic() || "._".contains(start))
        && first
            .chars()
            .all(|character| character.is_alphanumeric() || "._-+@".contains(character));
    let is_spared = ROUTE_WORDS.contains(&first) || common.contains(&first);
    is_segment && !is_spared && rest.starts_with(is_value_character)
}

/// `~/x` and `~user/x`.
fn is_home(from: &str) -> bool {
    let Some((user, rest)) = from.get(1..).and_then(|path| path.split_once('/')) else {
        return false;
    };
    let is_user = user.is_empty()
        || user.starts_with(|start: char| start.is_ascii_alphabetic())
            && user
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    is_user && rest.starts_with(is_value_character)
}

/// `C:\x` and `C:/x`.
fn is_drive(from: &str) -> bool {
    let rest = from.get(1..).and_then(|rest| rest.strip_prefix(':'));
    let path = rest.and_then(|rest| rest.strip_prefix(['\\', '/']));
    path.is_some_and(|path| {
        path.starts_with(|first: char| first != '/' && is_value_character(first))
    })
}

/// `\\server\share`.
fn is_share(from: &str) -> bool {
    from.strip_prefix(r"\\")
        .and_then(|path| path.split_once('\\'))
        .is_some_and(|(server, share)| {
            !server.is_empty()
                && server.chars().all(is_value_character)
                && share.starts_with(is_value_character)
        })
}

fn is_file_url(from: &str) -> bool {
    from.get(..8)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:///"))
        && from[8..].starts_with(is_value_character)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn absolute_and_home_paths_of_every_kind_are_found() {
        for text in [
            "/opt/zq/s",
            "/var/zq",
            "see /etc/passwd",
            "(/opt/x)",
            "at:/srv/data",
            "~/zq",
            "~someone/zq",
            r"C:\Users\x",
            "d:/x",
            r"\\server\share",
            "file:///x",
            "$HOME/x",
            "${HOME}/x",
            r"%USERPROFILE%\x",
            "in `/mnt/a`",
            "\u{89c1}/opt/x",
            "key=/var/lib/x",
            "/.config/x",
        ] {
            assert!(found_in(text), "{text}");
        }
    }

    #[test]
    fn a_slash_in_ordinary_text_is_no_path() {
        for text in [
            "and/or",
            "feat/x",
            "https://example.org/opt/x",
            "/api/v1",
            "/v1/todos",
            "/status",
            "a / b / c",
            "1/2",
            "24/7",
            "N/A",
            "docs/spec/x",
            "../x/y",
            "./x/y",
            "</p/x",
            "~5/day",
            "it is 10:/",
            "@scope/pkg/x",
            "s/a/b/",
            "\u{548c}/\u{6216}",
            "A: x",
            r"note: a\b",
        ] {
            assert!(!found_in(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_judged(text in ".{0,60}") {
            let _ = found_in(&text);
        }
    }
}
