//! Why a run does not go on, in words: one line for each reason that an engine gave as data.

use wonder_engine::{Why, WhyReason};

/// `asked`: the run that was asked about; of those it called the line names which.
pub(crate) fn line(asked: &str, why: &Why) -> String {
    let of = if why.run == asked { String::new() } else { format!("{}: ", why.run) };
    match &why.reason {
        WhyReason::Run(waiting) => format!("{of}{waiting}"),
        WhyReason::Concurrency { holders } => {
            format!("{of}the run waits for a place (concurrency): held by {}", holders.join(", "))
        }
        WhyReason::Project { message, .. } => {
            format!("{of}{message}: raise its budget in wonder.toml, then wonder resume")
        }
    }
}
