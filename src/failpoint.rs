//! Named crash points.
//!
//! `failpoint!(Point::X)` marks the place just after a durable step. A build with `test-hooks` aborts there when the
//! command line armed that point; every other build compiles the call to nothing. `Point::ALL` drives the crash matrix,
//! and each point names the commands that reach it, so a test can prove that no other command does.
//!
//! Deliberately absent: error injection and delays. A crash is the only fault that cannot be produced from outside.

#[cfg(feature = "test-hooks")]
use std::sync::OnceLock;

/// Marks a crash point.
#[macro_export]
macro_rules! failpoint {
    ($point:expr) => {
        $crate::failpoint::reach($point)
    };
}

macro_rules! points {
    ($($variant:ident = $name:literal by $commands:expr;)*) => {
        /// One named place where a test build can die.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Point { $($variant),* }

        impl Point {
            /// Every point, in the order of the documents.
            pub const ALL: &'static [Point] = &[$(Point::$variant),*];

            /// The name that arms the point.
            pub const fn name(self) -> &'static str {
                match self { $(Point::$variant => $name),* }
            }

            /// The commands that reach the point.
            pub const fn commands(self) -> &'static [&'static str] {
                match self { $(Point::$variant => $commands),* }
            }
        }
    };
}

points! {
    // kernel: docs/spec/kernel.md 14
    DecisionComposed = "decision_composed" by &["turn run-once"];
    CaptureTempWritten = "capture_temp_written" by &["turn run-once"];
    CapturePublished = "capture_published" by &["turn run-once"];
    CaptureRowCommitted = "capture_row_committed" by &["turn run-once"];
    JournalOpened = "journal_opened" by &["turn run-once"];
    AdmissionCommitted = "admission_committed" by &["turn run-once"];
    HostStarted = "host_started" by &["turn run-once"];
    HostExited = "host_exited" by &["turn run-once"];
    TypedResultStored = "typed_result_stored" by &["turn run-once"];
    ValidationStored = "validation_stored" by &["turn run-once"];
    WritebackCommitted = "writeback_committed" by &["turn run-once", "refresh-state"];
    SpendCommitted = "spend_committed" by &["turn run-once", "refresh-state", "quota spend-slot"];
    SpendCheckpointed = "spend_checkpointed" by &["turn run-once"];
    HookDispatched = "hook_dispatched" by &["turn run-once", "refresh-state"];
    SinkCalled = "sink_called" by &["refresh-state"];
    ExportWritten = "export_written" by &[
        "bootstrap", "register-agent", "configure-goal", "goal-lifecycle", "operator-gate", "todo add", "todo claim",
        "todo update", "todo complete", "todo supersede", "todo archive-completed", "task-lease acquire",
        "task-lease renew", "task-lease transfer", "task-lease release", "quota should-run",
        "quota spend-slot", "quota void-slot", "quota monitor-poll", "refresh-state", "turn run-once", "handoff prepare",
        "handoff adopt", "doctor",
    ];
    HandoffCommitted = "handoff_committed" by &["handoff prepare", "handoff adopt"];
    PauseCommitted = "pause_committed" by &["refresh-state"];
    RegistryReplaced = "registry_replaced" by &["bootstrap", "register-agent", "configure-goal", "goal-lifecycle", "operator-gate"];
    // generate: docs/spec/generate.md 2
    ReportFolderBuilt = "report_folder_built" by &["periodic-report generate"];
    ReportPublished = "report_published" by &["periodic-report generate"];
    // report hooks: docs/spec/periodic-report-runtime.md 16
    HookReturned = "hook_returned" by &["refresh-state", "turn run-once"];
    HookReceiptCommitted = "hook_receipt_committed" by &["refresh-state", "turn run-once"];
    // inbox: docs/spec/lark-inbox.md 17
    InboxBatchCommitted = "inbox_batch_committed" by &["lark-inbox ingest", "lark-inbox history-catch-up", "lark-inbox collector-run", "quota should-run", "turn run-once"];
    ConnectionEventCommitted = "connection_event_committed" by &["lark-inbox collector-run"];
    InboxAckCommitted = "inbox_ack_committed" by &["lark-inbox ack", "lark-inbox document-comment-ack"];
    MaterialReviewCommitted = "material_review_committed" by &["lark-inbox material-review"];
    InboxExportWritten = "inbox_export_written" by &["lark-inbox ingest", "lark-inbox history-catch-up", "lark-inbox collector-run", "lark-inbox ack",
        "lark-inbox material-review", "lark-inbox send", "lark-inbox reply", "lark-inbox notify-reviewer", "lark-inbox processing", "lark-inbox reaction-complete", "lark-inbox export",
        "lark-inbox document-comment-capture", "lark-inbox document-comment-reply", "lark-inbox document-comment-ack", "quota should-run", "turn run-once"];
    SendIntentRecorded = "send_intent_recorded" by &["lark-inbox send", "lark-inbox reply", "lark-inbox notify-reviewer"];
    SendAccepted = "send_accepted" by &["lark-inbox send", "lark-inbox reply", "lark-inbox notify-reviewer"];
    SendReadBack = "send_read_back" by &["lark-inbox send", "lark-inbox reply", "lark-inbox notify-reviewer"];
    SendReceiptSaved = "send_receipt_saved" by &["lark-inbox send", "lark-inbox reply", "lark-inbox notify-reviewer"];
    ReactionPrepared = "reaction_prepared" by &["lark-inbox processing", "quota should-run", "turn run-once"];
    ReactionAnswered = "reaction_answered" by &["lark-inbox processing", "quota should-run", "turn run-once"];
    ReactionCreated = "reaction_created" by &["lark-inbox processing", "quota should-run", "turn run-once"];
    ReactionSettled = "reaction_settled" by &["lark-inbox processing", "lark-inbox reaction-complete", "quota should-run", "turn run-once"];
    ReactionDeleted = "reaction_deleted" by &["lark-inbox reaction-complete", "lark-inbox reply", "lark-inbox processing"];
    HistoryPageReadBack = "history_page_read_back" by &["lark-inbox history-catch-up"];
    HistoryCursorTempWritten = "history_cursor_temp_written" by &["lark-inbox history-catch-up"];
    HistoryCursorReplaced = "history_cursor_replaced" by &["lark-inbox history-catch-up"];
    ReconcileConfigReplaced = "reconcile_config_replaced" by &["lark-inbox collector-route-reconcile"];
    CollectorServiceWritten = "collector_service_written" by &["lark-inbox collector-install"];
    CollectorStatusWritten = "collector_status_written" by &["lark-inbox collector-run"];
    CommentPageCommitted = "comment_page_committed" by &["lark-inbox document-comment-capture"];
    CommentReplyRecorded = "comment_reply_recorded" by &["lark-inbox document-comment-reply"];
    CommentReplyAccepted = "comment_reply_accepted" by &["lark-inbox document-comment-reply"];
    CommentReplyVerified = "comment_reply_verified" by &["lark-inbox document-comment-reply"];
}

