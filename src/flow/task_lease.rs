//! `task-lease acquire|renew|transfer|release|inspect`.

use serde_json::{Value, json};

use super::mode::Mode;
use super::open::{self, Answer};
use super::ports::Ports;
use super::todo::unknown_todo;
use crate::contract::error::ErrorCode;
use crate::contract::event::EventDraft;
use crate::contract::ids::{AgentId, GoalId, TodoId};
use crate::contract::lease::Lease;
use crate::contract::todo::Status;
use crate::kernel::lease::{self, Acquire, Proof, Stored};
use crate::kernel::todo::require_meant_for;
use crate::store::rows::Rows;

/// What is asked for.
#[derive(Clone, Debug)]
pub enum Action {
    /// A new lease.
    Acquire {
        /// How long.
        ttl_seconds: i64,
        /// Paths it covers.
        write_scopes: Vec<String>,
    },
    /// More time.
    Renew {
        /// The version seen.
        version: i64,
        /// How long from now.
        ttl_seconds: Option<i64>,
    },
    /// Another owner.
    Transfer {
        /// The version seen.
        version: i64,
        /// The new owner.
        to: AgentId,
        /// Its key.
        key: String,
    },
    /// The end.
    Release {
        /// The version seen.
        version: i64,
    },
}

impl Action {
    const fn word(&self) -> &'static str {
        match self {
            Action::Acquire { .. } => "acquire",
            Action::Renew { .. } => "renew",
            Action::Transfer { .. } => "transfer",
            Action::Release { .. } => "release",
        }
    }
}

/// Changes a lease.
pub fn change(
    (ports, mode): (&Ports, Mode),
    at: (&GoalId, &TodoId),
    holder: (&AgentId, &str),
    action: &Action,
) -> Answer {
    let mut place = open::goal(ports, at.0)?;
    place.require_actor(holder.0, ErrorCode::ActorNotRegistered)?;
    if let Action::Transfer { to, .. } = action {
        place.require_actor(to, ErrorCode::ActorNotRegistered)?;
    }
    if mode.is_preview() {
        let reader = place.reader()?.ok_or_else(|| unknown_todo(at.1))?;
        let changed = decide((ports, reader.rows()), at, holder, action)?;
        return Ok(packet(ports, mode, action, &changed));
    }
    let mut writer = place.writer(ports)?;
    let mut tx = place.begin(ports, &mut writer)?;
    let changed = decide((ports, tx.rows()), at, holder, action)?;
    if let (lease, true) = &changed {
        tx.put_lease(lease)?;
        let draft = EventDraft::new("lease", "lease changed")
            .agent(Some(lease.owner.as_str()))
            .todo(Some(at.1.as_str()));
        let draft = draft
            .status(action.word())
            .detail("lease_epoch", lease.lease_epoch)
            .detail("version", lease.version);
        tx.event(draft)?;
        tx.commit()?;
    } else {
        drop(tx);
    }
    writer.bring_up_exports(at.0, ports.now);
    Ok(packet(ports, mode, action, &changed))
}

fn acquire(rows: Rows<'_>, asked: &Acquire<'_>, stored: Option<Lease>) -> Answer<(Lease, bool)> {
    let others = rows.active_leases(asked.goal, asked.now)?;
    let known = Stored {
        lease: stored.as_ref(),
        key_epoch: rows.lease_key_epoch(asked.goal, asked.todo, asked.key)?,
        others: &others,
    };
    Ok(match (lease::acquire(asked, &known)?, stored) {
        (Some(lease), _) => (lease, true),
        (None, Some(lease)) => (lease, false),
        (None, None) => return Err(unknown_todo(asked.todo)),
    })
}

/// The lease after the action, and whether it differs.
fn decide(
    (ports, rows): (&Ports, Rows<'_>),
    at: (&GoalId, &TodoId),
    holder: (&AgentId, &str),
    action: &Action,
) -> Answer<(Lease, bool)> {
    let todo = rows
        .todo(at.0, at.1)?
        .ok_or_else(|| unknown_todo(at.1))?
        .todo;
    let stored = rows.lease(at.0, at.1)?;
    let proof = |version: i64| Proof {
        owner: holder.0,
        key: holder.1,
        version,
        now: ports.now,
    };
    match action {
        Action::Acquire {
            ttl_seconds,
            write_scopes,
        } => {
            if todo.status() == Status::Done || todo.is_archived() {
                return Err(crate::kernel::todo::not_open(&todo));
            }
            require_meant_for(&todo, holder.0)?;
            let asked = Acquire {
                goal: at.0,
                todo: at.1,
                owner: holder.0,
                key: holder.1,
                ttl_seconds: *ttl_seconds,
                write_scopes,
                now: ports.now,
            };
            acquire(rows, &asked, stored)
        }
        Action::Renew {
            version,
            ttl_seconds,
        } => Ok((
            lease::renew(stored.as_ref(), &proof(*version), *ttl_seconds)?,
            true,
        )),
        Action::Transfer { version, to, key } => {
            require_meant_for(&todo, to)?;
            let epoch = rows.lease_key_epoch(at.0, at.1, key)?;
            Ok((
                lease::transfer(stored.as_ref(), &proof(*version), (to, key), epoch)?,
                true,
            ))
        }
        Action::Release { version } => {
            Ok((lease::release(stored.as_ref(), &proof(*version))?, true))
        }
    }
}

/// Shows the lease of a todo.
pub fn inspect(ports: &Ports, at: (&GoalId, &TodoId)) -> Answer {
    let place = open::goal(ports, at.0)?;
    let reader = place.reader()?.ok_or_else(|| unknown_todo(at.1))?;
    reader
        .rows()
        .todo(at.0, at.1)?
        .ok_or_else(|| unknown_todo(at.1))?;
    let lease = reader.rows().lease(at.0, at.1)?;
    Ok(json!({
        "ok": true, "schema_version": "task_lease_v0", "action": "inspect",
        "lease": lease.map(|lease| lease.view(ports.now)),
    }))
}

fn packet(ports: &Ports, mode: Mode, action: &Action, changed: &(Lease, bool)) -> Value {
    let mut packet = json!({
        "ok": true, "schema_version": "task_lease_v0", "dry_run": mode.is_preview(), "action": action.word(),
    });
    if matches!(action, Action::Acquire { .. }) {
        packet["acquired"] = json!(true);
        packet["idempotent"] = json!(!changed.1);
    }
    packet["lease"] = changed.0.view(ports.now);
    packet
}
