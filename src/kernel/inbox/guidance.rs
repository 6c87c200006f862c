//! Does a message have to be looked at again before it leaves? `docs/spec/lark-inbox.md` 6.4, step 5.
//!
//! Only where the owner wrote a style, and only for a message whose writer names a purpose or says that guidance was reviewed.

use crate::contract::inbox::config::ReplyConfig;
use crate::contract::inbox::config::ReplyGuidance;
use crate::contract::inbox::guidance::{Guidance, GuidanceDecision, MessagePurpose, digest_of};

/// Consults the guidance of an inbox; none when there is nothing to look at.
pub fn consult(
    reply: &ReplyConfig,
    guidance: ReplyGuidance,
    purpose: MessagePurpose,
    reviewed: Option<&str>,
) -> Option<Guidance> {
    let is_asked = purpose != MessagePurpose::Unspecified || reviewed.is_some();
    if !reply.has_written_style || !is_asked {
        return None;
    }
    let guidance_digest = digest_of(guidance, purpose);
    let decision = match reviewed == Some(guidance_digest.as_str()) {
        true => GuidanceDecision::ContinueDelivery,
        false => GuidanceDecision::AgentReviewRequired,
    };
    Some(Guidance {
        decision,
        message_purpose: purpose,
        guidance,
        guidance_digest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::inbox::config::InboxConfig;
    use serde_json::{Value, json};

    fn consulted(
        style: Value,
        purpose: MessagePurpose,
        reviewed: Option<&str>,
    ) -> Option<Guidance> {
        let mut reply = json!({"enabled": true, "sender_profile": "bot", "sender_identity": "bot", "bot_display_name": "Bot",
            "chat_id": "oc_1"});
        if !style.is_null() {
            reply["editorial_style"] = style;
        }
        let config = InboxConfig::parse(
            &json!({"schema_version": "lark_event_inbox_config_v0", "enabled": true,
            "inbox_dir": ".loopx/inbox/a", "reply": reply}),
        )
        .expect("valid");
        let reply = config.reply.as_ref().expect("enabled");
        consult(reply, config.guidance, purpose, reviewed)
    }

    #[test]
    fn without_a_written_style_or_a_purpose_nothing_is_held_back() {
        assert_eq!(
            consulted(Value::Null, MessagePurpose::Urgent, Some("x")),
            None
        );
        assert_eq!(
            consulted(json!("concise"), MessagePurpose::Unspecified, None),
            None
        );
    }

    #[test]
    fn a_message_waits_until_its_writer_names_the_digest_of_its_own_guidance() {
        let held = consulted(json!("concise"), MessagePurpose::Progress, None).expect("guidance");
        assert!(held.holds_back());
        let of = |style: &str, purpose| {
            let digest = Some(held.guidance_digest.as_str());
            consulted(json!(style), purpose, digest).expect("guidance")
        };
        assert!(!of("concise", MessagePurpose::Progress).holds_back());
        assert!(of("concise", MessagePurpose::Help).holds_back());
        assert!(of("bullet_points_preferred", MessagePurpose::Progress).holds_back());
    }
}
