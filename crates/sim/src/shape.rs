//! Shapes of dags with the time of each task, recorded or made up: what the core's ready order makes of them,
//! what first-come would, and the least that any order could take.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;

use wonder_core::command::Command;
use wonder_core::graph::Graph;
use wonder_core::input::{Input, StartRun, TaskOutcome, TaskReport};
use wonder_core::{Run, RunStatus, Time, Value};

use crate::rng::Rng;
use crate::world::START;

#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    pub durations_ms: Vec<u64>,
    /// Who comes after each task.
    after: Vec<Vec<usize>>,
}

impl Shape {
    pub fn new(durations_ms: Vec<u64>, edges: &[(usize, usize)]) -> Shape {
        let mut after = vec![Vec::new(); durations_ms.len()];
        edges.iter().for_each(|(from, to)| after[*from].push(*to));
        Shape { durations_ms, after }
    }

    /// Layers that split and join, with times as uneven as recorded workflows have them.
    pub fn generated(seed: u64) -> Shape {
        let mut rng = Rng::of(seed, &[0x5a]);
        let (mut durations_ms, mut edges): (Vec<u64>, Vec<(usize, usize)>) = (vec![50], Vec::new());
        let mut layer = vec![0];
        for _ in 0..rng.between(3, 8) {
            // A join, as wide a layer as before (chains), or a new width.
            let width = match rng.below(4) {
                0 => 1,
                1 => layer.len(),
                _ => rng.between(2, 60) as usize,
            };
            let typical = 10 * 4u64.pow(rng.below(4) as u32);
            let first = durations_ms.len();
            for at in 0..width {
                let tail = if rng.percent(10) { rng.between(2, 20) } else { 1 };
                durations_ms.push(rng.between(typical / 2, typical * 2) * tail);
                edges.push((layer[at % layer.len()], first + at));
                if rng.percent(20) {
                    edges.push((*rng.pick(&layer), first + at));
                }
            }
            // Whoever nobody continued goes into the last of this layer.
            layer.iter().skip(width).for_each(|left| edges.push((*left, first + width - 1)));
            layer = (first..first + width).collect();
        }
        edges.sort_unstable();
        edges.dedup();
        Shape::new(durations_ms, &edges)
    }

    /// The same shape, so fast that its lower bound for so many slots is about this.
    pub fn scaled(&self, slots: usize, lower_bound_ms: f64) -> Shape {
        let factor = lower_bound_ms / self.lower_bound_ms(slots).max(1) as f64;
        let scaled = |ms: &u64| (*ms as f64 * factor).round() as u64;
        Shape { durations_ms: self.durations_ms.iter().map(scaled).collect(), ..self.clone() }
    }

    /// A dag of mocks that take their time and say so beforehand.
    pub fn workflow(&self, slots: usize) -> String {
        let mut needs = vec![Vec::new(); self.after.len()];
        for (from, after) in self.after.iter().enumerate() {
            after.iter().for_each(|to| needs[*to].push(format!("n{from}")));
        }
        let mut text =
            format!("wonder: 1\nname: shape\nkind: dag\ntimeout: 10h\nmax_parallel: {slots}\nnodes:\n");
        for (at, (ms, needs)) in self.durations_ms.iter().zip(needs).enumerate() {
            let _ = writeln!(
                text,
                "  n{at}: {{mock: {{delay: {ms}ms}}, estimate: {{duration: {ms}ms}}, needs: [{}]}}",
                needs.join(", ")
            );
        }
        text
    }

    /// No order can be faster: the longest path, or all the work spread evenly.
    pub fn lower_bound_ms(&self, slots: usize) -> u64 {
        let work: u64 = self.durations_ms.iter().sum();
        self.critical_path_ms().max(work.div_ceil(slots as u64))
    }

    fn critical_path_ms(&self) -> u64 {
        let mut ends = self.durations_ms.clone();
        let mut longest = 0;
        for task in self.in_order() {
            longest = longest.max(ends[task]);
            for next in &self.after[task] {
                ends[*next] = ends[*next].max(ends[task] + self.durations_ms[*next]);
            }
        }
        longest
    }

    fn in_order(&self) -> Vec<usize> {
        let mut missing = self.needs();
        let mut ready: VecDeque<usize> = (0..missing.len()).filter(|task| missing[*task] == 0).collect();
        let mut order = Vec::new();
        while let Some(task) = ready.pop_front() {
            order.push(task);
            for next in &self.after[task] {
                missing[*next] -= 1;
                if missing[*next] == 0 {
                    ready.push_back(*next);
                }
            }
        }
        order
    }

    fn needs(&self) -> Vec<usize> {
        let mut needs = vec![0; self.after.len()];
        self.after.iter().flatten().for_each(|to| needs[*to] += 1);
        needs
    }

    /// How long it takes if whatever is ready first goes first.
    pub fn first_come_ms(&self, slots: usize) -> u64 {
        let mut missing = self.needs();
        let mut ready: VecDeque<usize> = (0..missing.len()).filter(|task| missing[*task] == 0).collect();
        let mut out = BinaryHeap::new();
        let mut now = 0;
        loop {
            while out.len() < slots
                && let Some(task) = ready.pop_front()
            {
                out.push(Reverse((now + self.durations_ms[task], task)));
            }
            let Some(Reverse((end, task))) = out.pop() else { return now };
            now = end;
            for next in &self.after[task] {
                missing[*next] -= 1;
                if missing[*next] == 0 {
                    ready.push_back(*next);
                }
            }
        }
    }

    /// How long the core's order takes, on virtual time.
    pub fn ordered_ms(&self, slots: usize) -> Result<u64, String> {
        let text = self.workflow(slots);
        let reading =
            wonder_spec::read_everything(&text, "shape.yaml").map_err(|problems| problems.render(false))?;
        let graph = reading.graphs.into_iter().next().ok_or("no workflow")?;
        let durations: BTreeMap<String, u64> =
            self.durations_ms.iter().enumerate().map(|(at, ms)| (format!("n{at}"), *ms)).collect();
        played_ms(graph, &durations)
    }
}

/// Performs each task in its time, and nothing else.
fn played_ms(graph: Arc<Graph>, durations: &BTreeMap<String, u64>) -> Result<u64, String> {
    let mut run = Run::new(graph);
    let mut out = BinaryHeap::new();
    let mut next = Some((START, Input::StartRun(Box::new(StartRun::new("shape", Value::empty_map())))));
    let (mut now, mut ordered) = (START, 0u64);
    while let Some((at, input)) = next {
        now = at;
        let step = run.handle(input, at).map_err(|rejection| rejection.to_string())?;
        for command in step.commands {
            if let Command::RunTask(order) = command {
                ordered += 1;
                let end = at.plus(durations[&*order.node]);
                out.push(Reverse((end.0, ordered, order.token, order.attempt)));
            }
        }
        next = out.pop().map(|Reverse((end, _, token, attempt))| {
            let outcome = TaskOutcome::Completed { result: Value::Null };
            let report = TaskReport::new(outcome, Default::default());
            (Time(end), Input::TaskFinished { token, attempt, report })
        });
    }
    match run.status() {
        RunStatus::Completed => Ok(now.since(START)),
        status => Err(format!("it is {status}")),
    }
}
