//! What a host still has to do for this run, from its state alone: recovery is replay, then this.

use super::Run;
use crate::command::Command;
use crate::lifecycle::RunStatus;

impl Run {
    /// Tasks and children that are out and wanted, gates that are open. Performing one that is already
    /// under way must be harmless for the host: ids and attempts are the same.
    pub fn owed(&self) -> Vec<Command> {
        let mut owed = Vec::new();
        if self.status().is_end() {
            return owed;
        }
        let cancelling = self.status() == RunStatus::Cancelling;
        for ((id, attempt), out) in &self.state.out {
            let wanted = self.state.tokens.get(id).is_some_and(|t| t.awaits(*attempt));
            match (&out.child, wanted && !cancelling) {
                (None, true) => owed.extend(self.order(*id).map(Command::RunTask)),
                (Some(child), true) => {
                    owed.extend(self.child_order(*id, *attempt).map(Command::StartChild));
                    let child = child.clone();
                    // Whether an earlier word reached the child is not known; one too many is refused there.
                    if self.status() == RunStatus::Paused {
                        owed.push(Command::PauseChild { token: *id, child });
                    } else if self.state.clock.was_paused {
                        owed.push(Command::ResumeChild { token: *id, child });
                    }
                }
                (None, false) => owed.push(Command::CancelTask { token: *id, attempt: *attempt }),
                (Some(child), false) => owed.push(Command::CancelChild { token: *id, child: child.clone() }),
            }
        }
        owed.extend(self.state.gates.keys().map(|gate| Command::OpenGate { gate: *gate }));
        owed
    }
}
