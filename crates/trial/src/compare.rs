//! What came of a case against what was expected of it: every difference, with its place; and what the file would
//! have to say for there to be none.

use std::collections::BTreeMap;

use wonder_core::def::Name;
use wonder_core::error::Failure;
use wonder_core::event::{EventKind, NewToken};
use wonder_core::graph::names::{DagPart, dag_part};
use wonder_core::problem::nearest;
use wonder_core::value::Value;
use wonder_sim::diff;
use wonder_sim::trace::human;
use wonder_sim::world::{START, World};
use wonder_spec::cases::{Case, Edit, Expect};

use crate::mocks::{Told, plain_place};

/// The nodes of an agent that ask its model.
const TURN: &str = "think";

/// What came of a case.
#[derive(Clone, Debug, Default)]
pub struct Actual {
    /// Of the run, or `waiting`; `refused` if it did not start.
    pub status: String,
    pub output: Value,
    pub state: Value,
    /// The `state` of the runs that nodes called last, by node.
    pub called: Value,
    pub failure: Option<Failure>,
    /// The nodes in the order in which they began, those of called workflows behind the nodes that called them.
    pub path: Vec<String>,
    pub visits: BTreeMap<String, u64>,
    /// The kinds of events of the run and of those it called.
    pub events: Vec<&'static str>,
    pub usd_micros: u64,
    pub took_ms: u64,
    /// What it waits for.
    pub waiting: Vec<String>,
}

/// One thing that is not as it should be.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Problem {
    /// What it is about: `status`, `output.score`, `mocks`.
    pub about: String,
    pub expected: Option<String>,
    pub actual: Option<String>,
    /// What else there is to say, line by line.
    pub says: Vec<String>,
    pub help: Option<String>,
}

impl Problem {
    fn differs(about: impl Into<String>, expected: impl Into<String>, actual: impl Into<String>) -> Problem {
        let (expected, actual) = (Some(expected.into()), Some(actual.into()));
        Problem { about: about.into(), expected, actual, ..Problem::default() }
    }

    fn says(about: &str, lines: impl IntoIterator<Item = String>) -> Problem {
        Problem { about: about.to_owned(), says: lines.into_iter().collect(), ..Problem::default() }
    }

    fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }
}

impl Actual {
    pub(crate) fn of(world: &World) -> Actual {
        let root = world.root();
        let run = &root.run;
        let mut actual = Actual {
            status: if root.log.is_empty() { "refused".to_owned() } else { root.status() },
            output: run.output().cloned().unwrap_or_default(),
            state: run.state().state.clone(),
            failure: run.failure().cloned(),
            usd_micros: run.spend().usd_micros,
            took_ms: root.log.last().map_or(0, |event| event.at.since(START)),
            waiting: run.why().iter().map(ToString::to_string).collect(),
            ..Actual::default()
        };
        let mut called = BTreeMap::new();
        for (id, event) in world.history() {
            actual.events.push(event.kind.name());
            let EventKind::TokenCreated(NewToken { token, node, .. }) = &event.kind else { continue };
            let part = dag_part(node).1;
            let route = world.route(id, *token);
            let place = plain_place(&route);
            if let Some((_, caller @ [_, ..])) = route.split_last() {
                called.insert(plain_place(caller), id.clone());
            }
            match part {
                DagPart::Whole => {
                    actual.path.push(place.clone());
                    *actual.visits.entry(place).or_default() += 1;
                }
                // What spreads the items of a `foreach` is no visit of its own.
                DagPart::Items => *actual.visits.entry(place).or_default() += 1,
                DagPart::Gather => {
                    let visits = actual.visits.entry(place).or_default();
                    *visits = visits.saturating_sub(1);
                }
            }
        }
        let state = |id: &Name| {
            world.runs().find(|(own, _)| *own == id).map(|(_, run)| run.run.state().state.clone())
        };
        let states = called.into_iter().filter_map(|(place, id)| Some((place, state(&id)?)));
        actual.called = Value::map(states);
        actual
    }

    /// The nodes that a file writes down that names these.
    fn path_like(&self, expected: &[String]) -> Vec<String> {
        let inner = expected.iter().any(|node| node.contains('/'));
        self.path.iter().filter(|node| inner || !node.contains('/')).cloned().collect()
    }

