//! What a consumer says on standard error, line by line, and what its end means (`docs/spec/lark-cli.md` 6).
//!
//! The text may hold connection credentials: it is classified and forgotten.

use super::failure::ErrorObject;
use crate::contract::inbox::stream::{ConsumerEnd, EndReason, SourceState, StreamCode};
use crate::process::Ending;

/// How much of an error object is kept.
const MAX_DIAGNOSTIC: usize = 64 << 10;
/// The code of a wrong brand.
const BRAND_CODE: i64 = 1_000_040_351;

/// What one line of standard error says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Ready,
    Source(SourceState),
    Warning,
}

/// The lines of one consumer, as far as its end needs them.
#[derive(Debug, Default)]
pub(super) struct Diagnostics {
    was_ready: bool,
    is_consuming: bool,
    remote_connections: u64,
    reason: Option<EndReason>,
    rest: String,
}

impl Diagnostics {
    pub(super) fn line(&mut self, line: &str) -> Option<Said> {
        if line.starts_with("[event] ready ") {
            self.was_ready = true;
            return Some(Said::Ready);
        }
        if let Some(event) = line.strip_prefix("[event] ") {
            self.event_line(event);
            return None;
        }
        if let Some(source) = line.strip_prefix("[source] ") {
            return source_state(source).map(Said::Source);
        }
        if line.starts_with("WARN: ") {
            return Some(Said::Warning);
        }
        if self.rest.len() < MAX_DIAGNOSTIC {
            self.rest.push_str(line);
            self.rest.push('\n');
        }
        None
    }

    fn event_line(&mut self, event: &str) {
        self.is_consuming |= event.starts_with("consuming");
        if let Some((_, count)) = event.split_once("online_instance_cnt=") {
            let digits: String = count.chars().take_while(char::is_ascii_digit).collect();
            self.remote_connections = digits.parse().unwrap_or(0);
        }
        if event.starts_with("exited")
            && let Some((_, reason)) = event.rsplit_once("(reason: ")
        {
            self.reason = Some(match reason.trim_end().trim_end_matches(')') {
                "limit" | "timeout" => EndReason::Planned,
                _ => EndReason::Other,
            });
        }
    }

    pub(super) fn end(&self, ending: Ending) -> ConsumerEnd {
        ConsumerEnd {
            exit: match ending {
                Ending::Exit(code) => Some(code),
                Ending::Signal(_) => None,
            },
            reason: self.reason,
            refusal: self.refusal(),
        }
    }

    /// Tells whether a consumer ended because its command line was not understood.
    pub(super) fn is_not_understood(&self, ending: Ending) -> bool {
        ending == Ending::Exit(2)
            && !self.was_ready
            && !self.is_consuming
            && self.refusal() == StreamCode::StreamNotReady
    }

    /// What the error object of a consumer that never was ready means; free text never decides.
    fn refusal(&self) -> StreamCode {
        let error = ErrorObject::find("", &self.rest).unwrap_or_default();
        match (error.class.as_str(), error.subtype.as_str(), error.code) {
            (_, _, Some(BRAND_CODE)) => StreamCode::BrandMismatch,
            ("authorization", _, _) => StreamCode::PermissionRequired,
            ("validation", "failed_precondition", _) if self.remote_connections > 0 => {
                StreamCode::RemoteConnectionActive
            }
            // The refusals are alike: how far the start came tells them apart.
            ("validation", "failed_precondition", _) if !self.is_consuming => {
                StreamCode::SubscriptionMissing
            }
            ("validation", "failed_precondition", _) => StreamCode::ConsumerExists,
            _ => StreamCode::StreamNotReady,
        }
    }
}

fn source_state(line: &str) -> Option<SourceState> {
    let (_, state) = line.split_once(": ")?;
    match state {
        state if state.starts_with("connected") => Some(SourceState::Connected),
        state if state.starts_with("disconnected") || state.starts_with("reconnecting") => {
            Some(SourceState::Lost)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(lines: &[&str]) -> ConsumerEnd {
        let mut reader = Diagnostics::default();
        for line in lines {
            reader.line(line);
        }
        reader.end(Ending::Exit(2))
    }

    const PRECONDITION: &str = r#"{"ok":false,"error":{"type":"validation","subtype":"failed_precondition","message":"<message>"}}"#;

    #[test]
    fn refusals_that_look_alike_are_told_apart_by_the_lines_before() {
        assert_eq!(
            ended(&[PRECONDITION]).refusal,
            StreamCode::SubscriptionMissing
        );
        let consuming = "[event] consuming as x (y)";
        assert_eq!(
            ended(&[consuming, PRECONDITION]).refusal,
            StreamCode::ConsumerExists
        );
        let remote = "[event] remote connection check: online_instance_cnt=2";
        assert_eq!(
            ended(&[consuming, remote, PRECONDITION]).refusal,
            StreamCode::RemoteConnectionActive
        );
        let scope = r#"{"ok":false,"error":{"type":"authorization","subtype":"missing_scope"}}"#;
        assert_eq!(ended(&[scope]).refusal, StreamCode::PermissionRequired);
        assert_eq!(ended(&["anything"]).refusal, StreamCode::StreamNotReady);
    }

    #[test]
    fn only_the_asked_ends_are_planned() {
        let exit = |reason: &str| {
            format!("[event] exited \u{2014} received 2 event(s) in 5s (reason: {reason})")
        };
        for (reason, expected) in [
            ("limit", EndReason::Planned),
            ("timeout", EndReason::Planned),
            ("signal", EndReason::Other),
        ] {
            assert_eq!(ended(&[&exit(reason)]).reason, Some(expected), "{reason}");
        }
        assert_eq!(ended(&[]).reason, None);
    }

    #[test]
    fn source_lines_say_lost_or_connected() {
        for (line, state) in [
            ("feishu-websocket: disconnected", Some(SourceState::Lost)),
            (
                "feishu-websocket: reconnecting (attempt 3)",
                Some(SourceState::Lost),
            ),
            ("feishu-websocket: connected", Some(SourceState::Connected)),
            ("feishu-websocket: other", None),
        ] {
            assert_eq!(source_state(line), state, "{line}");
        }
    }
}
