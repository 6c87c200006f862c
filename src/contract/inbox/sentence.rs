//! What a packet that did not do what was asked says to a reader, by its code.

use serde_json::{Value, json};

/// Before the codes of one command whose rest two commands share.
const PREFIXES: [&str; 2] = ["lark_outbound_message_", "lark_inbox_reply_"];

/// The sentence of a code that has no other one.
const OTHER: &str =
    "the command did not do what was asked; look `error_code` up in docs/guide/lark-inbox-codes.md";

/// The codes that no refusal has, only a packet of their own, and what to do next.
pub const SENTENCES: &[(&str, &str)] = &[
    (
        "sender_unconfigured",
        "the inbox config has no enabled reply block; add one with profile, bot name and chat",
    ),
    (
        "provider_unavailable",
        "lark-cli could not be started; install 1.0.69 or newer and look at `loopx doctor`",
    ),
    (
        "sender_identity_mismatch",
        "the signed-in bot is not the configured one, or could not be asked; compare its name and app with the reply block",
    ),
    (
        "sender_not_in_configured_chat",
        "the bot does not see the configured chat; add it to the group or correct chat_id",
    ),
    (
        "mention_identity_unresolved",
        "a mentioned identity is not among the members of the chat; correct the mention",
    ),
    (
        "provider_preview_mismatch",
        "the provider would send another text than the given one; nothing was sent",
    ),
    (
        "provider_failed",
        "the provider refused the message; nothing was sent, run the command again",
    ),
    (
        "delivery_outcome_unknown",
        "nobody knows whether the message arrived; run the same command with the same text again",
    ),
    (
        "not_verified",
        "the message was accepted, but did not read back as it was meant; run the same command again",
    ),
    (
        "reaction_cleanup_pending",
        "the reply is verified and a mark is left; run `reaction-complete`, never a second reply",
    ),
    (
        "dedicated_bot_identity_required",
        "the inbox config has no enabled reply block; add one with profile, bot name and chat",
    ),
    (
        "dedicated_bot_identity_mismatch",
        "the signed-in bot is not the configured one; compare its name and app with the reply block",
    ),
    (
        "reviewer_notification_destination_unavailable",
        "the configured chat cannot be seen; add the bot to the group or correct chat_id",
    ),
    (
        "reviewer_notification_identity_unresolved",
        "a reviewer is not among the members of the chat; correct the mention",
    ),
    (
        "reviewer_notification_reader_auth_required",
        "the search needs a signed-in person; name the profile with --reader-profile",
    ),
    (
        "reviewer_notification_provider_failed",
        "the provider refused; nothing was sent, run the command again",
    ),
    (
        "reviewer_notification_provider_unavailable",
        "lark-cli could not be started or did not answer; install 1.0.69 or newer and look at `loopx doctor`",
    ),
    (
        "reviewer_notification_dedupe_readback_failed",
        "the search for an earlier notification could not be read; give its scope and run the command again",
    ),
    (
        "lark_bot_group_access_required",
        "the bot may not read the chat; add it to the group and give it the scope",
    ),
    (
        "lark_notification_delivery_outcome_unknown",
        "nobody knows whether the notification arrived; run the same command again",
    ),
    (
        "lark_notification_provider_preview_mismatch",
        "the provider would send another text than the given one; nothing was sent",
    ),
    (
        "lark_notification_not_verified",
        "the notification was accepted, but did not read back as it was meant; run the same command again",
    ),
    (
        "group_history_permission_required",
        "the app may not read messages of groups; give it im:message.group_msg",
    ),
    (
        "group_history_authorization_required",
        "the profile is not signed in; sign it in with lark-cli",
    ),
    (
        "group_history_provider_failed",
        "the provider refused the page; run the command again, or move the cursor aside if its token has expired",
    ),
    (
        "group_history_provider_unavailable",
        "lark-cli could not be started or did not answer; install 1.0.69 or newer and look at `loopx doctor`",
    ),
    (
        "group_history_provider_payload_invalid",
        "the answer was not what this call answers; look at the version of lark-cli with `loopx doctor`",
    ),
    (
        "group_history_thread_incomplete",
        "a thread could not be read to its end; run the same command again",
    ),
    (
        "group_history_inbox_readback_failed",
        "a stored message belongs to another route; restore the configuration it was stored under",
    ),
    (
        "group_history_cursor_commit_failed",
        "the position could not be written; free space or repair the folder, then run the same command again",
    ),
    (
        "dependency_missing",
        "lark-cli is missing; install 1.0.69 or newer where the service finds it",
    ),
    (
        "dependency_incompatible",
        "lark-cli is missing or too old; install 1.0.69 or newer and look at `loopx doctor`",
    ),
    (
        "supervisor_start_failed",
        "the service file is written, but the supervisor did not start it; look at its state and run the command again",
    ),
    (
        "no_enabled_route",
        "every route is switched off; enable one",
    ),
    (
        "permission_probe_unknown",
        "nobody could say which scopes are granted; look at lark-cli with `loopx doctor`, then run the command again",
    ),
    (
        "permission_probe_invalid",
        "the answer about scopes was not what this call answers; look at the version of lark-cli",
    ),
    (
        "permission_probe_identity_mismatch",
        "the profile is not the configured identity; sign it in",
    ),
    (
        "lark_document_comment_cli_unsupported",
        "lark-cli is missing or older than 1.0.69; install a newer one",
    ),
    (
        "connector_address_filter_unsupported",
        "a document has no address filter; choose another capture_policy",
    ),
    (
        "lark_document_comment_permission_required",
        "the identity may not read or write the comments; give it the scopes and the document",
    ),
    (
        "lark_document_comment_authorization_required",
        "the profile is not signed in; sign it in with lark-cli",
    ),
    (
        "lark_document_comment_list_failed",
        "the comments could not be listed; run the command again",
    ),
    (
        "lark_document_comment_replies_failed",
        "the replies could not be read; run the command again",
    ),
    (
        "lark_document_comment_reply_failed",
        "the provider refused the answer; nothing was written, run the command again",
    ),
    (
        "lark_document_comment_response_invalid",
        "the answer was not what this call answers; look at the version of lark-cli",
    ),
    (
        "comment_reply_not_supported",
        "a solved comment or one on the whole document takes no answer",
    ),
    (
        "comment_reply_text_invalid",
        "an answer has 1 to 1200 characters",
    ),
    (
        "reply_receipt_digest_mismatch",
        "this comment was answered with another text; repeat that text",
    ),
    (
        "comment_reply_recovery_pending",
        "nobody knows whether the answer arrived; run the same command again",
    ),
    (
        "verified_response_required",
        "this comment has no verified answer yet; give one with `lark-inbox document-comment-reply` first",
    ),
    (
        "material_review_receipt_conflict",
        "this message was settled with another effect; its first receipt stands, look at it before anything else is done",
    ),
    (
        "material_review_receipt_missing_for_processed_event",
        "this message was acknowledged without a receipt of its review; nothing is to be settled",
    ),
    (
        "durable_effect_required",
        "a review is settled by an effect that is recorded elsewhere; name its kind and reference, or say why there is none",
    ),
    (
        "attention_required",
        "the document is switched off, or its inbox cannot be read; look at its configuration and at `loopx doctor`",
    ),
    (
        "comment_reply_readback_failed",
        "the answer did not read back as it was meant; run the same command again",
    ),
    (
        "lark_inbox_processing_reaction_operation_config_changed",
        "the mark under way is another one than the configured one; restore the configuration first",
    ),
    (
        "lark_inbox_processing_reaction_provider_outcome_uncertain",
        "nobody knows whether the mark was given; look at the message, none is given twice",
    ),
    (
        "lark_inbox_processing_reaction_create_failed",
        "the mark was refused; nothing was given, run the command again",
    ),
    (
        "lark_inbox_processing_reaction_operation_receipt_failed",
        "the mark was given and could not be recorded; look at the message, run the command again",
    ),
    (
        "lark_inbox_processing_reaction_receipt_failed",
        "the mark is given and its receipt is missing; run the command again",
    ),
    (
        "lark_inbox_received_reaction_delete_failed",
        "the received mark is left; run the command again",
    ),
    (
        "lark_inbox_reaction_delete_failed",
        "a mark is left; run the command again",
    ),
];

