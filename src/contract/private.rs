//! Values that must never leave the process in public text.

use std::fmt;

/// A value that is not serialised and prints as `<private>`.
///
/// Provider identities, profiles, message bodies and cursors are wrapped. Only providers, the
/// private documents of the store and the digest recipes may look inside.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Private<T>(T);

impl<T> Private<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// Returns the wrapped value; the callers are limited by the house test.
    pub const fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Private<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("<private>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_text_never_shows_the_value() {
        assert_eq!(format!("{:?}", Private::new("oc_secret")), "<private>");
    }
}
