//! Changes of the graph, and dag units as their needs end.

use std::sync::Arc;

use crate::event::RunChange;
use crate::graph::{Graph, NodeIx};
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
                self.state.units[ix].needs_completed = completed;
                self.state.units[ix].needs_skipped = skipped;
            }
        }
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
            } else {
                needs.needs_completed += 1;
            }
        }
    }
}
