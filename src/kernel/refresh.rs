//! What a refresh asks for, whether a committed one is repeated, and what an outside sink may do
//! (docs/spec/kernel.md 11.2, 11.4, 11.5).

use serde_json::{Value, json};

use crate::contract::digest;
use crate::contract::error::ErrorCode;
use crate::contract::packet::Refusal;

/// The business content of a refresh.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Content {
    /// The class of the run.
    pub classification: String,
    /// What should happen next.
    pub recommended_action: Option<String>,
    /// The durable next action.
    pub next_action: Option<String>,
    /// How much was delivered.
    pub scale: Option<String>,
    /// What came of it.
    pub outcome: Option<String>,
    /// The boundary it was reached at, as given.
    pub boundary: Option<String>,
    /// Goal or lane.
    pub progress_scope: Option<String>,
    /// The lane.
    pub agent_lane: Option<String>,
    /// True when a replan is recorded.
    pub replan_recorded: bool,
    /// What the replan changed.
    pub delta_kinds: Vec<String>,
    /// The vision that is written: the whole contract object.
    pub vision: Option<Value>,
    /// Why the vision stays.
    pub unchanged_reason: Option<String>,
}

impl Content {
    /// The boundary that holds: a refresh with vision input closes a piece of meaning.
    pub fn effective_boundary(&self, is_turn_bound: bool) -> Option<&str> {
        match &self.boundary {
            Some(boundary) => Some(boundary),
            None if is_turn_bound && self.vision.is_some() => Some("semantic_closeout"),
            None => None,
        }
    }

    /// Digest of everything but the vision decision.
    pub fn mutation_digest(&self) -> String {
        let document = json!({
            "classification": self.classification, "recommended_action": self.recommended_action, "next_action": self.next_action,
            "delivery_batch_scale": self.scale, "delivery_outcome": self.outcome, "delivery_boundary": self.boundary,
            "progress_scope": self.progress_scope, "agent_lane": self.agent_lane, "replan_recorded": self.replan_recorded,
            "delta_kinds": self.delta_kinds,
        });
        digest::digest_hex(&document).unwrap_or_default()
    }

    /// Digest of the vision decision; absent when none was made.
    pub fn vision_digest(&self) -> Option<String> {
        if self.vision.is_none() && self.unchanged_reason.is_none() {
            return None;
        }
        digest::digest_hex(
            &json!({"vision": self.vision, "unchanged_reason": self.unchanged_reason}),
        )
        .ok()
    }
}

/// What a committed refresh looks like to a repeat.
#[derive(Clone, Debug)]
pub struct Committed<'a> {
    /// Its digest without the vision decision.
    pub mutation_digest: &'a str,
    /// The digest of its vision decision.
    pub vision_digest: Option<&'a str>,
    /// The decision word of its checkpoint.
    pub checkpoint: &'a str,
    /// True when the agent wrote a vision after it.
    pub has_later_vision: bool,
    /// True when the event that proves it is gone.
    pub lacks_receipt: bool,
}

/// How a repeat goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Nothing is committed: append.
    Append,
    /// The same again: replay.
    Replay,
    /// The same again, and the receipt it lost is put back.
    RepairReceipt,
    /// The vision decision that was missing is brought now.
    SupplementCheckpoint,
}

/// Compares a call with what is committed for its Turn.
pub fn recover(content: &Content, committed: Option<&Committed<'_>>) -> Result<Recovery, Refusal> {
    let Some(committed) = committed else {
        return Ok(Recovery::Append);
    };
    let refuse = |code, text: &str| Err(Refusal::new(code, text));
    if content.mutation_digest() != committed.mutation_digest {
        let text =
            "this Turn is written back with other content; repeat it exactly, or start a new Turn";
        return refuse(ErrorCode::CommittedWritebackPayloadConflict, text);
    }
    let asked = content.vision_digest();
    // What was committed before a supplement brought the decision is still what was asked for first.
    let is_first_call = asked.is_none() && committed.checkpoint == "missing_required";
    if asked.as_deref() == committed.vision_digest || is_first_call {
        return Ok(if committed.lacks_receipt {
            Recovery::RepairReceipt
        } else {
            Recovery::Replay
        });
    }
    let is_decided =
        committed.checkpoint != "missing_required" || committed.vision_digest.is_some();
    if is_decided || asked.is_none() {
        let text = "this Turn is written back with another vision decision; repeat it exactly";
        return refuse(ErrorCode::CommittedVisionDecisionConflict, text);
    }
    if committed.has_later_vision {
        let text = "a later vision closed this checkpoint; nothing is left to supplement";
        return refuse(ErrorCode::CheckpointSupersededByLaterVision, text);
    }
    if content.replan_recorded {
        let text = "a supplement brings the vision decision alone; leave the replan record out";
        return refuse(ErrorCode::CheckpointSupplementMustNotRepeatMutations, text);
    }
    Ok(Recovery::SupplementCheckpoint)
}

