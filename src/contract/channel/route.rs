//! Where a message goes and as whom. A route is private; its key alone is public.

use std::fmt;

use super::ids::{AppId, ChatId, ProfileName};

/// One chat and the identity that speaks there, as configured and not yet checked.
#[derive(Clone, PartialEq, Eq)]
pub struct ResolvedRoute {
    pub profile: ProfileName,
    pub chat: ChatId,
    /// The name the provider must show for the sending application, exactly.
    pub display_name: String,
    pub app: Option<AppId>,
}

impl fmt::Debug for ResolvedRoute {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("<private route>")
    }
}

/// A route whose sender and membership the provider has confirmed in this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedRoute(ResolvedRoute);

impl VerifiedRoute {
    /// States that the provider confirmed the route; to be called by providers alone.
    pub fn attest(route: ResolvedRoute) -> Self {
        Self(route)
    }

    /// Returns the route.
    pub fn route(&self) -> &ResolvedRoute {
        &self.0
    }
}
