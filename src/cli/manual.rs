//! `loopx completions` and `loopx man`: text made from the command line itself.

use std::fs;
use std::io;
use std::path::Path;

use clap::CommandFactory;

use super::args::{Cli, CompletionsArgs, ManArgs};
use super::emit::{self, Reply};
use crate::contract::error::ErrorCode;
use crate::contract::packet::Refusal;

/// Prints a completion script.
pub(super) fn completions(args: &CompletionsArgs) -> Reply {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "loopx", &mut script);
    Reply::text(String::from_utf8_lossy(&script).into_owned())
}

/// Prints loopx(1), or writes one page per command.
pub(super) fn man(args: &ManArgs) -> Reply {
    let written = match &args.out {
        None => page(Cli::command())
            .map(|page| Reply::text(String::from_utf8_lossy(&page).into_owned())),
        Some(folder) => write_pages(folder)
            .map(|()| Reply::text("Manual pages written, one per command.\n".to_owned())),
    };
    written.unwrap_or_else(|_| {
        let message = "the manual pages could not be written; name a folder that can be created";
        Reply::refused(
            Refusal::new(ErrorCode::OutputUnwritable, message),
            emit::ERROR_SCHEMA,
            "man",
        )
    })
}

fn page(command: clap::Command) -> io::Result<Vec<u8>> {
    let mut roff = Vec::new();
    clap_mangen::Man::new(command).render(&mut roff)?;
    Ok(roff)
}

fn write_pages(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    clap_mangen::generate_to(Cli::command(), folder)
}
