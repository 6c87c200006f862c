//! What inbox flows need from outside; built once at the door and opened lazily.

use std::path::PathBuf;

use crate::contract::channel::ids::ProfileName;
use crate::contract::inbox::comment::CommentConfig;
use crate::port::channel::{ChannelProvider, ChannelReader, ProgramChoice};
use crate::port::comments::CommentSource;
use crate::port::events::EventStreams;
use crate::port::tools::TooOld;

/// The chat provider of one command.
pub struct Chat {
    /// All that messages, marks and history need.
    pub channel: Box<dyn ChannelProvider>,
    /// A person's own view of chats behind the same program.
    pub reader: Box<dyn ChannelReader>,
}

/// Opens the chat provider of a command.
pub trait Channels {
    /// Opens the provider behind the configured program, or the usual one. A program that is there and too old is refused here, before
    /// it is asked anything else, under the profile of the calls that follow; whether one is there at all, the first of them says.
    fn open(&self, program: Option<String>, profile: Option<&ProfileName>) -> Result<Chat, TooOld>;
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
