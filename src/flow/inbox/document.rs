//! One configured document with its inbox, and what a failed call about it means.

use std::path::PathBuf;

use serde_json::Value;

use crate::contract::extension::{Activation, Permission};
use crate::contract::inbox::comment::{COMMENT_CONFIG, CommentConfig};
use crate::contract::inbox::comment_packet::CommentBlocker;
use crate::contract::inbox::fault::InboxFault;
use crate::flow::inbox::context::{ContextArgs, Desk, Located, read_document, resolve_inside};
use crate::flow::inbox::error::InboxError;
use crate::port::channel::{ProviderError, ProviderErrorKind as Kind};
use crate::store::inbox::Inbox;

/// One configured document with its inbox.
pub(super) struct Document {
    pub(super) config: CommentConfig,
    pub(super) store: Inbox,
}

impl Document {
    pub(super) fn open(
        desk: &Desk<'_>,
        args: &ContextArgs,
        permissions: &[Permission],
    ) -> Result<(Self, Activation), InboxError> {
        let located = desk.locate(args)?.ok_or(InboxFault::NotConfigured)?;
        let activation = desk.require(permissions)?;
        let value = read_document(&located.config)?;
        let (document, _) = Self::of(&located, &value)?;
        Ok((document, activation))
    }

    /// Reads a located configuration; the folder comes with it.
    pub(super) fn of(located: &Located, value: &Value) -> Result<(Self, PathBuf), InboxError> {
        let config = CommentConfig::parse(value).map_err(InboxFault::CommentConfig)?;
        let folder = resolve_inside(&located.project, std::path::Path::new(&config.inbox_dir))?;
        Ok((
            Self {
                config,
                store: Inbox::at(&folder),
            },
            folder,
        ))
    }

    pub(super) fn require_enabled(&self) -> Result<(), InboxFault> {
        if self.config.enabled {
            Ok(())
        } else {
            Err(InboxFault::CommentDisabled)
        }
    }
}

/// Tells whether a document is a comment configuration.
pub(super) fn is_comment_config(value: &Value) -> bool {
    value.get("schema_version").and_then(Value::as_str) == Some(COMMENT_CONFIG)
}

/// Says what a failed call means for the caller.
pub(super) fn blocker_of(error: &ProviderError, otherwise: CommentBlocker) -> CommentBlocker {
    match error.kind {
        Kind::PermissionMissing | Kind::GroupHistoryPermission => {
            CommentBlocker::PermissionRequired
        }
        Kind::AuthorizationMissing => CommentBlocker::AuthorizationRequired,
        Kind::PayloadInvalid => CommentBlocker::ResponseInvalid,
        _ => otherwise,
    }
}
