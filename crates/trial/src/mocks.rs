//! What a case says instead of the world: mocks by node, tool and model, recordings behind them, answers to gates.
//! Of several mocks that fit the one that says most about the place is taken; of its outcomes each try takes the
//! next, and the last repeats.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wonder_core::command::{ChildOrder, TaskOrder};
use wonder_core::cost::Spend;
use wonder_core::def::Implementation;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::execution::{Delivery, ExecutionRules};
use wonder_core::graph::names::dag_part;
use wonder_core::input::TaskOutcome;
use wonder_sim::outcomes::{
    Act, ActionRequest, At, ChildAnswer, GateAnswer, GateRequest, OnCancel, Outcomes, Stop,
};
use wonder_spec::cases::{Answer, Case, Mock, Mocked, Outcome, Part, Place};

use crate::result;
use crate::{Recorded, Recordings};

#[derive(Debug)]
pub(crate) struct Mocks {
    mocks: Vec<Mock>,
    gates: BTreeMap<String, Vec<Answer>>,
    recordings: Option<Arc<dyn Recordings>>,
    told: Mutex<Told>,
}

/// What was asked while the case was played.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// How many outcomes of each mock were taken.
    taken: BTreeMap<usize, usize>,
    /// How many answers of each key of `gates` were given.
    pub answered: BTreeMap<String, usize>,
    /// Gates that opened: the node if it has one, the title, and whether somebody answered.
    pub gates: Vec<(Option<String>, String, bool)>,
    /// Actions that reach out and have no mock: where, and of which kind.
    pub unmocked: BTreeSet<(String, &'static str)>,
    /// What no recording fits.
    pub unrecorded: Vec<(String, String)>,
}

impl Mocks {
    pub(crate) fn of(case: &Case, recordings: Option<Arc<dyn Recordings>>) -> Mocks {
        let (mocks, gates) = (case.mocks.clone(), case.gates.clone());
        Mocks { mocks, gates, recordings, told: Mutex::default() }
    }

    pub(crate) fn told(&self) -> Told {
        self.note().clone()
    }

    fn note(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next outcome of the mock that says most about it.
    fn next(&self, fits: impl Fn(&Mocked) -> Option<usize>) -> Option<&Outcome> {
        let all = self.mocks.iter().enumerate();
        let fitting = all.filter_map(|(at, mock)| Some((fits(&mock.of)?, at)));
        // Of two that say as much, the first: those of the case stand before those of the file.
        let (_, at) = fitting.max_by_key(|(says, at)| (*says, std::cmp::Reverse(*at)))?;
        let outcomes = &self.mocks[at].outcomes;
        let mut told = self.note();
        let taken = told.taken.entry(at).or_default();
        let outcome = outcomes.get(*taken).or(outcomes.last());
        *taken += 1;
        outcome
    }

    /// None: it is nothing that is recorded.
    fn recorded(&self, request: &ActionRequest<'_>) -> Option<Act> {
        let Recorded { result, delay_ms, spend } = match self.recordings.as_ref()?.answer(request) {
            Ok(recorded) => recorded?,
            Err(why) => {
                self.note().unrecorded.push((place(request.at.route), why.clone()));
                return Some(failed(ErrorKind::NotRecorded, why));
            }
        };
        let delivery = result.as_ref().map_or_else(|failed| failed.delivery, |_| Delivery::Answered);
        let result = Some(result.map_err(|failed| failed.failure));
        Some(Act { result, delivery, delay_ms, spend, one_try: true })
    }
}

/// How much more a mock by node says than one by tool, and that than one by model.
const BY_NODE: usize = 100;
const BY_TOOL: usize = 50;

/// `fix/think`, with the branches that its parts are in.
pub(crate) fn place(route: &[Stop]) -> String {
    let parts = route.iter().map(|stop| {
        let node = dag_part(&stop.node).0;
        let path: Vec<String> = stop.path.iter().map(u32::to_string).collect();
        if path.is_empty() { node.to_owned() } else { format!("{node}[{}]", path.join(".")) }
    });
    parts.collect::<Vec<_>>().join("/")
}

/// The same without branches: what people write for all of them.
pub(crate) fn plain_place(route: &[Stop]) -> String {
    route.iter().map(|stop| dag_part(&stop.node).0).collect::<Vec<_>>().join("/")
}

/// How much a place says about a way, if it leads there: its branches and its step.
fn fits(place: &Place, route: &[Stop], step: Option<&str>) -> Option<usize> {
    let (nodes, last) = place.0.split_at(route.len().min(place.0.len()));
    let by_step = match last {
        [] => 0,
        [part] if step == Some(&*part.name) && part.branch.is_none() => 1,
        _ => return None,
    };
    if nodes.len() != route.len() || !nodes.iter().zip(route).all(|(part, stop)| leads(part, stop)) {
        return None;
    }
    Some(by_step + 2 * nodes.iter().filter(|part| part.branch.is_some()).count())
}

fn leads(part: &Part, stop: &Stop) -> bool {
    let here = match part.branch.as_deref() {
        None => true,
        Some([innermost]) => stop.path.last() == Some(innermost),
        Some(path) => stop.path == path,
    };
    here && *part.name == *dag_part(&stop.node).0
}

impl Outcomes for Mocks {
    fn outcome(&self, request: &ActionRequest<'_>) -> Option<Act> {
        let profile = request.call.profile().map(|(name, _)| name);
        let node = request.at.route.last().map(|stop| dag_part(&stop.node).0);
        let called = request.at.route.len() > 1;
        let outcome = self.next(|of| match of {
            Mocked::Node(place) => {
                fits(place, request.at.route, Some(request.step)).map(|says| BY_NODE + says)
            }
            Mocked::Tool(tool) => (called && node == Some(&**tool)).then_some(BY_TOOL),
            Mocked::Model(model) => (profile == Some(model)).then_some(0),
        });
        if let Some(outcome) = outcome {
            let (result, spend) = result::of_action(request, outcome);
            let (result, delay_ms) = (Some(result), outcome.delay_ms);
            return Some(Act { result, delivery: Delivery::Answered, delay_ms, spend, one_try: true });
        }
        let implementation = &request.action.def.implementation;
        if matches!(implementation, Implementation::Mock(_)) {
            return None;
        }
        if let Some(recorded) = self.recorded(request) {
            return Some(recorded);
        }
        self.note().unmocked.insert((plain_place(request.at.route), implementation.kind()));
        let kind = implementation.kind();
        let why = format!("this `{kind}` has no mock, and nothing is performed in a test");
        Some(failed(ErrorKind::Internal, why))
    }

