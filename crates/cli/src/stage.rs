//! A toy host on virtual time, for screens that look the same every day: mocks, and models that answer by their
//! name; no disk, no clock.

use std::collections::BTreeMap;
use std::sync::Arc;

use wonder_core::command::Overrides;
use wonder_core::cost::{Spend, TokenCounts, price_usd_micros};
use wonder_core::def::{Implementation, LlmCall, Name};
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::event::{Event, TokenId};
use wonder_core::graph::{Graph, Work};
use wonder_core::input::{ChildOutcome, Parent, TaskOutcome, TaskReport};
use wonder_core::mock::MockAnswer;
use wonder_core::task::{Ask, TaskMachine};
use wonder_core::{Command, Input, Move, Run, RunStatus, StartRun, Time, Value, mock};
use wonder_engine::{
    GateView, LogLine, LogStream, RunRow, RunView, Status, TextPiece, Updates, WaitView, Why, WhyReason,
};

use wonder_engine::run_tree::RunTree;
use wonder_engine::timeline::Timeline;

/// 2026-01-01T00:00:00Z.
pub(crate) const START: Time = Time(1_767_225_600_000);
pub(crate) const ROOT: &str = "01KDTXS6001JD7Q2M4K1ZABCDE";

struct Hosted {
    run: Run,
    log: Vec<Event>,
    /// Every move of every token, as the core made them.
    moves: Vec<Move>,
    parent: Option<(Name, TokenId, u32)>,
    end_reported: bool,
}

pub(crate) struct Stage {
    library: BTreeMap<Name, Arc<Graph>>,
    runs: BTreeMap<Name, Hosted>,
    queue: BTreeMap<(Time, u64), (Name, Input)>,
    queued: u64,
    /// Every event of every run, as they came.
    journal: Vec<(String, Event)>,
    logs: Vec<LogLine>,
    /// Text that models were producing.
    pub texts: Vec<TextPiece>,
    pub now: Time,
}

impl Stage {
    /// Starts the first workflow of the text.
    pub(crate) fn open(yaml: &str, input: &str) -> Stage {
        let text = format!("wonder: 1\n{yaml}");
        let reading = wonder_spec::read_everything(&text, "test.yaml")
            .unwrap_or_else(|p| panic!("{}", p.render(false)));
        let first = reading.graphs[0].clone();
        let library = reading.graphs.iter().map(|graph| (graph.name.clone(), graph.clone())).collect();
        let mut stage = Stage {
            library,
            runs: BTreeMap::new(),
            queue: BTreeMap::new(),
            queued: 0,
            journal: Vec::new(),
            logs: Vec::new(),
            texts: Vec::new(),
            now: START,
        };
        let start = StartRun::new(ROOT, Value::from_json_str(input).unwrap());
        stage.start(&first, start, None);
        stage
    }

    fn start(&mut self, graph: &Arc<Graph>, start: StartRun, parent: Option<(Name, TokenId, u32)>) {
        let id = start.id.clone();
        let run = Run::new(Arc::clone(graph));
        self.runs.insert(
            id.clone(),
            Hosted { run, log: Vec::new(), moves: Vec::new(), parent, end_reported: false },
        );
        self.tell(&id, Input::StartRun(Box::new(start)));
    }

    /// Everything that happens until so many milliseconds after the start.
    pub(crate) fn play(mut self, until_ms: u64) -> Stage {
        let end = START.plus(until_ms);
        while let Some((at, id, input)) = self.next(end) {
            self.now = self.now.max(at);
            self.tell(&id, input);
        }
        self.now = end;
        self
    }

    fn next(&mut self, end: Time) -> Option<(Time, Name, Input)> {
        let deadlines = self.runs.iter().filter_map(|(id, hosted)| Some((hosted.run.next_deadline()?, id)));
        let deadline = deadlines.min().map(|(at, id)| (at, id.clone())).filter(|(at, _)| *at <= end);
        let queued = self.queue.keys().next().copied().filter(|(at, _)| *at <= end);
        match (queued, deadline) {
            (Some(key), Some((at, id))) if at < key.0 => Some((at, id, Input::Wake)),
            (Some(key), _) => self.queue.remove(&key).map(|(id, input)| (key.0, id, input)),
            (None, Some((at, id))) => Some((at, id, Input::Wake)),
            (None, None) => None,
        }
    }

    /// One word to the root run, now.
    pub(crate) fn say(mut self, input: Input) -> Stage {
        self.tell(&Name::from(ROOT), input);
        self
    }

    /// A line of output of a node, now.
    pub(crate) fn print(mut self, node: &str, text: &str) -> Stage {
        let run = self.runs[ROOT].run.tokens();
        let graph = self.runs[ROOT].run.graph();
        let token = run.filter(|token| &*graph.nodes[token.node as usize].reference == node).last();
        let token = token.map_or(0, |token| token.id.0);
        self.logs.push(LogLine {
            number: self.logs.len() as u64 + 1,
            run: ROOT.to_owned(),
            at: self.now,
            node: node.to_owned(),
            token,
            attempt: 1,
            step: node.to_owned(),
            stream: LogStream::Stdout,
            text: text.to_owned(),
        });
        self
    }

