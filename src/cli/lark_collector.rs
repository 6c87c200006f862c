//! `loopx lark-inbox collector-…` and `document-comment-…`: one arm a command.

use super::args::lark_inbox::LarkInboxCommand as Command;
use super::lark_inbox::Answer;
use crate::contract::inbox::fault::InboxFault;
use crate::flow::inbox::context::Desk;

/// Runs one command of the collector or the document connector.
pub(super) fn answer(_desk: &Desk<'_>, command: &Command) -> Answer {
    match command {
        _ => Err(InboxFault::NotConfigured.into()),
    }
}
