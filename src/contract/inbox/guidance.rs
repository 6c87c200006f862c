//! What the owner of an inbox asks of its messages, as a writer has to look at before a message of a named purpose leaves.

use serde::Serialize;
use serde_json::json;

use super::config::ReplyGuidance;
use crate::contract::digest;

/// What a message is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MessagePurpose {
    #[default]
    Unspecified,
    Help,
    Progress,
    Urgent,
}

/// Whether a message may leave under its guidance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GuidanceDecision {
    ContinueDelivery,
    AgentReviewRequired,
}

/// Guidance for one message; public: it names a purpose and a style, no word of the message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Guidance {
    pub decision: GuidanceDecision,
    pub message_purpose: MessagePurpose,
    #[serde(flatten)]
    pub guidance: ReplyGuidance,
    pub guidance_digest: String,
}

impl Guidance {
    /// Tells whether the message has to be looked at again first.
    pub fn holds_back(&self) -> bool {
        self.decision == GuidanceDecision::AgentReviewRequired
    }
}

/// Returns the digest a writer names after looking at the guidance of a purpose.
pub fn digest_of(guidance: ReplyGuidance, purpose: MessagePurpose) -> String {
    let whole = json!({
        "message_purpose": purpose,
        "placement_policy": guidance.placement_policy,
        "editorial_style": guidance.editorial_style,
    });
    // An object of texts always has a canonical form.
    digest::digest(&whole).map_or_else(|_| String::new(), |digest| digest.to_string())
}
