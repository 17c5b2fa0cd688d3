//! Dag units: which may start once a need has ended, and which are skipped so that nothing hangs. What a failure
//! stops never gets a token.

use crate::def::Strategy;
use crate::error::Failure;
use crate::event::{EventKind, Then, TokenId};
use crate::graph::{NodeIx, Unit, UnitIx};
use crate::state::{UnitState, UnitStatus};
use crate::task::expression_error;
use crate::value::Value;

use super::Decision;
use super::fail::Failed;
use super::route::Lineage;

impl Decision<'_> {
    /// After a node's work is done: units that waited for its unit and now can go.
    pub(super) fn start_dependents(&mut self, node: NodeIx) {
        let graph = self.graph();
        let Some(unit) = graph.node(node).unit else { return };
        if !matches!(self.unit(unit).status, UnitStatus::Completed | UnitStatus::Skipped) {
            return;
        }
        for dependent in &graph.unit(unit).dependents {
            self.start_unit_if_ready(*dependent);
        }
    }

    /// New units of a mutation may have nothing left to wait for.
    pub(super) fn start_ready_units(&mut self) {
        for ix in 0..self.graph().units.len() {
            self.start_unit_if_ready(UnitIx(ix as u32));
        }
    }

    fn start_unit_if_ready(&mut self, ix: UnitIx) {
        let graph = self.graph();
        let unit = graph.unit(ix);
        let state = self.unit(ix);
        if state.status == UnitStatus::Waiting && readiness(unit, state) != Readiness::Waits {
            self.create_token(&Lineage::default(), unit.head, None);
        }
    }

    fn unit(&self, ix: UnitIx) -> &UnitState {
        &self.state().units[ix.0 as usize]
    }

    /// Before a unit's first node runs: true if it was skipped or failed instead.
    pub(super) fn held_back(&mut self, id: TokenId) -> bool {
        let graph = self.graph();
        let at = self.node_of(id);
        let Some(ix) = graph.node(at).unit else { return false };
        let unit = graph.unit(ix);
        // Another attempt has been asked already.
        if unit.head != at || self.token(id).attempt > 0 {
            return false;
        }
        if readiness(unit, self.unit(ix)) == Readiness::Never {
            self.skip_unit(id);
            return true;
        }
        match self.wanted(id, unit) {
            Ok(true) => false,
            Ok(false) => {
                self.skip_unit(id);
                true
            }
            Err(failure) => {
                self.fail(id, Failed::of(failure));
                true
            }
        }
    }

    fn wanted(&self, id: TokenId, unit: &Unit) -> Result<bool, Failure> {
        match &unit.when {
            None => Ok(true),
            Some(when) => when.eval_bool(&self.view(id)).map_err(|error| {
                let mut failure = expression_error(error);
                failure.message = format!("`when` of {}: {}", unit.reference, failure.message);
                failure
            }),
        }
    }

    fn skip_unit(&mut self, id: TokenId) {
        let at = self.node_of(id);
        self.record(EventKind::TokenSkipped {
            token: id,
            output: Value::Null,
            patches: vec![],
            then: Then::Ends,
            unmapped: false,
            failure: None,
            report: None,
        });
        self.start_dependents(at);
    }

    pub(super) fn has_started(&self, reference: &str) -> bool {
        let graph = self.run.graph();
        let unit = graph.find_node(reference).and_then(|node| graph.node(node).unit);
        unit.is_some_and(|unit| !matches!(self.unit(unit).status, UnitStatus::Waiting | UnitStatus::Stopped))
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Readiness {
    Waits,
    Runs,
    /// All needs were skipped, or too few can still complete.
    Never,
}

fn readiness(unit: &Unit, state: &UnitState) -> Readiness {
    let needs = unit.needs.len() as u32;
    let (completed, skipped) = (state.needs_completed, state.needs_skipped);
    if needs == 0 {
        return Readiness::Runs;
    }
    let wanted = match unit.join {
        Strategy::All if completed + skipped < needs => return Readiness::Waits,
        Strategy::All | Strategy::Any => 1,
        Strategy::MOfN(m) => m,
    };
    if completed >= wanted {
        Readiness::Runs
    } else if needs - skipped < wanted {
        Readiness::Never
    } else {
        Readiness::Waits
    }
}
