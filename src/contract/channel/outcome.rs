//! What a command did outside, as far as anybody can know.

use serde::Serialize;

/// The sum over all provider writes of one command: unknown beats performed beats none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExternalWriteOutcome {
    /// No write left this machine.
    #[default]
    None,
    /// At least one write happened and none is uncertain.
    Performed,
    /// At least one write may have happened.
    Unknown,
}

impl ExternalWriteOutcome {
    /// Returns the outcome of this and another write together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.max(other)
    }

    /// Tells whether something happened or may have happened.
    pub fn touched(self) -> bool {
        self != Self::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_write_outweighs_a_performed_one() {
        use ExternalWriteOutcome::{None, Performed, Unknown};
        assert_eq!(None.and(Performed).and(Unknown).and(Performed), Unknown);
        assert_eq!(Performed.and(None), Performed);
        assert!(Unknown.touched() && Performed.touched() && !None.touched());
    }
}
