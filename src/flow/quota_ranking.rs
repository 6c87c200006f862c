//! `quota status|plan` over all goals of a registry.

use serde_json::{Value, json};

use super::open::Answer;
use super::ports::Ports;
use super::quota::registry_refusal;
use super::quota_spend::open_goal;
use super::snapshot;
use crate::contract::goal::{Goal, GoalStatus};
use crate::kernel::quota::policy::{self, QuotaState, Ranked};
use crate::kernel::quota::snapshot::Spent;
use crate::store::document::registry::Registry;
use crate::store::state::{Reader, Store};

/// Ranks goals by what they need: first those a person has to look at.
pub fn ranking(ports: &Ports, mode: &str, with_archived: bool) -> Answer {
    let registry = Registry::read(ports.workspace.registry()).map_err(registry_refusal)?;
    let mut rows = Vec::new();
    let store = Store::at(&ports.workspace.runtime_root(registry.common_runtime_root()));
    let reader = store.read()?;
    for entry in registry.goals().map_err(registry_refusal)? {
        let (goal, spent) = match registry.source_of(&entry) {
            None => (entry.clone(), spent(ports, reader.as_ref(), &entry)?),
            // An entry that points elsewhere says nothing itself: configuration and store are those of its own registry.
            Some(_) => {
                let place = open_goal(ports, &entry.id)?;
                let spent = spent(ports, place.reader()?.as_ref(), &place.goal)?;
                (place.goal, spent)
            }
        };
        if goal.status == GoalStatus::Archived && !with_archived {
            continue;
        }
        let state = policy::state(&goal, spent);
        rows.push((goal, spent, state));
    }
    rows.sort_by(policy::by_need);
    let goals: Vec<Value> = rows.iter().enumerate().map(ranked).collect();
    Ok(json!({
        "ok": true, "schema_version": "loopx_quota_ranking_v0", "mode": mode, "goals": goals, "registry_revision": registry.revision(),
    }))
}

fn spent(ports: &Ports, reader: Option<&Reader>, goal: &Goal) -> Answer<Spent> {
    let Some(reader) = reader else {
        return Ok(Spent::default());
    };
    Ok(snapshot::spent(reader.rows(), goal, ports.now)?)
}

fn ranked((index, (goal, spent, state)): (usize, &Ranked)) -> Value {
    let mut row = json!({
        "rank": index + 1, "goal_id": goal.id, "title": goal.text("title"), "state": state.as_str(),
        "waiting_on": goal.text("waiting_on"), "quota": policy::packet(goal, *spent, *state),
    });
    if let QuotaState::Paused(cause) = state {
        row["pause_cause"] = json!(cause);
    }
    row
}
