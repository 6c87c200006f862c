//! What waits in the inboxes of a goal, in counts alone (`docs/spec/lark-inbox.md` 5.3).

use serde_json::{Value, json};

use crate::contract::time::Timestamp;

/// The urgency of one inbox.
pub const URGENCY_V0: &str = "lark_event_inbox_urgency_v0";
/// The urgency of a collector's inboxes together.
pub const URGENCY_V1: &str = "lark_event_inbox_urgency_v1";

/// The routes that were looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UrgencyRoutes {
    pub total: usize,
    pub disabled: usize,
}

/// What waits; an addressed message wants a reply, any other one a look when its inbox is reviewed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Urgency {
    pub pending: u64,
    pub attention: u64,
    pub direct_question: u64,
    pub direct_mention: u64,
    pub reply_to_bot: u64,
    /// Not addressed, in inboxes that are reviewed.
    pub material: u64,
    pub material_attachment: u64,
    /// When the oldest pending message was posted.
    pub oldest: Option<Timestamp>,
    /// How many messages one review takes at most; none when no inbox is reviewed.
    pub review_limit: Option<u32>,
}

impl Urgency {
    /// Says whether somebody waits for an answer.
    pub const fn is_reply_due(&self) -> bool {
        self.attention > 0
    }

    /// Returns the packet.
    pub fn to_value(&self, routes: Option<UrgencyRoutes>, now: Timestamp) -> Value {
        let age = self.oldest.map(|oldest| now.seconds_since(oldest).max(0));
        let mut packet = json!({
            "schema_version": if routes.is_some() { URGENCY_V1 } else { URGENCY_V0 },
            "pending_count": self.pending,
            "direct_question_count": self.direct_question,
            "direct_mention_count": self.direct_mention,
            "reply_to_bot_count": self.reply_to_bot,
            "attention_required_count": self.attention,
            "material_review_count": self.material,
            "material_attachment_count": self.material_attachment,
            "oldest_pending_at": self.oldest,
            "oldest_pending_age_seconds": age,
            "reply_due": self.is_reply_due(),
            "material_review_due": self.material > 0,
            "material_review_drain_limit": self.review_limit,
        });
        if let Some(routes) = routes {
            packet["route_count"] = json!(routes.total);
            packet["disabled_route_count"] = json!(routes.disabled);
            packet["chat_ids_returned"] = json!(false);
            packet["profiles_returned"] = json!(false);
        }
        packet
    }
}
