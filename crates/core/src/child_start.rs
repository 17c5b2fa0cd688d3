//! How a run that another run calls is started and what it is told: every host, the simulator and a plan ask here, so that a
//! child inherits the same everywhere.

use crate::backoff::mix;
use crate::command::{ChildOrder, Command};
use crate::def::Name;
use crate::error::{ErrorKind, Failure};
use crate::event::TokenId;
use crate::input::{Input, Parent, StartRun};
use crate::run::Run;

/// The id of the run that an attempt of a token calls: asking twice names one.
pub fn child_id(parent: &Name, token: TokenId, attempt: u32) -> Name {
    format!("{parent}.{token}.{attempt}").into()
}

/// Whether a run is this one, or was called by it or by one that it called: the name says so.
pub fn is_within(run: &str, above: &str) -> bool {
    run.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// What a child is told first, by its parent and the parent's order.
///
/// From the order: its id, its input, how deep it is, what it may spend and how long it may take. From the
/// parent: the limits, an explicit `max_parallel`, prices beyond those of the definition, and the budgets of
/// what can be called, which is the same for the whole tree. The seed follows from the parent's and the id, so
/// that a child asked for twice is the same child. What past runs of the child's workflow taught is for the
/// host to add: it is about other nodes than the parent's.
pub fn child_start(parent: &Run, order: ChildOrder) -> StartRun {
    let above = parent.state().start.as_ref().expect("a run that calls has started");
    let mut start = StartRun::new(order.child, order.input);
    start.seed = child_seed(above.seed, &start.id);
    start.parent = Some(Parent {
        run: above.id.clone(),
        token: order.token,
        attempt: order.attempt,
        depth: order.depth,
        inherit_artifacts: order.inherit_artifacts,
    });
    start.allowance = order.allowance;
    start.on_exceeded = order.on_exceeded;
    start.timeout_ms = order.timeout_ms;
    start.limits = above.limits;
    start.max_parallel = above.max_parallel;
    start.child_budgets = above.child_budgets.clone();
    // A parent's prices include those of its own definition; the child has a definition of its own.
    let told = above.prices.iter().filter(|(name, prices)| {
        parent.graph().models.get(*name).is_none_or(|profile| profile.known_prices() != Some(**prices))
    });
    start.prices = told.map(|(name, prices)| (name.clone(), *prices)).collect();
    start
}

/// What the parent is told of a call of a workflow that this host does not have.
pub fn child_unknown(workflow: &str, known: &[&str]) -> Failure {
    let message = format!("there is no workflow {workflow} to call; this run knows {}", known.join(", "));
    Failure::new(ErrorKind::Internal, message)
}

/// What the parent is told of a child that refused to start.
pub fn child_refused(workflow: &str, why: &str) -> Failure {
    Failure::new(ErrorKind::ContractViolation, format!("{workflow}: {why}"))
}

/// What a child is told when its parent calls it back, pauses or resumes it; None for other commands.
pub fn child_input(command: &Command) -> Option<(Name, Input)> {
    let by = || Name::from("parent");
    match command {
        Command::CancelChild { child, .. } => {
            let reason = "the parent cancelled it".to_owned();
            Some((child.clone(), Input::Cancel { reason, grace_ms: None }))
        }
        Command::PauseChild { child, .. } => Some((child.clone(), Input::Pause { by: by() })),
        Command::ResumeChild { child, .. } => Some((child.clone(), Input::Resume { by: by() })),
        _ => None,
    }
}

/// From the parent's seed and the child's id: FNV-1a, then spread over 64 bits.
fn child_seed(parent: u64, child: &str) -> u64 {
    let hash = child
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    mix(parent ^ hash)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::cost::Allowance;
    use crate::def::{OnExceeded, Prices};
    use crate::event::TokenId;
    use crate::graph::Graph;
    use crate::input::Input;
    use crate::time::Time;
    use crate::value::Value;

    #[test]
    fn a_child_inherits_what_was_told_and_keeps_what_is_its_own() {
        let bundle = json!({
            "workflow": {"name": "parent", "nodes": [{"ref": "a", "task": "a"}]},
            "tasks": {"a": {"name": "a", "steps": [{"ref": "s", "action": "a"}]}},
            "actions": {"a": {"name": "a", "kind": "mock", "implementation": {"outcomes": [{}]}}},
            "models": {"own": {"name": "own", "provider": "openai", "model": "m", "prices": {"input": 5, "output": 6}}}
        });
        let (graph, _) = Graph::build(Arc::new(serde_json::from_value(bundle).unwrap())).unwrap();
        let mut parent = Run::new(Arc::new(graph));
        let mut start = StartRun::new("run", Value::empty_map());
        let told = Prices { input: 1, output: 2, ..Prices::default() };
        start.prices = [("told".into(), told)].into();
        start.max_parallel = Some(3);
        start.limits.tokens_max = 77;
        start.estimates = [("a".into(), Default::default())].into();
        start.child_budgets = [("kid".into(), Allowance { calls: 9, ..Allowance::default() })].into();
        parent.handle(Input::StartRun(Box::new(start.clone())), Time(0)).unwrap();
        let order = ChildOrder {
            token: TokenId(4),
            attempt: 2,
            child: "run.4.2".into(),
            workflow: "kid".into(),
            input: Value::from("x"),
            depth: 1,
            allowance: Some(Allowance { calls: 5, ..Allowance::default() }),
            on_exceeded: Some(OnExceeded::Fail),
            timeout_ms: Some(60),
            inherit_artifacts: true,
        };
        let child = child_start(&parent, order.clone());
        assert_eq!((child.max_parallel, child.limits.tokens_max), (Some(3), 77));
        assert_eq!(child.prices, start.prices, "what its own definition says is not handed down");
        assert_eq!(child.child_budgets, start.child_budgets);
        assert_eq!((child.allowance, child.timeout_ms), (order.allowance, Some(60)));
        assert_eq!(child.on_exceeded, order.on_exceeded);
        assert!(child.estimates.is_empty(), "they are about the parent's nodes");
        let from = child.parent.as_ref().unwrap();
        assert_eq!((&*from.run, from.token, from.attempt, from.depth), ("run", TokenId(4), 2, 1));
        assert!(from.inherit_artifacts, "the order says so");
        assert_eq!(child, child_start(&parent, order.clone()), "asked for twice it is the same child");
        let other = child_start(&parent, ChildOrder { child: "run.5.1".into(), ..order });
        assert_ne!(child.seed, other.seed, "a hundred children do not retry at once");
    }
}
