//! `loopx doctor`, `loopx backup` and `loopx restore`.

use serde_json::Value;

use super::args::Global;
use super::args::maintenance::{BackupArgs, DoctorArgs, RestoreArgs};
use super::emit::Reply;
use super::kernel_reply::{misuse, with_ports};
use crate::compose;
use crate::contract::packet::Refusal;
use crate::flow::{Mode, backup, doctor};
use crate::workspace::env;

/// Looks at everything a command relies on.
pub(super) fn doctor(args: &DoctorArgs, global: &Global) -> Reply {
    with_ports(global, "doctor", |ports| {
        let packet = doctor::run(ports, &compose::programs(), Mode::of_switch(args.execute));
        value(&packet)
    })
}

/// Writes or proves a backup.
pub(super) fn backup(args: &BackupArgs, global: &Global) -> Reply {
    with_ports(global, "backup", |ports| {
        match (&args.what.out, &args.what.verify) {
            (Some(out), None) => value(&backup::write(&ports.workspace, &env::expand_home(out))?),
            (None, Some(folder)) => value(&backup::verify(&env::expand_home(folder))?),
            // The argument group asks for exactly one.
            _ => Err(misuse("exactly one of --out and --verify is needed")),
        }
    })
}

/// Brings a backup back.
pub(super) fn restore(args: &RestoreArgs, global: &Global) -> Reply {
    with_ports(global, "restore", |ports| {
        let mode = Mode::of_switch(args.execute);
        value(&backup::restore(
            &ports.workspace,
            mode,
            &env::expand_home(&args.from),
        )?)
    })
}

fn value(packet: &impl serde::Serialize) -> Result<Value, Refusal> {
    Ok(serde_json::to_value(packet).unwrap_or(Value::Null))
}
