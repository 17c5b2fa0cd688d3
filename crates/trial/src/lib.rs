//! Tests of workflows without spending: a case of a `*.test.yaml` is played on the simulator's world, with mocks for
//! all that would reach out, and what came of it is held against what was expected.
//!
//! Nothing is ever performed: an action that reaches out and has no mock is a problem of the case. Time is virtual,
//! there is no database, and the same case gives the same result every time. It opens no files and prints nothing.

mod compare;
mod mocks;
mod result;

use std::collections::BTreeMap;
use std::sync::Arc;

use wonder_core::cost::Spend;
use wonder_core::def::Name;
use wonder_core::execution::TryFailure;
use wonder_core::input::StartRun;
use wonder_core::value::Value;
use wonder_sim::inputs::{OutsideInput, ScriptedInput, TELL_EVENT, When};
use wonder_sim::world::{Definition, Library, Setting, World};
use wonder_spec::Reading;
use wonder_spec::cases::{Case, Signal, SignalTime};

pub use compare::{Actual, Problem, edits};
pub use wonder_sim::outcomes::ActionRequest;
pub use wonder_sim::world::ROOT;

use mocks::Mocks;

/// Answers actions that no mock answers, from what was recorded.
pub trait Recordings: std::fmt::Debug + Send + Sync {
    /// How this try went when it was recorded. None: such an action asks nobody, and is never recorded. Err: a word for
    /// whoever wrote the case, if nothing fits.
    fn answer(&self, asked: &ActionRequest<'_>) -> Result<Option<Recorded>, String>;
}

/// How a recorded try went.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub result: Result<Value, TryFailure>,
    pub delay_ms: u64,
    pub spend: Spend,
}

/// The workflows that cases are about.
#[derive(Clone, Debug)]
pub struct Stage {
    library: Library,
    workflow: Name,
}

/// What came of a case.
#[derive(Debug)]
pub struct Played {
    /// What is not as it should be; nothing if the case holds.
    pub problems: Vec<Problem>,
    pub actual: Actual,
}

impl Played {
    /// Whether it was played as it is written, so that what came of it is worth writing down.
    pub fn is_comparable(&self) -> bool {
        let in_the_way = ["wonder", "mocks", "cassette", "refused", "gates"];
        !self.problems.iter().any(|problem| in_the_way.contains(&problem.about.as_str()))
    }
}

impl Stage {
    /// `start`: which of the workflows begins; else the first. None if there is no such workflow.
    pub fn of(reading: &Reading, start: Option<&Name>) -> Option<Stage> {
        let both = reading.bundles.iter().zip(&reading.graphs);
        let definition = |(bundle, graph): (&Arc<_>, &Arc<wonder_core::graph::Graph>)| {
            (graph.name.clone(), Definition { bundle: Arc::clone(bundle), graph: Arc::clone(graph) })
        };
        let library: Library = both.map(definition).collect::<BTreeMap<_, _>>();
        let workflow = start.cloned().or_else(|| Some(reading.graphs.first()?.name.clone()))?;
        library.contains_key(&workflow).then_some(Stage { library, workflow })
    }

    /// Plays a case to its end.
    pub fn play(&self, case: &Case, recordings: Option<Arc<dyn Recordings>>) -> Played {
        let mocks = Arc::new(Mocks::of(case, recordings));
        let mut world = World::new(Setting {
            library: self.library.clone(),
            workflow: self.workflow.clone(),
            start: StartRun::new(ROOT, case.input.clone()),
            outcomes: mocks.clone(),
            inputs: case.signals.iter().map(input).collect(),
            shuffle: None,
            repeat: false,
            failing: None,
        });
        world.run_on();
        let actual = Actual::of(&world);
        let problems = compare::problems(case, &world, &actual, &mocks.told());
        Played { problems, actual }
    }
}

fn input(signal: &Signal) -> ScriptedInput {
    let (when, after_ms) = match signal.when {
        SignalTime::At(ms) => (When::At(ms), 0),
        SignalTime::Awaited(after_ms) => (When::Awaited(signal.event.clone()), after_ms),
    };
    let payload = signal.payload.clone();
    let what = match &*signal.event {
        TELL_EVENT => OutsideInput::Tell { payload },
        _ => OutsideInput::Event { name: signal.event.clone(), key: signal.key.clone(), payload, keep: true },
    };
    ScriptedInput { when, after_ms, run: None, what, each: false }
}
