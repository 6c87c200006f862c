//! The quota state of a goal: may it spend at all (docs/spec/kernel.md 6.2).

use std::cmp::Ordering;

use serde_json::{Map, Value, json};

use super::snapshot::Spent;
use crate::contract::goal::{Goal, GoalStatus, WaitingOn};

/// The quota state, in the order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaState {
    /// Nothing may happen; the word says why.
    Paused(&'static str),
    /// Health blocks it.
    BlockedHealth,
    /// A person has to decide.
    OperatorGate,
    /// It waits for something outside.
    Waiting,
    /// Its focus is kept elsewhere.
    FocusWait,
    /// The window is used up.
    Throttled,
    /// It may work.
    Eligible,
}

impl QuotaState {
    /// The word of a packet.
    pub const fn as_str(self) -> &'static str {
        match self {
            QuotaState::Paused(_) => "paused",
            QuotaState::BlockedHealth => "blocked_health",
            QuotaState::OperatorGate => "operator_gate",
            QuotaState::Waiting => "waiting",
            QuotaState::FocusWait => "focus_wait",
            QuotaState::Throttled => "throttled",
            QuotaState::Eligible => "eligible",
        }
    }

    /// The place in a ranking of goals: what needs a person first.
    pub const fn rank(self) -> u8 {
        match self {
            QuotaState::BlockedHealth => 0,
            QuotaState::OperatorGate => 1,
            QuotaState::FocusWait => 2,
            QuotaState::Eligible => 3,
            QuotaState::Waiting => 4,
            QuotaState::Throttled => 5,
            QuotaState::Paused(_) => 6,
        }
    }
}

/// Why a goal is paused, if it is.
pub fn pause_cause(goal: &Goal) -> Option<&'static str> {
    match goal.status {
        GoalStatus::Stopped => Some("goal_stopped"),
        GoalStatus::Paused => Some("goal_paused"),
        GoalStatus::Archived => Some("goal_archived"),
        GoalStatus::Active if goal.quota.compute() <= 0.0 => Some("compute_quota_zero"),
        GoalStatus::Active => None,
    }
}

/// The quota state; the first match counts.
pub fn state(goal: &Goal, spent: Spent) -> QuotaState {
    if let Some(cause) = pause_cause(goal) {
        return QuotaState::Paused(cause);
    }
    if goal.severity_high {
        return QuotaState::BlockedHealth;
    }
    match goal.waiting_on {
        WaitingOn::UserOrController | WaitingOn::Controller => QuotaState::OperatorGate,
        WaitingOn::ExternalEvidence | WaitingOn::Unnamed => QuotaState::Waiting,
        WaitingOn::Codex if goal.has_focus_marker() => QuotaState::FocusWait,
        WaitingOn::Codex if is_full(goal, spent, 0) => QuotaState::Throttled,
        WaitingOn::Codex => QuotaState::Eligible,
    }
}

/// True when spending `more` slots beyond what is spent finds none left.
pub fn is_full(goal: &Goal, spent: Spent, more: i64) -> bool {
    let allowed = i64::try_from(goal.quota.allowed_slots()).unwrap_or(i64::MAX);
    if more == 0 {
        spent.slots >= allowed
    } else {
        spent.slots.saturating_add(more) > allowed
    }
}

/// True when one more slot may be spent: the goal is not paused and its cap leaves room.
pub fn may_spend(goal: &Goal, spent: Spent) -> bool {
    pause_cause(goal).is_none() && !is_full(goal, spent, 1)
}

/// One goal as a ranking compares it.
pub type Ranked = (Goal, Spent, QuotaState);

/// The order of a ranking: what a person has to look at, then the larger share, then the less spent.
pub fn by_need(left: &Ranked, right: &Ranked) -> Ordering {
    let by_compute = right.0.quota.compute().total_cmp(&left.0.quota.compute());
    let by_spent = left.1.slots.cmp(&right.1.slots);
    left.2
        .rank()
        .cmp(&right.2.rank())
        .then(by_compute)
        .then(by_spent)
        .then_with(|| left.0.id.cmp(&right.0.id))
}

