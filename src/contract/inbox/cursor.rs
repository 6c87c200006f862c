//! How far the history of one route is read, `docs/spec/lark-inbox.md` 10.1. The page token inside is private.

use std::fmt;

use serde_json::{Map, Value, json};

use super::fault::InboxFault;
use crate::contract::canonical;
use crate::contract::channel::ids::{Opaque, RouteKey};
use crate::contract::digest;
use crate::contract::time::Timestamp;

/// The schema that is written.
pub const CURSOR_SCHEMA: &str = "lark_group_history_cursor_v1";
/// The older schema, which is read and migrated.
pub const CURSOR_SCHEMA_V0: &str = "lark_group_history_cursor_v0";
/// The family of both and of later ones.
const CURSOR_FAMILY: &str = "lark_group_history_cursor_v";

/// Why a window was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowKind {
    Initial,
    Earlier,
    Forward,
}

impl WindowKind {
    const ALL: [(&'static str, Self); 3] = [
        ("initial", Self::Initial),
        ("earlier", Self::Earlier),
        ("forward", Self::Forward),
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::Initial => Self::ALL[0].0,
            Self::Earlier => Self::ALL[1].0,
            Self::Forward => Self::ALL[2].0,
        }
    }
}

/// The position in the history of one route.
#[derive(Clone, PartialEq, Eq)]
pub struct HistoryCursor {
    pub route_key: RouteKey,
    pub source_fingerprint: String,
    pub kind: WindowKind,
    pub window_start: Timestamp,
    pub window_end: Timestamp,
    pub coverage_start: Timestamp,
    pub coverage_end: Timestamp,
    pub token: Option<Opaque>,
    pub is_complete: bool,
    pub earlier_start_used: bool,
    pub page_count: u64,
    pub message_count: u64,
    pub last_page_digest: String,
}

impl fmt::Debug for HistoryCursor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("<private cursor>")
    }
}

impl HistoryCursor {
    /// Reads a cursor file; anything that breaks an invariant is refused and never repaired.
    pub fn parse(value: &Map<String, Value>) -> Result<Self, InboxFault> {
        let schema = value
            .get("schema_version")
            .and_then(Value::as_str)
            .unwrap_or("");
        if schema != CURSOR_SCHEMA && schema != CURSOR_SCHEMA_V0 {
            let is_later = schema.starts_with(CURSOR_FAMILY);
            return Err(if is_later {
                InboxFault::CursorSchemaUnsupported
            } else {
                InboxFault::CursorInvalid
            });
        }
        let cursor =
            Self::read(value, schema == CURSOR_SCHEMA_V0).ok_or(InboxFault::CursorInvalid)?;
        if cursor.holds() {
            Ok(cursor)
        } else {
            Err(InboxFault::CursorInvalid)
        }
    }

    fn read(value: &Map<String, Value>, is_old: bool) -> Option<Self> {
        let text = |name: &str| value.get(name)?.as_str();
        let flag = |name: &str| value.get(name)?.as_bool();
        let time = |name: &str| text(name).and_then(Timestamp::parse);
        let count = |name: &str| value.get(name)?.as_u64();
        let kind_text = text("window_kind")?;
        let kind = WindowKind::ALL
            .iter()
            .find(|(name, _)| *name == kind_text)?
            .1;
        let (window_start, window_end) = (time("window_start")?, time("window_end")?);
        let is_complete = flag("history_complete")?;
        let coverage_end = match is_old {
            false => time("coverage_end")?,
            true if kind == WindowKind::Earlier || is_complete => window_end,
            true => window_start,
        };
        let token = match value.get("next_page_token")? {
            Value::Null => None,
            Value::String(token) if !token.trim().is_empty() => Some(Opaque::new(token.as_str())),
            _ => return None,
        };
        Some(Self {
            route_key: RouteKey::new(text("route_key")?)?,
            source_fingerprint: text("source_fingerprint")?.to_owned(),
            kind,
            window_start,
            window_end,
            coverage_start: time("coverage_start")?,
            coverage_end,
            token,
            is_complete,
            earlier_start_used: flag("earlier_start_used")?,
            page_count: count("page_count").filter(|pages| *pages >= 1)?,
            message_count: count("message_count")?,
            last_page_digest: text("last_page_digest")
                .filter(|digest| is_hex_16(digest))?
                .to_owned(),
        })
    }

    fn holds(&self) -> bool {
        let by_kind = match self.kind {
            WindowKind::Initial => {
                let end = if self.is_complete {
                    self.window_end
                } else {
                    self.window_start
                };
                self.coverage_start == self.window_start
                    && self.coverage_end == end
                    && !self.earlier_start_used
            }
            WindowKind::Earlier => {
                let start = if self.is_complete {
                    self.window_start
                } else {
                    self.window_end
                };
                self.coverage_start == start
                    && self.coverage_end >= self.window_end
                    && self.earlier_start_used
            }
            WindowKind::Forward => {
                let end = if self.is_complete {
                    self.window_end
                } else {
                    self.window_start
                };
                self.coverage_start <= self.window_start && self.coverage_end == end
            }
        };
        self.window_start < self.window_end
            && self.coverage_start <= self.coverage_end
            && (self.kind == WindowKind::Earlier || self.coverage_end <= self.window_end)
            && self.token.is_none() == self.is_complete
            && by_kind
    }

