//! The live stream of a provider: consumers, their lines, their ends. Time here is monotonic, counted from the start of the streams.

use std::time::Duration;

use crate::contract::channel::ids::ChatId;
use crate::contract::inbox::live_event::LiveEvent;
use crate::contract::inbox::stream::{ConsumerEnd, EventKey, SourceState};
use crate::port::tools::ProgramAge;

/// One running consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConsumerId(pub u32);

/// What a consumer is asked for.
#[derive(Clone, Debug)]
pub struct ConsumerSpec<'a> {
    pub key: EventKey,
    /// How long it runs by itself, in the provider's own notation.
    pub timeout: String,
    pub chats: &'a [ChatId],
}

/// What happened on the streams.
#[derive(Debug)]
pub enum StreamSignal {
    /// One event, read by the provider.
    Event(ConsumerId, LiveEvent),
    /// The consumer is registered locally; nothing is said of the connection behind it.
    Ready(ConsumerId),
    /// The connection behind all consumers changed.
    Source(SourceState),
    /// Events may have been lost.
    Warning(ConsumerId),
    /// The consumer is gone and everything it printed was read.
    Ended(ConsumerId, ConsumerEnd),
    /// This process was asked to stop.
    Stop,
}

/// A consumer could not be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotStarted;

/// The streams of one collector run.
pub trait EventStreams: ProgramAge {
    /// Starts a consumer; its process id comes with it.
    fn start(&mut self, spec: &ConsumerSpec<'_>) -> Result<(ConsumerId, u32), NotStarted>;
    /// Waits for the next signal.
    fn next(&mut self, within: Duration) -> Option<StreamSignal>;
    /// Asks a consumer to end.
    fn terminate(&mut self, id: ConsumerId);
    /// Ends a consumer.
    fn kill(&mut self, id: ConsumerId);
    /// Monotonic time since the streams were made.
    fn elapsed(&self) -> Duration;
    /// A number in 0..=1000 for the spread of pauses.
    fn spread(&self) -> u32;
    /// Names the registered consumers of a key by process id; none when the answer is not readable.
    fn registered(&self) -> Option<Vec<(EventKey, u32)>>;
    /// Ends a consumer that an earlier run left behind.
    fn end_left(&self, pid: u32);
    /// Ends the local bus, if no consumer is attached; the answer does not matter.
    fn stop_bus(&self);
    /// Says whether the local bus is sound.
    fn probe_bus(&self) -> bool;
}
