//! What a new application of a provider should ask for at once. A list is an aid to ask with; nothing here grants anything.

use serde::Serialize;

/// Scopes that serve one purpose, in the order in which they are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ScopeGroup {
    /// The purpose.
    pub group: &'static str,
    /// An administrator has to approve them.
    pub sensitive: bool,
    /// The names at the provider.
    pub scopes: &'static [&'static str],
}

/// What a provider recommends; empty for an extension that needs no application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeAdvice {
    /// The scopes by purpose.
    pub groups: &'static [ScopeGroup],
    /// The page that asks for all of them.
    pub apply_url: Option<String>,
}
