//! Where in an input a value stands.

use std::fmt;

/// The place of a value inside an input, such as `candidates[3].facts`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label(String);

impl Label {
    /// The whole input.
    pub fn root() -> Self {
        Self(String::new())
    }

    /// A named start, for a value that is not the whole input.
    pub fn named(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// A member of this place.
    pub fn field(&self, name: &str) -> Self {
        if self.0.is_empty() {
            return Self(name.to_owned());
        }
        Self(format!("{}.{name}", self.0))
    }

    /// An item of this place.
    pub fn item(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }
}

impl fmt::Display for Label {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.0.is_empty() {
            "the input"
        } else {
            &self.0
        })
    }
}
