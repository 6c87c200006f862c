//! How often a person is reminded of an open gate while the host cannot slow itself down (docs/spec/kernel.md 6.5).
//!
//! A suppressed reminder leaves the gate open and the truth in the packet; only the notification waits.

use serde_json::{Value, json};

use crate::contract::goal::Goal;
use crate::contract::time::Timestamp;

/// The cooldown of one decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cooldown {
    cycle_minutes: i64,
    window_minutes: i64,
    failed_at: Option<Timestamp>,
    next_reminder: Option<Timestamp>,
    is_active: bool,
    is_due: bool,
}

impl Cooldown {
    /// Reads the host's cadence from the goal entry; absent or unreadable is inactive.
    pub fn of(goal: &Goal, now: Timestamp) -> Self {
        let inactive = Self {
            cycle_minutes: 0,
            window_minutes: 0,
            failed_at: None,
            next_reminder: None,
            is_active: false,
            is_due: false,
        };
        let Some(cadence) = goal.control("host_cadence") else {
            return inactive;
        };
        let number = |name: &str| {
            cadence
                .get(name)
                .and_then(Value::as_i64)
                .filter(|minutes| *minutes > 0)
        };
        let failed_at = cadence
            .get("last_update_failed_at")
            .and_then(Value::as_str)
            .and_then(Timestamp::parse);
        let is_gate = cadence.get("cadence_class").and_then(Value::as_str) == Some("human_gate");
        let numbers = (
            number("target_minutes"),
            number("poll_minutes"),
            number("cooldown_minutes"),
            number("reminder_window_minutes"),
        );
        let (Some(target), Some(poll), Some(cycle), Some(window)) = numbers else {
            return inactive;
        };
        let Some(failed_at) =
            failed_at.filter(|failed_at| *failed_at <= now && is_gate && poll < target)
        else {
            return inactive;
        };
        let elapsed = now.seconds_since(failed_at);
        let cycle_seconds = cycle.saturating_mul(60);
        let round = elapsed / cycle_seconds;
        let is_due = round >= 1 && elapsed % cycle_seconds < window.saturating_mul(60);
        let next = failed_at.plus_seconds(cycle_seconds.saturating_mul(round + i64::from(!is_due)));
        Self {
            cycle_minutes: cycle,
            window_minutes: window,
            failed_at: Some(failed_at),
            next_reminder: next,
            is_active: true,
            is_due,
        }
    }

    /// True when the person is not to be notified now.
    pub fn is_suppressed(&self) -> bool {
        self.is_active && !self.is_due
    }

    /// The packet.
    pub fn to_value(self) -> Value {
        let reason = match (self.is_active, self.is_due) {
            (false, _) => "inactive",
            (true, true) => "reminder_window_open",
            (true, false) => "inside_cooldown",
        };
        json!({
            "schema_version": "user_gate_notification_cooldown_v0",
            "active": self.is_active,
            "notification_due": self.is_active && self.is_due,
            "notification_suppressed": self.is_suppressed(),
            "policy": "failed_host_update_bounded_reminder_window",
            "cooldown_minutes": self.is_active.then_some(self.cycle_minutes),
            "reminder_window_minutes": self.is_active.then_some(self.window_minutes),
            "failed_at": self.failed_at,
            "next_reminder_at": self.next_reminder,
            "reason": reason,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::parse::Label;

    fn cooldown(now: &str) -> Cooldown {
        let entry = json!({"id": "g", "control_plane": {"host_cadence": {"cadence_class": "human_gate", "target_minutes": 60, "poll_minutes": 5,
            "last_update_failed_at": "2026-01-01T00:00:00Z", "cooldown_minutes": 60, "reminder_window_minutes": 10}}});
        Cooldown::of(
            &Goal::parse(&Label::root(), &entry).unwrap(),
            Timestamp::parse(now).unwrap(),
        )
    }

    #[test]
    fn a_reminder_is_due_only_in_the_first_minutes_of_each_later_cycle() {
        assert!(cooldown("2026-01-01T00:05:00Z").is_suppressed());
        assert!(!cooldown("2026-01-01T01:09:59Z").is_suppressed());
        assert!(cooldown("2026-01-01T01:10:00Z").is_suppressed());
        assert!(!cooldown("2026-01-01T02:00:00Z").is_suppressed());
    }
}
