//! Stable error codes, and the fault of one object from outside.

use std::borrow::Cow;
use std::fmt;

macro_rules! error_codes {
    ($($(#[doc = $group:literal])* $name:ident => $text:literal,)+) => {
        /// Every machine code a packet can carry; `docs/errors.md` explains each.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum ErrorCode { $($name,)+ }

        impl ErrorCode {
            /// All codes, in the order of their families.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Returns the text a packet carries.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

error_codes! {
    // command line and process
    InvalidArguments => "invalid_arguments",
    InternalError => "internal_error",
    OutputUnwritable => "output_unwritable",

    // pure report contracts (docs/spec/periodic-report-core.md 12)
    InputUnreadable => "input_unreadable",
    InputUnsafe => "input_unsafe",
    InputInvalid => "input_invalid",
    DerivedValueMismatch => "derived_value_mismatch",
    ReportArtifactTooLarge => "report_artifact_too_large",

    // generate (docs/spec/generate.md 6)
    ReportGenerationNotAllowed => "report_generation_not_allowed",
    ReportSourceMissing => "report_source_missing",
    ReportSourcesFailed => "report_sources_failed",
    ReportWindowInvalid => "report_window_invalid",
    ReportTimezoneUnknown => "report_timezone_unknown",
    ReportOutConflict => "report_out_conflict",
    ReportOutUnwritable => "report_out_unwritable",
    ReportArtifactNotRendered => "report_artifact_not_rendered",

    // store (docs/spec/kernel.md 13)
    StoreBusy => "store_busy",
    StoreCorrupt => "store_corrupt",
    StoreWriteFailed => "store_write_failed",
    SchemaUnsupported => "schema_unsupported",
    LockAcquireTimeout => "lock_acquire_timeout",

    // kernel: command line, registry, quota (docs/spec/kernel.md 13)
    SettleTurnRequiresTurnBinding => "settle_turn_requires_turn_binding",
    VersionRequired => "version_required",
    InvalidContinuationRequest => "invalid_continuation_request",
    RegistryInvalid => "registry_invalid",
    RegistryRevisionMismatch => "registry_revision_mismatch",
    GoalNotFound => "goal_not_found",
    GoalExists => "goal_exists",
    AgentExists => "agent_exists",
    QuotaStateInvalidJson => "quota_state_invalid_json",
    QuotaStatePermissionDenied => "quota_state_permission_denied",
    QuotaStateIoFailed => "quota_state_io_failed",
    QuotaStateMissingField => "quota_state_missing_field",
    QuotaAgentIdInvalid => "quota_agent_id_invalid",
    QuotaAgentRegistryRosterMissing => "quota_agent_registry_roster_missing",
    QuotaAgentNotRegistered => "quota_agent_not_registered",
    HeartbeatReceiptIdentityConflict => "heartbeat_receipt_identity_conflict",
    HeartbeatReceiptWriteFailed => "heartbeat_receipt_write_failed",

    // kernel: source, dispatch, host, capture, journal
    TurnSourceIdentityMismatch => "turn_source_identity_mismatch",
    TurnSourceReceiptMismatch => "turn_source_receipt_mismatch",
    TurnSourceReceiptDuplicated => "turn_source_receipt_duplicated",
    TurnSourceUnsupportedSemantics => "turn_source_unsupported_semantics",
    TurnSourceInvalidJson => "turn_source_invalid_json",
    TurnEnvelopeUnsupportedVersion => "turn_envelope_unsupported_version",
    TurnSourceMissing => "turn_source_missing",
    TurnSourceDigestMismatch => "turn_source_digest_mismatch",
    TurnActionMismatch => "turn_action_mismatch",
    TurnIdentityMismatch => "turn_identity_mismatch",
    TurnAuthorityMismatch => "turn_authority_mismatch",
    TurnSettlementMismatch => "turn_settlement_mismatch",
    TurnKeyMismatch => "turn_key_mismatch",
    MissingTurnLineage => "missing_turn_lineage",
    TurnAdmissionRefused => "turn_admission_refused",
    HostMismatch => "host_mismatch",
    CompletionIntentMissing => "completion_intent_missing",
    TurnCaptureMissing => "turn_capture_missing",
    TurnCaptureCorrupt => "turn_capture_corrupt",
    TurnCaptureIdentityMismatch => "turn_capture_identity_mismatch",
    TurnCaptureNotRecorded => "turn_capture_not_recorded",
    TurnCaptureWriteFailed => "turn_capture_write_failed",
    TurnReplanSourceMismatch => "turn_replan_source_mismatch",
    JournalInconsistent => "journal_inconsistent",
    TurnJournalConflict => "turn_journal_conflict",
    TurnFailed => "turn_failed",
    TurnNotFound => "turn_not_found",
    OwnerMismatch => "owner_mismatch",
    GoalMismatch => "goal_mismatch",
    FailedRetryNotRequested => "failed_retry_not_requested",
    HostRetryContractInvalid => "host_retry_contract_invalid",
    HostRetryBudgetExhausted => "host_retry_budget_exhausted",
    HostRetryNotAvailable => "host_retry_not_available",
    EffectOutcomeUnknown => "effect_outcome_unknown",
    TurnLaneInFlight => "turn_lane_in_flight",

    // kernel: settlement, refresh, sinks
    ReceiptMissing => "receipt_missing",
    IdentityMismatch => "identity_mismatch",
    WritebackMissing => "writeback_missing",
    WritebackRejected => "writeback_rejected",
    QuotaSpendRejected => "quota_spend_rejected",
    PermissionDenied => "permission_denied",
    BudgetRejected => "budget_rejected",
    MalformedSettlementState => "malformed_settlement_state",
    SettleTurnNotSpendable => "settle_turn_not_spendable",
    CommittedWritebackPayloadConflict => "committed_writeback_payload_conflict",
    CommittedVisionDecisionConflict => "committed_vision_decision_conflict",
    CheckpointSupersededByLaterVision => "checkpoint_superseded_by_later_vision",
    CheckpointSupplementMustNotRepeatMutations => "checkpoint_supplement_must_not_repeat_mutations",
    VisionBudgetExceeded => "vision_budget_exceeded",
    ReplanDeltaNotAccepted => "replan_delta_not_accepted",
    ReplanObligationMismatch => "replan_obligation_mismatch",
    StateFileOutsideProject => "state_file_outside_project",
    ExternalDeliveryResumeRequired => "external_delivery_resume_required",
    ExternalDeliveryResumeMismatch => "external_delivery_resume_mismatch",
    ExternalDeliveryHistoryInvalid => "external_delivery_history_invalid",

    // kernel: todos, gates, leases, handoff, backup
    TodoNotFound => "todo_not_found",
    TodoNotOpen => "todo_not_open",
    ClaimOwnerMismatch => "claim_owner_mismatch",
    GateDecisionRequired => "gate_decision_required",
    TodoLeaseConflict => "todo_lease_conflict",
    WriteScopeConflict => "write_scope_conflict",
    IdempotencyKeyReuse => "idempotency_key_reuse",
    VersionMismatch => "version_mismatch",
    LeaseNotActive => "lease_not_active",
    ActorNotRegistered => "actor_not_registered",
    TargetAgentNotRegistered => "target_agent_not_registered",
    ContinuationOwnerRequired => "continuation_owner_required",
    ContinuationNotReady => "continuation_not_ready",
    ProviderRevisionMismatch => "provider_revision_mismatch",
    OperationIdConflict => "operation_id_conflict",
    ContinuationLeaseUnsupported => "continuation_lease_unsupported",
    BackupCorrupt => "backup_corrupt",
    BackupTargetNotEmpty => "backup_target_not_empty",
    RestoreTargetNotEmpty => "restore_target_not_empty",
    BackupNothingFound => "backup_nothing_found",
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl serde::Serialize for ErrorCode {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(self.as_str())
    }
}

/// One fault of an object from outside: which place, and what is wrong with it.
///
/// It never holds the offending value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at} {reason}")]
pub struct ContractError {
    /// The machine code of the refusal.
    pub code: ErrorCode,
    /// The place, such as `candidates[3].source_ref`.
    pub at: String,
    /// What is wrong, as the rest of a sentence.
    pub reason: Cow<'static, str>,
}

impl ContractError {
    /// Says that a value breaks its contract.
    pub fn invalid(at: impl fmt::Display, reason: impl Into<Cow<'static, str>>) -> Self {
        Self::coded(ErrorCode::InputInvalid, at, reason)
    }

    /// Says that a given id, key or digest differs from the one that follows from the input.
    pub fn mismatch(at: impl fmt::Display, reason: impl Into<Cow<'static, str>>) -> Self {
        Self::coded(ErrorCode::DerivedValueMismatch, at, reason)
    }

    /// Says what is wrong under a code of its own.
    pub fn coded(
        code: ErrorCode,
        at: impl fmt::Display,
        reason: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            code,
            at: at.to_string(),
            reason: reason.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn codes_are_unique_snake_case() {
        let mut seen = HashSet::new();
        for code in ErrorCode::ALL {
            let text = code.as_str();
            assert!(seen.insert(text), "{text} twice");
            let plain =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
            assert!(text.bytes().all(plain), "{text}");
        }
    }
}
