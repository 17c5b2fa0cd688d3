//! What can be typed next, by what went wrong. Engines give causes; command lines are named here and nowhere
//! else.

use wonder_core::input::Operation;
use wonder_engine::{Cause, EngineError};

/// A way out on this command line, if there is one that the error itself does not say. `run`: the one that was
/// asked about, as it was typed.
pub(crate) fn hint(error: &EngineError, run: Option<&str>) -> Option<String> {
    let text = match error.cause.as_deref()? {
        Cause::NoRunYet => "wonder run FILE starts one.",
        Cause::NoSuchRun { .. } => "wonder list shows what there is; `last` is the newest.",
        Cause::NoSuchGate { .. } | Cause::NoOpenGate { .. } => "wonder gates shows those that are open.",
        Cause::NoSuchVisit { run, .. } => {
            return Some(format!("wonder show {run} -o json has each visit as its `token`."));
        }
        Cause::NoSuchEvent { run, .. } => return Some(format!("wonder events {run} lists them.")),
        Cause::BadAnswer { .. } => "wonder gates -o json shows the form.",
        Cause::NobodyWaits { .. } => "wonder why RUN says what it waits for.",
        Cause::LogDoesNotFit => {
            "wonder fork RUN --from NODE --definition FILE makes a new run that goes on from before that."
        }
        Cause::CannotFork => "wonder show RUN lists the nodes it has been to.",
        Cause::WrongStatus { operation, .. } => match operation {
            Operation::Resume => "wonder retry RUN goes on with a run that failed or was cancelled.",
            Operation::Retry => "wonder resume RUN goes on with a run that was paused or interrupted.",
            _ => "wonder show RUN says how it stands.",
        },
        Cause::GateClosed { .. } | Cause::AnsweredAlready { .. } => "wonder show RUN says how it stands.",
        Cause::DefinitionRefused { .. } => "wonder validate FILE says where.",
        Cause::SetAside { run } => return Some(format!("Please report it with `wonder events {run}`.")),
        Cause::OwnerSilent { .. } | Cause::StorageUnusable => {
            "Another directory can be named: WONDER_HOME=DIR."
        }
        Cause::DiskFull => "Then carry on: wonder resume RUN.",
        Cause::SeveralRuns { .. }
        | Cause::SeveralGates { .. }
        | Cause::BadRunInput { .. }
        | Cause::OtherWorkflow { .. }
        | Cause::OtherVersion => return None,
    };
    Some(text.replace("RUN", run.unwrap_or("RUN")))
}