    /// A piece of text of the last visit of a node of a run, now.
    pub(crate) fn stream(mut self, run: &str, node: &str, text: &str) -> Stage {
        let hosted = &self.runs[run].run;
        let graph = hosted.graph();
        let tokens = hosted.tokens().filter(|token| &*graph.nodes[token.node as usize].reference == node);
        let token = tokens.last().map_or(0, |token| token.id.0);
        let before = self.texts.iter().filter(|piece| piece.run == run && piece.token == token).count();
        self.texts.push(TextPiece {
            run: run.to_owned(),
            node: node.to_owned(),
            token,
            attempt: 1,
            step: node.to_owned(),
            tries_before: 0,
            number: before as u64,
            text: text.to_owned(),
        });
        self
    }

    fn tell(&mut self, id: &Name, input: Input) {
        let Some(hosted) = self.runs.get_mut(id) else { return };
        let Ok(step) = hosted.run.handle(input, self.now) else { return };
        hosted.log.extend(step.events.iter().cloned());
        hosted.moves.extend(&step.moves);
        self.journal.extend(step.events.into_iter().map(|event| (id.to_string(), event)));
        for command in step.commands {
            self.perform(id, command);
        }
        self.tell_end(id);
    }

    fn perform(&mut self, id: &Name, command: Command) {
        match command {
            Command::RunTask(order) => {
                let graph = Arc::clone(self.runs[id].run.graph());
                let task = graph.tasks[&order.task].clone();
                let overrides = order.overrides.clone();
                let mut machine = TaskMachine::start(task, order.input, order.feedback, order.overrides);
                let (mut spend, mut delay_ms) = (Spend::default(), 0);
                let outcome = loop {
                    match machine.ask() {
                        Ask::Done(outcome) => break outcome,
                        Ask::Perform(call) => {
                            let answer = match (&call.action.work, &call.action.def.implementation) {
                                (Some(Work::Mock(script)), _) => {
                                    mock::outcome(script, order.tries_before, &call.scope)
                                }
                                (_, Implementation::LlmCall(model)) => {
                                    model_answer(&graph, model, &overrides)
                                }
                                _ => panic!("this host can only mock"),
                            };
                            spend.add(&answer.spend);
                            delay_ms += answer.delay_ms;
                            machine.answer(answer.result);
                        }
                    }
                };
                spend.duration_ms = delay_ms;
                let report = TaskReport::new(outcome, spend);
                let (token, attempt) = (order.token, order.attempt);
                self.later(delay_ms, id, Input::TaskFinished { token, attempt, report });
            }
            Command::CancelTask { token, attempt } => {
                let report = TaskReport::new(TaskOutcome::Cancelled, Spend::default());
                self.later(1, id, Input::TaskFinished { token, attempt, report });
            }
            Command::StartChild(order) => {
                let graph = self.library[&order.workflow].clone();
                let parent = Parent {
                    run: id.clone(),
                    token: order.token,
                    attempt: order.attempt,
                    depth: order.depth,
                    inherit_artifacts: order.inherit_artifacts,
                };
                let start =
                    StartRun { parent: Some(parent), ..StartRun::new(order.child.clone(), order.input) };
                self.start(&graph, start, Some((id.clone(), order.token, order.attempt)));
            }
            _ => {}
        }
    }

    fn later(&mut self, delay_ms: u64, id: &Name, input: Input) {
        self.queued += 1;
        self.queue.insert((self.now.plus(delay_ms), self.queued), (id.clone(), input));
    }

    fn tell_end(&mut self, id: &Name) {
        let Some(hosted) = self.runs.get_mut(id) else { return };
        let Some((parent, token, attempt)) = hosted.parent.clone().filter(|_| !hosted.end_reported) else {
            return;
        };
        let outcome = match hosted.run.status() {
            RunStatus::Completed => {
                ChildOutcome::Completed { output: hosted.run.output().cloned().unwrap_or_default() }
            }
            RunStatus::Failed => match hosted.run.failure() {
                Some(failure) => ChildOutcome::Failed { failure: failure.clone() },
                None => return,
            },
            RunStatus::Cancelled => ChildOutcome::Cancelled,
            _ => return,
        };
        hosted.end_reported = true;
        let spend = hosted.run.spend().clone();
        self.tell(&parent, Input::ChildFinished { token, attempt, outcome, spend });
    }

    pub(crate) fn updates(&self) -> Updates {
        Updates { events: self.journal.clone(), logs: self.logs.clone(), ..Updates::default() }
    }

    pub(crate) fn run_tree(&self) -> RunTree {
        let mut run_tree = RunTree::new(ROOT);
        self.journal.iter().for_each(|(run, event)| run_tree.learn(run, event));
        run_tree
    }

