//! From the text of a file of cases to plain data. Shapes are checked by the table; what does not fit is read as
//! absent and has been complained about.

use std::collections::BTreeMap;
use std::sync::Arc;

use wonder_core::def::Name;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::value::Value;

use super::{
    Answer, Case, Expect, Given, Mock, Mocked, Outcome, Place, Signal, SignalTime, TestFile, ToolCall, Usage,
    Wanted, Written,
};
use crate::build::one_or_list;
use crate::check::{Checker, Support};
use crate::codes;
use crate::diagnostics::{Diagnostic, Source};
use crate::place::Span;
use crate::reader::too_large;
use crate::scalar::{duration_ms, micros};
use crate::shape::TEST_DOCUMENT;
use crate::tree::{self, Data, Entry, Node};

pub(super) fn file(text: &str, file_name: &str) -> TestFile {
    let large = too_large(text);
    let source = Source::new(file_name, if large.is_some() { "" } else { text });
    let mut file = TestFile {
        workflow: None,
        start: None,
        cases: Vec::new(),
        source: source.clone(),
        problems: large.into_iter().collect(),
        names: Vec::new(),
    };
    if !file.problems.is_empty() {
        return file;
    }
    let prepared = tree::prepare(&source.text);
    let forest = tree::parse(&source.text, &prepared);
    file.problems = forest.problems;
    if forest.stopped {
        return file;
    }
    let documents: Vec<&Node<'_>> =
        forest.documents.iter().filter(|node| !matches!(node.data, Data::Null)).collect();
    if let Some(second) = documents.get(1) {
        let problem = Diagnostic::error(codes::WRONG_FORM, second.span, "a file of cases is one document");
        file.problems.push(problem.label("a second one begins here").help("put its cases under `cases`"));
    }
    let Some(document) = documents.first() else {
        let problem = Diagnostic::error(codes::NOTHING_DEFINED, Span::default(), "the file has no cases");
        file.problems
            .push(problem.label("expected `cases`").help("write `cases: [{name: ..., expect: ...}]`"));
        return file;
    };
    let (problems, support) = (&mut file.problems, Support::ThisVersion);
    let mut checker = Checker { source: &source.text, problems, broken: false, support };
    checker.object(document, TEST_DOCUMENT, Span::default());
    let mut reader = Reader { source: source.clone(), names: Vec::new(), problems: Vec::new() };
    file.workflow = document.entry("workflow").and_then(|entry| {
        let text = reader.scalar(&entry.value)?;
        reader.name(Wanted::Workflow, &text, entry.value.span);
        Some(text)
    });
    file.start = document.entry("start").and_then(|entry| {
        let text = reader.scalar(&entry.value)?;
        reader.name(Wanted::Start, &text, entry.value.span);
        Some(text.into())
    });
    let shared = reader.world(document);
    let cases = document.get("cases").map_or(&[][..], Node::items);
    file.cases = cases.iter().map(|node| reader.case(node, &shared)).collect();
    reader.check_case_names(cases);
    file.names = reader.names;
    file.problems.append(&mut reader.problems);
    file
}

struct Reader {
    source: Arc<Source>,
    names: Vec<Written>,
    problems: Vec<Diagnostic>,
}

/// What cases may have in common.
#[derive(Default)]
struct World {
    mocks: Vec<Mock>,
    gates: BTreeMap<String, Vec<Answer>>,
    signals: Option<Vec<Signal>>,
    cassette: Option<String>,
}

impl Reader {
    fn scalar(&self, node: &Node<'_>) -> Option<String> {
        match &node.data {
            Data::Text(text) => Some(text.to_string()),
            Data::Bool(_) | Data::Int(_) | Data::Float(_) => Some(node.span.of(&self.source.text).to_owned()),
            _ => None,
        }
    }

    fn text(&self, map: &Node<'_>, key: &str) -> Option<String> {
        self.scalar(map.get(key)?)
    }

    fn count(&self, map: &Node<'_>, key: &str) -> Option<u64> {
        match map.get(key)?.data {
            Data::Int(number) => number.try_into().ok(),
            _ => None,
        }
    }