impl Point {
    /// The point of that name.
    pub fn named(name: &str) -> Option<Point> {
        Point::ALL
            .iter()
            .copied()
            .find(|point| point.name() == name)
    }
}

#[cfg(feature = "test-hooks")]
static ARMED: OnceLock<Vec<Point>> = OnceLock::new();

/// A name that no point has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no point has that name")]
pub struct Unknown;

/// Arms the named points, a comma between two, for the rest of the process. An unknown name is an error: a test that waits for a crash
/// would wait for one that cannot come. A build without `test-hooks` ignores all of it.
pub fn arm(names: Option<&str>) -> Result<(), Unknown> {
    #[cfg(feature = "test-hooks")]
    if let Some(names) = names.filter(|names| !names.is_empty()) {
        let points = names
            .split(',')
            .map(|name| Point::named(name).ok_or(Unknown))
            .collect::<Result<_, _>>()?;
        ARMED.get_or_init(|| points);
    }
    #[cfg(not(feature = "test-hooks"))]
    let _ = names;
    Ok(())
}

/// Ends the process here when the point is armed.
#[inline]
pub fn reach(point: Point) {
    #[cfg(feature = "test-hooks")]
    if ARMED.get().is_some_and(|armed| armed.contains(&point)) {
        std::process::abort();
    }
    #[cfg(not(feature = "test-hooks"))]
    let _ = point;
}

#[cfg(test)]
mod tests {
    use super::Point;

    #[test]
    fn every_name_is_unique_and_names_its_point() {
        for point in Point::ALL {
            assert_eq!(Point::named(point.name()), Some(*point));
            assert!(!point.commands().is_empty());
        }
    }

    #[cfg(feature = "test-hooks")]
    #[test]
    fn a_name_that_no_point_has_arms_nothing() {
        for names in [
            "send_acepted",
            "send_accepted,",
            "send_accepted send_read_back",
        ] {
            assert_eq!(super::arm(Some(names)), Err(super::Unknown), "{names}");
        }
        assert_eq!(super::arm(None).and_then(|()| super::arm(Some(""))), Ok(()));
        assert!(super::ARMED.get().is_none());
    }
}
