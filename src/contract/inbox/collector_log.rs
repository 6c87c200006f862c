//! One line of a collector's own log: an instant, what happened, a code, a number. It cannot hold an id, a path or a word of anybody.

use serde_json::{Value, json};

use super::stream::StreamCode;
use crate::contract::json as strict;
use crate::contract::time::Timestamp;

/// The schema of a line.
pub const LOG_LINE: &str = "lark_event_collector_log_line_v0";

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEvent {
    Started,
    Ready,
    NotReady,
    SourceLost,
    SourceHealthy,
    Captured,
    CallbackRejected,
    RouteDamaged,
    RouteRepaired,
    Stopped,
}

impl LogEvent {
    const ALL: [(&'static str, Self); 10] = [
        ("started", Self::Started),
        ("ready", Self::Ready),
        ("not_ready", Self::NotReady),
        ("source_lost", Self::SourceLost),
        ("source_healthy", Self::SourceHealthy),
        ("captured", Self::Captured),
        ("callback_rejected", Self::CallbackRejected),
        ("route_damaged", Self::RouteDamaged),
        ("route_repaired", Self::RouteRepaired),
        ("stopped", Self::Stopped),
    ];

    /// Returns the word of the line.
    pub fn as_str(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, event)| *event == self);
        found.map_or("", |(name, _)| name)
    }
}

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLine {
    pub at: Timestamp,
    pub event: LogEvent,
    pub code: Option<StreamCode>,
    /// How many, where that says something.
    pub count: Option<u64>,
}

impl LogLine {
    /// Returns the object of the line.
    pub fn to_value(&self) -> Value {
        json!({"schema_version": LOG_LINE, "at": self.at, "event": self.event.as_str(), "error_code": self.code, "count": self.count})
    }

    /// Reads a line; anything else than what a collector writes is none and is shown nowhere.
    pub fn parse(text: &str) -> Option<Self> {
        let body = strict::parse_object(text.as_bytes()).ok()?;
        let word = |name: &str| body.get(name)?.as_str();
        if word("schema_version") != Some(LOG_LINE) || body.len() != 5 {
            return None;
        }
        let name = word("event")?;
        let code = match body.get("error_code")? {
            Value::Null => None,
            code => Some(StreamCode::named(code.as_str()?)?),
        };
        let count = match body.get("count")? {
            Value::Null => None,
            count => Some(count.as_u64()?),
        };
        Some(Self {
            at: word("at").and_then(Timestamp::parse)?,
            event: LogEvent::ALL.iter().find(|(known, _)| *known == name)?.1,
            code,
            count,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_back_and_nothing_else_does() {
        let line = LogLine {
            at: Timestamp::from_unix(1_789_000_000).expect("an instant"),
            event: LogEvent::SourceLost,
            code: Some(StreamCode::SourceDisconnected),
            count: Some(2),
        };
        let text = line.to_value().to_string();
        assert_eq!(LogLine::parse(&text), Some(line));
        for other in [
            text.replace("source_lost", "oc_private"),
            text.replace("lark_event_source_disconnected", "ticket=1"),
            text.replacen('{', "{\"body\":\"words\",", 1),
            "words".to_owned(),
        ] {
            assert_eq!(LogLine::parse(&other), None, "{other}");
        }
    }
}
