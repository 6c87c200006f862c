//! Whether a report is due: order, suppression, cooldown, selection.

use serde::Serialize;
use serde_json::Value;

use super::materiality::{self, Materiality};
use crate::contract::error::ContractError;
use crate::contract::periodic_report::identity::id_of;
use crate::contract::periodic_report::trigger::{
    Candidate, LastReport, ProfileRef, TriggerRequest,
};
use crate::contract::periodic_report::trigger_decision::{
    Cooldown, DecisionReason, SuppressedTrigger, TriggerBoundary, TriggerDecision,
    TriggerDecisionSchema,
};
use crate::contract::periodic_report::trigger_policy::TriggerPolicy;
use crate::contract::periodic_report::trigger_receipt::report_key;
use crate::contract::periodic_report::vocabulary::{TriggerKind, Yes};
use crate::contract::time::Timestamp;

/// Decides whether a report is due.
pub fn decide(request: &TriggerRequest) -> Result<TriggerDecision, ContractError> {
    let judged = judge_in_order(&request.candidates)?;
    let mut split = Split::new(request, &judged);
    let cooldown = split.apply_cooldown(request);
    let selected = split.eligible.first().copied();
    let mut coalesced: Vec<String> = split
        .eligible
        .iter()
        .map(|judged| judged.candidate.trigger_id.clone())
        .collect();
    coalesced.sort();
    let report_kind = selected.map(|judged| judged.candidate.trigger_kind.report_kind());
    let key = report_kind
        .map(|kind| report_key(&request.profile, &request.trigger_policy, kind, &coalesced))
        .transpose()?;
    split.suppressed.sort_by(|left, right| {
        let by_name = left.trigger_kind.as_str().cmp(right.trigger_kind.as_str());
        by_name.then_with(|| left.trigger_id.cmp(&right.trigger_id))
    });
    Ok(TriggerDecision {
        ok: Yes,
        schema_version: TriggerDecisionSchema,
        decision_id: decision_id(request, &judged)?,
        evaluated_at: request.evaluated_at,
        profile: request.profile.clone(),
        trigger_policy: request.trigger_policy.clone(),
        eligible: selected.is_some(),
        reason: reason(selected, &cooldown),
        report_kind,
        report_key: key,
        selected_trigger_id: selected.map(|judged| judged.candidate.trigger_id.clone()),
        selected_trigger_kind: selected.map(|judged| judged.candidate.trigger_kind),
        coalesced_trigger_ids: coalesced,
        suppressed_triggers: split.suppressed,
        cooldown,
        boundary: TriggerBoundary,
    })
}

fn reason(selected: Option<&Judged<'_>>, cooldown: &Cooldown) -> DecisionReason {
    match (selected, cooldown.active) {
        (Some(_), _) => DecisionReason::TriggerSelected,
        (None, true) => DecisionReason::CooldownActive,
        (None, false) => DecisionReason::NoMaterialTrigger,
    }
}

/// A candidate and whether it is material.
struct Judged<'a> {
    candidate: &'a Candidate,
    verdict: Materiality,
}

/// Judges every candidate, the most urgent first, then the oldest, then by id.
fn judge_in_order(candidates: &[Candidate]) -> Result<Vec<Judged<'_>>, ContractError> {
    let mut judged = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        judged.push(Judged {
            candidate,
            verdict: materiality::judge(&candidate.typed_facts)?,
        });
    }
    judged.sort_by(|left, right| {
        let key = |judged: &Judged<'_>| {
            let urgency = std::cmp::Reverse(judged.candidate.trigger_kind.priority());
            (urgency, judged.candidate.observed_at)
        };
        let by_key = key(left).cmp(&key(right));
        by_key.then_with(|| left.candidate.trigger_id.cmp(&right.candidate.trigger_id))
    });
    Ok(judged)
}

struct Split<'a> {
    eligible: Vec<&'a Judged<'a>>,
    suppressed: Vec<SuppressedTrigger>,
}

impl<'a> Split<'a> {
    fn new(request: &TriggerRequest, judged: &'a [Judged<'a>]) -> Self {
        let mut split = Self {
            eligible: Vec::new(),
            suppressed: Vec::new(),
        };
        for judged in judged {
            match suppression(request, judged) {
                Some(reason) => split.suppressed.push(suppressed(judged, reason)),
                None => split.eligible.push(judged),
            }
        }
        split
    }

    /// Keeps everything when an urgent trigger breaks the quiet interval, nothing otherwise.
    fn apply_cooldown(&mut self, request: &TriggerRequest) -> Cooldown {
        let quiet = Cooldown {
            active: false,
            bypassed: false,
            bypass_trigger_id: None,
            next_eligible_at: None,
        };
        let interval = request.trigger_policy.minimum_interval_seconds;
        let running = request
            .last_report
            .as_ref()
            .filter(|report| is_running(report, request.evaluated_at, interval));
        let Some(report) = running.filter(|_| !self.eligible.is_empty()) else {
            return quiet;
        };
        let bypass = self
            .eligible
            .iter()
            .find(|judged| judged.candidate.trigger_kind.bypasses_cooldown());
        if let Some(judged) = bypass {
            return Cooldown {
                active: true,
                bypassed: true,
                bypass_trigger_id: Some(judged.candidate.trigger_id.clone()),
                next_eligible_at: None,
            };
        }
        for judged in self.eligible.drain(..) {
            self.suppressed.push(suppressed(judged, "cooldown_active"));
        }
        Cooldown {
            active: true,
            next_eligible_at: report.delivered_at.plus_seconds(interval),
            ..quiet
        }
    }
}