    fn duration(&self, map: &Node<'_>, key: &str) -> Option<u64> {
        match map.get(key) {
            Some(node) => duration_ms(node.text()?),
            None => self.count(map, &format!("{key}_ms")),
        }
    }

    fn money(&self, map: &Node<'_>, key: &str) -> Option<u64> {
        micros(map.get(key)?.span.of(&self.source.text)).ok()
    }

    fn value(&self, map: &Node<'_>, key: &str) -> Option<Value> {
        map.get(key).map(Node::value)
    }

    fn name(&mut self, what: Wanted, text: &str, span: Span) {
        self.names.push(Written { what, text: text.to_owned(), span });
    }

    fn world(&mut self, map: &Node<'_>) -> World {
        let mut mocks = Vec::new();
        for (key, wanted) in [("mocks", Wanted::Mock), ("tools", Wanted::Tool), ("models", Wanted::Model)] {
            for entry in map.get(key).map_or(&[][..], Node::entries) {
                mocks.extend(self.mock(entry, wanted));
            }
        }
        let gates = map.get("gates").map_or(&[][..], Node::entries).iter();
        let gates = gates.map(|entry| {
            let answers = one_or_list(&entry.value).iter().map(|node| self.answer(node));
            (entry.key.to_string(), answers.collect())
        });
        let signals = |node: &Node<'_>| one_or_list(node).iter().map(|node| self.signal(node)).collect();
        World {
            gates: gates.collect(),
            signals: map.get("signals").map(signals),
            cassette: self.text(map, "cassette"),
            mocks,
        }
    }

    fn mock(&mut self, entry: &Entry<'_>, wanted: Wanted) -> Option<Mock> {
        self.name(wanted, &entry.key, entry.key_span);
        let of = match wanted {
            Wanted::Tool => Mocked::Tool(entry.key.as_ref().into()),
            Wanted::Model => Mocked::Model(entry.key.as_ref().into()),
            _ => Mocked::Node(Place::parse(&entry.key)?),
        };
        let outcomes: Vec<Outcome> =
            one_or_list(&entry.value).iter().map(|node| self.outcome(node)).collect();
        if outcomes.is_empty() {
            let message = format!("`{}` has no outcomes", entry.key);
            let problem = Diagnostic::error(codes::WRONG_FORM, entry.key_span, message);
            self.problems
                .push(problem.label("this list is empty").help("write at least one, or leave it out"));
            return None;
        }
        Some(Mock { of, outcomes })
    }

    fn outcome(&self, node: &Node<'_>) -> Outcome {
        let result = match (node.get("error"), node.get("output")) {
            (Some(error), _) => Given::Error(self.failure(error)),
            (None, Some(output)) => Given::Output(output.value()),
            (None, None) => Given::Said {
                text: self.text(node, "text"),
                json: self.value(node, "json"),
                tool_calls: node
                    .get("tool_calls")
                    .map_or(&[][..], Node::items)
                    .iter()
                    .map(|call| self.tool_call(call))
                    .collect(),
            },
        };
        let delay_ms = self.duration(node, "delay").unwrap_or(0);
        Outcome { result, delay_ms, usage: node.get("usage").map(|usage| self.usage(usage)) }
    }

    fn tool_call(&self, node: &Node<'_>) -> ToolCall {
        ToolCall {
            tool: self.text(node, "tool").unwrap_or_default().into(),
            arguments: self.value(node, "arguments").unwrap_or_else(Value::empty_map),
            id: self.text(node, "id").map(Name::from),
        }
    }

    fn failure(&self, node: &Node<'_>) -> Failure {
        let kind = self.scalar(node).or_else(|| self.text(node, "kind")).unwrap_or_default();
        let known = ErrorKind::ALL.into_iter().find(|known| known.as_str() == kind);
        let message = self.text(node, "message").unwrap_or_else(|| "mocked".to_owned());
        Failure::new(known.unwrap_or(ErrorKind::Internal), message)
            .with_details(self.value(node, "details").unwrap_or_default())
    }

