//! What every scenario and every seed gets for free: crash between every two steps, deliver everything twice and
//! in another order, fail every task, fork at every node. Each check drives whole worlds and says what was wrong, readable.

use std::panic::{AssertUnwindSafe, catch_unwind};

use wonder_core::Run;
use wonder_core::error::ErrorKind;

use crate::diff;
use crate::world::{Failing, Hosted, Setting, World, difference};

/// How much is tried. Beyond a bound the tries are spread evenly over what there is.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Steps after which the host dies.
    pub crashes_max: usize,
    /// Events after which the log is cut.
    pub cuts_max: usize,
    /// Whether everything is delivered twice.
    pub repeat: bool,
    /// Orders of what happens at the same time.
    pub orders: u64,
    /// Tasks that are made to fail, each in two ways.
    pub failing_max: usize,
    /// Nodes at which the run is forked.
    pub forks_max: usize,
}

impl Effort {
    pub const SCENARIO: Effort =
        Effort { crashes_max: 80, cuts_max: 400, repeat: true, orders: 6, failing_max: 60, forks_max: 30 };
    pub const SEED: Effort =
        Effort { crashes_max: 2, cuts_max: 12, repeat: false, orders: 0, failing_max: 0, forks_max: 0 };
}

/// All of them on a world that has come to its end. Empty if all is well.
pub fn all(world: &World, effort: Effort) -> Vec<String> {
    let checks: [(&str, &dyn Fn() -> Vec<String>); 6] = [
        ("cut", &|| cut_everywhere(world, effort.cuts_max)),
        ("crash", &|| crash_everywhere(world, effort.crashes_max)),
        ("repeat", &|| if effort.repeat { repeat(world) } else { Vec::new() }),
        ("reorder", &|| reorder(world, effort.orders)),
        ("fail", &|| fail_every_task(world, effort.failing_max)),
        ("fork", &|| fork_everywhere(world, effort.forks_max)),
    ];
    let found = checks.iter().flat_map(|(name, check)| {
        let found = guarded(check).unwrap_or_else(|panic| vec![panic]);
        found.into_iter().map(move |what| format!("{name}: {what}"))
    });
    found.collect()
}

/// Runs something of ours or of the core that may break, and says how it broke.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        format!("it panicked: {text}")
    })
}

fn ended(setting: &Setting) -> World {
    let mut world = World::new(setting.clone());
    world.run_on();
    world
}

/// Every prefix of every log can be replayed and stored, also one that ends in the middle of a step; the
/// whole log gives the run that wrote it.
pub fn cut_everywhere(world: &World, cuts_max: usize) -> Vec<String> {
    world
        .runs()
        .flat_map(|(id, hosted)| cut(hosted, cuts_max).into_iter().map(move |w| format!("{id}: {w}")))
        .collect()
}

fn cut(hosted: &Hosted, cuts_max: usize) -> Vec<String> {
    let mut run = Run::new(hosted.graph.clone());
    let mut wrong = Vec::new();
    for (at, event) in hosted.log.iter().enumerate() {
        if let Err(error) = run.replay_more([event]) {
            wrong.push(format!("after {at} events: {error}"));
            return wrong;
        }
        if is_sampled(at, hosted.log.len(), cuts_max) {
            let _ = (run.owed(), run.why(), run.next_deadline());
            if let Err(error) = serde_json::to_vec(run.state()) {
                wrong.push(format!("after {} events: its state cannot be stored: {error}", at + 1));
            }
        }
    }
    wrong.extend(difference(&run, &hosted.run));
    wrong
}

/// The host dies after every step; what comes of it is what would have come anyway, event for event.
pub fn crash_everywhere(reference: &World, crashes_max: usize) -> Vec<String> {
    let mut wrong = Vec::new();
    if crashes_max == 0 {
        return wrong;
    }
    let mut world = World::new(reference.setting().clone());
    let steps = reference.inputs_handled();
    let mut step = 0;
    loop {
        if is_sampled(step, steps, crashes_max) {
            let mut crashed = world.clone();
            crashed.crash();
            crashed.run_on();
            wrong.extend(compare(reference, &crashed).map(|what| format!("after step {step}: {what}")));
        }
        step += 1;
        if !wrong.is_empty() || !world.advance() {
            return wrong;
        }
    }
}

