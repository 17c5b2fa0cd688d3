//! Carrying runs on: what they are owed is performed, for a run and for all it called.

use wonder_core::command::TaskOrder;
use wonder_core::def::{Effect, Name};
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::input::TaskOutcome;
use wonder_core::{Command, Input};
use wonder_engine::Reply;

use super::{Driver, Turn, unbegun};

impl Driver {
    /// This process carries the run's whole tree on from now, until it ends or the process leaves.
    pub(super) fn adopt(&mut self, turn: &mut Turn, id: &Name) -> Reply<()> {
        self.hosted(turn, id)?;
        let root = self.runs[id].root.clone();
        if self.shared.is_driven(&root) {
            return Ok(());
        }
        self.hosted(turn, &root)?;
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
            if self.hosted(turn, &id).is_ok() {
                self.rejoin_limit(turn, &id);
                self.perform_owed(turn, &id);
            }
        }
        Ok(())
    }

    fn perform_owed(&mut self, turn: &mut Turn, id: &Name) {
        turn.touched.insert(id.clone());
        for command in self.runs[id].run.owed() {
            match command {
                Command::RunTask(order) if self.was_begun_once(id, &order) => report_lost(turn, id, &order),
                Command::OpenGate { .. } => {}
                command => self.command(turn, id, command),
            }
        }
    }

    /// A task that must not run twice, and that a worker has begun: what became of it is not known.
    fn was_begun_once(&self, id: &Name, order: &TaskOrder) -> bool {
        let hosted = &self.runs[id];
        let once = hosted.run.graph().tasks.get(&order.task).is_some_and(|task| task.effect == Effect::Once);
        once && hosted.started.contains(&(order.token.0, order.attempt))
    }
}

fn report_lost(turn: &mut Turn, id: &Name, order: &TaskOrder) {
    let message = "the process that ran it is gone, and it must not run twice";
    let failure = Failure::new(ErrorKind::WorkerLost, message);
    let report = unbegun(TaskOutcome::Failed { failure, retry: false, step: None });
    let input = Input::TaskFinished { token: order.token, attempt: order.attempt, report };
    turn.tell(id.clone(), input);
}
