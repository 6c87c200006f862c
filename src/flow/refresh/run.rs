//! `refresh-state`: writes back what was done, settles the Turn if asked to, then runs what may follow a writeback.
//!
//! 1. identity  2. recovery decision  3. pause of outside sinks  4. one transaction  5. exact readback  6. hooks  7. sinks

use super::answer::{finish, preview};
use super::asked::Refresh;
use super::commit::{append, record_pause, replay, supplement};
use super::prepare::prepare;
use crate::contract::error::ErrorCode;
use crate::flow::mode::Mode;
use crate::flow::open::{self, Answer};
use crate::flow::ports::Ports;
use crate::flow::{quota, state_file};
use crate::kernel::refresh::Recovery;

/// Runs a refresh.
pub fn run(ports: &Ports, mode: Mode, asked: &Refresh) -> Answer {
    let mut place = open::goal(ports, &asked.goal)?;
    state_file::check(
        &place,
        asked.project.as_deref(),
        asked.state_file.as_deref(),
    )?;
    if let Some(agent) = &asked.agent {
        place.require_actor(agent, ErrorCode::ActorNotRegistered)?;
    }
    let question = quota::standing(ports, &place, asked.agent.as_ref());
    let prepared = prepare(&place, asked)?;
    if mode.is_preview() {
        return Ok(preview(asked, &prepared));
    }
    let mut writer = place.writer(ports)?;
    if matches!(
        prepared.recovery,
        Recovery::Replay | Recovery::RepairReceipt
    ) {
        return replay((ports, &mut place), writer, asked, &question);
    }
    record_pause((ports, &place), &mut writer, asked)?;
    let done = match prepared.recovery {
        Recovery::SupplementCheckpoint => {
            supplement((ports, &place), &mut writer, asked, &question)?
        }
        _ => append((ports, &place), &mut writer, asked, &question)?,
    };
    writer.bring_up_exports(&asked.goal, ports.now);
    drop(writer);
    finish((ports, &place), asked, done)
}
