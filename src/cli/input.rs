//! Reading one JSON document named on the command line.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde_json::Value;

use crate::contract::error::ErrorCode;
use crate::contract::json::{self, JsonFault};
use crate::contract::packet::Refusal;

/// Reads one JSON object from a file, or from standard input for `-`. `~/` stands for HOME.
pub(super) fn json_object(source: &Path) -> Result<Value, Refusal> {
    let bytes = read_bounded(source).map_err(|_| {
        unreadable("the input file could not be read; check that it exists and is readable")
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
    let mut bytes = Vec::new();
    if source == Path::new("-") {
        io::stdin()
            .lock()
            .take(json::MAX_INPUT_BYTES + 1)
            .read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    let expanded = crate::workspace::env::expand_home(source);
    File::open(expanded)?
        .take(json::MAX_INPUT_BYTES + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn unreadable(message: &str) -> Refusal {
    Refusal::new(ErrorCode::InputUnreadable, message)
}
