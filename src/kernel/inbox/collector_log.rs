//! What of a change of state is worth a line in the collector's log.

use crate::contract::inbox::collector_log::{LogEvent, LogLine};
use crate::contract::inbox::stream::StreamCode;
use crate::contract::time::Timestamp;

/// What the log looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub running: bool,
    pub ready: bool,
    pub healthy: bool,
    pub code: Option<StreamCode>,
    pub losses: u32,
    pub captured: u64,
    pub rejected_callbacks: u64,
    pub damaged: usize,
}

/// The lines of a change; the first state of a run starts with `started`.
pub fn news(before: Option<&Seen>, after: &Seen, at: Timestamp) -> Vec<LogLine> {
    let line = |(event, code, count)| LogLine {
        at,
        event,
        code,
        count,
    };
    changes(before, after).into_iter().map(line).collect()
}

type Change = (LogEvent, Option<StreamCode>, Option<u64>);

fn changes(before: Option<&Seen>, after: &Seen) -> Vec<Change> {
    let was = before.copied().unwrap_or(Seen {
        healthy: after.healthy,
        ..Seen::default()
    });
    let more = |now: u64, before: u64| (now > before).then(|| now - before);
    let captured = more(after.captured, was.captured);
    let rejected = more(after.rejected_callbacks, was.rejected_callbacks);
    let readiness = match after.ready {
        true => LogEvent::Ready,
        false => LogEvent::NotReady,
    };
    let damage = match after.damaged > was.damaged {
        true => LogEvent::RouteDamaged,
        false => LogEvent::RouteRepaired,
    };
    let candidates = [
        (before.is_none(), (LogEvent::Started, None, None)),
        (captured.is_some(), (LogEvent::Captured, None, captured)),
        (
            after.losses > was.losses,
            (
                LogEvent::SourceLost,
                after.code,
                Some(u64::from(after.losses)),
            ),
        ),
        (
            after.ready != was.ready && after.running,
            (readiness, None, None),
        ),
        (
            after.healthy && !was.healthy,
            (LogEvent::SourceHealthy, None, None),
        ),
        (
            rejected.is_some(),
            (LogEvent::CallbackRejected, None, rejected),
        ),
        (
            after.damaged != was.damaged,
            (damage, None, Some(after.damaged as u64)),
        ),
        (!after.running, (LogEvent::Stopped, after.code, None)),
    ];
    let said = candidates.into_iter().filter(|(is_said, _)| *is_said);
    said.map(|(_, change)| change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(before: Option<&Seen>, after: &Seen) -> Vec<&'static str> {
        let at = Timestamp::from_unix(1_789_000_000).expect("an instant");
        let lines = news(before, after, at);
        lines.iter().map(|line| line.event.as_str()).collect()
    }

    #[test]
    fn a_run_is_told_from_its_start_to_its_end() {
        let starting = Seen {
            running: true,
            healthy: true,
            ..Seen::default()
        };
        assert_eq!(events(None, &starting), ["started"]);
        let ready = Seen {
            ready: true,
            ..starting
        };
        assert_eq!(events(Some(&starting), &ready), ["ready"]);
        assert_eq!(events(Some(&ready), &ready), [""; 0]);
        let lost = Seen {
            ready: false,
            healthy: false,
            losses: 1,
            code: Some(StreamCode::SourceDisconnected),
            ..ready
        };
        assert_eq!(events(Some(&ready), &lost), ["source_lost", "not_ready"]);
        let back = Seen {
            captured: 3,
            ready: true,
            healthy: true,
            code: None,
            ..lost
        };
        assert_eq!(
            events(Some(&lost), &back),
            ["captured", "ready", "source_healthy"]
        );
        let over = Seen {
            running: false,
            ready: false,
            ..back
        };
        assert_eq!(events(Some(&back), &over), ["stopped"]);
    }

    #[test]
    fn a_loss_that_an_earlier_run_left_is_not_told_as_healed() {
        let starting = Seen {
            running: true,
            code: Some(StreamCode::SourceDisconnected),
            ..Seen::default()
        };
        assert_eq!(events(None, &starting), ["started"]);
    }
}
