//! The clock. The wall clock is read here and nowhere else.

use chrono::Utc;

use crate::contract::time::Timestamp;

/// Tells the instant of a command.
pub trait Clock {
    /// The current instant.
    fn now(&self) -> Timestamp;
}

/// The machine's clock, or a fixed instant in test builds.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    fixed: Option<Timestamp>,
}

impl SystemClock {
    /// The machine's clock; `fixed` is the value of the test hook, absent in every other build.
    pub fn new(fixed: Option<&str>) -> Self {
        Self {
            fixed: fixed.and_then(Timestamp::parse),
        }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        self.fixed
            .unwrap_or_else(|| Timestamp::from_utc(Utc::now()))
    }
}
