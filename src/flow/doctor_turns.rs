//! The Turns `doctor` looks at: those that are not finished must be able to go on.

use super::open;
use super::ports::Ports;
use super::turn::health;
use crate::contract::goal::Goal;
use crate::contract::ids::{GoalId, TurnKey};
use crate::contract::maintenance::Finding;
use crate::contract::packet::Refusal;

/// Looks at the Turns of these goals; the first that cannot go on is named.
pub fn finding<'a>(ports: &Ports, goals: impl Iterator<Item = &'a Goal>) -> Finding {
    let mut stuck = goals.filter_map(|goal| Some((&goal.id, stuck(ports, &goal.id)?)));
    match stuck.next() {
        None => Finding::ok("turns"),
        Some((goal, (key, refusal))) => Finding::failed(
            "turns",
            refusal.code,
            format!("{}; it is the Turn {key} of goal {goal}", refusal.message),
        ),
    }
}

/// A goal or a store that cannot be read is a finding of its own.
fn stuck(ports: &Ports, goal: &GoalId) -> Option<(TurnKey, Refusal)> {
    let place = open::goal(ports, goal).ok()?;
    let reader = place.reader().ok()??;
    health::stuck(&place, reader.rows()).ok()?
}
