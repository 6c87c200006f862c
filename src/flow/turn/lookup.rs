//! Whose Turn a call is about, and the stored Turn it goes on with.

use serde_json::Value;

use super::asked::RunOnce;
use super::capture;
use super::historical;
use super::journal_file::{self, Loaded};
use crate::contract::digest;
use crate::contract::error::ErrorCode;
use crate::contract::ids::{AgentId, TurnKey};
use crate::contract::packet::Refusal;
use crate::contract::settlement::Binding;
use crate::flow::open::{Answer, Place};
use crate::flow::ports::Ports;
use crate::flow::quota;
use crate::store::private_file;
use crate::store::rows::Rows;

/// Judges goal and agent as every decision does, before anything stored is shown.
pub(super) fn judge(ports: &Ports, asked: &RunOnce) -> Answer<(Place, AgentId)> {
    let mut question = asked.ask.question.clone();
    question.instance = None;
    question.todo = None;
    let live = quota::decide(ports, &question)?;
    let agent = live.question.agent.ok_or_else(|| {
        Refusal::new(
            ErrorCode::InvalidArguments,
            "name the agent with --agent-id",
        )
    })?;
    Ok((live.place, agent))
}

/// The Turn this call is about, when one is stored: by its key, or by its instance.
pub(super) fn stored_key(
    place: &Place,
    agent: &AgentId,
    asked: &RunOnce,
) -> Answer<Option<TurnKey>> {
    let reader = place.reader()?;
    let rows = reader.as_ref().map(|reader| reader.rows());
    if let Some(key) = &asked.resume {
        let row = match rows {
            Some(rows) => journal_file::find_row(rows, &place.goal.id, agent, key)?,
            None => None,
        };
        let is_stored = row.is_some() || journal_file::path(place, key).exists();
        return if is_stored {
            Ok(Some(key.clone()))
        } else {
            Err(journal_file::not_found(key))
        };
    }
    let (Some(rows), Some(instance)) = (rows, &asked.ask.question.instance) else {
        return Ok(None);
    };
    let row = match rows.turn_of_instance(&place.goal.id, agent, instance)? {
        Some(row) => Some(row),
        None => turn_of_admission(rows, place, agent, asked)?,
    };
    let Some(row) = row else { return Ok(None) };
    if let Some(todo) = &asked.ask.question.todo {
        let bound = rows
            .admission(&place.goal.id, agent, instance)?
            .map(|admission| admission.binding);
        let effect_names = row.effect_id.contains(&format!(":{todo}:"));
        if bound
            .as_ref()
            .and_then(Binding::todo)
            .is_some_and(|bound| bound != todo)
            || !effect_names
        {
            let text = "this Turn instance is bound to another todo; leave --todo-id out, or use a fresh instance id";
            return Err(Refusal::new(
                ErrorCode::HeartbeatReceiptIdentityConflict,
                text,
            ));
        }
    }
    Ok(TurnKey::new(row.turn_key))
}

fn turn_of_admission(
    rows: Rows<'_>,
    place: &Place,
    agent: &AgentId,
    asked: &RunOnce,
) -> Answer<Option<crate::store::journal::turn::TurnRow>> {
    let Some(instance) = &asked.ask.question.instance else {
        return Ok(None);
    };
    let Some(admission) = rows.admission(&place.goal.id, agent, instance)? else {
        return Ok(None);
    };
    let identity = crate::contract::settlement::SettlementIdentity {
        goal: place.goal.id.clone(),
        agent: agent.clone(),
        binding: admission.binding,
        instance: instance.clone(),
    };
    Ok(rows.turn_of_effect(&identity.effect_id())?)
}

pub(super) fn load(place: &Place, agent: &AgentId, key: &TurnKey) -> Answer<Loaded> {
    let reader = place.reader()?;
    let loaded = match &reader {
        Some(reader) => read_stored(place, reader.rows(), key)?,
        None => None,
    };
    let loaded = loaded.ok_or_else(|| journal_file::not_found(key))?;
    journal_file::check_owner(&loaded.row, &place.goal.id, agent)?;
    Ok(loaded)
}

/// A kill between capture and journal left a row alone: its source is verified and the plan is made from it again.
pub(super) fn reopen(
    (ports, place): (&Ports, &mut Place),
    asked: &RunOnce,
    loaded: Loaded,
    key: &TurnKey,
) -> Answer<Loaded> {
    let mut writer = place.writer(ports)?;
    let verified = capture::verify(place, writer.rows(), &loaded.row, None)?;
    let source = crate::kernel::turn::source::CompleteSource::stored(&verified.source)?;
    let instance = loaded
        .row
        .instance
        .clone()
        .and_then(crate::contract::ids::TurnInstanceId::new);
    let execution = verified.source.get("execution");
    let word = |name: &str| {
        execution
            .and_then(|execution| execution.get(name))
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned()
    };
    let host = crate::kernel::turn::plan::HostChoice {
        kind: word("host_surface"),
        execution_mode: word("execution_mode"),
        scheduler_owner: word("scheduler_owner"),
        context: asked.ask.host.context.clone(),
    };
    let plan = crate::kernel::turn::plan::plan(&source, &host, instance.as_ref())?;
    if plan.turn_key.as_ref() != Some(key) {
        return Err(Refusal::new(
            ErrorCode::TurnKeyMismatch,
            "the captured decision gives another Turn with this host; resume with the host it was started with, or start a new Turn",
        ));
    }
    capture::open_journal(
        (ports, place),
        &mut writer,
        plan.stored(),
        (key, loaded.row),
    )
}

/// Loads a Turn for execution: its file is brought up when it is one step behind.
fn read_stored(place: &Place, rows: Rows<'_>, key: &TurnKey) -> Answer<Option<Loaded>> {
    let file = journal_file::path(place, key);
    let bytes = private_file::read(&file).map_err(|_| journal_file::inconsistent())?;
    let Some(row) = rows.turn(key)? else {
        return bytes
            .map(|bytes| historical::read(place, key, &bytes))
            .transpose();
    };
    if row.journal_sha256.is_empty() {
        return if bytes.is_none() {
            Ok(Some(Loaded {
                row,
                journal: None,
                is_historical: false,
            }))
        } else {
            Err(journal_file::inconsistent())
        };
    }
    let found = bytes
        .as_ref()
        .map(|bytes| digest::content_digest(bytes).hex())
        .unwrap_or_default();
    if found != row.journal_sha256 {
        if found != row.previous_sha256 {
            return Err(journal_file::inconsistent());
        }
        journal_file::write_file(place, key, &row)?;
    }
    let journal = journal_file::parse(row.journal_json.as_bytes())?;
    let is_historical = historical::is_v0(&journal);
    Ok(Some(Loaded {
        row,
        journal: Some(journal),
        is_historical,
    }))
}
