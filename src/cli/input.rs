//! Reading one JSON document named on the command line.

use std::io::{self, Read};
use std::path::Path;

use serde_json::Value;

use crate::contract::error::ErrorCode;
use crate::contract::json::{self, JsonFault};
use crate::contract::packet::Refusal;
use crate::workspace::input;

/// Reads one JSON object from a file, or from standard input for `-`. `~/` stands for HOME.
pub(super) fn json_object(source: &Path) -> Result<Value, Refusal> {
    let bytes = read_bounded(source).map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => {
            unreadable("nobody wrote to the input pipe; start its writer, or name a file")
        }
        _ => unreadable("the input file could not be read; check that it exists and is readable"),
    })?;
    if bytes.len() as u64 > json::MAX_INPUT_BYTES {
        return Err(unreadable(
            "the input is larger than 16777216 bytes; send less",
        ));
    }
    json::parse_object(&bytes)
        .map(Value::Object)
        .map_err(|fault| match fault {
            JsonFault::NotAnObject => unreadable("the input is not a JSON object"),
            fault => unreadable(&format!("the input {fault}")),
        })
}

fn read_bounded(source: &Path) -> io::Result<Vec<u8>> {
    if source == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin()
            .lock()
            .take(json::MAX_INPUT_BYTES + 1)
            .read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    let expanded = crate::workspace::env::expand_home(source);
    input::read_bounded(&expanded, json::MAX_INPUT_BYTES + 1)
}

fn unreadable(message: &str) -> Refusal {
    Refusal::new(ErrorCode::InputUnreadable, message)
}
