//! Opens the registry, a goal and its store, and ties them together.
//!
//! The registry file is the configuration; an entry that points to another registry is followed once. An entry whose rows are
//! gone is a lost store, never a fresh start; an entry without an instance id gets one with the first change.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::place;
use super::ports::Ports;
use crate::contract::digest;
use crate::contract::error::ErrorCode;
use crate::contract::goal::Goal;
use crate::contract::ids::{AgentId, GoalId};
use crate::contract::packet::Refusal;
use crate::kernel::quota::places::Places;
use crate::store::StoreError;
use crate::store::document::registry::{self, Registry, RegistryError};
use crate::store::lock::{Claim, Policy};
use crate::store::rows::Head;
use crate::store::state::{GoalTx, Reader, Store, Writer};
use crate::workspace::Workspace;

/// What a flow answers: a packet, or a refusal.
pub type Answer<T = Value> = Result<T, Refusal>;

/// One goal with its configuration and its store.
pub struct Place {
    /// Where things are.
    pub workspace: Workspace,
    /// The registry that holds the goal's configuration.
    pub registry: Registry,
    /// The goal.
    pub goal: Goal,
    /// Its store.
    pub store: Store,
}

/// Opens the registry of this call and its store.
pub fn registry(ports: &Ports) -> Result<(Registry, Store), RegistryError> {
    let registry = Registry::read(ports.workspace.registry())?;
    let store = Store::at(&ports.workspace.runtime_root(registry.common_runtime_root()));
    Ok((registry, store))
}

/// The registry file that holds a goal's configuration, or would hold it: an entry that points elsewhere is followed once.
pub fn home(ports: &Ports, id: &GoalId) -> Result<(Workspace, Registry), RegistryError> {
    let registry = Registry::read(ports.workspace.registry())?;
    let entry = registry.goal(id)?;
    match entry.and_then(|goal| registry.source_of(&goal)) {
        None => Ok((ports.workspace.clone(), registry)),
        Some(source) => {
            let workspace = ports.workspace.of_registry(source);
            let registry = Registry::read(workspace.registry())?;
            Ok((workspace, registry))
        }
    }
}

/// Opens one goal; `None` when the registry does not know it.
pub fn find(ports: &Ports, id: &GoalId) -> Result<Option<Place>, RegistryError> {
    let (workspace, registry) = home(ports, id)?;
    let Some(goal) = registry.goal(id)? else {
        return Ok(None);
    };
    let store = Store::at(&workspace.runtime_root(registry.common_runtime_root()));
    Ok(Some(Place {
        workspace,
        registry,
        goal,
        store,
    }))
}

/// Opens one goal that has to be there.
pub fn goal(ports: &Ports, id: &GoalId) -> Answer<Place> {
    find(ports, id)?.ok_or_else(|| unknown_goal(id))
}

/// The refusal of a goal the registry does not know.
pub fn unknown_goal(id: &GoalId) -> Refusal {
    let text = "the registry does not know this goal; `loopx bootstrap` makes one, `--registry` names another file";
    Refusal::new(ErrorCode::GoalNotFound, text).with("goal_id", id.as_str())
}

impl Place {
    /// The store for reading; `None` while nothing was ever written for this goal.
    pub fn reader(&self) -> Result<Option<Reader>, StoreError> {
        let reader = self.store.read()?;
        let head = match &reader {
            Some(reader) => reader.rows().head(&self.goal.id)?,
            None => None,
        };
        self.check_identity(head.as_ref())?;
        Ok(reader)
    }

