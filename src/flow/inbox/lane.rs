//! The consumers of one stream key: the present one, its successor during a roll-over, the next try after a loss.

use std::time::Duration;

use crate::contract::inbox::stream::EventKey;
use crate::kernel::inbox::live;
use crate::port::events::ConsumerId;

/// One running consumer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) id: ConsumerId,
    pub(super) pid: u32,
    pub(super) started: Duration,
    pub(super) timeout: Duration,
    pub(super) ready_since: Option<Duration>,
    /// We asked it to end.
    pub(super) stopping: bool,
    /// When it is ended without asking again.
    pub(super) kill_at: Option<Duration>,
}

/// The consumers of one key.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    pub(super) key: EventKey,
    pub(super) members: Vec<Member>,
    pub(super) retry_at: Option<Duration>,
    pub(super) losses: u32,
    /// Nothing is started here any more.
    pub(super) is_over: bool,
}

impl Lane {
    pub(super) fn new(key: EventKey) -> Self {
        Self {
            key,
            members: Vec::new(),
            retry_at: Some(Duration::ZERO),
            losses: 0,
            is_over: false,
        }
    }

    pub(super) fn member(&mut self, id: ConsumerId) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.id == id)
    }

    pub(super) fn remove(&mut self, id: ConsumerId) -> Option<Member> {
        let at = self.members.iter().position(|member| member.id == id)?;
        Some(self.members.remove(at))
    }

    /// Tells whether a consumer that we did not stop is ready.
    pub(super) fn is_ready(&self) -> bool {
        self.members
            .iter()
            .any(|member| member.ready_since.is_some() && !member.stopping)
    }

    /// Tells whether a consumer is there that we did not stop.
    pub(super) fn is_manned(&self) -> bool {
        self.members.iter().any(|member| !member.stopping)
    }

    /// When a successor of the only consumer starts; never while one is starting.
    pub(super) fn rollover_at(&self) -> Option<Duration> {
        let mut live = self.members.iter().filter(|member| !member.stopping);
        match (live.next(), live.next()) {
            (Some(only), None) if only.ready_since.is_some() => {
                let lead = live::rollover_lead(only.timeout);
                Some(only.started + only.timeout - lead)
            }
            _ => None,
        }
    }

    /// When the present consumer ends by itself.
    pub(super) fn ends_at(&self) -> Option<Duration> {
        let live = self.members.iter().filter(|member| !member.stopping);
        live.map(|member| member.started + member.timeout).max()
    }

    /// Forgets losses after a minute of readiness.
    pub(super) fn settle(&mut self, now: Duration) {
        let is_steady = |member: &Member| {
            member
                .ready_since
                .is_some_and(|since| now.saturating_sub(since) >= live::STEADY)
        };
        if self.members.iter().any(is_steady) {
            self.losses = 0;
        }
    }

    pub(super) fn pids(&self) -> Vec<u32> {
        self.members.iter().map(|member| member.pid).collect()
    }
}
