//! The clock. The wall clock is read here and nowhere else.

use chrono::Utc;

use crate::contract::time::Timestamp;

/// Tells the instant of a command.
pub trait Clock {
    /// The current instant.
    fn now(&self) -> Timestamp;
}

/// The machine's clock, or the instant a test set in test builds.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    hook: fn() -> Option<String>,
}

impl SystemClock {
    /// The machine's clock; `hook` gives the instant a test set instead, looked at in every reading and absent in every
    /// other build.
    pub fn new(hook: fn() -> Option<String>) -> Self {
        Self { hook }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let set = (self.hook)();
        set.and_then(|text| Timestamp::parse(text.trim()))
            .unwrap_or_else(|| Timestamp::from_utc(Utc::now()))
    }
}
