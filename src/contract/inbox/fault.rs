//! Why an inbox command refuses. Every sentence is ours: it holds no id, no path and no provider text.

use crate::contract::channel::ids::RouteKey;
use crate::contract::channel::outbound::TextFault;
use crate::contract::error::ContractError;

/// A refusal of an inbox command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InboxFault {
    #[error("lark inbox requires --config or --goal-id")]
    ContextRequired,
    #[error("goal does not configure a Lark event inbox")]
    NotConfigured,
    #[error("goal is not known to the registry")]
    GoalUnknown,
    #[error("the registry is not readable; repair it and try again")]
    RegistryInvalid,
    #[error(
        "the configuration file that --config, the goal or a route names is missing; name an existing file inside the project"
    )]
    ConfigMissing,
    #[error("the named configuration file is not one JSON object")]
    ConfigUnreadable,
    #[error("the named configuration file must stay inside the project")]
    ConfigOutside,
    #[error("lark inbox directory must stay inside the project")]
    InboxOutside,
    #[error(
        "lark inbox config (lark_event_inbox_config_v0, or lark_event_collector_config_v1 for a collector): {0}"
    )]
    Config(ContractError),
    #[error("lark document comment config (lark_document_comment_config_v0): {0}")]
    CommentConfig(ContractError),
    #[error("lark inbox config schema is newer than this program; use a newer loopx")]
    ConfigSchemaUnsupported,
    #[error("lark event inbox is not enabled")]
    NotEnabled,
    #[error("the addressed Lark inbox route is switched off; enable its inbox config first")]
    RouteDisabled(RouteKey),
    #[error("this command needs a lark collector config")]
    CollectorConfigRequired,
    #[error("lark collector config: {0}")]
    Collector(ContractError),
    #[error("lark collector config: {0}")]
    CollectorRule(&'static str),
    #[error("lark collector config must be ignored and untracked")]
    ConfigTracked,
    #[error("lark collector config must lie under .loopx/config outside a git work tree")]
    ConfigMisplaced,
    #[error("lark collector config could not be checked with git")]
    GitProbeFailed,
    #[error("ingest requires JSON or one JSON object per line on standard input")]
    InputUnreadable,
    #[error("ingest requires at least one event on standard input")]
    InputEmpty,
    #[error("ack requires valid Lark message ids")]
    AckIds,
    #[error("message id must resolve to exactly one configured Lark inbox route")]
    RouteUnresolved,
    #[error("routed Lark inbox item route_key must match its configured route")]
    RouteMismatch,
    #[error("routed Lark outbound send requires exactly one configured route_key")]
    RouteKeyRequired,
    #[error("history catch-up requires one configured route_key")]
    RouteKeyUnknown,
    #[error("single Lark inbox accepts only the default route")]
    DefaultRouteOnly,
    #[error("lark inbox reply source message is not captured by this inbox")]
    SourceNotCaptured,
    #[error("reviewer notification requires a structured mention of every reviewer")]
    ReviewerMentionRequired,
    #[error("pull-request-url must be one https address")]
    PullRequestAddress,
    #[error("reader-profile must be a profile name other than the default one")]
    ReaderProfile,
    #[error("processing requires a captured pending inbox message")]
    ProcessingSource,
    #[error("{}", text_sentence(*.0))]
    Text(#[from] TextFault),
    #[error("lark inbox material_review is not enabled")]
    ReviewDisabled,
    #[error("material review message is not captured")]
    ReviewNotCaptured,
    #[error("material review accepts either effect_receipt or no_follow_up_reason")]
    ReviewBoth,
    #[error("material review requires effect_receipt or no_follow_up_reason")]
    ReviewNeither,
    #[error("material review no_follow_up_reason is too long")]
    ReviewReasonLong,
    #[error("material review effect_receipt is not valid: {0}")]
    ReviewReceipt(ContractError),
    #[error("addressed Lark events must use the reply_due settlement path")]
    ReviewAddressed,
    #[error("start must include a timezone")]
    StartZone,
    #[error("start must be an RFC 3339 instant")]
    StartInvalid,
    #[error("Lark group-history start must be earlier than now")]
    StartNotPast,
    #[error("active Lark group-history catch-up requires the same start")]
    StartDiffers,
    #[error("Lark group-history earlier-start backfill is already used")]
    EarlierUsed,
    #[error("Lark group-history cursor route binding changed")]
    CursorRoute,
    #[error("Lark group-history cursor source binding changed")]
    CursorSource,
    #[error("Lark group-history cursor is not valid; restore it or move it aside")]
    CursorInvalid,
    #[error("Lark group-history cursor schema is newer than this program; use a newer loopx")]
    CursorSchemaUnsupported,
    #[error("cannot install a disabled lark collector")]
    InstallDisabled,
    #[error("lark collector is not enabled")]
    CollectorDisabled,
    #[error("lark collector has no enabled route")]
    NoEnabledRoute,
    #[error("this lark collector profile is already collected by another installed service")]
    ProfileCollected,
    #[error("operation callback collection requires the pinned runtime root")]
    RuntimeNotPinned,
    #[error("collector route_key is already bound differently")]
    ReconcileKey,
    #[error("collector chat_id is already bound to another route")]
    ReconcileChat,
    #[error("collector event_inbox_config is already bound to another route")]
    ReconcileConfig,
    #[error("collector routes must use independent event inbox paths")]
    ReconcilePath,
    #[error("collector accepts at most 50 routes")]
    ReconcileFull,
    #[error("route reconcile requires a v1 collector config")]
    ReconcileVersion,
    #[error("collector route reconcile was rolled back")]
    ReconcileRolledBack,
    #[error("collector route reconcile rollback was not verified")]
    ReconcileRollbackUnverified,
    #[error("document comment event is not captured")]
    CommentNotCaptured,
    #[error("document comment config is not enabled")]
    CommentDisabled,
    #[error("document comment response is not enabled")]
    CommentResponseDisabled,
}

/// Says what is wrong with a text. Two sentences are fixed for the commands of this inbox (`docs/spec/lark-inbox.md` 6.1); the others
/// are those of every chat.
fn text_sentence(fault: TextFault) -> String {
    match fault {
        TextFault::Empty => "lark inbox reply requires non-empty text".to_owned(),
        TextFault::AmbiguousKind => "Lark mention identity kind is ambiguous".to_owned(),
        other => other.to_string(),
    }
}

impl InboxFault {
    /// Returns the machine code.
    #[allow(clippy::too_many_lines, reason = "a flat table")]
    pub const fn error_code(&self) -> &'static str {
        match self {
            Self::ContextRequired => "inbox_context_required",
            Self::NotConfigured => "inbox_not_configured",
            Self::GoalUnknown => "goal_not_found",
            Self::RegistryInvalid => "registry_invalid",
            Self::ConfigMissing => "inbox_config_missing",
            Self::ConfigUnreadable => "inbox_config_unreadable",
            Self::ConfigOutside => "inbox_config_outside_project",
            Self::InboxOutside => "inbox_outside_project",
            Self::Config(_) | Self::CommentConfig(_) => "inbox_config_invalid",
            Self::ConfigSchemaUnsupported | Self::CursorSchemaUnsupported => "schema_unsupported",
            Self::NotEnabled => "inbox_not_enabled",
            Self::RouteDisabled(_) => "lark_inbox_route_disabled",
            Self::CollectorConfigRequired => "collector_config_required",
            Self::Collector(_) | Self::CollectorRule(_) => "collector_config_invalid",
            Self::ConfigTracked => "collector_config_tracked",
            Self::ConfigMisplaced => "collector_config_misplaced",
            Self::GitProbeFailed => "git_probe_failed",
            Self::InputUnreadable => "input_unreadable",
            Self::InputEmpty => "input_empty",
            Self::AckIds => "message_ids_invalid",
            Self::RouteUnresolved => "message_route_unresolved",
            Self::RouteMismatch => "item_route_mismatch",
            Self::RouteKeyRequired => "route_key_required",
            Self::RouteKeyUnknown => "route_key_unknown",
            Self::DefaultRouteOnly => "route_key_not_default",
            Self::SourceNotCaptured => "source_message_not_captured",
            Self::ProcessingSource => "message_not_pending",
            Self::ReviewDisabled => "material_review_not_enabled",
            Self::ReviewNotCaptured => "material_review_message_not_captured",
            Self::ReviewBoth => "material_review_effect_ambiguous",
            Self::ReviewNeither => "material_review_effect_required",
            Self::ReviewReasonLong => "material_review_reason_too_long",
            Self::ReviewReceipt(_) => "material_review_receipt_invalid",
            Self::ReviewAddressed => "material_review_message_addressed",
            Self::StartZone | Self::StartInvalid => "history_start_invalid",
            Self::StartNotPast => "history_start_not_past",
            Self::StartDiffers => "history_start_differs",
            Self::EarlierUsed => "history_earlier_start_used",
            Self::CursorRoute => "history_cursor_route_changed",
            Self::CursorSource => "history_cursor_source_changed",
            Self::CursorInvalid => "history_cursor_invalid",
            Self::InstallDisabled | Self::CollectorDisabled => "collector_not_enabled",
            Self::NoEnabledRoute => "collector_no_enabled_route",
            Self::ProfileCollected => "profile_already_collected",
            Self::RuntimeNotPinned => "pinned_runtime_required",
            Self::ReconcileKey => "reconcile_route_key_bound",
            Self::ReconcileChat => "reconcile_chat_bound",
            Self::ReconcileConfig => "reconcile_config_bound",
            Self::ReconcilePath => "reconcile_inbox_path_bound",
            Self::ReconcileFull => "reconcile_route_limit",
            Self::ReconcileVersion => "reconcile_config_version",
            Self::ReconcileRolledBack => "reconcile_rolled_back",
            Self::ReconcileRollbackUnverified => "reconcile_rollback_unverified",
            Self::CommentNotCaptured => "comment_event_not_captured",
            Self::CommentDisabled => "comment_config_not_enabled",
            Self::CommentResponseDisabled => "comment_response_not_enabled",
            Self::ReviewerMentionRequired => "reviewer_mention_required",
            Self::PullRequestAddress => "pull_request_url_invalid",
            Self::ReaderProfile => "reader_profile_invalid",
            Self::Text(fault) => fault.error_code(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inbox_has_two_sentences_of_its_own_and_a_chat_names_no_provider() {
        let said = |fault: TextFault| InboxFault::from(fault).to_string();
        assert_eq!(
            said(TextFault::Empty),
            "lark inbox reply requires non-empty text"
        );
        assert_eq!(
            said(TextFault::AmbiguousKind),
            "Lark mention identity kind is ambiguous"
        );
        assert_eq!(said(TextFault::TooLong), TextFault::TooLong.to_string());
        assert_eq!(
            TextFault::Empty.to_string(),
            "a message requires non-empty text"
        );
    }
}
