//! A run forked from the root of another world: its log begins with the copied events, and what follows is
//! its own.

use wonder_core::Run;
use wonder_core::def::Name;
use wonder_core::input::Rejection;
use wonder_core::run::Fork;
use wonder_core::value::Value;

use super::{Hosted, Setting, World};
use crate::host::Memory;
use crate::monitor::Monitor;
use crate::said::When;

/// The id of a forked run.
const FORK: &str = "fork";

impl World {
    /// A world of its own in which the root goes on from the last dispatch of `node`. What was to be said at
    /// a time has been said; what waits for something to be the case still does.
    pub fn forked(&self, node: &Name) -> Result<World, Rejection> {
        let root = self.root();
        let fork = Fork { run: FORK.into(), node: node.clone(), branch: None, input: Value::Null };
        let (run, copied, step) = Run::fork(root.graph.clone(), &root.log, &fork, self.now)?;
        let mut setting: Setting = self.setting().clone();
        setting.start.id = FORK.into();
        setting.said.retain(|said| !matches!(said.when, When::At(_)));
        let mut world = World::empty(Memory::default(), setting, self.now);
        let mut hosted = Hosted::new(root.graph.clone(), None);
        copied.iter().for_each(|event| hosted.names.learn(&event.kind));
        hosted.log = copied;
        hosted.run = run;
        world.runs.insert(FORK.into(), hosted);
        world.record(&FORK.into(), &step.events);
        let hosted = &world.runs[FORK];
        let monitor = Monitor::of(&hosted.run, &hosted.log);
        world.runs.get_mut(FORK).expect("it was just put in").monitor = monitor;
        for command in step.commands {
            world.perform(&FORK.into(), command);
        }
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