    fn turns(&self) -> u64 {
        let turns = self.visits.iter().filter(|(place, _)| place.rsplit('/').next() == Some(TURN));
        turns.map(|(_, visits)| *visits).max().unwrap_or(0)
    }
}

/// The values of which a case expects a part: its word for them, what it expects, and what is.
fn of_values<'a>(
    expect: &'a Expect,
    actual: &'a Actual,
) -> [(&'static str, &'a Option<Value>, &'a Value); 3] {
    [
        ("output", &expect.output, &actual.output),
        ("state", &expect.state, &actual.state),
        ("called", &expect.called, &actual.called),
    ]
}

/// The status that a case expects.
fn status(expect: &Expect) -> &str {
    let unsaid = if expect.error.is_some() || expect.message.is_some() { "failed" } else { "completed" };
    expect.status.as_deref().unwrap_or(unsaid)
}

pub(crate) fn problems(case: &Case, world: &World, actual: &Actual, told: &Told) -> Vec<Problem> {
    let mut problems: Vec<Problem> = world
        .violations()
        .iter()
        .map(|what| Problem::says("wonder", [what.clone()]).help("this is a bug in Wonder, please report it"))
        .collect();
    problems.extend(unmocked(told));
    problems.extend(told.unrecorded.iter().map(|(place, why)| {
        let lines = why.lines().map(str::to_owned);
        Problem::says("cassette", std::iter::once(format!("`{place}`: no recording fits")).chain(lines))
    }));
    problems.extend(world.refusals().iter().map(|what| Problem::says("refused", [what.clone()])));
    problems.extend(unasked(case, told));
    // What follows from a mock that is missing says nothing about the workflow.
    if told.unmocked.is_empty() && told.unrecorded.is_empty() {
        problems.extend(differences(&case.expect, actual));
    }
    problems
}

fn unmocked(told: &Told) -> impl Iterator<Item = Problem> {
    told.unmocked.iter().map(|(place, kind)| {
        let example = match *kind {
            "llm_call" => "{text: \"...\"}",
            "shell" | "http_request" => "{text: \"...\"}",
            _ => "{output: ...}",
        };
        let line = format!("`{place}` is a `{kind}` without a mock, and nothing is performed in a test");
        Problem::says("mocks", [line]).help(format!("write `mocks: {{{place}: {example}}}`"))
    })
}

/// Answers to gates that never opened.
fn unasked(case: &Case, told: &Told) -> Vec<Problem> {
    let unasked = case.gates.keys().filter(|key| !told.answered.contains_key(*key));
    // What the file says for all cases may concern only some of them.
    let own = |key: &&String| !case.shared_gates.contains(*key);
    let opened = || told.gates.iter().flat_map(|(node, title, _)| node.iter().chain([title]));
    unasked
        .filter(own)
        .map(|key| {
            let known: Vec<&str> = opened().map(String::as_str).collect();
            let help = match (nearest(key, known.iter().copied()), known.is_empty()) {
                (Some(near), _) => format!("did you mean `{near}`?"),
                (None, true) => "no gate opened".to_owned(),
                (None, false) => format!("those that opened: {}", known.join(", ")),
            };
            Problem::says("gates", [format!("no gate `{key}` opened, so that nobody was asked")]).help(help)
        })
        .collect()
}

fn differences(expect: &Expect, actual: &Actual) -> Vec<Problem> {
    let mut found = Vec::new();
    let expected = status(expect);
    if expected != actual.status {
        found.push(Problem { says: reasons(actual), ..Problem::differs("status", expected, &actual.status) });
    }
    let kind = actual.failure.as_ref().map_or("none", |failure| failure.kind.as_str());
    if let Some(expected) = expect.error.as_deref().filter(|expected| *expected != kind) {
        found.push(Problem::differs("error", expected, kind));
    }
    let message = actual.failure.as_ref().map_or("", |failure| &*failure.message);
    if let Some(part) = expect.message.as_deref().filter(|part| !message.contains(part)) {
        found.push(Problem::differs("message", format!("…{part}…"), message));
    }
    for (about, expected, value) in of_values(expect, actual) {
        if let Some(expected) = expected {
            values(about, expected, value, Extent::Part, &mut found);
        }
    }
    if let Some(expected) = &expect.output_exactly {
        values("output", expected, &actual.output, Extent::Whole, &mut found);
    }
    if let Some(expected) = &expect.path {
        let path = actual.path_like(expected);
        let lines = diff::lines(&expected.join("\n"), &path.join("\n"));
        found.extend(lines.map(|lines| Problem::says("path", lines.lines().map(str::to_owned))));
    }
    for (place, expected) in &expect.visits {
        let visits = actual.visits.get(place).copied().unwrap_or(0);
        if visits != *expected {
            found.push(Problem::differs(format!("visits.{place}"), expected.to_string(), visits.to_string()));
        }
    }
    if let Some(most) = expect.max_turns.filter(|most| actual.turns() > *most) {
        found.push(Problem::differs("max_turns", format!("at most {most}"), actual.turns().to_string()));
    }
    found.extend(events(expect.events.as_deref().unwrap_or_default(), &actual.events));
    amounts(expect, actual, &mut found);
    found
}

/// Why the run is not where it was expected.
fn reasons(actual: &Actual) -> Vec<String> {
    let failure = actual.failure.iter().map(|failure| format!("{}: {}", failure.kind, failure.message));
    failure.chain(actual.waiting.iter().cloned()).collect()
}

fn amounts(expect: &Expect, actual: &Actual, found: &mut Vec<Problem>) {
    let spent = actual.usd_micros;
    if let Some(expected) = expect.cost_usd_micros.filter(|expected| *expected != spent) {
        found.push(Problem::differs("cost", dollars(expected), dollars(spent)));
    }
    if let Some(most) = expect.max_cost_usd_micros.filter(|most| spent > *most) {
        found.push(Problem::differs("max_cost", format!("at most {}", dollars(most)), dollars(spent)));
    }
    if let Some(expected) = expect.took_ms.filter(|expected| *expected != actual.took_ms) {
        found.push(Problem::differs("took", human(expected), human(actual.took_ms)));
    }
}

fn dollars(micros: u64) -> String {
    wonder_sim::trace::dollars(micros)
}

/// Kinds that were recorded, in this order, with whatever else between them.
fn events(expected: &[String], recorded: &[&'static str]) -> Option<Problem> {
    let mut rest = recorded.iter();
    let missing = expected.iter().find(|kind| !rest.any(|recorded| recorded == kind))?;
    let near = nearest(missing, recorded.iter().copied()).filter(|near| near != missing);
    let says = match recorded.contains(&missing.as_str()) {
        true => format!("`{missing}` was recorded, but not after those before it"),
        false => format!("`{missing}` was not recorded"),
    };
    let problem = Problem::says("events", [says]);
    Some(match near {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None => problem,
    })
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Extent {
    /// Of a map, the keys that are written.
    Part,
    Whole,
}

/// Every place where the two differ.
fn values(place: &str, expected: &Value, actual: &Value, extent: Extent, found: &mut Vec<Problem>) {
    match (expected, actual) {
        (Value::Map(wanted), Value::Map(is)) => {
            for (key, wanted) in wanted.iter() {
                let place = format!("{place}.{key}");
                match is.get(key) {
                    Some(is) => values(&place, wanted, is, extent, found),
                    None => found.push(Problem::differs(place, wanted.to_string(), "nothing")),
                }
            }
            let more = is.iter().filter(|(key, _)| extent == Extent::Whole && !wanted.contains_key(*key));
            found.extend(
                more.map(|(key, is)| Problem::differs(format!("{place}.{key}"), "nothing", is.to_string())),
            );
        }
        (Value::List(wanted), Value::List(is)) => {
            for at in 0..wanted.len().max(is.len()) {
                let place = format!("{place}[{at}]");
                match (wanted.get(at), is.get(at)) {
                    (Some(wanted), Some(is)) => values(&place, wanted, is, extent, found),
                    (Some(wanted), None) => {
                        found.push(Problem::differs(place, wanted.to_string(), "nothing"))
                    }
                    (None, is) => {
                        let is = is.map_or_else(String::new, Value::to_string);
                        found.push(Problem::differs(place, "nothing", is));
                    }
                }
            }
        }
        (wanted, is) if same(wanted, is) => {}
        (wanted, is) => found.push(Problem::differs(place, wanted.to_string(), is.to_string())),
    }
}

/// A number is the same however it is written.
fn same(one: &Value, other: &Value) -> bool {
    let is_number = |value: &Value| matches!(value, Value::Int(_) | Value::Float(_));
    one == other || (is_number(one) && is_number(other) && one.as_f64() == other.as_f64())
}

/// What the file would have to expect of the case, where it expects something else. A case that expects nothing is
/// given what came of it.
pub fn edits(at: usize, case: &Case, actual: &Actual) -> Vec<Edit> {
    let expect = &case.expect;
    let mut edits = Vec::new();
    let mut put = |key: &'static str, value: Value| edits.push(Edit { case: at, key, value });
    let nothing = expect.is_empty();
    if status(expect) != actual.status || nothing {
        put("status", Value::str(actual.status.as_str()));
    }
    let is_of = |expected: &Value, is: &Value, extent: Extent| {
        let mut found = Vec::new();
        values("", expected, is, extent, &mut found);
        found.is_empty()
    };
    if nothing && !actual.output.is_null() {
        put("output", actual.output.clone());
    }
    for (key, expected, is) in of_values(expect, actual) {
        if let Some(expected) = expected.as_ref().filter(|expected| !is_of(expected, is, Extent::Part)) {
            put(key, part_like(expected, is));
        }
    }
    let exactly = expect.output_exactly.as_ref();
    if exactly.is_some_and(|expected| !is_of(expected, &actual.output, Extent::Whole)) {
        put("output_exactly", actual.output.clone());
    }
    let failure = actual.failure.as_ref();
    if let (Some(expected), Some(failure)) = (&expect.error, failure)
        && *expected != failure.kind.as_str()
    {
        put("error", Value::str(failure.kind.as_str()));
    }
    if let (Some(part), Some(failure)) = (&expect.message, failure)
        && !failure.message.contains(part)
    {
        put("message", Value::str(failure.message.as_str()));
    }
    let texts = |texts: &[String]| Value::list(texts.iter().map(|text| Value::str(text.as_str())));
    if let Some(expected) = expect.path.as_ref().filter(|expected| **expected != actual.path_like(expected)) {
        put("path", texts(&actual.path_like(expected)));
    }
    let count = |count: u64| Value::Int(i64::try_from(count).unwrap_or(i64::MAX));
    let visits = |place: &String| actual.visits.get(place).copied().unwrap_or(0);
    if expect.visits.iter().any(|(place, expected)| visits(place) != *expected) {
        put("visits", Value::map(expect.visits.keys().map(|place| (place.as_str(), count(visits(place))))));
    }
    if expect.max_turns.is_some_and(|most| actual.turns() > most) {
        put("max_turns", count(actual.turns()));
    }
    if expect.cost_usd_micros.is_some_and(|expected| expected != actual.usd_micros) {
        put("cost", Value::Float(actual.usd_micros as f64 / 1e6));
    }
    if expect.max_cost_usd_micros.is_some_and(|most| actual.usd_micros > most) {
        put("max_cost", Value::Float(actual.usd_micros as f64 / 1e6));
    }
    if expect.took_ms.is_some_and(|expected| expected != actual.took_ms) {
        put("took", Value::str(human(actual.took_ms)));
    }
    edits
}

/// What is there of what was expected: of maps the same keys.
fn part_like(expected: &Value, actual: &Value) -> Value {
    match (expected, actual) {
        (Value::Map(wanted), Value::Map(is)) => {
            let kept = wanted.iter().filter_map(|(key, wanted)| Some((key, part_like(wanted, is.get(key)?))));
            Value::map(kept.map(|(key, value)| (&**key, value)))
        }
        (Value::List(wanted), Value::List(is)) if wanted.len() == is.len() => {
            Value::list(wanted.iter().zip(is.iter()).map(|(wanted, is)| part_like(wanted, is)))
        }
        (_, is) => is.clone(),
    }
}
