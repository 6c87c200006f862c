//! Leases: who holds a todo until when (docs/spec/kernel.md 4.3). The version only grows; a release resets nothing.

use crate::contract::error::ErrorCode;
use crate::contract::ids::{AgentId, GoalId, TodoId};
use crate::contract::lease::Lease;
use crate::contract::packet::Refusal;
use crate::contract::time::Timestamp;
use crate::kernel::write_scope;

type Outcome<T> = Result<T, Refusal>;

/// What an acquisition asks for.
#[derive(Clone, Debug)]
pub struct Acquire<'a> {
    /// The goal.
    pub goal: &'a GoalId,
    /// The todo.
    pub todo: &'a TodoId,
    /// The owner.
    pub owner: &'a AgentId,
    /// The proof it will use.
    pub key: &'a str,
    /// How long.
    pub ttl_seconds: i64,
    /// Paths it covers.
    pub write_scopes: &'a [String],
    /// The instant.
    pub now: Timestamp,
}

/// What is stored beside the request.
#[derive(Clone, Debug)]
pub struct Stored<'a> {
    /// The lease of this todo, live or not.
    pub lease: Option<&'a Lease>,
    /// The generation in which the asked key was used before.
    pub key_epoch: Option<i64>,
    /// The live leases of other todos of the goal.
    pub others: &'a [Lease],
}

/// Acquires; `None` when this exact lease is held already.
pub fn acquire(asked: &Acquire<'_>, stored: &Stored<'_>) -> Outcome<Option<Lease>> {
    let live = stored.lease.filter(|lease| lease.is_live(asked.now));
    if let Some(lease) = live
        && lease.idempotency_key == asked.key
    {
        let is_same = &lease.owner == asked.owner
            && lease.acquire_ttl_seconds == asked.ttl_seconds
            && lease.write_scopes == asked.write_scopes;
        return if is_same { Ok(None) } else { Err(key_reuse()) };
    }
    if stored.key_epoch.is_some() {
        return Err(key_reuse());
    }
    if let Some(lease) = live {
        let text =
            "another lease on this todo is live; wait for its end or ask its owner to release it";
        return Err(
            Refusal::new(ErrorCode::TodoLeaseConflict, text).with("owner", lease.owner.as_str())
        );
    }
    let is_taken = stored.others.iter().any(|other| {
        &other.todo_id != asked.todo
            && other.is_live(asked.now)
            && write_scope::overlap(&other.write_scopes, asked.write_scopes)
    });
    if is_taken {
        let text =
            "a live lease on another todo covers one of these paths; narrow the scope or wait";
        return Err(Refusal::new(ErrorCode::WriteScopeConflict, text));
    }
    let expires_at = expiry(asked.now, asked.ttl_seconds)?;
    Ok(Some(Lease {
        schema_version: "task_lease_v0",
        goal_id: asked.goal.clone(),
        todo_id: asked.todo.clone(),
        owner: asked.owner.clone(),
        idempotency_key: asked.key.to_owned(),
        write_scopes: asked.write_scopes.to_vec(),
        acquire_ttl_seconds: asked.ttl_seconds,
        version: stored.lease.map_or(1, |lease| lease.version + 1),
        lease_epoch: stored.lease.map_or(1, |lease| lease.lease_epoch + 1),
        acquired_at: asked.now,
        updated_at: asked.now,
        expires_at,
        status: "active".to_owned(),
    }))
}

/// The proof of a change.
#[derive(Clone, Debug)]
pub struct Proof<'a> {
    /// The holder.
    pub owner: &'a AgentId,
    /// Its key.
    pub key: &'a str,
    /// The version it saw.
    pub version: i64,
    /// The instant.
    pub now: Timestamp,
}

/// Makes a lease last longer.
pub fn renew(lease: Option<&Lease>, proof: &Proof<'_>, ttl_seconds: Option<i64>) -> Outcome<Lease> {
    let mut lease = proven(lease, proof)?.clone();
    let ttl = ttl_seconds.unwrap_or(lease.acquire_ttl_seconds);
    lease.expires_at = expiry(proof.now, ttl)?;
    Ok(step(lease, proof.now))
}

/// Gives a lease to another owner under a key of its own.
pub fn transfer(
    lease: Option<&Lease>,
    proof: &Proof<'_>,
    to: (&AgentId, &str),
    key_epoch: Option<i64>,
) -> Outcome<Lease> {
    let mut lease = proven(lease, proof)?.clone();
    if key_epoch.is_some() {
        return Err(key_reuse());
    }
    lease.owner = to.0.clone();
    lease.idempotency_key = to.1.to_owned();
    lease.lease_epoch += 1;
    Ok(step(lease, proof.now))
}

/// Ends a lease; its record stays as a tombstone.
pub fn release(lease: Option<&Lease>, proof: &Proof<'_>) -> Outcome<Lease> {
    let mut lease = proven(lease, proof)?.clone();
    lease.status = "released".to_owned();
    Ok(step(lease, proof.now))
}

/// The end of a live lease whose todo is finished: nothing is left to hold.
pub fn ended(lease: &Lease, now: Timestamp) -> Option<Lease> {
    lease.is_live(now).then(|| {
        let mut lease = lease.clone();
        lease.status = "released".to_owned();
        step(lease, now)
    })
}

fn step(mut lease: Lease, now: Timestamp) -> Lease {
    lease.version += 1;
    lease.updated_at = now;
    lease
}

fn proven<'a>(lease: Option<&'a Lease>, proof: &Proof<'_>) -> Outcome<&'a Lease> {
    let Some(lease) = lease.filter(|lease| lease.is_live(proof.now)) else {
        return Err(Refusal::new(
            ErrorCode::LeaseNotActive,
            "there is no active lease on this todo; acquire one",
        ));
    };
    if lease.idempotency_key != proof.key || &lease.owner != proof.owner {
        let text = "the lease belongs to another owner or key; its holder has to change it";
        return Err(
            Refusal::new(ErrorCode::TodoLeaseConflict, text).with("owner", lease.owner.as_str())
        );
    }
    if lease.version != proof.version {
        let text = "the lease has moved on; `loopx task-lease inspect` shows its version";
        return Err(Refusal::new(ErrorCode::VersionMismatch, text).with("version", lease.version));
    }
    Ok(lease)
}

fn expiry(now: Timestamp, ttl_seconds: i64) -> Outcome<Timestamp> {
    let text = "the lease would end outside the calendar; ask for less";
    now.plus_seconds(ttl_seconds)
        .ok_or_else(|| Refusal::new(ErrorCode::InvalidArguments, text))
}

fn key_reuse() -> Refusal {
    let text = "this key was used before for this todo with other parameters; choose a fresh key";
    Refusal::new(ErrorCode::IdempotencyKeyReuse, text)
}
