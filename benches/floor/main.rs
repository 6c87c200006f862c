//! The floor: a program with the same argument parser and JSON reader, and no work.
//!
//! The benches time it in the same run, so their figures are ratios and not milliseconds of one
//! machine.

use std::io::Read as _;

use clap::{Parser, Subcommand};

#[derive(Parser)]
struct Floor {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Reads one JSON value and says so.
    Read {
        /// Where it stands; only standard input is read.
        #[arg(long)]
        request_json: String,
        /// How the answer is printed.
        #[arg(long, default_value = "json")]
        format: String,
    },
}

fn main() {
    let Command::Read {
        request_json,
        format,
    } = Floor::parse().command;
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    let value = serde_json::from_slice::<serde_json::Value>(&bytes);
    let is_read = read.is_ok() && value.is_ok() && request_json == "-" && format == "json";
    let answer = serde_json::json!({"ok": is_read, "schema_version": "floor_v0"});
    #[allow(clippy::print_stdout)]
    {
        println!("{answer:#}");
    }
}
