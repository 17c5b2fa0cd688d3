//! The workflow's clock and what pauses it.

use crate::event::{Clocked, PauseReason};
use crate::lifecycle::RunStatus;
use crate::run::Run;
use crate::state::Timer;
use crate::time::Time;

impl Run {
    /// After every event: starts or stops the clock as the tokens now stand.
    pub(super) fn tick(&mut self) {
        let population = &self.state.token_counts;
        let only_waits = population.idle > 0
            && population.idle + population.at_fan_ins == population.live
            && population.abandoned == 0;
        let runs = self.state.status == RunStatus::Running && !only_waits;
        let now = self.state.now;
        match (self.state.clock.since, runs) {
            (None, true) => {
                self.state.clock.since = Some(now);
                self.set_workflow_timers(true);
            }
            (Some(since), false) => {
                self.set_workflow_timers(false);
                self.state.clock.used_ms += now.since(since);
                self.state.clock.since = None;
            }
            _ => {}
        }
    }

    fn set_workflow_timers(&mut self, on: bool) {
        let clock = &self.state.clock;
        let Some(since) = clock.since else { return };
        let left = |limit: u64| since.plus(limit.saturating_sub(clock.used_ms));
        let deadline = (left(clock.limit_ms), Timer::Workflow);
        let warning = (left(clock.limit_ms.saturating_mul(4) / 5), Timer::WorkflowWarning);
        if on {
            self.state.timers.insert(deadline);
            if !self.state.clock.warned {
                self.state.timers.insert(warning);
            }
        } else {
            self.state.timers.remove(&deadline);
            self.state.timers.remove(&warning);
        }
    }

    pub(super) fn extended(&mut self, by_ms: u64) {
        self.set_workflow_timers(false);
        let now = self.state.now;
        let clock = &mut self.state.clock;
        clock.limit_ms = clock.elapsed_ms(now).max(clock.limit_ms).saturating_add(by_ms);
        clock.warned = false;
        self.set_workflow_timers(true);
    }

    pub(super) fn warned(&mut self, of: Clocked) {
        match of {
            Clocked::Workflow => {
                self.set_workflow_timers(false);
                self.state.clock.warned = true;
                self.set_workflow_timers(true);
            }
            Clocked::FanIn(id) => {
                self.stop_fan_in_clock(id);
                self.state.groups.get_mut(&id).expect("an open fan-in warns").warned = true;
                self.start_fan_in_clock(id);
            }
            Clocked::Gate(id) => self.state.timers.retain(|(_, timer)| *timer != Timer::GateWarning(id)),
        }
    }

    pub(super) fn paused(&mut self, reason: PauseReason) {
        self.state.pauses.insert(reason);
        if self.state.status == RunStatus::Running {
            self.state.status = RunStatus::Paused;
            self.state.clock.paused_at = Some(self.state.now);
            self.state.clock.was_paused = true;
            for id in self.state.groups.keys().copied().collect::<Vec<_>>() {
                self.stop_fan_in_clock(id);
            }
        }
    }

    pub(super) fn resumed(&mut self, reason: PauseReason) {
        self.state.pauses.remove(&reason);
        if self.state.pauses.is_empty() && self.state.status == RunStatus::Paused {
            self.state.status = RunStatus::Running;
            let paused_at = self.state.clock.paused_at.take().unwrap_or(self.state.now);
            self.restart_fan_in_clocks(paused_at);
        }
    }

    /// A fork goes on where its events were left: the time since then is nobody's.
    pub(super) fn restart_clocks(&mut self, left_at: Time) {
        self.set_workflow_timers(false);
        let now = self.state.now;
        if let Some(since) = self.state.clock.since {
            self.state.clock.used_ms += left_at.since(since);
            self.state.clock.since = Some(now);
        }
        self.set_workflow_timers(true);
        for id in self.state.groups.keys().copied().collect::<Vec<_>>() {
            self.stop_fan_in_clock(id);
        }
        self.restart_fan_in_clocks(left_at);
        for id in self.state.gates.keys().copied().collect::<Vec<_>>() {
            self.stop_gate_clock(id);
            self.start_gate_clock(id);
        }
    }

    /// Fan-in clocks stood from `paused_at`, or from the first arrival if that came later.
    fn restart_fan_in_clocks(&mut self, paused_at: Time) {
        let now = self.state.now;
        for id in self.state.groups.keys().copied().collect::<Vec<_>>() {
            let group = self.state.groups.get_mut(&id).expect("its id was just listed");
            if let Some(first) = group.first_arrival {
                group.first_arrival = Some(first.plus(now.since(paused_at.max(first))));
                self.start_fan_in_clock(id);
            }
        }
    }
}
