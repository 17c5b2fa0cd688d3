//! Changes of the graph, and dag units as their needs end.

use std::sync::Arc;

use crate::def::Strategy;
use crate::error::Failure;
use crate::event::RunChange;
use crate::graph::{Graph, NodeIx, UnitIx};
use crate::run::Run;
use crate::state::{UnitState, UnitStatus};
use crate::value::Value;

impl Run {
    pub(super) fn mutated(&mut self, what: &RunChange, grown: Option<Arc<Graph>>) {
        self.state.metrics.mutations_applied += 1;
        match what {
            RunChange::Downgrade => self.state.downgrades += 1,
            RunChange::Graph(mutation) => {
                self.graph = grown.expect("whoever applies a change of the graph has compiled it");
                self.state.mutations.push(mutation.clone());
                self.count_needs_of_new_units();
                self.open_accounts();
                self.rank_nodes();
            }
            RunChange::SwitchModel { .. }
            | RunChange::StricterPrompt
            | RunChange::Change
            | RunChange::Feedback => {}
        }
    }

    /// New units, and old ones with new needs, count anew what has already ended.
    fn count_needs_of_new_units(&mut self) {
        self.state.units.resize_with(self.graph.units.len(), UnitState::default);
        for (ix, unit) in self.graph.units.iter().enumerate() {
            if self.state.units[ix].status == UnitStatus::Waiting {
                let of = |status: UnitStatus, run: &Run| {
                    unit.needs.iter().filter(|n| run.state.units[n.0 as usize].status == status).count()
                        as u32
                };
                let (completed, skipped) = (of(UnitStatus::Completed, self), of(UnitStatus::Skipped, self));
                let failed = of(UnitStatus::Failed, self) + of(UnitStatus::Stopped, self);
                let state = &mut self.state.units[ix];
                (state.needs_completed, state.needs_skipped, state.needs_failed) =
                    (completed, skipped, failed);
            }
        }
        (0..self.graph.units.len()).for_each(|ix| self.stop_if_hopeless(UnitIx(ix as u32)));
    }

    /// A unit ends when its tail completes, or when its head is skipped.
    pub(super) fn unit_done(&mut self, node: NodeIx, result: &Value, skipped: bool) {
        let graph = self.graph.clone();
        let Some(ix) = graph.node(node).unit else { return };
        let unit = graph.unit(ix);
        if !(unit.tail == node || (skipped && unit.head == node)) {
            return;
        }
        // Skipped with an output stands in for a result: what needs it can go on.
        let skipped = skipped && result.is_null();
        let state = &mut self.state.units[ix.0 as usize];
        state.status = if skipped { UnitStatus::Skipped } else { UnitStatus::Completed };
        state.result = result.clone();
        for dependent in &unit.dependents {
            let needs = &mut self.state.units[dependent.0 as usize];
            if skipped {
                needs.needs_skipped += 1;
                self.stop_if_hopeless(*dependent);
            } else {
                needs.needs_completed += 1;
            }
        }
    }

    /// Nobody took care of a failure in it: it has no result, and those who cannot do without it never start.
    pub(super) fn unit_failed(&mut self, node: NodeIx, failure: &Failure) {
        let Some(ix) = self.graph.node(node).unit else { return };
        self.state.failed_with.get_or_insert_with(|| failure.clone());
        self.state.units[ix.0 as usize].status = UnitStatus::Failed;
        self.tell_dependents(ix);
    }

    fn tell_dependents(&mut self, failed: UnitIx) {
        let graph = self.graph.clone();
        for dependent in &graph.unit(failed).dependents {
            self.state.units[dependent.0 as usize].needs_failed += 1;
            self.stop_if_hopeless(*dependent);
        }
    }

    /// A unit of whose needs too few can still complete, because of a failure, and with it those that need it.
    fn stop_if_hopeless(&mut self, ix: UnitIx) {
        let unit = self.graph.unit(ix);
        let state = &self.state.units[ix.0 as usize];
        let left = (unit.needs.len() as u32).saturating_sub(state.needs_skipped + state.needs_failed);
        let hopeless = match unit.join {
            Strategy::All => true,
            Strategy::Any => left == 0,
            Strategy::MOfN(wanted) => left < wanted,
        };
        if state.status == UnitStatus::Waiting && state.needs_failed > 0 && hopeless {
            self.state.units[ix.0 as usize].status = UnitStatus::Stopped;
            self.tell_dependents(ix);
        }
    }

    /// What failed is tried again, and what it stopped may start.
    pub(super) fn reopen_units(&mut self) {
        self.state.failed_with = None;
        for unit in &mut self.state.units {
            unit.needs_failed = 0;
            unit.status = match unit.status {
                UnitStatus::Failed => UnitStatus::Started,
                UnitStatus::Stopped => UnitStatus::Waiting,
                status => status,
            };
        }
    }
}