/// One link of the chain of outside delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// `paused` or `ready`.
    pub state: String,
    /// The key that resumes it.
    pub resume_key: String,
    /// The event that recorded it.
    pub event_id: String,
}

/// What the caller says about outside delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SinkRequest {
    /// Nothing.
    Plain,
    /// Hold it back.
    Suppress,
    /// Let it go on with this key.
    Resume(String),
}

/// What holds for outside delivery now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkDecision {
    /// True when sinks may be called.
    pub authorized: bool,
    /// Why.
    pub reason: &'static str,
    /// The key of a pause.
    pub resume_key: Option<String>,
    /// The link to append: its state and key.
    pub append: Option<(&'static str, String)>,
}

impl SinkDecision {
    /// The packet.
    pub fn to_value(&self, error_code: Option<ErrorCode>) -> Value {
        json!({
            "schema_version": "refresh_external_delivery_v0",
            "authorized": self.authorized,
            "reason": self.reason,
            "error_code": error_code,
            "resume_key": self.resume_key,
        })
    }
}

/// The key that resumes a pause after a preceding link.
pub fn resume_key(effect_id: &str, preceding: Option<&str>) -> String {
    digest::semantic_key(&[
        json!("refresh_external_delivery_v0"),
        json!(effect_id),
        json!(preceding),
    ])
    .map(|digest| digest.hex())
    .unwrap_or_default()
}

/// Decides over the stored chain of one Turn.
pub fn sinks(
    effect_id: &str,
    chain: &[Link],
    asked: &SinkRequest,
) -> Result<SinkDecision, Refusal> {
    check_chain(effect_id, chain)?;
    let decision = |authorized, reason, key: Option<&str>| SinkDecision {
        authorized,
        reason,
        resume_key: key.map(str::to_owned),
        append: None,
    };
    let last = chain.last();
    let paused = last.filter(|link| link.state == "paused");
    match (paused, asked) {
        (None, SinkRequest::Suppress) => {
            let key = resume_key(effect_id, last.map(|link| link.event_id.as_str()));
            Ok(SinkDecision {
                append: Some(("paused", key.clone())),
                ..decision(false, "suppressed", Some(&key))
            })
        }
        (Some(link), SinkRequest::Suppress) => {
            Ok(decision(false, "suppressed", Some(&link.resume_key)))
        }
        (Some(link), SinkRequest::Plain) => {
            let text = "outside delivery of this Turn is paused; repeat with --resume-external-sinks and the printed key";
            Err(blocked(
                ErrorCode::ExternalDeliveryResumeRequired,
                text,
                Some(&link.resume_key),
            ))
        }
        (Some(link), SinkRequest::Resume(key)) if *key == link.resume_key => Ok(SinkDecision {
            append: Some(("ready", key.clone())),
            ..decision(true, "resume_acknowledged", Some(key))
        }),
        (None, SinkRequest::Resume(key)) if last.is_some_and(|link| link.resume_key == *key) => {
            Ok(decision(true, "resume_acknowledged", Some(key)))
        }
        (_, SinkRequest::Resume(_)) => {
            let text = "the key is not the one that resumes this Turn; use the printed key";
            Err(blocked(
                ErrorCode::ExternalDeliveryResumeMismatch,
                text,
                None,
            ))
        }
        (None, SinkRequest::Plain) if last.is_some() => Ok(decision(true, "resumed", None)),
        (None, SinkRequest::Plain) => Ok(decision(true, "legacy_per_call", None)),
    }
}

fn blocked(code: ErrorCode, text: &str, key: Option<&str>) -> Refusal {
    let delivery = json!({
        "schema_version": "refresh_external_delivery_v0", "authorized": false, "reason": code, "error_code": code, "resume_key": key,
    });
    Refusal::new(code, text)
        .with("external_delivery", delivery)
        .with("external_sink_delivery_authorized", false)
        .with("appended", false)
}