    pub(crate) fn why(&self) -> Vec<Why> {
        let run = &self.runs[ROOT].run;
        let ended = WhyReason::of_end(run, self.run_tree().root());
        let reasons = run.why().into_iter().map(WhyReason::Run);
        let reasons = reasons.chain(ended.into_iter().filter(|_| run.status().is_end()));
        reasons.map(|reason| Why { run: ROOT.to_owned(), reason }).collect()
    }

    /// The definition of the root run.
    pub(crate) fn definition(&self) -> &Arc<Graph> {
        &self.library[&self.runs[ROOT].run.graph().name]
    }

    /// A run and its moves, for each run.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (&str, &Run, &[Move])> {
        self.runs.iter().map(|(id, hosted)| (&**id, &hosted.run, hosted.moves.as_slice()))
    }

    pub(crate) fn gates(&self) -> Vec<GateView> {
        let tree = self.run_tree();
        let open = |(run, timeline): (&String, &Timeline)| GateView::open_in(run, ROOT, timeline);
        tree.runs.iter().flat_map(open).collect()
    }

    pub(crate) fn row(&self) -> RunRow {
        self.row_of(&Name::from(ROOT))
    }

    /// Of every run, the newest first.
    pub(crate) fn rows(&self) -> Vec<RunRow> {
        self.runs.keys().rev().map(|id| self.row_of(id)).collect()
    }

    fn row_of(&self, id: &Name) -> RunRow {
        let Hosted { run, parent, .. } = &self.runs[id];
        let ended = run.status().is_end();
        RunRow {
            run: id.to_string(),
            workflow: run.graph().name.to_string(),
            version: run.graph().version,
            status: Status::of(run.status(), self.is_quiet(id)),
            root: ROOT.to_owned(),
            parent: parent.as_ref().map(|(run, _, _)| run.to_string()),
            started_at: run.state().started_at,
            ended_at: ended.then_some(run.state().now),
            usd_micros: run.spend().usd_micros,
            tokens: run.spend().tokens(),
            forked: None,
            project: "default".to_owned(),
            driven: !ended,
            labels: BTreeMap::new(),
            file: None,
            closed_ms: self.run_tree().runs.get(&**id).map_or(0, Timeline::closed_ms),
        }
    }

    fn is_quiet(&self, id: &Name) -> bool {
        self.runs
            .get(id)
            .is_some_and(|hosted| hosted.run.is_quiet(|_, _| false, |child| self.is_quiet(child)))
    }

    pub(crate) fn view(&self) -> RunView {
        let (run, row) = (&self.runs[ROOT].run, self.row());
        let quiet = self.is_quiet(&Name::from(ROOT));
        let waiting = self.gates().into_iter().filter(|_| quiet).map(|gate| WaitView::Gate {
            gate: gate.id,
            kind: gate.kind,
            node: gate.node,
            title: gate.title,
        });
        RunView {
            seq: run.state().seq,
            input: run.state().start.as_ref().map(|start| start.input.clone()).unwrap_or_default(),
            state: run.state().state.clone(),
            output: run.output().cloned(),
            error: run.failure().cloned(),
            waiting: waiting.collect(),
            quiet,
            metrics: run.metrics().clone(),
            duration_ms: row.took_ms(self.now),
            unpriced_calls: run.spend().unpriced_calls,
            budget_usd_micros: run.graph().budget.and_then(|budget| budget.usd_micros),
            children: self.runs.keys().filter(|id| &***id != ROOT).map(ToString::to_string).collect(),
            row,
        }
    }
}

/// A call takes 400 ms and costs what its profile says. A profile called `shy…` refuses, one called `sloppy`
/// answers what was not asked for, all others do well.
fn model_answer(graph: &Graph, call: &LlmCall, overrides: &Overrides) -> MockAnswer {
    let written = overrides.model.clone().or_else(|| call.model.as_ref().map(|model| model.text.clone()));
    let written = written.expect("a call of this stage names its model");
    let model = graph.cheaper(&written, overrides.downgrades as usize);
    let result = match &*model {
        name if name.starts_with("shy") => Err(Failure::new(ErrorKind::ModelRefused, "I would rather not")),
        "sloppy" if overrides.append.is_empty() => {
            Err(Failure::new(ErrorKind::ContractViolation, "score: expected a number"))
        }
        _ => Ok(Value::map([("text", Value::from("fine".to_owned()))])),
    };
    let prices = graph.models[&model].prices.unwrap_or_default();
    let counts = TokenCounts { input: 1_000, cached: 200, output: 100, ..TokenCounts::default() };
    let spend = Spend {
        usd_micros: price_usd_micros(&prices, counts),
        input_tokens: 1_000,
        output_tokens: 100,
        cached_tokens: 200,
        calls: 1,
        model_used: Some(model),
        ..Spend::default()
    };
    MockAnswer { result, delay_ms: 400, spend }
}
