//! Whether a command previews or acts.

/// The two ways a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Says what would happen and changes nothing.
    Preview,
    /// Acts.
    Execute,
}

impl Mode {
    /// Takes the `--execute` switch of a command line.
    pub const fn of_switch(execute: bool) -> Self {
        if execute {
            Self::Execute
        } else {
            Self::Preview
        }
    }

    /// Takes the `--dry-run` switch of a command that acts by default.
    pub const fn of_dry_run(is_dry: bool) -> Self {
        Self::of_switch(!is_dry)
    }

    /// Tells whether the command only previews.
    pub const fn is_preview(self) -> bool {
        matches!(self, Self::Preview)
    }

    /// Tells whether the command acts.
    pub const fn is_execute(self) -> bool {
        matches!(self, Self::Execute)
    }
}
