//! What a run is told from outside by a script: events, answers and operations, at a time or when a condition
//! holds.

use wonder_core::def::Name;
use wonder_core::event::GateKind;
use wonder_core::input::Input;
use wonder_core::value::Value;
pub use wonder_engine::TELL_EVENT;

#[derive(Clone, Debug)]
pub struct ScriptedInput {
    pub when: When,
    /// So long after the condition holds.
    pub after_ms: u64,
    /// The run that is told: its id, or the name of its workflow; the root if absent.
    pub run: Option<Name>,
    pub what: OutsideInput,
    /// Every time the condition holds, not only the first.
    pub each: bool,
}

#[derive(Clone, Debug)]
pub enum When {
    /// So long after the start.
    At(u64),
    /// A gate is open: of this node, of this kind, in this innermost branch.
    Gate(GateFilter),
    /// An event of this name was recorded, of this node if it says one.
    Event { name: Name, node: Option<Name> },
    /// An event of this name is waited for.
    Awaited(Name),
    /// Nothing is scheduled any more.
    Idle,
    /// The run has ended.
    End,
}

#[derive(Clone, Debug, Default)]
pub struct GateFilter {
    pub node: Option<Name>,
    pub kind: Option<GateKind>,
    pub branch: Option<u32>,
}

#[derive(Clone, Debug)]
pub enum OutsideInput {
    Event {
        name: Name,
        key: Value,
        payload: Value,
        keep: bool,
    },
    /// A message to whoever works in the run when it comes: itself, or the one below it that takes messages.
    Tell {
        payload: Value,
    },
    /// To the gate that `when` found, else to the first that is open and fits.
    Answer {
        gate: GateFilter,
        answer: Value,
        by: Name,
    },
    Operate {
        operation: Operation,
        by: Name,
        reason: String,
        grace_ms: Option<u64>,
    },
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Operation {
    Release,
    Pause,
    Resume,
    Cancel,
    Kill,
    Retry,
    Wake,
}

impl Operation {
    pub const ALL: [(&'static str, Operation); 7] = [
        ("release", Operation::Release),
        ("pause", Operation::Pause),
        ("resume", Operation::Resume),
        ("cancel", Operation::Cancel),
        ("kill", Operation::Kill),
        ("retry", Operation::Retry),
        ("wake", Operation::Wake),
    ];

    pub fn input(self, by: &Name, reason: &str, grace_ms: Option<u64>) -> Input {
        let (by, reason) = (by.clone(), reason.to_owned());
        match self {
            Operation::Release => Input::Release,
            Operation::Pause => Input::Pause { by },
            Operation::Resume => Input::Resume { by },
            Operation::Cancel => Input::Cancel { reason, grace_ms },
            Operation::Kill => Input::Kill { reason },
            Operation::Retry => Input::Retry { by, version: None },
            Operation::Wake => Input::Wake,
        }
    }
}