    fn reported_by_host(&self, _at: &At<'_>) -> Option<(u64, TaskOutcome)> {
        None
    }

    fn on_cancel(&self, _at: &At<'_>) -> OnCancel {
        OnCancel::ReportsAfter(0)
    }

    fn gate_answers(&self, asked: &GateRequest<'_>) -> Vec<GateAnswer> {
        let title = &asked.record.title;
        let by_place = |key: &str| {
            let place = Place::parse(key)?;
            fits(&place, asked.route?, None)
        };
        // By node, else by title.
        let found = self.gates.iter().filter_map(|(key, answers)| {
            let says = by_place(key).map(|says| says + 1).or_else(|| (key == title).then_some(0))?;
            Some((says, key, answers))
        });
        let found = found.max_by_key(|(says, ..)| *says);
        let mut told = self.note();
        let node = asked.route.map(plain_place);
        told.gates.push((node, title.clone(), found.is_some()));
        let Some((_, key, answers)) = found else { return Vec::new() };
        let given = told.answered.entry(key.clone()).or_default();
        // Several people answer a gate that asks for several.
        let chosen: Vec<&Answer> = match asked.record.quorum {
            Some(_) => answers.iter().collect(),
            None => answers.get(*given).or(answers.last()).into_iter().collect(),
        };
        *given += chosen.len();
        let answer = |given: &Answer| GateAnswer {
            after_ms: given.after_ms,
            by: given.by.clone(),
            answer: given.answer.clone(),
        };
        chosen.into_iter().map(answer).collect()
    }

    fn child(&self, route: &[Stop], _order: &ChildOrder) -> Option<ChildAnswer> {
        let outcome = self.next(|of| match of {
            Mocked::Node(place) => fits(place, route, None),
            Mocked::Tool(_) | Mocked::Model(_) => None,
        })?;
        Some(result::of_child(outcome))
    }

    /// A mocked try is a try: what a worker would do about its failure is done.
    fn rules(&self, order: &TaskOrder) -> ExecutionRules {
        ExecutionRules::of_worker(order, 0, Some(wonder_spec::mutations))
    }
}

/// Nothing is known of what it would have given.
fn failed(kind: ErrorKind, why: String) -> Act {
    let result = Some(Err(Failure::new(kind, why)));
    Act { result, delivery: Delivery::Answered, delay_ms: 0, spend: Spend::default(), one_try: false }
}