    /// The store for writing, with the goal's head made if this is its first change.
    pub fn writer(&mut self, ports: &Ports) -> Answer<Writer> {
        if self.goal.instance_id.is_some() {
            // A lost store is found before anything is made in its place.
            if !self.store.exists()? {
                return Err(StoreError::Corrupt("the rows of a known goal are gone").into());
            }
            let writer = self.store.write()?;
            self.check_identity(writer.rows().head(&self.goal.id)?.as_ref())?;
            return Ok(writer);
        }
        let mut writer = self.store.write()?;
        let fresh = ports.ids.fresh().ok_or_else(no_randomness)?;
        let head = writer.ensure_head(&self.goal.id, &fresh, None)?;
        let held = registry::lock_for_edit(
            self.registry.path(),
            &registry_claim(ports, &ports.now.to_string()),
        )?;
        let current = Registry::read(self.registry.path())?;
        let document = current.with_entry(&self.goal.id, |entry| {
            entry.insert("instance_id".to_owned(), json!(head.instance_id));
        });
        current.replace(&held, &document)?;
        drop(held);
        self.reload()?;
        self.check_identity(Some(&head))?;
        Ok(writer)
    }

    /// The goal as its registry has it now. What is decided long after the command began is decided on this.
    pub fn goal_now(&self) -> Answer<Goal> {
        let registry = Registry::read(self.registry.path())?;
        let goal = registry.goal(&self.goal.id)?;
        goal.ok_or_else(|| unknown_goal(&self.goal.id))
    }

    /// The goal as it is now, with this agent on its roster.
    pub fn goal_of(&self, agent: &AgentId) -> Answer<Goal> {
        let goal = self.goal_now()?;
        require_on_roster(&goal, agent, ErrorCode::ActorNotRegistered)?;
        Ok(goal)
    }

    /// Reads the registry again.
    pub fn reload(&mut self) -> Answer<()> {
        self.registry = Registry::read(self.registry.path())?;
        self.goal = self
            .registry
            .goal(&self.goal.id)?
            .ok_or_else(|| unknown_goal(&self.goal.id))?;
        Ok(())
    }

    fn check_identity(&self, head: Option<&Head>) -> Result<(), StoreError> {
        match (&self.goal.instance_id, head) {
            (Some(_), None) => Err(StoreError::Corrupt("the rows of a known goal are gone")),
            (Some(entry), Some(head)) if *entry != head.instance_id => Err(StoreError::Corrupt(
                "the registry entry belongs to another store",
            )),
            _ => Ok(()),
        }
    }

    /// Starts a mutation and records an edit of the entry made outside a command.
    pub fn begin<'w>(
        &self,
        ports: &Ports,
        writer: &'w mut Writer,
    ) -> Result<GoalTx<'w>, StoreError> {
        let mut tx = writer.begin(&self.goal.id, ports.now)?;
        self.note_edits(&mut tx)?;
        Ok(tx)
    }

    /// Records an edit of the entry made outside a command, for a mutation that looks at its rows first.
    pub fn note_edits(&self, tx: &mut GoalTx<'_>) -> Result<(), StoreError> {
        let seen = self.entry_seen(tx.head().entry_digest.as_deref());
        tx.note_entry(&seen)
    }

    /// The digest of the entry beside the one that was recorded last: read again when they differ, since it may be
    /// another command, not a hand, that changed the entry after this one read it.
    pub fn entry_seen(&self, known: Option<&str>) -> String {
        let seen = entry_digest(&self.goal);
        if known == Some(seen.as_str()) {
            return seen;
        }
        let now = Registry::read(self.registry.path()).and_then(|now| now.goal(&self.goal.id));
        match now {
            Ok(Some(goal)) => entry_digest(&goal),
            _ => seen,
        }
    }

    /// Records an edit of the entry that no command recorded, for a command that changes nothing else.
    pub fn record_edits(&self, ports: &Ports, writer: &mut Writer) -> Result<(), StoreError> {
        let head = writer.rows().head(&self.goal.id)?;
        let known = head.and_then(|head| head.entry_digest);
        if known.is_none_or(|known| known == entry_digest(&self.goal)) {
            return Ok(());
        }
        self.begin(ports, writer)?.commit()?;
        writer.bring_up_exports(&self.goal.id, ports.now);
        Ok(())
    }

    /// The runtime root.
    pub fn root(&self) -> &Path {
        self.store.root()
    }

    /// The same places for commands that start from a folder, with the goal's own root.
    pub fn bound(&self) -> place::Place {
        place::Place {
            workspace: self.workspace.clone(),
            runtime_root: self.root().to_path_buf(),
            is_runtime_pinned: true,
        }
    }

    /// Registry and runtime root as arguments.
    pub fn places(&self) -> Places {
        Places {
            registry: self.registry.path().to_string_lossy().into_owned(),
            runtime_root: self.store.root().to_string_lossy().into_owned(),
        }
    }

    /// The project folder of the goal.
    pub fn project(&self) -> PathBuf {
        match self.goal.text("repo") {
            Some(repo) => self.workspace.repo(repo),
            None => self.workspace.project().to_path_buf(),
        }
    }

    /// Refuses an agent that is not on the roster; an empty roster takes any.
    pub fn require_actor(&self, agent: &AgentId, code: ErrorCode) -> Answer<()> {
        require_on_roster(&self.goal, agent, code)
    }
}