/// A pause key follows from the link before it, and a release from the pause before it.
fn check_chain(effect_id: &str, chain: &[Link]) -> Result<(), Refusal> {
    let mut before: Option<&Link> = None;
    for link in chain {
        let is_sound = match link.state.as_str() {
            "paused" => {
                before.is_none_or(|before| before.state == "ready")
                    && link.resume_key
                        == resume_key(effect_id, before.map(|before| before.event_id.as_str()))
            }
            "ready" => before.is_some_and(|before| {
                before.state == "paused" && before.resume_key == link.resume_key
            }),
            _ => false,
        };
        if !is_sound {
            let text =
                "the stored chain of pauses is broken; restore a backup, or start a new Turn";
            return Err(Refusal::new(
                ErrorCode::ExternalDeliveryHistoryInvalid,
                text,
            ));
        }
        before = Some(link);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(state: &str, key: &str, event: &str) -> Link {
        Link {
            state: state.into(),
            resume_key: key.into(),
            event_id: event.into(),
        }
    }

    #[test]
    fn a_pause_holds_until_its_own_key_and_can_be_set_again() {
        let first = sinks("e", &[], &SinkRequest::Suppress).unwrap();
        let key = first.resume_key.clone().unwrap();
        let paused = [link("paused", &key, "ev1")];
        assert_eq!(
            sinks("e", &paused, &SinkRequest::Plain).unwrap_err().code,
            ErrorCode::ExternalDeliveryResumeRequired
        );
        assert_eq!(
            sinks("e", &paused, &SinkRequest::Resume("x".into()))
                .unwrap_err()
                .code,
            ErrorCode::ExternalDeliveryResumeMismatch
        );
        assert!(
            sinks("e", &paused, &SinkRequest::Resume(key.clone()))
                .unwrap()
                .authorized
        );
        let ready = [paused[0].clone(), link("ready", &key, "ev2")];
        assert_eq!(
            sinks("e", &ready, &SinkRequest::Resume(key.clone()))
                .unwrap()
                .append,
            None
        );
        assert_eq!(
            sinks("e", &ready, &SinkRequest::Plain).unwrap().reason,
            "resumed"
        );
        let again = sinks("e", &ready, &SinkRequest::Suppress).unwrap();
        assert_eq!(again.resume_key.unwrap(), resume_key("e", Some("ev2")));
    }

    #[test]
    fn a_broken_chain_is_refused() {
        let forged = [link("paused", "0", "ev1")];
        assert_eq!(
            sinks("e", &forged, &SinkRequest::Plain).unwrap_err().code,
            ErrorCode::ExternalDeliveryHistoryInvalid
        );
    }

    #[test]
    fn only_the_vision_decision_may_come_later() {
        let content = Content {
            classification: "c".into(),
            ..Content::default()
        };
        let mutation = content.mutation_digest();
        let committed = |checkpoint| Committed {
            mutation_digest: &mutation,
            vision_digest: None,
            checkpoint,
            has_later_vision: false,
            lacks_receipt: false,
        };
        assert_eq!(
            recover(&content, Some(&committed("missing_required"))),
            Ok(Recovery::Replay)
        );
        let lost = Committed {
            lacks_receipt: true,
            ..committed("missing_required")
        };
        assert_eq!(recover(&content, Some(&lost)), Ok(Recovery::RepairReceipt));
        let supplemented = Committed {
            vision_digest: Some("later"),
            ..committed("missing_required")
        };
        assert_eq!(recover(&content, Some(&supplemented)), Ok(Recovery::Replay));
        let late = Content {
            unchanged_reason: Some("same".into()),
            ..content.clone()
        };
        assert_eq!(
            recover(&late, Some(&committed("missing_required"))),
            Ok(Recovery::SupplementCheckpoint)
        );
        assert_eq!(
            recover(&late, Some(&committed("patched")))
                .unwrap_err()
                .code,
            ErrorCode::CommittedVisionDecisionConflict
        );
        let other = Content {
            classification: "d".into(),
            ..content
        };
        assert_eq!(
            recover(&other, Some(&committed("patched")))
                .unwrap_err()
                .code,
            ErrorCode::CommittedWritebackPayloadConflict
        );
    }
}
