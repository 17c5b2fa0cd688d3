//! Carrying runs on: what they are owed is performed, for a run and for all it called.

use wonder_core::command::TaskOrder;
use wonder_core::def::{Effect, Name};
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::input::{TaskOutcome, TaskReport};
use wonder_core::{Command, Input};
use wonder_engine::Reply;

use super::{Driver, Word};

impl Driver {
    /// This process carries the run's whole tree on from now, until it ends or the process leaves.
    pub(super) fn adopt(&mut self, id: &Name) -> Reply<()> {
        self.hosted(id)?;
        let root = self.runs[id].root.clone();
        if self.shared.is_driven(&root) {
            return Ok(());
        }
        self.hosted(&root)?;
        let tree = self.store.reader().tree(&root)?;
        let live: Vec<_> = tree.into_iter().filter(|run| !run.row.status.is_end()).collect();
        // What has ended is not carried on; a retry of this turn is not in its row yet.
        if live.is_empty() && self.runs[&root].run.status().is_end() {
            return Ok(());
        }
        self.shared.drive(&root);
        for run in live {
            let id: Name = run.row.run.into();
            // One that is damaged is set aside; the others go on.
            if self.hosted(&id).is_ok() {
                self.rejoin_lane(&id);
                self.perform_owed(&id);
            }
        }
        Ok(())
    }

    fn perform_owed(&mut self, id: &Name) {
        self.touched.insert(id.clone());
        for command in self.runs[id].run.owed() {
            match command {
                Command::RunTask(order) if self.was_begun_once(id, &order) => self.lose(id, &order),
                Command::OpenGate { .. } => {}
                command => self.command(id, command),
            }
        }
    }

    /// A task that must not run twice, and that a worker has begun: what became of it is not known.
    fn was_begun_once(&self, id: &Name, order: &TaskOrder) -> bool {
        let hosted = &self.runs[id];
        let once = hosted.run.graph().tasks.get(&order.task).is_some_and(|task| task.effect == Effect::Once);
        once && hosted.started.contains(&(order.token.0, order.attempt))
    }

    fn lose(&mut self, id: &Name, order: &TaskOrder) {
        let message = "the process that ran it is gone, and it must not run twice";
        let failure = Failure::new(ErrorKind::WorkerLost, message);
        let outcome = TaskOutcome::Failed { failure, retry: false, step: None };
        let report = TaskReport { outcome, spend: Default::default(), tries: 0 };
        let input = Input::TaskFinished { token: order.token, attempt: order.attempt, report };
        self.words.push_back(Word::Say { run: id.clone(), input });
    }
}
