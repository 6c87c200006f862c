//! What inbox flows need from outside; built once at the door and opened lazily.

use std::path::PathBuf;

use crate::contract::channel::ids::ProfileName;
use crate::contract::inbox::comment::CommentConfig;
use crate::port::channel::{ChannelProvider, ChannelReader, ProgramChoice};
use crate::port::comments::CommentSource;
use crate::port::events::EventStreams;
use crate::port::tools::{ProgramAge, TooOld};

/// The chat provider of one command.
pub struct Chat {
    /// All that messages, marks and history need.
    pub channel: Box<dyn ChannelProvider>,
    /// A person's own view of chats behind the same program.
    pub reader: Box<dyn ChannelReader>,
    /// Whether that program is too old.
    pub age: Box<dyn ProgramAge>,
}

impl Chat {
    /// Refuses to answer with the failure of a program that is too old for what it was asked.
    pub(super) fn refuse_old(&self) -> Result<(), TooOld> {
        self.age.outdated().map_or(Ok(()), Err)
    }
}

/// Opens the chat provider of a command.
pub trait Channels {
    /// Opens the provider behind the configured program, or the usual one; nothing is started yet.
    fn open(&self, program: Option<String>) -> Chat;
}

/// Makes the providers of a collector and of documents too.
pub trait Providers: Channels {
    /// The live streams of a profile; from now on a stop signal of this process is a message of them.
    fn streams(
        &self,
        program: Option<String>,
        profile: ProfileName,
        cwd: PathBuf,
    ) -> Box<dyn EventStreams>;
    /// The comments of a configured document.
    fn comments(&self, config: &CommentConfig) -> Box<dyn CommentSource>;
    /// Says whether the local bus of a profile is sound.
    fn probe(
        &self,
        program: Option<String>,
        profile: ProfileName,
        cwd: PathBuf,
    ) -> Result<bool, TooOld>;
    /// Finds the provider program: absolute, with its interpreter where it is a script.
    fn locate(&self, program: &str) -> Option<ProgramChoice>;
    /// Says whether the program is one that collectors can use.
    fn is_compatible(&self, program: &str, profile: &ProfileName) -> Result<bool, TooOld>;
}
