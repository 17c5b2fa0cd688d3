//! A seed is a workflow, its outcomes and what it is told. The same seed gives the same log.

use std::sync::Arc;

use crate::chaos::{self, Chaos};
use crate::checks::{self, Effort};
use crate::generate;
use crate::monitor::Walked;
use crate::rng::Rng;
use crate::scenario;
use crate::world::{Setting, World, start_of};
use wonder_core::value::Value;

/// What came of a seed.
#[derive(Debug)]
pub struct Verdict {
    pub seed: u64,
    /// The file it wrote.
    pub text: String,
    pub trace: String,
    /// How the root run ended.
    pub status: String,
    pub events: usize,
    pub walked: Walked,
    /// Empty if all is well.
    pub wrong: Vec<String>,
}

pub fn setting(seed: u64) -> Result<Setting, String> {
    let text = generate::file(seed);
    let (library, workflow) = scenario::library(&text, &format!("seed {seed}"))?;
    let mut start = start_of(Value::map([("n", Value::Int(seed as i64))]), seed);
    // Every third run yields often.
    if seed.is_multiple_of(3) {
        start.limits.moves_per_input_max = 7;
    }
    Ok(Setting {
        library,
        workflow,
        start,
        outcomes: Arc::new(Chaos::new(seed)),
        inputs: chaos::inputs(seed),
        shuffle: Some(seed),
        repeat: false,
        failing: None,
    })
}

/// Most seeds are cut and crashed a little; some are looked at harder.
fn effort(seed: u64) -> Effort {
    let mut rng = Rng::of(seed, &[5]);
    Effort {
        repeat: rng.percent(20),
        orders: if rng.percent(10) { 2 } else { 0 },
        failing_max: if rng.percent(10) { 4 } else { 0 },
        forks_max: if rng.percent(15) { 4 } else { 0 },
        crashes_max: if rng.percent(5) { 40 } else { Effort::SEED.crashes_max },
        ..Effort::SEED
    }
}

pub fn run(seed: u64) -> Verdict {
    let mut verdict = Verdict {
        seed,
        text: generate::file(seed),
        trace: String::new(),
        status: String::new(),
        events: 0,
        walked: Walked::default(),
        wrong: Vec::new(),
    };
    let setting = match setting(seed) {
        Ok(setting) => setting,
        Err(problem) => {
            verdict.wrong.push(problem);
            return verdict;
        }
    };
    let effort = effort(seed);
    let mut world = match checks::guarded(|| World::new(setting)) {
        Ok(world) => world,
        Err(panic) => {
            verdict.wrong.push(panic);
            return verdict;
        }
    };
    if let Err(panic) = checks::guarded(|| world.run_on()) {
        verdict.wrong.push(panic);
    }
    verdict.trace = world.trace();
    verdict.wrong.extend_from_slice(world.violations());
    verdict.status = world.root().status();
    verdict.events = world.runs().map(|(_, hosted)| hosted.log.len()).sum();
    verdict.walked = world.walked();
    if verdict.wrong.is_empty() {
        verdict.wrong = checks::all(&world, effort);
    }
    verdict
}
