//! Random outcomes, answers and operations for a seed. Each is drawn from its own name, not from a shared
//! stream, so that a task fails or not whatever order things happen in.

use wonder_core::cost::Spend;
use wonder_core::def::{Implementation, Name};
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::event::GateKind;
use wonder_core::execution::Delivery;
use wonder_core::input::TaskOutcome;
use wonder_core::value::Value;

use crate::executor::shaped;
use crate::generate::MUTATOR;
use crate::inputs::{GateFilter, Operation, OutsideInput, ScriptedInput, When};
use crate::outcomes::{Act, ActionRequest, At, GateAnswer, GateRequest, OnCancel, Outcomes};
use crate::rng::{Rng, salt};

/// What a worker's action may fail with.
const KINDS: [ErrorKind; 15] = [
    ErrorKind::Timeout,
    ErrorKind::Network,
    ErrorKind::RateLimited,
    ErrorKind::ProviderError,
    ErrorKind::HttpStatus,
    ErrorKind::ShellExit,
    ErrorKind::ModelRefused,
    ErrorKind::ContentFiltered,
    ErrorKind::ContractViolation,
    ErrorKind::QualityBelowThreshold,
    ErrorKind::AssertionFailed,
    ErrorKind::BudgetExceeded,
    ErrorKind::OutcomeUnknown,
    ErrorKind::InputRequired,
    ErrorKind::Internal,
];

/// Many things take equally long, so that much happens at the same time.
const DELAYS_MS: [u64; 11] = [0, 0, 0, 1_000, 1_000, 1_000, 2_000, 3_000, 6_000, 15_000, 25_000];

#[derive(Clone, Copy, Debug)]
pub struct Chaos {
    seed: u64,
    /// In a hundred: actions that fail, workers that are lost.
    failing: u64,
    lost: u64,
}

impl Chaos {
    pub fn new(seed: u64) -> Chaos {
        let mut rng = Rng::of(seed, &[2]);
        Chaos { seed, failing: *rng.pick(&[0, 3, 8, 12, 30]), lost: *rng.pick(&[0, 0, 3, 10]) }
    }

    fn rng(&self, at: &At<'_>, more: u64) -> Rng {
        Rng::of(self.seed, &[salt(at.run), at.token.0, at.attempt.into(), more])
    }
}

impl Outcomes for Chaos {
    fn outcome(&self, request: &ActionRequest<'_>) -> Option<Act> {
        let mut rng = self.rng(&request.at, salt(request.step));
        let delay_ms = *rng.pick(&DELAYS_MS);
        let spend = match request.action.def.implementation {
            Implementation::LlmCall(_) => Spend {
                input_tokens: rng.below(40),
                output_tokens: rng.below(50),
                calls: 1,
                ..Spend::default()
            },
            _ => Spend::default(),
        };
        if rng.percent(self.failing) {
            let failure = Failure::new(*rng.pick(&KINDS), "it went wrong");
            return Some(Act {
                result: Some(Err(failure)),
                delivery: Delivery::Answered,
                delay_ms,
                spend,
                one_try: false,
            });
        }
        let items = Value::list((0..rng.below(4)).map(|item| Value::Int(item as i64)));
        let mut result = Value::map([
            ("v", Value::Int(rng.below(10) as i64)),
            ("ok", Value::Bool(rng.percent(60))),
            ("items", items),
        ]);
        if request.at.node.starts_with(MUTATOR) && rng.percent(50) {
            result.set_path(&["_mutations".into()], growth(&mut rng, request));
        }
        let result = Some(Ok(shaped(request.action, result)));
        Some(Act { result, delivery: Delivery::Answered, delay_ms, spend, one_try: false })
    }

    fn reported_by_host(&self, at: &At<'_>) -> Option<(u64, TaskOutcome)> {
        let mut rng = self.rng(at, 1);
        let kind = if rng.percent(70) { ErrorKind::WorkerLost } else { ErrorKind::OutcomeUnknown };
        if !rng.percent(self.lost) {
            return None;
        }
        let after_ms = *rng.pick(&DELAYS_MS);
        if rng.percent(20) {
            return Some((after_ms, TaskOutcome::NotTaken { waited_ms: after_ms }));
        }
        let failure = Failure::new(kind, "nothing was heard of it");
        Some((after_ms, TaskOutcome::Failed { failure, retry: false, step: None }))
    }

    fn on_cancel(&self, at: &At<'_>) -> OnCancel {
        let mut rng = self.rng(at, 2);
        *rng.pick(&[
            OnCancel::ReportsAfter(0),
            OnCancel::ReportsAfter(1_000),
            OnCancel::Finishes,
            OnCancel::Never,
        ])
    }

