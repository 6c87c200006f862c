//! What waits in the inboxes that a goal names, for `status`: kept counts, no content, nothing written.

use std::path::Path;

use serde_json::{Value, json};

use crate::contract::extension::Permission;
use crate::contract::inbox::urgency::{Urgency, UrgencyRoutes};
use crate::contract::inbox::words;
use crate::flow::inbox::context::{BoundInbox, Desk, Source, configured, locate_in};
use crate::flow::inbox::error::InboxError;
use crate::flow::open;
use crate::flow::ports::Ports;
use crate::kernel::inbox::urgency;
use crate::kernel::quota::places::shell_line;

/// One inbox, or one collector, and who reads it.
struct Named {
    config: String,
    agents: Vec<String>,
    is_default: bool,
}

/// Returns a row for each configuration that the goal names.
pub fn of_goal(ports: &Ports, goal: &open::Place) -> Vec<Value> {
    let named = named(goal);
    if named.is_empty() {
        return Vec::new();
    }
    let place = goal.bound();
    let desk = Desk {
        place: &place,
        placement: ports.placement.as_ref(),
        now: ports.now,
    };
    let row = |named: &Named| {
        let mut row = match look(&desk, &goal.project(), &named.config) {
            Ok((urgency, routes)) => urgency.to_value(routes, ports.now),
            Err(error) => json!({"unavailable": error.packet()["error_code"]}),
        };
        row["agent_ids"] = json!(named.agents);
        row["for_other_agents"] = json!(named.is_default);
        row["drain_command"] = json!(drain(goal, named));
        row
    };
    named.iter().map(row).collect()
}

fn drain(goal: &open::Place, named: &Named) -> String {
    let mut words = vec!["loopx"];
    words.extend(words::DRAIN_WORDS);
    words.extend(["--goal-id", goal.goal.id.as_str()]);
    if let Some(agent) = named.agents.first() {
        words.extend(["--agent-id", agent]);
    }
    shell_line(&words.into_iter().map(str::to_owned).collect::<Vec<_>>())
}

/// The configurations of a goal, each once: its own, and those of its agents.
fn named(goal: &open::Place) -> Vec<Named> {
    let plane = goal.goal.get("control_plane");
    let mut all: Vec<Named> = Vec::new();
    let default = configured(plane, None);
    if let Some(config) = &default {
        all.push(Named {
            config: config.clone(),
            agents: Vec::new(),
            is_default: true,
        });
    }
    for agent in &goal.goal.agents {
        let own = configured(plane, Some(agent.as_str()));
        let Some(config) = own.filter(|own| Some(own) != default.as_ref()) else {
            continue;
        };
        let agent = agent.as_str().to_owned();
        match all.iter_mut().find(|named| named.config == config) {
            Some(known) => known.agents.push(agent),
            None => all.push(Named {
                config,
                agents: vec![agent],
                is_default: false,
            }),
        }
    }
    all
}

fn look(
    desk: &Desk<'_>,
    project: &Path,
    config: &str,
) -> Result<(Urgency, Option<UrgencyRoutes>), InboxError> {
    let located = locate_in(project, Path::new(config))?;
    desk.require(&[Permission::InboxRead])?;
    Ok(match desk.read(&located)? {
        Source::Single(inbox) => (waiting(&inbox)?, None),
        Source::Routed(collector) => {
            let mut sum = Urgency::default();
            for route in collector.enabled() {
                sum = urgency::sum(sum, waiting(route)?);
            }
            let routes = UrgencyRoutes {
                total: collector.routes.len(),
                disabled: collector.disabled_keys().len(),
            };
            (sum, Some(routes))
        }
    })
}

fn waiting(inbox: &BoundInbox) -> Result<Urgency, InboxError> {
    let sums = inbox.store()?.urgent()?;
    let oldest = sums.oldest_pending.iter();
    let reviewed = inbox.config.material_review;
    let material = |count: u64| if reviewed.is_some() { count } else { 0 };
    Ok(Urgency {
        pending: sums.pending,
        attention: sums.attention,
        direct_question: sums.direct_question,
        direct_mention: sums.direct_mention,
        reply_to_bot: sums.reply_to_bot,
        material: material(sums.pending.saturating_sub(sums.attention)),
        material_attachment: material(sums.material_attachment),
        oldest: oldest.filter_map(|text| urgency::posted(text)).min(),
        review_limit: reviewed,
    })
}
