//! The rows of one goal, read once and handed to its source.

use crate::contract::goal::GoalStatus;
use crate::contract::ids::{AgentId, GoalId};
use crate::contract::time::{Timestamp, Window};
use crate::contract::todo::Role;
use crate::flow::Ports;
use crate::flow::open::{self, Place};
use crate::kernel::periodic_report::goal_facts::{self, GoalRows};
use crate::port::source::GoalReading;
use crate::store::StoreError;
use crate::store::state::Reader;

/// A goal as a report finds it.
pub(super) enum Journal {
    /// The goal, with its rows when there are any.
    Open {
        place: Box<Place>,
        reader: Option<Reader>,
    },
    /// The registry does not know it.
    NotFound,
    /// Registry or store could not be read.
    Unreadable,
}

impl Journal {
    /// Opens a goal for reading.
    pub(super) fn open(ports: &Ports, goal: &GoalId) -> Self {
        let place = match open::find(ports, goal) {
            Ok(Some(place)) => place,
            Ok(None) => return Self::NotFound,
            Err(_) => return Self::Unreadable,
        };
        match place.reader() {
            Ok(reader) => Self::Open {
                place: Box::new(place),
                reader,
            },
            Err(_) => Self::Unreadable,
        }
    }

    /// Returns the title of the goal.
    pub(super) fn title(&self) -> Option<&str> {
        match self {
            Self::Open { place, .. } => place.goal.text("title"),
            _ => None,
        }
    }

    /// Returns when its newest todo was completed, not later than an instant.
    pub(super) fn newest(&self, not_after: Timestamp) -> Option<Timestamp> {
        let Self::Open {
            place,
            reader: Some(reader),
        } = self
        else {
            return None;
        };
        newest(place, reader, not_after).ok().flatten()
    }

    /// Reads what the goal says about a period.
    pub(super) fn read(
        &self,
        window: &Window,
        agent: Option<&AgentId>,
        now: Timestamp,
    ) -> GoalReading {
        let rows = match self {
            Self::NotFound => return GoalReading::NotFound,
            Self::Unreadable => return GoalReading::Unreadable,
            Self::Open { place, reader } => rows(place, reader.as_ref(), window, now),
        };
        match rows {
            Ok(rows) => GoalReading::Facts(Box::new(goal_facts::select(&rows, agent, now))),
            Err(_) => GoalReading::Unreadable,
        }
    }
}

fn newest(
    place: &Place,
    reader: &Reader,
    not_after: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let completed =
        |todo: &crate::contract::todo::Todo| todo.text("completed_at").and_then(Timestamp::parse);
    let rows = reader.rows();
    let last = rows
        .latest_done(&place.goal.id)?
        .as_ref()
        .and_then(completed);
    if last.is_none_or(|instant| instant <= not_after) {
        return Ok(last);
    }
    // The newest row lies in the future of this report: the ones before it are looked through.
    let (Some(first), Some(end)) = (Timestamp::from_unix(0), not_after.next_microsecond()) else {
        return Ok(None);
    };
    let done = rows.done_between(&place.goal.id, Role::Agent, (first, end))?;
    Ok(done.last().and_then(completed))
}

fn rows(
    place: &Place,
    reader: Option<&Reader>,
    window: &Window,
    now: Timestamp,
) -> Result<GoalRows, StoreError> {
    let goal = &place.goal.id;
    let mut all = GoalRows {
        goal_id: goal.clone(),
        done: Vec::new(),
        agent: Vec::new(),
        user: Vec::new(),
        newest: None,
    };
    let Some(reader) = reader else {
        return Ok(all);
    };
    let rows = reader.rows();
    let period = (window.start_at(), window.end_at());
    all.done = rows.done_between(goal, Role::Agent, period)?;
    all.agent = rows.unfinished(goal, Role::Agent)?;
    all.user = rows.unfinished(goal, Role::User)?;
    all.newest = newest(place, reader, now)?;
    Ok(all)
}

/// What the registry of a project says about a goal nobody named.
pub(super) enum Default {
    /// There is exactly one active goal.
    Goal(GoalId),
    /// There is none.
    None,
    /// There are so many to choose from.
    Several(usize),
    /// The registry is there and cannot be read: that is no absence.
    Unreadable,
}

/// Looks for the one active goal of the project.
pub(super) fn default_goal(ports: &Ports) -> Default {
    if !ports.workspace.registry().exists() {
        return Default::None;
    }
    let Ok((registry, _)) = open::registry(ports) else {
        return Default::Unreadable;
    };
    let Ok(goals) = registry.goals() else {
        return Default::Unreadable;
    };
    let active = goals
        .into_iter()
        .filter(|goal| goal.status == GoalStatus::Active);
    let mut active: Vec<GoalId> = active.map(|goal| goal.id).collect();
    match (active.len(), active.pop()) {
        (1, Some(goal)) => Default::Goal(goal),
        (0, _) => Default::None,
        (several, _) => Default::Several(several),
    }
}