/// Returns what a code says to a reader.
pub fn of(code: &str) -> &'static str {
    let rest = PREFIXES
        .iter()
        .find_map(|prefix| code.strip_prefix(prefix))
        .unwrap_or(code);
    let mut table = SENTENCES.iter();
    table
        .find(|(known, _)| *known == rest)
        .map_or(OTHER, |(_, sentence)| sentence)
}

/// Gives a packet that did not do what was asked its sentence.
pub fn explained(mut packet: Value) -> Value {
    let is_silent = packet.get("ok") == Some(&Value::Bool(false)) && packet["error"].is_null();
    if is_silent && packet.is_object() {
        let code = packet["error_code"].as_str().unwrap_or_default();
        packet["error"] = json!(of(code));
    }
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_of_either_command_has_the_sentence_of_its_rest() {
        let of_send = of("lark_outbound_message_provider_unavailable");
        assert_eq!(of_send, of("lark_inbox_reply_provider_unavailable"));
        assert!(of_send.contains("install"), "{of_send}");
        assert_eq!(of("x"), OTHER);
    }

    #[test]
    fn only_a_silent_refusal_is_explained() {
        let refused = json!({"ok": false, "error_code": "dependency_missing"});
        assert!(explained(refused)["error"].is_string());
        let spoken = json!({"ok": false, "error_code": "x", "error": "own words"});
        assert_eq!(explained(spoken.clone()), spoken);
        assert_eq!(explained(json!({"ok": true})), json!({"ok": true}));
    }
}
