//! What a turn start does for a goal whose inbox asks for it: the routes are read up to now, and the agent is told to look.
//!
//! 1. the goal names a collector that wants it, else nothing is opened or spawned  2. right to run  3. one turn at a time; a second one
//!    skips  4. per route pages and position, one transaction each  5. what waits is counted  6. a few received marks  7. the dispatch
//!
//! Nothing here fails the decision it precedes, and no content is returned (`docs/spec/lark-inbox.md` 11). Plans, previews and status
//! never come here.

use std::path::Path;

use serde_json::Value;

use crate::contract::extension::Permission;
use crate::contract::goal::GoalStatus;
use crate::contract::ids::AgentId;
use crate::contract::inbox::collector::{CollectorConfig, TurnStartSync, is_collector};
use crate::contract::inbox::fault::InboxFault;
use crate::contract::inbox::turn_start::{self, SyncCounts, SyncFault};
use crate::contract::inbox::words;
use crate::flow::inbox::context::{
    BoundCollector, Desk, Located, Source, configured, locate_in, read_document,
};
use crate::flow::inbox::error::InboxError;
use crate::flow::inbox::turn_start_marks;
use crate::flow::inbox::turn_start_route::{RouteSync, store_fault};
use crate::flow::open;
use crate::flow::ports::Ports;
use crate::kernel::quota::places::shell_line;
use crate::port::channel::ChannelProvider;
use crate::store::StoreError;
use crate::store::inbox::{Exporter, sync_lock_path};
use crate::store::lock::{self, Claim, Held, Lane, Policy};

/// Runs the hook of a goal; none when the goal does not ask for it.
pub fn dispatch(ports: &Ports, goal: &open::Place, agent: Option<&AgentId>) -> Option<Value> {
    let agent = agent?;
    if goal.goal.status != GoalStatus::Active {
        return None;
    }
    let config = configured(goal.goal.get("control_plane"), Some(agent.as_str()))?;
    let place = goal.bound();
    let desk = Desk {
        place: &place,
        placement: ports.placement.as_ref(),
        now: ports.now,
    };
    let bound = match wanted(&goal.project(), &config) {
        Ok(None) => return None,
        Ok(Some((located, sync))) => bind(&desk, &located).map(|bound| (located, sync, bound)),
        Err(error) => Err(error),
    };
    let Ok((located, sync, collector)) = bound else {
        return Some(turn_start::unconfigured());
    };
    let turn = TurnStart {
        ports,
        desk: &desk,
        located: &located,
        sync: &sync,
        collector: &collector,
    };
    let rest = [
        "--goal-id",
        goal.goal.id.as_str(),
        "--agent-id",
        agent.as_str(),
    ];
    let words = [&words::DRAIN_WORDS[..], &rest].concat();
    let drain = shell_line(&goal.places().argv(&words));
    Some(turn.run().dispatch(&drain))
}

/// Says whether a dispatch changed anything on this machine.
pub fn has_written(dispatch: &Value) -> bool {
    dispatch["results"][0]["local_private_state_mutated"] == Value::Bool(true)
}

/// Looks at the configuration alone: no version control, no database.
fn wanted(project: &Path, config: &str) -> Result<Option<(Located, TurnStartSync)>, InboxError> {
    let located = locate_in(project, Path::new(config))?;
    let document = read_document(&located.config)?;
    if !is_collector(&document) {
        return Ok(None);
    }
    let config = CollectorConfig::parse(&document).map_err(InboxFault::Collector)?;
    let sync = config.turn_start_sync.filter(|_| config.enabled);
    Ok(sync.map(|sync| (located, sync)))
}

fn bind(desk: &Desk<'_>, located: &Located) -> Result<BoundCollector, InboxError> {
    match desk.read(located)? {
        Source::Routed(collector) => Ok(*collector),
        Source::Single(_) => Err(InboxFault::CollectorConfigRequired.into()),
    }
}

struct TurnStart<'a> {
    ports: &'a Ports,
    desk: &'a Desk<'a>,
    located: &'a Located,
    sync: &'a TurnStartSync,
    collector: &'a BoundCollector,
}

impl TurnStart<'_> {
    fn run(&self) -> SyncCounts {
        let mut counts = SyncCounts {
            routes: self.collector.enabled().count(),
            ..SyncCounts::default()
        };
        let rights = [Permission::CollectorManage, Permission::InboxWrite];
        if self.desk.require(&rights).is_err() {
            counts.fault = Some(SyncFault::ExtensionUnavailable);
            return counts;
        }
        let held = match self.lock() {
            Ok(held) => held,
            Err(fault) => {
                counts.fault = Some(fault);
                self.count_pending(&mut counts);
                return counts;
            }
        };
        let program = Some(self.collector.config.program.clone());
        let chat = self.ports.inbox.open(program);
        let channel = &chat.channel;
        let mut out = Exporter::default();
        self.read_routes(channel.as_ref(), (&mut counts, &mut out));
        if counts.fault.is_some() && chat.refuse_old().is_err() {
            counts.fault = Some(SyncFault::ProgramTooOld);
        }
        self.count_pending(&mut counts);
        if self.desk.require(&[Permission::ReplySend]).is_ok() && counts.synced > 0 {
            let now = self.desk.now.to_string();
            turn_start_marks::give(
                self.collector,
                channel.as_ref(),
                &now,
                (&mut counts, &mut out),
            );
        }
        counts.export_pending = out.is_pending();
        drop(held);
        counts
    }

    /// Reads every route; the same program and profile serve all of them, so one that is away is not waited for again.
    fn read_routes(
        &self,
        channel: &dyn ChannelProvider,
        (counts, out): (&mut SyncCounts, &mut Exporter),
    ) {
        for route in self.collector.enabled() {
            let reading = RouteSync {
                located: self.located,
                collector: self.collector,
                route,
                channel,
                sync: self.sync,
                now: self.desk.now,
            };
            match reading.run(counts, out) {
                Ok(()) => counts.synced += 1,
                Err(fault) => {
                    counts.fault = counts.fault.or(Some(fault));
                    if matches!(
                        fault,
                        SyncFault::ProviderUnavailable | SyncFault::AuthorizationRequired
                    ) {
                        break;
                    }
                }
            }
        }
    }

    fn lock(&self) -> Result<Held<Lane>, SyncFault> {
        let now = self.desk.now.to_string();
        let claim = Claim {
            lock_id: "turn-start-sync",
            agent_id: None,
            operation: words::TURN_START_OPERATION,
            policy: Policy::SingleFlight,
            now: &now,
        };
        lock::acquire(&sync_lock_path(&self.located.project), &claim).map_err(|error| match error {
            StoreError::LockTimeout(_) => SyncFault::InProgress,
            error => store_fault(&error),
        })
    }

    /// What waits, whoever stored it.
    fn count_pending(&self, counts: &mut SyncCounts) {
        for route in self.collector.enabled() {
            let pending = route.store().map(|store| store.counts());
            match pending {
                Ok(Ok(of)) => counts.pending += of.pending,
                Ok(Err(error)) => counts.fault = counts.fault.or(Some(store_fault(&error))),
                Err(_) => {}
            }
        }
    }
}
