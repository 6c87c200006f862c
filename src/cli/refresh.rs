//! `loopx refresh-state`.

use serde_json::{Map, json};

use super::args::Global;
use super::args::refresh::{BoundaryWord, RefreshArgs, VisionArgs};
use super::emit::Reply;
use super::input;
use super::kernel_reply::{answer, misuse, with_ports};
use super::quota::Turn;
use crate::contract::digest;
use crate::contract::error::ErrorCode;
use crate::contract::packet::Refusal;
use crate::contract::parse::Label;
use crate::contract::public_safety;
use crate::flow::Mode;
use crate::flow::refresh::{self, Refresh, VisionInput};
use crate::kernel::refresh::{Content, SinkRequest};

pub(super) fn run(args: &RefreshArgs, global: &Global) -> Reply {
    let asked = match request(args) {
        Ok(asked) => asked,
        Err(refusal) => return answer(Err(refusal), "refresh-state"),
    };
    with_ports(global, "refresh-state", |ports| {
        refresh::run(ports, Mode::of_dry_run(args.dry_run), &asked)
    })
}

fn request(args: &RefreshArgs) -> Result<Refresh, Refusal> {
    let turn = Turn {
        goal: &args.goal_id,
        agent: args.agent_id.as_ref(),
        todo: args.todo_id.as_ref(),
        obligation: args.replan_obligation_id.as_ref(),
        instance: args.turn_instance_id.as_ref(),
    };
    let is_unbound = args.turn_instance_id.is_none()
        || (args.todo_id.is_none() && args.replan_obligation_id.is_none());
    if args.settle_turn && is_unbound {
        let text = "--settle-turn settles a Turn; name --turn-instance-id and one of --todo-id and --replan-obligation-id";
        return Err(Refusal::new(ErrorCode::SettleTurnRequiresTurnBinding, text));
    }
    let identity = turn.identity()?;
    let sinks = sinks(args)?;
    let vision = vision(args)?;
    if vision.is_some() && args.agent_id.is_none() {
        return Err(misuse("a vision belongs to an agent; name --agent-id"));
    }
    if vision.is_some() && args.vision_unchanged_reason.is_some() {
        return Err(misuse(
            "a vision that is written is not unchanged; leave --vision-unchanged-reason out",
        ));
    }
    check_combination(args, identity.is_some())?;
    check_words(args, vision.as_ref())?;
    Ok(Refresh {
        goal: args.goal_id.clone(),
        agent: args.agent_id.clone(),
        identity,
        content: content(args),
        vision,
        settle: args.settle_turn,
        sinks,
        project: args.project.clone(),
        state_file: args.state_file.clone().map(Into::into),
    })
}

fn content(args: &RefreshArgs) -> Content {
    let boundary = args.delivery_boundary.map(|boundary| match boundary {
        BoundaryWord::InFlightContinuation => "in_flight_continuation".to_owned(),
        BoundaryWord::SemanticCloseout => "semantic_closeout".to_owned(),
    });
    Content {
        classification: args.classification.clone(),
        recommended_action: args.recommended_action.clone(),
        next_action: args.next_action.clone(),
        scale: args.delivery_batch_scale.clone(),
        outcome: args.delivery_outcome.clone(),
        boundary,
        progress_scope: args.progress_scope.clone(),
        agent_lane: args.agent_lane.as_ref().map(ToString::to_string),
        replan_recorded: args.autonomous_replan_recorded,
        delta_kinds: args.repair_delta_kind.clone(),
        vision: None,
        unchanged_reason: args.vision_unchanged_reason.clone(),
    }
}

