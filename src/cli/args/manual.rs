//! Arguments of `completions` and `man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

// Arguments of `loopx completions`.
#[derive(Debug, Args)]
#[command(after_help = "Example: loopx completions bash > loopx.bash")]
pub(in crate::cli) struct CompletionsArgs {
    /// The shell to write for
    #[arg(value_enum)]
    pub(in crate::cli) shell: Shell,
}

// Arguments of `loopx man`.
#[derive(Debug, Args)]
#[command(after_help = "Example: loopx man --out man1")]
pub(in crate::cli) struct ManArgs {
    /// Write one page per command into this folder instead of loopx(1) to standard output
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) out: Option<PathBuf>,
}
