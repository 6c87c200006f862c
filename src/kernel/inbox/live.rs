//! How a live stream is judged and when it is tried again, `docs/spec/lark-inbox.md` 8.4.
//!
//! Exit code 0 alone proves nothing: only the asked time or number, and our own stop, are planned ends.

use std::time::Duration;

use crate::contract::inbox::stream::{ConsumerEnd, EndReason, StreamCode, StreamStatus};

/// The most consecutive losses that are retried.
pub const RETRY_BUDGET: u32 = 8;
/// How long a lost connection may take to come back by itself.
pub const OUTAGE_SECONDS: u64 = 45;
/// How long readiness must last to count losses anew.
pub const STEADY: Duration = Duration::from_secs(60);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// What was known of a consumer when it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Circumstances {
    pub was_ready: bool,
    pub we_stopped_it: bool,
    pub configuration_gone: bool,
    pub in_outage: bool,
}

/// A judged end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    pub status: StreamStatus,
    /// Present for a loss.
    pub loss: Option<StreamCode>,
}

/// Judges the end of one consumer; the first matching rule counts.
pub fn judge(end: &ConsumerEnd, circumstances: Circumstances) -> Judged {
    let healthy = |status| Judged { status, loss: None };
    if circumstances.we_stopped_it {
        return healthy(StreamStatus::Stopped);
    }
    if circumstances.configuration_gone {
        return healthy(StreamStatus::ConfigurationRemoved);
    }
    if !circumstances.was_ready {
        return Judged {
            status: StreamStatus::StreamNotReady,
            loss: Some(end.refusal),
        };
    }
    if end.exit == Some(0) && end.reason == Some(EndReason::Planned) {
        let loss = circumstances
            .in_outage
            .then_some(StreamCode::SourceDisconnected);
        return Judged {
            status: StreamStatus::StreamEnded,
            loss,
        };
    }
    Judged {
        status: StreamStatus::SourceDisconnected,
        loss: Some(StreamCode::SourceDisconnected),
    }
}

/// The pause before the next try: half fixed, half spread, growing with consecutive losses. `spread` lies in 0..=1000.
pub fn pause(losses: u32, status: StreamStatus, spread: u32) -> Duration {
    let base = if status == StreamStatus::StreamNotReady {
        5
    } else {
        1
    };
    let doublings = losses.saturating_sub(1).min(6);
    let whole = Duration::from_secs(base << doublings).min(MAX_PAUSE);
    whole / 2 + whole / 2 * spread.min(1000) / 1000
}

/// When a successor of a consumer starts: a minute before its end, or a tenth of a short one.
pub fn rollover_lead(timeout: Duration) -> Duration {
    match timeout < Duration::from_secs(600) {
        true => timeout / 10,
        false => Duration::from_secs(60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(exit: i32, reason: Option<EndReason>) -> ConsumerEnd {
        ConsumerEnd {
            exit: Some(exit),
            reason,
            refusal: StreamCode::StreamNotReady,
        }
    }

    #[test]
    fn only_asked_ends_and_our_own_stop_are_planned() {
        let ready = Circumstances {
            was_ready: true,
            ..Circumstances::default()
        };
        let cases = [
            (
                end(0, Some(EndReason::Other)),
                ready,
                StreamStatus::SourceDisconnected,
                true,
            ),
            (end(0, None), ready, StreamStatus::SourceDisconnected, true),
            (
                end(1, Some(EndReason::Planned)),
                ready,
                StreamStatus::SourceDisconnected,
                true,
            ),
            (
                end(0, Some(EndReason::Planned)),
                Circumstances::default(),
                StreamStatus::StreamNotReady,
                true,
            ),
            (
                end(0, Some(EndReason::Planned)),
                ready,
                StreamStatus::StreamEnded,
                false,
            ),
            (
                end(0, Some(EndReason::Planned)),
                Circumstances {
                    in_outage: true,
                    ..ready
                },
                StreamStatus::StreamEnded,
                true,
            ),
            (
                end(0, Some(EndReason::Other)),
                Circumstances {
                    we_stopped_it: true,
                    ..ready
                },
                StreamStatus::Stopped,
                false,
            ),
            (
                end(0, None),
                Circumstances {
                    configuration_gone: true,
                    ..ready
                },
                StreamStatus::ConfigurationRemoved,
                false,
            ),
        ];
        for (end, circumstances, status, is_loss) in cases {
            let judged = judge(&end, circumstances);
            assert_eq!(
                (judged.status, judged.loss.is_some()),
                (status, is_loss),
                "{end:?}"
            );
        }
    }

    #[test]
    fn pauses_double_up_to_a_minute_and_keep_half_of_it_fixed() {
        let seconds = |losses, status, spread| pause(losses, status, spread).as_secs_f64();
        assert_eq!(seconds(1, StreamStatus::SourceDisconnected, 0), 0.5);
        assert_eq!(seconds(1, StreamStatus::SourceDisconnected, 1000), 1.0);
        assert_eq!(seconds(4, StreamStatus::SourceDisconnected, 1000), 8.0);
        assert_eq!(seconds(1, StreamStatus::StreamNotReady, 0), 2.5);
        assert_eq!(seconds(40, StreamStatus::StreamNotReady, 1000), 60.0);
    }

    #[test]
    fn a_successor_starts_a_minute_or_a_tenth_before_the_end() {
        assert_eq!(
            rollover_lead(Duration::from_secs(1800)),
            Duration::from_secs(60)
        );
        assert_eq!(
            rollover_lead(Duration::from_secs(8)),
            Duration::from_millis(800)
        );
    }
}
