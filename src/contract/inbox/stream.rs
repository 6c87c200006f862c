//! How an event stream runs and ends, `docs/spec/lark-inbox.md` 8.4. Codes only: nothing of what a consumer printed.

use serde::Serialize;

/// Which stream a consumer reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKey {
    Message,
    Callback,
}

impl EventKey {
    /// Returns the provider's name of the stream.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Message => super::collector::MESSAGE_KEY,
            Self::Callback => super::collector::CALLBACK_KEY,
        }
    }
}

/// What a stream's last ending was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamStatus {
    Starting,
    Running,
    Stopped,
    ConfigurationRemoved,
    StreamNotReady,
    StreamEnded,
    SourceDisconnected,
}

/// Why a stream is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum StreamCode {
    #[serde(rename = "lark_event_source_disconnected")]
    SourceDisconnected,
    #[serde(rename = "lark_event_permission_required")]
    PermissionRequired,
    #[serde(rename = "lark_event_brand_mismatch")]
    BrandMismatch,
    #[serde(rename = "lark_event_remote_connection_active")]
    RemoteConnectionActive,
    #[serde(rename = "lark_event_subscription_missing")]
    SubscriptionMissing,
    #[serde(rename = "lark_event_consumer_exists")]
    ConsumerExists,
    #[serde(rename = "lark_event_stream_not_ready")]
    StreamNotReady,
    /// What arrived could not be stored.
    #[serde(rename = "lark_event_capture_failed")]
    CaptureFailed,
}

impl StreamCode {
    const ALL: [Self; 8] = [
        Self::SourceDisconnected,
        Self::PermissionRequired,
        Self::BrandMismatch,
        Self::RemoteConnectionActive,
        Self::SubscriptionMissing,
        Self::ConsumerExists,
        Self::StreamNotReady,
        Self::CaptureFailed,
    ];

    /// The code of that name.
    pub fn named(name: &str) -> Option<Self> {
        let is_it = |code: &Self| serde_json::to_value(code).is_ok_and(|value| value == name);
        Self::ALL.into_iter().find(is_it)
    }
}

/// What the connection behind a consumer is said to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceState {
    Connected,
    Lost,
}

/// The reason a consumer itself gives for its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The asked time or number is reached.
    Planned,
    /// Anything else that is named.
    Other,
}

/// How one consumer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsumerEnd {
    pub exit: Option<i32>,
    pub reason: Option<EndReason>,
    /// What a refusal before the ready marker means.
    pub refusal: StreamCode,
}
