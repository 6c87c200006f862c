//! Fixed names on the wire and on disk that no other file of the contract owns.

/// The schema of an outgoing message's record.
pub const ATTEMPT: &str = "lark_outbound_attempt_v0";
/// The schema of the export of processed ids.
pub const PROCESSED: &str = "lark_event_inbox_processed_v0";
/// The schema of the export of revisions.
pub const REVISIONS: &str = "lark_event_inbox_revisions_v0";
/// The schema of the export of material receipts.
pub const MATERIAL_LEDGER: &str = "lark_material_review_ledger_v0";
/// The schema of the export of mark receipts.
pub const MARK_RECEIPTS: &str = "lark_event_inbox_reaction_receipts_v0";
/// The schema of the journal of a received mark.
pub const RECEIVED_OPERATION: &str = "lark_event_inbox_received_operation_v0";
/// The schema of the journal of a processing mark.
pub const PROCESSING_OPERATION: &str = "lark_event_inbox_processing_operation_v0";
/// The schema of the export of comment answers.
pub const COMMENT_REPLY_STORE: &str = "lark_document_comment_reply_store_v0";
/// Where a collector keeps its state, below the project.
pub const COLLECTOR_STATE: &str = ".loopx/runtime/lark-collector";
/// Where the positions of turn starts are exported, below the project.
pub const TURN_START_STATE: &str = ".loopx/inbox/.turn-start";
/// Where the history positions lie, below the project.
pub const HISTORY_STATE: &str = ".loopx/inbox/.history";
/// The installed services, below the runtime root.
pub const SERVICES_FILE: &str = "lark-collectors.json";
/// The place of a goal's inbox in its registry entry.
pub const GOAL_INBOX: &str = "lark_event_inbox";
/// The place of the inboxes of a goal's agents.
pub const AGENT_INBOXES: &str = "lark_event_inboxes";
/// The schema of the callback listener's status.
pub const LISTENER_STATUS: &str = "lark_operation_callback_listener_status_v1";
/// The family of its versions.
pub const LISTENER_FAMILY: &str = "lark_operation_callback_listener_status_v";
/// The schema of the list of installed services.
pub const SERVICES: &str = "lark_collector_services_v0";
/// The family of its versions.
pub const SERVICES_FAMILY: &str = "lark_collector_services_v";
/// The operation of a route change in lock records.
pub const RECONCILE_OPERATION: &str = "lark_collector_route_reconcile";
/// The words of the command that shows what waits.
pub const DRAIN_WORDS: [&str; 2] = ["lark-inbox", "drain"];
/// The operation of a turn start in lock records.
pub const TURN_START_OPERATION: &str = "lark_turn_start_inbox_sync";
/// The schema of a collector's log packet.
pub const COLLECTOR_LOG: &str = "lark_event_collector_log_v0";
/// The schema of a collector's status packet.
pub const COLLECTOR_STATUS: &str = "lark_event_collector_status_v0";
/// Says in packets whether the provider program is there.
pub const PROGRAM_AVAILABLE: &str = "lark_cli_available";
/// The command that reads one page of history.
pub const CATCH_UP_COMMAND: &str = "lark-inbox history-catch-up";
/// The words of the command a service starts.
pub const RUN_WORDS: [&str; 3] = ["lark-inbox", "collector-run", "--continuous"];
/// The flag that names the provider program.
pub const PROGRAM_FLAG: &str = "--lark-cli-executable";
