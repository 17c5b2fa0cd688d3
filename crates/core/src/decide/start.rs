//! `StartRun` and `Release`: check the input, pin what must not change, make the first tokens.

use crate::event::EventKind;
use crate::input::{Limit, Operation, Rejection, StartRun};
use crate::lifecycle::RunStatus;
use crate::value::Value;

use super::Decision;
use super::route::Lineage;

impl Decision<'_> {
    pub(super) fn start(&mut self, mut start: StartRun) -> Result<(), Rejection> {
        if self.state().start.is_some() {
            return Err(Rejection::AlreadyStarted);
        }
        if start.input.is_null() {
            start.input = Value::empty_map();
        }
        let graph = self.graph();
        if let Some(schema) = &graph.input_schema {
            let refused = |violations: Vec<crate::schema::Violation>| Rejection::BadInput {
                violations: violations.iter().map(ToString::to_string).collect(),
            };
            schema.check(&start.input).map_err(refused)?;
        }
        let max = start.limits.result_bytes_max;
        if !start.input.fits(usize::try_from(max).unwrap_or(usize::MAX)) {
            return Err(Rejection::LimitExceeded { limit: Limit::ResultBytesMax, max });
        }
        for (name, profile) in &graph.models {
            // What nobody has said is not pinned: it is not known, which is not nothing.
            if let Some(prices) = profile.known_prices() {
                start.prices.entry(name.clone()).or_insert(prices);
            }
        }
        self.moves_left = start.limits.moves_per_input_max;
        let (workflow, version, queued) = (graph.name.clone(), graph.version, start.queued);
        let start = Box::new(start);
        if queued {
            self.record(EventKind::RunQueued { workflow, version, start });
        } else {
            self.record(EventKind::RunStarted { workflow, version, start });
            self.first_tokens();
        }
        Ok(())
    }

    pub(super) fn release(&mut self) -> Result<(), Rejection> {
        let status = self.state().status;
        if status != RunStatus::Queued {
            return Err(Rejection::WrongStatus { status, operation: Operation::Release });
        }
        self.record(EventKind::RunReleased);
        self.first_tokens();
        Ok(())
    }

    fn first_tokens(&mut self) {
        let graph = self.graph();
        if !graph.is_dag() {
            self.create_token(&Lineage::default(), graph.initial, None);
            return;
        }
        for unit in graph.units.iter().filter(|unit| unit.needs.is_empty()) {
            self.create_token(&Lineage::default(), unit.head, None);
        }
    }
}