fn is_running(report: &LastReport, now: Timestamp, interval: i64) -> bool {
    interval > 0 && now.seconds_since(report.delivered_at) < interval
}

fn suppression(request: &TriggerRequest, judged: &Judged<'_>) -> Option<&'static str> {
    let candidate = judged.candidate;
    if candidate.trigger_kind.is_noise() {
        return Some(judged.verdict.reason);
    }
    if !request.trigger_policy.enables(candidate.trigger_kind) {
        return Some("disabled_by_profile");
    }
    let is_covered = request
        .last_report
        .as_ref()
        .is_some_and(|report| report.covers(&candidate.trigger_id));
    if is_covered {
        return Some("already_covered");
    }
    (!judged.verdict.material).then_some(judged.verdict.reason)
}

fn suppressed(judged: &Judged<'_>, reason: &'static str) -> SuppressedTrigger {
    SuppressedTrigger {
        trigger_id: judged.candidate.trigger_id.clone(),
        trigger_kind: judged.candidate.trigger_kind,
        reason,
    }
}

#[derive(Serialize)]
struct DecisionIdentity<'a> {
    evaluated_at: Timestamp,
    profile: &'a ProfileRef,
    trigger_policy: &'a TriggerPolicy,
    last_report: Option<&'a LastReport>,
    candidates: Vec<CandidateIdentity<'a>>,
}

#[derive(Serialize)]
struct CandidateIdentity<'a> {
    trigger_id: &'a str,
    trigger_kind: TriggerKind,
    observed_at: Timestamp,
    source_ref: &'a str,
    evidence_digest: &'a str,
    facts: &'a Value,
    material: bool,
    materiality_reason: &'static str,
}

fn decision_id(request: &TriggerRequest, judged: &[Judged<'_>]) -> Result<String, ContractError> {
    let candidates = judged.iter().map(|judged| CandidateIdentity {
        trigger_id: &judged.candidate.trigger_id,
        trigger_kind: judged.candidate.trigger_kind,
        observed_at: judged.candidate.observed_at,
        source_ref: &judged.candidate.source_ref,
        evidence_digest: &judged.candidate.evidence_digest,
        facts: &judged.candidate.facts,
        material: judged.verdict.material,
        materiality_reason: judged.verdict.reason,
    });
    let identity = DecisionIdentity {
        evaluated_at: request.evaluated_at,
        profile: &request.profile,
        trigger_policy: &request.trigger_policy,
        last_report: request.last_report.as_ref(),
        candidates: candidates.collect(),
    };
    id_of("trigger_decision", &identity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn request(order: &[usize]) -> TriggerRequest {
        let all = [
            json!({"trigger_kind": "cadence_due", "facts": {"due": true}}),
            json!({"trigger_kind": "material_decision", "facts": {"decision_outcome": "approve",
                "route_changed": true, "durable_writeback": true}}),
            json!({"trigger_kind": "todo_completed"}),
            json!({"trigger_kind": "manual", "facts": {"authorized": true}}),
            json!({"trigger_kind": "material_decision", "facts": {"decision_outcome": "reject",
                "route_changed": true, "durable_writeback": true}}),
        ];
        let candidates: Vec<Value> = order
            .iter()
            .map(|index| {
                let mut candidate = all[*index].clone();
                candidate["observed_at"] = json!("2026-05-08T08:00:00Z");
                candidate["source_ref"] = json!(format!("ledger:{index}"));
                candidate["evidence_digest"] = json!("sha256:x");
                candidate
            })
            .collect();
        let value = json!({"schema_version": "periodic_report_trigger_request_v0",
            "evaluated_at": "2026-05-08T09:30:00Z", "candidates": candidates,
            "profile": {"profile_id": "quay", "profile_version": "v1"}});
        TriggerRequest::parse(&value).expect("a valid request")
    }

    proptest! {
        #[test]
        fn the_order_of_candidates_changes_nothing(order in Just(vec![0_usize, 1, 2, 3, 4]).prop_shuffle()) {
            let expected = decide(&request(&[0, 1, 2, 3, 4])).expect("decides");
            prop_assert_eq!(decide(&request(&order)).expect("decides"), expected);
        }
    }

    #[test]
    fn the_most_urgent_trigger_names_the_report_and_all_coalesce() {
        let decision = decide(&request(&[0, 1, 2])).expect("decides");
        assert_eq!(
            decision.selected_trigger_kind,
            Some(TriggerKind::MaterialDecision)
        );
        assert_eq!(decision.coalesced_trigger_ids.len(), 2);
        let reasons: Vec<&str> = decision
            .suppressed_triggers
            .iter()
            .map(|one| one.reason)
            .collect();
        assert_eq!(reasons, ["non_material_control_plane_event"]);
    }
}