fn check_combination(args: &RefreshArgs, is_turn_bound: bool) -> Result<(), Refusal> {
    let outcome = args.delivery_outcome.as_deref();
    if is_turn_bound
        && !matches!(
            outcome,
            Some("outcome_progress" | "primary_goal_outcome" | "outcome_gap")
        )
    {
        return Err(misuse(
            "a Turn says what it achieved: --delivery-outcome outcome_progress, primary_goal_outcome or outcome_gap",
        ));
    }
    let is_replan = args.replan_obligation_id.is_some();
    if is_replan
        && is_turn_bound
        && (!args.autonomous_replan_recorded || args.repair_delta_kind.is_empty())
    {
        return Err(misuse(
            "a replan is recorded with --autonomous-replan-recorded and --repair-delta-kind",
        ));
    }
    if args.autonomous_replan_recorded && !is_replan {
        return Err(misuse(
            "--autonomous-replan-recorded needs --replan-obligation-id and its Turn",
        ));
    }
    if args.delivery_boundary == Some(BoundaryWord::InFlightContinuation) {
        let fits = outcome == Some("outcome_progress")
            && is_turn_bound
            && args.todo_id.is_some()
            && args.next_action.is_none();
        if !fits || args.autonomous_replan_recorded {
            return Err(misuse(
                "in_flight_continuation needs outcome_progress and a todo's Turn, and changes no next action",
            ));
        }
    }
    Ok(())
}

/// What a refresh says is kept in runs and told in decisions, so others must be able to read it.
fn check_words(args: &RefreshArgs, vision: Option<&VisionInput>) -> Result<(), Refusal> {
    let words = [
        ("--recommended-action", &args.recommended_action),
        ("--next-action", &args.next_action),
        ("--vision-unchanged-reason", &args.vision_unchanged_reason),
    ];
    let vision = vision.map(|vision| match vision {
        VisionInput::Whole(value) => ("--agent-vision-json", value.clone()),
        VisionInput::Patch { members, .. } => ("--vision-*", json!(members)),
    });
    let said = words
        .into_iter()
        .filter_map(|(flag, word)| Some((flag, json!(word.as_ref()?))));
    for (flag, value) in said.chain(vision) {
        public_safety::guard_words(&Label::named(flag), &value)
            .map_err(|error| misuse(&error.to_string()))?;
    }
    Ok(())
}

fn sinks(args: &RefreshArgs) -> Result<SinkRequest, Refusal> {
    match (&args.resume_external_sinks, args.suppress_external_sinks) {
        (Some(key), _) if digest::is_hex_64(key) => Ok(SinkRequest::Resume(key.clone())),
        (Some(_), _) => Err(misuse(
            "a resume key is 64 lower-case hex digits; use the printed one",
        )),
        (None, true) => Ok(SinkRequest::Suppress),
        (None, false) => Ok(SinkRequest::Plain),
    }
}

fn vision(args: &RefreshArgs) -> Result<Option<VisionInput>, Refusal> {
    let patch = patch(&args.vision);
    match (&args.agent_vision_json, patch) {
        (Some(_), Some(_)) => Err(misuse(
            "--agent-vision-json and the --vision-* flags exclude each other",
        )),
        (Some(path), None) => input::json_object(path).map(VisionInput::Whole).map(Some),
        (None, patch) => Ok(patch),
    }
}

fn patch(args: &VisionArgs) -> Option<VisionInput> {
    let named = [
        ("vision_summary", &args.vision_summary),
        ("role_scope", &args.vision_role_scope),
        ("acceptance_summary", &args.vision_acceptance),
        ("advancement_policy", &args.vision_advancement_policy),
        ("replan_trigger_summary", &args.vision_replan_trigger),
        ("dreaming_policy", &args.vision_dreaming_policy),
        ("last_patch_summary", &args.vision_last_patch),
    ];
    let members: Map<_, _> = named
        .into_iter()
        .filter_map(|(name, value)| value.as_ref().map(|value| (name.to_owned(), json!(value))))
        .collect();
    if members.is_empty() && args.vision_state.is_none() {
        return None;
    }
    Some(VisionInput::Patch {
        state: args.vision_state.clone(),
        members,
    })
}
