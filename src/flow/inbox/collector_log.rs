//! `lark-inbox collector-log`: what a collector did, from its own log; with `--follow` as it happens.

use std::time::Duration;

use serde_json::{Value, json};

use crate::contract::extension::{Activation, Permission};
use crate::contract::inbox::collector_log::LogLine;
use crate::contract::inbox::words;
use crate::flow::inbox::context::{ContextArgs, Desk};
use crate::flow::inbox::error::InboxError;
use crate::store::document::collector_log::CollectorLog;

/// How often a followed log is looked at.
const PACE: Duration = Duration::from_millis(200);

/// Shows the newest lines.
pub fn show(
    desk: &Desk<'_>,
    args: &ContextArgs,
    count: usize,
) -> Result<(Value, Activation), InboxError> {
    let (located, activation, _) = desk.open_collector(args, &[Permission::CollectorManage])?;
    let (lines, _) = CollectorLog::of_project(&located.project).tail(count);
    let shown: Vec<Value> = lines.iter().map(LogLine::to_value).collect();
    let packet = json!({
        "ok": true,
        "schema_version": words::COLLECTOR_LOG,
        "line_count": shown.len(),
        "lines": shown,
        "chat_ids_returned": false,
        "local_paths_returned": false,
        "private_content_returned": false,
        "external_writes_performed": false,
        "external_write_outcome": "none",
    });
    Ok((packet, activation))
}

/// Who reads a followed log.
pub struct LogReader<'a> {
    /// Waits between two looks; false when nobody takes a line any more.
    pub wait: &'a dyn Fn(Duration) -> bool,
    /// Takes a line; false when nobody takes one any more.
    pub take: &'a mut dyn FnMut(&LogLine) -> bool,
}

/// Hands out the newest lines and every later one, until nobody takes them any more.
pub fn follow(
    desk: &Desk<'_>,
    args: &ContextArgs,
    count: usize,
    reader: &mut LogReader<'_>,
) -> Result<(), InboxError> {
    let (located, _, _) = desk.open_collector(args, &[Permission::CollectorManage])?;
    let (mut lines, mut follower) = CollectorLog::of_project(&located.project).tail(count);
    loop {
        for line in &lines {
            if !(reader.take)(line) {
                return Ok(());
            }
        }
        if !(reader.wait)(PACE) {
            return Ok(());
        }
        lines = follower.news();
    }
}