fn require_on_roster(goal: &Goal, agent: &AgentId, code: ErrorCode) -> Answer<()> {
    if goal.agents.is_empty() || goal.has_agent(agent) {
        return Ok(());
    }
    let text = "the agent is not registered for this goal; `loopx register-agent` adds it";
    Err(Refusal::new(code, text).with("agent_id", agent.as_str()))
}

/// The lock claim of a change to a registry.
pub fn registry_claim<'a>(ports: &'a Ports, now: &'a str) -> Claim<'a> {
    Claim {
        lock_id: "registry",
        agent_id: None,
        operation: &ports.operation,
        policy: Policy::Mutation,
        now,
    }
}

/// The canonical hash of a goal entry.
pub fn entry_digest(goal: &Goal) -> String {
    digest::digest(&Value::Object(goal.entry().clone()))
        .map(|digest| digest.to_string())
        .unwrap_or_default()
}

/// The refusal of a system that gives no random names.
pub fn no_randomness() -> Refusal {
    Refusal::new(
        ErrorCode::InternalError,
        "the system gives no random names; nothing was written",
    )
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let (code, text) = match &error {
            StoreError::Busy => (
                ErrorCode::StoreBusy,
                "another process holds the store; run again",
            ),
            StoreError::Corrupt(_) => (
                ErrorCode::StoreCorrupt,
                "the store is damaged and was left as it is; run `loopx doctor`, then restore a backup",
            ),
            StoreError::WriteFailed(_) => (
                ErrorCode::StoreWriteFailed,
                "the disk refused the change and nothing was acknowledged; free space or check permissions, then run again",
            ),
            StoreError::SchemaUnsupported { .. } => (
                ErrorCode::SchemaUnsupported,
                "a newer loopx wrote this store; use that version or a newer one",
            ),
            StoreError::LockTimeout(_) => (
                ErrorCode::LockAcquireTimeout,
                "another process holds the lock of this work; look at the holder, then run again",
            ),
            error if error.is_half_an_effect() => (
                ErrorCode::EffectOutcomeUnknown,
                "the store holds one half of this effect and not the other, and was left as it is; run `loopx doctor`, then restore a backup",
            ),
            StoreError::Sql(_) => (
                ErrorCode::InternalError,
                "the store refused a statement; nothing was changed, run `loopx doctor`",
            ),
        };
        tracing::debug!(fault = %error, "store");
        Refusal::new(code, text)
    }
}

impl From<RegistryError> for Refusal {
    fn from(error: RegistryError) -> Self {
        match error {
            RegistryError::Store(error) => error.into(),
            RegistryError::Changed { current } => {
                let text = "the registry changed since it was read and was left as it is; look at it and run again";
                Refusal::new(ErrorCode::RegistryRevisionMismatch, text)
                    .with("registry_revision", current)
            }
            error => Refusal::new(
                ErrorCode::RegistryInvalid,
                format!("{error}; fix the file, nothing was changed"),
            ),
        }
    }
}
