//! `loopx extension …` and `loopx capability list`.

use serde_json::{Value, json};

use super::args::{
    CapabilityArgs, CapabilityCommand, ExtensionArgs, ExtensionCommand, Global, SourceArgs,
};
use super::emit::Reply;
use super::input;
use crate::compose;
use crate::contract::extension::Manifest;
use crate::contract::packet::coded;
use crate::contract::parse::Label;
use crate::flow::Mode;
use crate::flow::extension::{self, ExtensionError, Operation};
use crate::flow::extension_catalogue;
use crate::flow::place::Place;

const ERROR_SCHEMA: &str = "loopx_extension_error_v0";
const UNREADABLE: &str = "input_unreadable";

/// Runs one extension command.
pub(super) fn run(args: &ExtensionArgs, global: &Global) -> Reply {
    let place = Place::locate(global.registry.as_deref(), global.runtime_root.as_deref());
    let Ok(file) = place.map(|place| extension::record(&place, args.state_file.clone())) else {
        return misused("the current folder cannot be read", UNREADABLE);
    };
    let now = compose::now().to_string();
    let (operation, execute) = match &args.command {
        ExtensionCommand::List => return answer(extension_catalogue::list(&file)),
        ExtensionCommand::Doctor(target) => {
            let mode = Mode::of_switch(target.execute);
            let looked = extension::doctor(&file, &target.id, mode, &now);
            return answer(looked.map(|packet| packet.advised(compose::scope_advice(&target.id))));
        }
        ExtensionCommand::Enable(target) => (Operation::Enable(target.id.clone()), target.execute),
        ExtensionCommand::Disable(target) => {
            (Operation::Disable(target.id.clone()), target.execute)
        }
        ExtensionCommand::Rollback(target) => {
            (Operation::Rollback(target.id.clone()), target.execute)
        }
        ExtensionCommand::Install(source) => match manifest(source) {
            Ok(manifest) => (Operation::Install(manifest), source.execute),
            Err(reply) => return reply,
        },
        ExtensionCommand::Upgrade(source) => match manifest(source) {
            Ok(manifest) => (Operation::Upgrade(manifest), source.execute),
            Err(reply) => return reply,
        },
    };
    answer(extension::run(
        &file,
        &operation,
        Mode::of_switch(execute),
        &now,
    ))
}

/// Runs one capability command.
pub(super) fn capability(args: &CapabilityArgs, global: &Global) -> Reply {
    let CapabilityCommand::List = args.command;
    match Place::locate(global.registry.as_deref(), global.runtime_root.as_deref()) {
        Ok(place) => answer(extension_catalogue::capabilities(&extension::record(
            &place, None,
        ))),
        Err(_) => misused("the current folder cannot be read", UNREADABLE),
    }
}

fn manifest(source: &SourceArgs) -> Result<Manifest, Reply> {
    if let Some(id) = &source.bundled {
        return Manifest::bundled(id)
            .ok_or_else(|| misused("no extension of that name is bundled", "extension_unknown"));
    }
    let path = source
        .manifest
        .as_deref()
        .unwrap_or(std::path::Path::new("-"));
    let value = input::json_object(path)
        .map_err(|refusal| misused(&refusal.message, refusal.code.as_str()))?;
    Manifest::parse(&Label::named("manifest"), &value)
        .map_err(|error| misused(&error.to_string(), "extension_manifest_invalid"))
}

fn answer<T: serde::Serialize>(result: Result<T, ExtensionError>) -> Reply {
    match result {
        Ok(packet) => Reply::value(coded(json!(packet))),
        Err(error) => refused(&error),
    }
}

/// Every refusal is exit 2, but for a change that was understood and cannot be made now (`docs/spec/goal-channel.md` 26).
fn refused(error: &ExtensionError) -> Reply {
    use crate::kernel::extension::Refused;
    let packet = packet(&error.to_string(), error.code());
    match error {
        ExtensionError::Refused(Refused::NoEarlierRevision) | ExtensionError::ProbeFailed => {
            Reply::value(packet)
        }
        _ => Reply::misused(&packet),
    }
}

fn misused(message: &str, code: &str) -> Reply {
    Reply::misused(&packet(message, code))
}

fn packet(message: &str, code: &str) -> Value {
    json!({
        "ok": false,
        "schema_version": ERROR_SCHEMA,
        "status": "invalid_request",
        "error": message,
        "error_code": code,
        "external_write_outcome": "none",
    })
}