    fn gate_answers(&self, asked: &GateRequest<'_>) -> Vec<GateAnswer> {
        let GateRequest { run, gate, record, .. } = *asked;
        let mut rng = Rng::of(self.seed, &[salt(run), gate.0, 3]);
        // Some reviews outlast the workflow's own time.
        if record.kind == GateKind::Review && rng.percent(40) {
            return Vec::new();
        }
        // What reminds for ever is answered some time.
        if rng.percent(6) && record.remind_every_ms.is_none() {
            return Vec::new();
        }
        let mut after_ms = rng.below(8) * *rng.pick(&[1_000, 1_000, 4_000]);
        let mut answers = Vec::new();
        for by in ["ann", "bob", "cleo"].into_iter().take(record.quorum.map_or(1, |_| 3)) {
            if rng.percent(15) {
                answers.push(GateAnswer { after_ms, by: by.into(), answer: Value::str("whatever") });
            }
            answers.push(GateAnswer { after_ms, by: by.into(), answer: answer(&mut rng, record.kind) });
            after_ms += rng.below(3) * 1_000;
        }
        answers
    }
}

/// An answer that fits the form of such a gate.
fn answer(rng: &mut Rng, kind: GateKind) -> Value {
    let action = |rng: &mut Rng, words: &[&str]| ("action", Value::str(*rng.pick(words)));
    match kind {
        GateKind::Node => Value::map([("ok", Value::Bool(rng.percent(50)))]),
        GateKind::Review => Value::map([action(rng, &["retry", "retry", "skip", "cancel"])]),
        GateKind::Timeout => Value::map([action(rng, &["extend", "abort"])]),
        GateKind::Budget => Value::map([action(rng, &["raise", "abort"]), ("usd", Value::Int(1))]),
        GateKind::Outcome => Value::map([action(rng, &["done", "again", "fail"])]),
        GateKind::Input => Value::map([action(rng, &["accept", "decline"])]),
    }
}

/// Nodes that a node asks for: a fine one, one that leads back, or nonsense.
fn growth(rng: &mut Rng, request: &ActionRequest<'_>) -> Value {
    let (node, added) = (request.at.node, format!("x_{}_{}", request.at.token, request.at.attempt));
    let to_added = Value::map([("from", Value::str(node)), ("to", Value::from(added.clone()))]);
    let back = Value::map([
        ("from", Value::from(added.clone())),
        ("to", Value::str(node)),
        ("max_iterations", Value::Int(1)),
    ]);
    let task = if rng.percent(85) { "spare" } else { "nobody" };
    let new = Value::map([("ref", Value::from(added)), ("task", Value::str(task))]);
    let transitions = if rng.percent(70) { vec![to_added] } else { vec![to_added, back] };
    Value::map([("nodes", Value::list([new])), ("transitions", Value::from(transitions))])
}

/// What the run is told from outside.
pub fn inputs(seed: u64) -> Vec<ScriptedInput> {
    let mut rng = Rng::of(seed, &[4]);
    let mut inputs = Vec::new();
    for _ in 0..rng.below(7) {
        let name: Name = (*rng.pick(&["paid", "shipped", "paid", "nobody_waits"])).into();
        let key = if rng.percent(60) { Value::Null } else { Value::Int(rng.below(2) as i64) };
        let payload = Value::map([("v", Value::Int(rng.below(9) as i64))]);
        let what = OutsideInput::Event { name, key, payload, keep: rng.percent(85) };
        inputs.push(at(rng.below(15) * 1_000, what));
    }
    if rng.percent(25) {
        let from = rng.below(10) * 500;
        inputs.push(at(from, operation(Operation::Pause)));
        if rng.percent(90) {
            inputs.push(at(from + rng.below(20) * 500, operation(Operation::Resume)));
        }
    }
    if rng.percent(14) {
        let how = if rng.percent(70) { Operation::Cancel } else { Operation::Kill };
        inputs.push(at(rng.below(30) * 500, operation(how)));
    }
    for after_ms in [1_000, 40_000] {
        if rng.percent(40) {
            inputs.push(ScriptedInput {
                when: When::End,
                after_ms,
                run: None,
                what: operation(Operation::Retry),
                each: false,
            });
        }
    }
    if rng.percent(10) {
        let what =
            OutsideInput::Answer { gate: GateFilter::default(), answer: Value::Int(1), by: "eve".into() };
        inputs.push(at(rng.below(10) * 1_000, what));
    }
    inputs
}

fn at(ms: u64, what: OutsideInput) -> ScriptedInput {
    ScriptedInput { when: When::At(ms), after_ms: 0, run: None, what, each: false }
}

fn operation(operation: Operation) -> OutsideInput {
    OutsideInput::Operate {
        operation,
        by: "operator".into(),
        reason: "the seed says so".to_owned(),
        grace_ms: Some(5_000),
    }
}