/// The `quota` member of a packet.
pub fn packet(goal: &Goal, spent: Spent, state: QuotaState) -> Value {
    let mut map = Map::new();
    let is_paused = matches!(state, QuotaState::Paused(_));
    for (name, value) in goal.quota.numbers() {
        if is_paused && name == "compute" {
            map.insert("compute".to_owned(), json!(0));
            map.insert("configured_compute".to_owned(), value);
        } else {
            map.insert(name.to_owned(), value);
        }
    }
    let allowed = goal.quota.allowed_slots();
    if is_paused {
        map.insert("allowed_slots".to_owned(), json!(0));
        map.insert("configured_allowed_slots".to_owned(), json!(allowed));
    } else {
        map.insert("allowed_slots".to_owned(), json!(allowed));
    }
    map.insert("spent_slots".to_owned(), json!(spent.slots));
    map.insert("spend_source".to_owned(), json!("runtime_events"));
    map.insert("spend_event_count".to_owned(), json!(spent.spends));
    map.insert("void_event_count".to_owned(), json!(spent.voids));
    map.insert("state".to_owned(), json!(state.as_str()));
    map.insert("reason".to_owned(), json!(reason(state)));
    Value::Object(map)
}

fn reason(state: QuotaState) -> &'static str {
    match state {
        QuotaState::Paused("compute_quota_zero") => {
            "the compute share is zero; `loopx configure-goal --quota-compute` sets one"
        }
        QuotaState::Paused("goal_stopped") => {
            "the goal is stopped; `loopx goal-lifecycle --operation resume` brings it back"
        }
        QuotaState::Paused("goal_archived") => {
            "the goal is archived; `loopx goal-lifecycle --operation resume` brings it back"
        }
        QuotaState::Paused(_) => {
            "the goal is paused; `loopx goal-lifecycle --operation resume` brings it back"
        }
        QuotaState::BlockedHealth => "the goal's health is marked high severity",
        QuotaState::OperatorGate => "the goal waits for a person's decision",
        QuotaState::Waiting => "the goal waits for something outside",
        QuotaState::FocusWait => "the goal's focus is kept elsewhere",
        QuotaState::Throttled => "every slot of the window is spent",
        QuotaState::Eligible => "slots are free",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::parse::Label;

    fn state_of(entry: Value, slots: i64) -> QuotaState {
        let goal = Goal::parse(&Label::root(), &entry).unwrap();
        state(
            &goal,
            Spent {
                slots,
                ..Spent::default()
            },
        )
    }

    #[test]
    fn a_cap_of_zero_is_real_and_a_share_of_zero_comes_first() {
        let goal = |compute: i64, allowed: i64| json!({"id": "g", "waiting_on": "codex", "quota": {"compute": compute, "allowed_slots": allowed}});
        assert_eq!(state_of(goal(1, 0), 0), QuotaState::Throttled);
        assert_eq!(state_of(goal(1, 1), 0), QuotaState::Eligible);
        assert_eq!(state_of(goal(1, 1), 1), QuotaState::Throttled);
        assert_eq!(
            state_of(goal(0, 5), 0),
            QuotaState::Paused("compute_quota_zero")
        );
    }

    #[test]
    fn precedence_goes_from_lifecycle_to_health_to_waiting() {
        let entry =
            json!({"id": "g", "status": "stopped", "severity": "high", "waiting_on": "controller"});
        assert_eq!(state_of(entry, 0), QuotaState::Paused("goal_stopped"));
        assert_eq!(
            state_of(
                json!({"id": "g", "severity": "high", "waiting_on": "controller"}),
                0
            ),
            QuotaState::BlockedHealth
        );
        assert_eq!(
            state_of(json!({"id": "g", "waiting_on": "controller"}), 0),
            QuotaState::OperatorGate
        );
        assert_eq!(
            state_of(
                json!({"id": "g", "waiting_on": "codex", "lifecycle_flags": ["focus_wait"]}),
                0
            ),
            QuotaState::FocusWait
        );
        assert_eq!(state_of(json!({"id": "g"}), 0), QuotaState::Waiting);
    }
}