    fn usage(&self, node: &Node<'_>) -> Usage {
        let count = |key: &str| self.count(node, key).unwrap_or(0);
        Usage {
            input_tokens: count("input_tokens"),
            cached_input_tokens: count("cached_input_tokens"),
            cache_write_tokens: count("cache_write_tokens"),
            output_tokens: count("output_tokens"),
            reasoning_tokens: count("reasoning_tokens"),
            usd_micros: self.money(node, "cost_usd"),
        }
    }

    fn answer(&self, node: &Node<'_>) -> Answer {
        Answer {
            answer: self.value(node, "answer").unwrap_or_default(),
            by: self.text(node, "by").unwrap_or_else(|| "tester".to_owned()).into(),
            after_ms: self.duration(node, "after").unwrap_or(0),
        }
    }

    fn signal(&self, node: &Node<'_>) -> Signal {
        let awaited = || SignalTime::Awaited(self.duration(node, "after").unwrap_or(0));
        Signal {
            event: self.text(node, "event").unwrap_or_default().into(),
            key: self.value(node, "key").unwrap_or_default(),
            payload: self.value(node, "payload").unwrap_or_default(),
            when: self.duration(node, "at").map_or_else(awaited, SignalTime::At),
        }
    }

    /// What a case says goes before what the file says for all.
    fn case(&mut self, node: &Node<'_>, shared: &World) -> Case {
        let own = self.world(node);
        let mut mocks = own.mocks;
        let more = shared.mocks.iter().filter(|more| !mocks.iter().any(|mock| mock.of == more.of));
        let more: Vec<Mock> = more.cloned().collect();
        mocks.extend(more);
        let shared_gates = shared.gates.keys().filter(|key| !own.gates.contains_key(*key)).cloned().collect();
        let mut gates = shared.gates.clone();
        gates.extend(own.gates);
        Case {
            name: self.text(node, "name").unwrap_or_default(),
            line: self.source.lines.position(node.span.start as usize, &self.source.text).0,
            input: self.value(node, "input").unwrap_or_else(Value::empty_map),
            mocks,
            gates,
            shared_gates,
            signals: own.signals.or_else(|| shared.signals.clone()).unwrap_or_default(),
            cassette: own.cassette.or_else(|| shared.cassette.clone()),
            expect: node.get("expect").map(|expect| self.expect(expect)).unwrap_or_default(),
        }
    }

    fn expect(&mut self, node: &Node<'_>) -> Expect {
        let texts = |key: &str| {
            let node = node.get(key)?;
            Some(one_or_list(node).iter().filter_map(|item| self.scalar(item)).collect())
        };
        let (path, events) = (texts("path"), texts("events"));
        for item in node.get("path").map_or(&[][..], Node::items) {
            if let Some(text) = self.scalar(item) {
                self.name(Wanted::Node, &text, item.span);
            }
        }
        let mut visits = BTreeMap::new();
        for entry in node.get("visits").map_or(&[][..], Node::entries) {
            self.name(Wanted::Node, &entry.key, entry.key_span);
            if let Data::Int(number) = entry.value.data {
                visits.insert(entry.key.to_string(), u64::try_from(number).unwrap_or(0));
            }
        }
        Expect {
            status: self.text(node, "status"),
            output: self.value(node, "output"),
            output_exactly: self.value(node, "output_exactly"),
            state: self.value(node, "state"),
            called: self.value(node, "called"),
            error: self.text(node, "error"),
            message: self.text(node, "message"),
            path,
            visits,
            max_turns: self.count(node, "max_turns"),
            events,
            cost_usd_micros: self.money(node, "cost"),
            max_cost_usd_micros: self.money(node, "max_cost"),
            took_ms: self.duration(node, "took"),
        }
    }

    /// Cases are told apart by their names.
    fn check_case_names(&mut self, cases: &[Node<'_>]) {
        let mut seen: BTreeMap<&str, Span> = BTreeMap::new();
        for name in cases.iter().filter_map(|case| case.get("name")) {
            let Some(text) = name.text() else { continue };
            if let Some(first) = seen.insert(text, name.span) {
                let message = format!("two cases are called `{text}`");
                let problem = Diagnostic::error(codes::DUPLICATE_NAME, name.span, message);
                self.problems.push(
                    problem.label("again").also(first, "first here").help("give each a name of its own"),
                );
            }
        }
    }
}
