//! `retry` with another version of the definition, in place.
//!
//! The run's events stay as they are; from now on they are applied to the new version, so that version must be
//! one in which they could have happened. Where it is not, nothing changes: a fork can begin before the difference.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use wonder_core::def::Name;
use wonder_core::event::Event;
use wonder_core::graph::Graph;
use wonder_core::{Input, Run};
use wonder_engine::{EngineError, Reply, Workflow};

use super::ask::refused;
use super::definitions::checked;
use super::rows::json;
use super::statistics::NodeStatistics;
use super::{Driver, Refusal, Turn, panic_text};
use crate::store::Write;

impl Driver {
    /// Puts new definitions under a run that has ended; what is left to say is that it is retried with them.
    /// Everything about the run is committed: see `gather`.
    pub(super) fn redefined(
        &mut self,
        turn: &mut Turn,
        id: &Name,
        brought: &[Workflow],
        by: Name,
    ) -> Reply<Input> {
        let mut stored = self.stored(id)?;
        let first = brought.first().ok_or_else(|| EngineError::internal("no definition was brought"))?;
        let name = &first.bundle.workflow.name.text;
        if **name != *stored.row.workflow {
            return Err(EngineError::other_workflow(name, &stored.row.workflow));
        }
        let events = self.store.reader().events(stored.no, 0, usize::MAX)?;
        // Nothing is written before it is known to fit.
        let graph = first.graph.clone().map_or_else(|| checked(first.bundle.clone(), 0), Ok)?;
        let trial = Input::Retry { by: by.clone(), version: None };
        let mut tried = replayed(id, graph, &events)?;
        tried.handle(trial, self.clock.now()).map_err(|no| refused(Refusal::Rejected(no)))?;
        for (at, workflow) in brought.iter().enumerate() {
            let (definition, _) = self.register(turn, workflow.clone())?;
            stored.callable.insert(workflow.bundle.workflow.name.text.clone(), definition);
            if at == 0 {
                stored.definition = definition;
            }
        }
        let graph = self.definitions.graph(stored.definition, &self.store.reader())?;
        let version = graph.version;
        let run = replayed(id, graph.clone(), &events)?;
        let hosted = self.runs.get_mut(id).ok_or_else(|| EngineError::no_such_run(id))?;
        hosted.run = run;
        (hosted.definition, hosted.version) = (stored.definition, version);
        hosted.callable = Arc::new(stored.callable);
        hosted.statistics = NodeStatistics::of(&graph);
        let callable = json(&*hosted.callable);
        turn.batch.push(Write::Redefined {
            run: stored.no,
            definition: stored.definition,
            version,
            callable,
        });
        Ok(Input::Retry { by, version: Some(version) })
    }
}

/// The run as its events make it with this definition, if they can.
fn replayed(id: &Name, graph: Arc<Graph>, events: &[Event]) -> Reply<Run> {
    let replayed = catch_unwind(AssertUnwindSafe(|| Run::replay(graph, events)));
    match replayed {
        Ok(Ok(run)) => Ok(run),
        Ok(Err(error)) => Err(EngineError::log_does_not_fit(id, &error.to_string())),
        Err(panic) => Err(EngineError::log_does_not_fit(id, &panic_text(&*panic))),
    }
}
