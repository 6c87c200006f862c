//! What the arms of `loopx lark-inbox` share: the program they call and the form of an answer.

use serde_json::{Value, json};

use crate::compose::{self, InboxProviders};
use crate::contract::extension::Activation;
use crate::flow::Mode;
use crate::flow::inbox::error::InboxError;

/// The usual program, where the configuration names none.
pub(super) const PROVIDERS: InboxProviders = compose::providers(None, None);

/// One packet, or why there is none.
pub(super) type Answer = Result<Value, InboxError>;

/// Whether a command acts.
pub(super) const fn mode(execute: bool) -> Mode {
    Mode::of_switch(execute)
}

/// A packet and the right it ran under.
pub(super) fn packet((packet, activation): (impl serde::Serialize, Activation)) -> Answer {
    Ok(activated(json!(packet), &activation))
}

/// A successful packet names the right it ran under.
pub(super) fn activated(mut packet: Value, activation: &Activation) -> Value {
    if packet["ok"] == json!(true) {
        packet["extension_activation"] = json!(activation);
    }
    packet
}