    fn to_value(&self) -> Value {
        json!({
            "schema_version": CURSOR_SCHEMA,
            "route_key": self.route_key,
            "source_fingerprint": self.source_fingerprint,
            "window_kind": self.kind.as_str(),
            "window_start": self.window_start,
            "window_end": self.window_end,
            "coverage_start": self.coverage_start,
            "coverage_end": self.coverage_end,
            "next_page_token": self.token.as_ref().map(Opaque::as_str),
            "history_complete": self.is_complete,
            "earlier_start_used": self.earlier_start_used,
            "page_count": self.page_count,
            "message_count": self.message_count,
            "last_page_digest": self.last_page_digest,
        })
    }

    /// Returns the sorted compact text without a final line feed.
    pub fn to_text(&self) -> String {
        // Integers, texts and booleans always have a canonical form.
        canonical::compact(&self.to_value()).unwrap_or_default()
    }

    /// Returns the digest a receipt shows.
    pub fn digest(&self) -> String {
        digest::content_digest(self.to_text().as_bytes()).short(16)
    }
}

fn is_hex_16(text: &str) -> bool {
    text.len() == 16
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// What a history is bound to: any change of these refuses to go on.
#[derive(Clone, Copy, Debug)]
pub struct SourceBinding<'a> {
    pub route_key: &'a str,
    pub profile: &'a str,
    pub chat: &'a str,
    pub config: &'a str,
    pub inbox: &'a str,
    pub capture_scope: &'a str,
}

impl SourceBinding<'_> {
    /// Returns the fingerprint the cursor keeps.
    pub fn fingerprint(&self) -> String {
        let parts = [
            self.route_key,
            self.profile,
            self.chat,
            self.config,
            self.inbox,
            self.capture_scope,
        ];
        format!("sha256:{}", digest::nul_joined(&parts).short(24))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(kind: &str, complete: bool) -> Map<String, Value> {
        let (w0, w1) = ("2026-08-01T00:00:00Z", "2026-08-02T00:00:00Z");
        let (c0, c1) = match (kind, complete) {
            ("earlier", true) => (w0, "2026-08-03T00:00:00Z"),
            ("earlier", false) => (w1, "2026-08-03T00:00:00Z"),
            (_, true) => (w0, w1),
            (_, false) => (w0, w0),
        };
        let value = json!({"schema_version": CURSOR_SCHEMA, "route_key": "a", "source_fingerprint": "sha256:x", "window_kind": kind,
            "window_start": w0, "window_end": w1, "coverage_start": c0, "coverage_end": c1,
            "next_page_token": if complete { Value::Null } else { json!("t") }, "history_complete": complete,
            "earlier_start_used": kind == "earlier", "page_count": 1, "message_count": 0, "last_page_digest": "0123456789abcdef"});
        value.as_object().expect("object").clone()
    }

    #[test]
    fn every_kind_reads_back_as_its_own_text() {
        for kind in ["initial", "earlier", "forward"] {
            for complete in [true, false] {
                let read = HistoryCursor::parse(&cursor(kind, complete)).expect("sound");
                let again = json::parse_object(read.to_text().as_bytes()).expect("json");
                assert_eq!(HistoryCursor::parse(&again), Ok(read), "{kind} {complete}");
            }
        }
    }
    use crate::contract::json;

    #[test]
    fn broken_invariants_are_refused() {
        let cases: [(&str, Value); 7] = [
            ("window_end", json!("2026-08-01T00:00:00Z")),
            ("coverage_end", json!("2026-08-01T12:00:00Z")),
            ("next_page_token", json!("t")),
            ("earlier_start_used", json!(true)),
            ("page_count", json!(0)),
            ("window_start", json!("2026-08-01")),
            ("last_page_digest", json!("x")),
        ];
        for (name, value) in cases {
            let mut broken = cursor("initial", true);
            broken.insert(name.to_owned(), value);
            assert_eq!(
                HistoryCursor::parse(&broken),
                Err(InboxFault::CursorInvalid),
                "{name}"
            );
        }
        let mut later = cursor("initial", true);
        later.insert(
            "schema_version".into(),
            json!("lark_group_history_cursor_v2"),
        );
        assert_eq!(
            HistoryCursor::parse(&later),
            Err(InboxFault::CursorSchemaUnsupported)
        );
    }

    #[test]
    fn an_old_cursor_never_covers_more_than_it_read() {
        for (complete, end) in [
            (true, "2026-08-02T00:00:00Z"),
            (false, "2026-08-01T00:00:00Z"),
        ] {
            let mut old = cursor("initial", complete);
            old.insert("schema_version".into(), json!(CURSOR_SCHEMA_V0));
            old.remove("coverage_end");
            assert_eq!(
                HistoryCursor::parse(&old)
                    .expect("migrated")
                    .coverage_end
                    .to_string(),
                end
            );
        }
    }
}
