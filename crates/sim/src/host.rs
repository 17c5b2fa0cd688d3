//! What a [`World`](crate::world::World) needs of a host, so that the same scenarios run on every host: the
//! world has the clock, the script and everybody outside; the host has the runs.
//!
//! [`Memory`] is the simulator's own. Others are adapted in `tests/conformance`.

use wonder_core::Run;
use wonder_core::command::Command;
use wonder_core::def::Name;
use wonder_core::event::Event;
use wonder_core::input::Input;
use wonder_core::run::Fork;
use wonder_core::time::Time;

use crate::monitor::Monitor;
use crate::world::{Hosted, Runs, Setting, TaskKey};

/// A host on virtual time, without workers: what tasks report is handed in.
pub trait ScenarioHost {
    /// Hands one input to one run. Whatever follows from it by the host's own doing has happened when this
    /// returns, and `runs` shows it; what somebody else has to do is given back as commands.
    ///
    /// [`Input::Wake`] lets the deadlines of this moment fire: a host may wake every run that has one, each in
    /// the order of deadlines and ids, with messages between runs delivered before the next.
    fn handle(&mut self, runs: &mut Runs, given: HostInput<'_>) -> Result<Handled, String>;

    /// Makes a run from the events of another and puts it into `runs`.
    fn fork(&mut self, source: &Hosted, runs: &mut Runs, request: ForkRequest<'_>)
    -> Result<Handled, String>;

    /// Nothing will be heard of a task any more. A host that waits for its report waits for nothing.
    fn lose(&mut self, runs: &mut Runs, task: LostTask<'_>) -> Result<Handled, String> {
        let _ = (runs, task);
        Ok(Handled::default())
    }

    /// What went wrong with the host itself since this was last asked.
    fn violations(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// One input to one run, with the time on it.
#[derive(Debug)]
pub struct HostInput<'a> {
    pub setting: &'a Setting,
    pub run: &'a Name,
    pub input: Input,
    pub now: Time,
}

/// A run to be made from another's events.
#[derive(Debug)]
pub struct ForkRequest<'a> {
    pub setting: &'a Setting,
    pub fork: &'a Fork,
    pub now: Time,
}

/// A task of which nothing will be heard.
#[derive(Debug)]
pub struct LostTask<'a> {
    pub setting: &'a Setting,
    pub task: &'a TaskKey,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Handled {
    /// What runs recorded, each in order.
    pub steps: Vec<(Name, Vec<Event>)>,
    /// What is left to do, in the order it was asked for. A host that starts and tells child runs by itself
    /// leaves only tasks.
    pub commands: Vec<(Name, Command)>,
}

/// The simulator's host: runs in memory. It delivers nothing between runs; the world does that, so that it
/// can lose, repeat and reorder such messages.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    violations: Vec<String>,
}

impl ScenarioHost for Memory {
    fn handle(&mut self, runs: &mut Runs, given: HostInput<'_>) -> Result<Handled, String> {
        let HostInput { run: id, input, now, .. } = given;
        let Some(hosted) = runs.get_mut(id) else { return Err("there is no such run".to_owned()) };
        let (answer, found) = match hosted.run.handle(input.clone(), now) {
            Ok(step) => {
                let found = hosted.monitor.after(&hosted.run, &input, &step, now);
                let commands = step.commands.into_iter().map(|command| (id.clone(), command)).collect();
                (Ok(Handled { steps: vec![(id.clone(), step.events)], commands }), found)
            }
            Err(rejection) => {
                let found = hosted.monitor.refused(&hosted.run, &input, &rejection);
                (Err(rejection.to_string()), found)
            }
        };
        self.violations.extend(found);
        answer
    }

    fn fork(
        &mut self,
        source: &Hosted,
        runs: &mut Runs,
        request: ForkRequest<'_>,
    ) -> Result<Handled, String> {
        let ForkRequest { fork, now, .. } = request;
        let forked = Run::fork(source.graph.clone(), &source.log, fork, now);
        let (run, copied, step) = forked.map_err(|rejection| rejection.to_string())?;
        let mut hosted = Hosted::new(source.graph.clone(), None);
        let events: Vec<Event> = copied.into_iter().chain(step.events).collect();
        hosted.monitor = Monitor::of(&run, &events);
        hosted.run = run;
        runs.insert(fork.run.clone(), hosted);
        let commands = step.commands.into_iter().map(|command| (fork.run.clone(), command)).collect();
        Ok(Handled { steps: vec![(fork.run.clone(), events)], commands })
    }

    fn violations(&mut self) -> Vec<String> {
        std::mem::take(&mut self.violations)
    }
}
