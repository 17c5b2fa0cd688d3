//! A plan says what the engine does: for generated dags its ready order is the run's, and the order and the
//! times of its dispatches are those of a simulated run with the same estimates.

use std::collections::BTreeMap;
use std::sync::Arc;

use wonder_core::def::{Estimate, Implementation, Name};
use wonder_core::event::{EventKind, NewToken};
use wonder_core::graph::Graph;
use wonder_core::input::TaskOutcome;
use wonder_core::limits::Limits;
use wonder_core::{Input, Run, StartRun, Value};
use wonder_plan::{Around, Known, Outline, plan};
use wonder_sim::generate;
use wonder_sim::outcomes::{Act, ActionRequest, At, GateAnswer, GateRequest, OnCancel, Outcomes};
use wonder_sim::shape::Shape;
use wonder_sim::world::{Definition, START, Setting, World, start_of};

#[derive(Debug)]
struct Everything;

impl Around for Everything {
    fn has_variable(&self, _name: &str) -> bool {
        true
    }

    fn has_program(&self, _name: &str) -> bool {
        true
    }

    fn can_perform(&self, _implementation: &Implementation) -> bool {
        true
    }
}

/// Mocks do as they are written, and nobody says anything.
#[derive(Debug)]
struct AsWritten;

impl Outcomes for AsWritten {
    fn outcome(&self, _request: &ActionRequest<'_>) -> Option<Act> {
        None
    }

    fn reported_by_host(&self, _at: &At<'_>) -> Option<(u64, TaskOutcome)> {
        None
    }

    fn on_cancel(&self, _at: &At<'_>) -> OnCancel {
        OnCancel::ReportsAfter(0)
    }

    fn gate_answers(&self, _asked: &GateRequest<'_>) -> Vec<GateAnswer> {
        Vec::new()
    }
}

type Estimates = BTreeMap<Name, Estimate>;

fn outline(graphs: &[Arc<Graph>], estimates: &Estimates) -> Outline {
    let known = Known {
        estimates: estimates.clone(),
        prices: BTreeMap::new(),
        callable: graphs.iter().map(|graph| (graph.name.clone(), &**graph)).collect(),
        limits: Limits::default(),
        around: &Everything,
    };
    plan(&graphs[0], &known).outline
}

/// Nodes in the order in which the simulator sent them out, and when.
fn simulated(graph: &Arc<Graph>, estimates: &Estimates) -> Vec<(Name, u64)> {
    let mut start = start_of(Value::empty_map(), 7);
    start.estimates = estimates.clone();
    let definition = Definition { bundle: graph.bundle.clone(), graph: graph.clone() };
    let mut world = World::new(Setting {
        library: BTreeMap::from([(graph.name.clone(), definition)]),
        workflow: graph.name.clone(),
        start,
        outcomes: Arc::new(AsWritten),
        inputs: Vec::new(),
        shuffle: None,
        repeat: false,
        failing: None,
    });
    world.run_on();
    assert_eq!((world.root().status(), world.violations().len()), ("completed".to_owned(), 0));
    let mut nodes = BTreeMap::new();
    let mut sent = Vec::new();
    for event in &world.root().log {
        match &event.kind {
            EventKind::TokenCreated(NewToken { token, node, .. }) => _ = nodes.insert(*token, node.clone()),
            EventKind::TaskDispatched { token, .. } => {
                sent.push((nodes[token].clone(), event.at.since(START)))
            }
            _ => {}
        }
    }
    sent
}

#[test]
fn a_plan_sends_out_what_a_run_sends_out_in_that_order_and_at_those_times() {
    for seed in 0..40 {
        let shape = Shape::generated(seed);
        let slots = [1, 2, 4, 9][seed as usize % 4];
        // Of some nodes the file says only a price, and past runs have taught the time; some say nothing.
        let mut estimates = BTreeMap::new();
        let mut text = shape.workflow(slots);
        for (at, ms) in shape.durations_ms.iter().enumerate() {
            let (node, estimate) = (format!("  n{at}: "), format!("estimate: {{duration: {ms}ms}}, needs"));
            let line = text.lines().find(|line| line.starts_with(&node)).unwrap().to_owned();
            let written = match at % 3 {
                0 => continue,
                1 => {
                    let taught = Estimate { duration_ms: Some(*ms), usd_micros: Some(1) };
                    estimates.insert(Name::from(format!("n{at}")), taught);
                    "estimate: {usd: 0.01}, needs"
                }
                _ => "needs",
            };
            let mut line_then = line.replace(&estimate, written);
            // Some go on when one or two of what they need are there.
            let needs = line.split_once("needs: [").map_or(0, |(_, list)| list.matches('n').count());
            if needs > 1 && at % 5 < 2 {
                let join = if at % 5 == 0 { "any" } else { "{m_of_n: 2}" };
                line_then = line_then.replace("]}", &format!("], join: {join}}}"));
            }
            text = text.replace(&format!("{line}\n"), &format!("{line_then}\n"));
        }
        let graph = wonder_spec::read_everything(&text, "shape.yaml").unwrap().graphs.remove(0);
        let outline = outline(std::slice::from_ref(&graph), &estimates);
        let starts: BTreeMap<&Name, u64> =
            outline.nodes.iter().map(|node| (&node.node, node.starts_ms.unwrap())).collect();
        let planned: Vec<(Name, u64)> =
            outline.dispatch_order.iter().map(|node| (node.clone(), starts[node])).collect();
        assert_eq!(planned, simulated(&graph, &estimates), "seed {seed}, {slots} slots");
    }
}

#[test]
fn the_ready_order_of_a_plan_is_the_runs_and_every_generated_file_has_a_plan() {
    for seed in 0..200 {
        let graphs = wonder_spec::read_everything(&generate::file(seed), "generated.yaml").unwrap().graphs;
        let graph = &graphs[0];
        // Prices and times known of some nodes, by the file or by past runs or by both.
        let taught = |(at, node): (usize, &wonder_core::graph::Node)| {
            let ms = Some(100 + (at as u64 * 7919) % 5_000).filter(|_| at % 3 > 0);
            let usd = Some((at as u64 * 104_729) % 900).filter(|_| at % 2 > 0);
            (node.reference.clone(), Estimate { duration_ms: ms, usd_micros: usd })
        };
        let estimates: Estimates = graph.nodes.iter().enumerate().map(taught).collect();
        let outline = outline(&graphs, &estimates);
        assert!(!outline.batches.is_empty(), "seed {seed}");
        assert!(outline.duration.lower_bound_ms <= outline.duration.expected_ms, "seed {seed}");
        let mut run = Run::new(graph.clone());
        let start = StartRun { estimates, queued: true, ..StartRun::new("run", Value::empty_map()) };
        if run.handle(Input::StartRun(Box::new(start)), START).is_err() {
            continue;
        }
        let ranks = &run.state().ranks;
        let mut units: Vec<&wonder_core::graph::Unit> = graph.units.iter().collect();
        units.sort_by_key(|unit| ranks[unit.head.0 as usize]);
        let order: Vec<Name> = units.iter().map(|unit| unit.reference.clone()).collect();
        assert_eq!(outline.ready_order, order, "seed {seed}");
    }
}
