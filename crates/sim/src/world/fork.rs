//! A run forked from the root of a world: its log begins with the copied events, and what follows is its own.

use wonder_core::def::Name;
use wonder_core::run::Fork;

use super::{Runs, World};
use crate::host::{ForkRequest, ScenarioHost};
use crate::inputs::When;

/// The id of a forked run.
const FORK: &str = "fork";

impl<H: ScenarioHost> World<H> {
    /// The world in which the root goes on, as another run, from the last dispatch of `node`. What it was
    /// to be told at a time it has been told; what waits for a condition still does.
    pub fn forked(mut self, node: &Name) -> Result<World<H>, String> {
        let mut setting = (*self.setting).clone();
        setting.start.id = FORK.into();
        setting.inputs.retain(|input| !matches!(input.when, When::At(_)));
        let fork = Fork::new(FORK.into(), node.clone());
        let request = ForkRequest { setting: &setting, fork: &fork, now: self.now };
        let mut runs = Runs::new();
        let source = &self.runs[&self.setting.start.id];
        let handled = self.host.fork(source, &mut runs, request)?;
        let mut world = World::empty(self.host, setting, self.now);
        world.runs = runs;
        world.follow(handled);
        Ok(world)
    }

    /// The nodes of the root that have had a token, each once.
    pub fn visited(&self) -> Vec<Name> {
        let mut nodes: Vec<Name> = self.root().names.nodes().cloned().collect();
        nodes.sort();
        nodes.dedup();
        nodes
    }
}