/// How a world differs from the one it should be like.
fn compare(expected: &World, found: &World) -> Option<String> {
    if let Some(violation) = found.violations().first() {
        return Some(violation.clone());
    }
    let same =
        expected.runs().map(|(id, hosted)| (id, &hosted.log)).eq(found.runs().map(|(id, h)| (id, &h.log)));
    if same {
        return None;
    }
    let traces = diff::lines(&expected.trace(), &found.trace());
    Some(format!("another course:\n{}", traces.unwrap_or_else(|| "(the traces are the same)".to_owned())))
}

/// Every report and answer comes twice: the second is refused, and all goes as it went.
pub fn repeat(reference: &World) -> Vec<String> {
    let repeated = ended(&Setting { repeat: true, ..reference.setting().clone() });
    compare(reference, &repeated).into_iter().collect()
}

/// What happens at the same time happens in another order: all that must hold holds.
pub fn reorder(reference: &World, orders: u64) -> Vec<String> {
    let order = |seed: u64| {
        let world = ended(&Setting { shuffle: Some(seed), ..reference.setting().clone() });
        world.violations().first().map(|what| format!("in order {seed}: {what}\n{}", world.trace()))
    };
    (0..orders).filter_map(order).collect()
}

/// Each task fails in turn, in two ways: the run ends or says what it waits for.
pub fn fail_every_task(reference: &World, failing_max: usize) -> Vec<String> {
    let tasks = reference.ordered();
    let sampled = tasks.iter().enumerate().filter(|(at, _)| is_sampled(*at, tasks.len(), failing_max));
    let mut wrong = Vec::new();
    for (_, task) in sampled {
        for kind in [ErrorKind::Internal, ErrorKind::Timeout] {
            let failing = Some(Failing { task: task.clone(), kind });
            let world = ended(&Setting { failing, ..reference.setting().clone() });
            let (run, token, attempt) = task;
            let what = format!("{kind} of attempt {attempt} of token {token} of {run}");
            if let Some(violation) = world.violations().first() {
                wrong.push(format!("{what}: {violation}\n{}", world.trace()));
            }
            if !world.ordered().contains(task) {
                wrong.push(format!("{what}: it was never ordered"));
            }
        }
    }
    wrong
}

/// The run is forked at every node it has been to: the fork ends or says what it waits for, and its log,
/// copied events and all, gives the run that wrote it.
pub fn fork_everywhere(reference: &World, forks_max: usize) -> Vec<String> {
    let nodes = reference.visited();
    let sampled = nodes.iter().enumerate().filter(|(at, _)| is_sampled(*at, nodes.len(), forks_max));
    let mut wrong = Vec::new();
    for (_, node) in sampled {
        match reference.clone().forked(node) {
            Ok(mut world) => {
                world.run_on();
                let found = world.violations().first().cloned().or_else(|| cut(world.root(), 50).pop());
                wrong.extend(found.map(|what| format!("at {node}: {what}\n{}", world.trace())));
            }
            // A token that was skipped or cancelled before it began gives no place to fork at.
            Err(why) if why.ends_with("was never dispatched") => {}
            Err(why) => wrong.push(format!("at {node}: {why}")),
        }
    }
    wrong
}

/// Whether `at` is one of at most `most`, spread evenly over `all`.
fn is_sampled(at: usize, all: usize, most: usize) -> bool {
    most > 0 && at.is_multiple_of(all.div_ceil(most).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_spread_and_bounded() {
        assert_eq!((0..100).filter(|at| is_sampled(*at, 100, 10)).count(), 10);
        assert_eq!((0..5).filter(|at| is_sampled(*at, 5, 10)).count(), 5);
        assert_eq!((0..5).filter(|at| is_sampled(*at, 5, 0)).count(), 0);
    }
}
