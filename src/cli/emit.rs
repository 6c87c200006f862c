//! Printing one packet, as text or as JSON, and the exit code that belongs to it.

use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;
use serde_json::Value;

use super::args::Format;
use crate::contract::json;
use crate::contract::packet::Refusal;
use crate::render::{kernel_text, packet_text};

/// The error packet of commands whose family has none of its own.
pub(super) const ERROR_SCHEMA: &str = "loopx_error_v0";
/// The error packet of the periodic-report commands.
pub(super) const REPORT_ERROR_SCHEMA: &str = "periodic_report_error_v0";

/// Makes the text of a packet; called only when text is wanted.
pub(super) type Layout = fn(&Value) -> String;

/// What a command answers.
pub(super) enum Reply {
    /// A packet and the layout of its text; both say the same.
    Packet { packet: Value, layout: Layout },
    /// A packet whose text is headed by the name of its command.
    Titled { packet: Value, command: String },
    /// A packet about a request that cannot be one: exit code 2.
    Misused { packet: Value },
    /// Text alone: completions, manual pages, a printed artifact.
    Text(String),
}

impl Reply {
    /// Answers with a packet, whose text is laid out by the general layout.
    pub(super) fn packet(packet: &impl Serialize) -> Self {
        Self::with_text(packet, packet_text::general)
    }

    /// Answers with a packet that is a value already: its numbers keep their spelling.
    pub(super) fn value(packet: Value) -> Self {
        let layout = packet_text::general;
        Self::Packet { packet, layout }
    }

    /// Answers with the packet of a command, whose text is headed by its name.
    pub(super) fn titled(packet: Value, command: &str) -> Self {
        let command = command.to_owned();
        Self::Titled { packet, command }
    }

    /// Answers with a packet and the text a layout makes of it.
    pub(super) fn with_text(packet: &impl Serialize, layout: Layout) -> Self {
        let packet = serde_json::to_value(packet).unwrap_or(Value::Null);
        Self::Packet { packet, layout }
    }

    /// Answers with a packet about a request that cannot be one.
    pub(super) fn misused(packet: &Value) -> Self {
        Self::Misused {
            packet: packet.clone(),
        }
    }

    /// Answers with text alone, whatever the format.
    pub(super) fn text(text: String) -> Self {
        Self::Text(text)
    }

    /// Answers with a refusal.
    pub(super) fn refused(refusal: Refusal, schema_version: &str, command: &str) -> Self {
        Self::Packet {
            packet: refusal.packet(schema_version, command),
            layout: packet_text::refusal,
        }
    }
}

/// Prints a reply; the exit code is 0 when the packet says `ok:true`.
pub(super) fn print(reply: &Reply, format: Format) -> ExitCode {
    let (code, text) = match reply {
        Reply::Text(text) => (0, text.clone()),
        Reply::Packet { packet, layout } => {
            let is_ok = packet.get("ok") == Some(&Value::Bool(true));
            (u8::from(!is_ok), in_format(packet, *layout, format))
        }
        Reply::Titled { packet, command } => {
            let is_ok = packet.get("ok") == Some(&Value::Bool(true));
            let text = match format {
                Format::Markdown => kernel_text::titled(command, packet),
                Format::Json | Format::Digest => json::pretty(packet).unwrap_or_default(),
            };
            (u8::from(!is_ok), text)
        }
        Reply::Misused { packet } => (2, in_format(packet, packet_text::refusal, format)),
    };
    match write_out(text.as_bytes()) {
        Ok(()) => ExitCode::from(code),
        Err(_) => ExitCode::from(1),
    }
}

fn in_format(packet: &Value, layout: Layout, format: Format) -> String {
    match format {
        Format::Markdown => layout(packet),
        Format::Json | Format::Digest => json::pretty(packet).unwrap_or_default(),
    }
}

/// Prints help or the version.
pub(super) fn print_help(error: &clap::Error) -> ExitCode {
    match error.print() {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) if fault.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(1),
    }
}

/// Prints one line at once; false when nobody reads any more.
pub(super) fn line(text: &str) -> bool {
    let mut out = io::stdout().lock();
    let written = out
        .write_all(text.as_bytes())
        .and_then(|()| out.write_all(b"\n"));
    written.and_then(|()| out.flush()).is_ok()
}

/// A reader that went away is no fault of the command; a full disk behind standard output is.
fn write_out(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(fault) if fault.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}
