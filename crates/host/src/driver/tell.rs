//! Messages to whoever works in a run. Who takes one is found when it comes: the run that was named, or the one live
//! run below it whose workflow awaits the event `tell`.

use wonder_core::def::Name;
use wonder_core::graph::NodeIx;
use wonder_core::{Input, Value};
use wonder_engine::run_tree::node_name;
use wonder_engine::{EngineError, Reply, TELL_EVENT, Tell, takes_event};

use super::{Driver, Turn};
use crate::embedded::Drive;

/// A live run, and the node that called it.
type Called = (String, Name);

impl Driver {
    pub(super) fn tell(&mut self, turn: &mut Turn, tell: &Tell, drive: Drive) -> Reply<Name> {
        let mut parts = tell.run.split('/');
        let mut run: Name = parts.next().unwrap_or_default().into();
        self.hosted(turn, &run)?;
        for node in parts {
            run = self.called_at(turn, &run, node)?;
        }
        let payload = tell.payload();
        self.refuse_secrets("the message", &payload)?;
        let mut takers = Vec::new();
        self.find_takers(turn, (String::new(), run.clone()), &mut takers)?;
        let taker = match takers.as_slice() {
            [] => return Err(EngineError::takes_no_message(&run)),
            [(_, taker)] => taker.clone(),
            _ => {
                let named = takers.into_iter().map(|(path, taker)| (path, taker.to_string())).collect();
                return Err(EngineError::several_take_messages(&run, named));
            }
        };
        let input = Input::EventArrived { name: TELL_EVENT.into(), key: Value::Null, payload, keep: true };
        self.tell_and_drive(turn, taker, input, drive)
    }

    /// The nearest live runs that take messages, each with the nodes that lead to it. Whoever is below one of them
    /// works for it.
    fn find_takers(&mut self, turn: &mut Turn, (path, run): Called, takers: &mut Vec<Called>) -> Reply<()> {
        self.hosted(turn, &run)?;
        let own = &self.runs[&run].run;
        if own.status().is_end() {
            return Ok(());
        }
        if takes_event(own.graph(), TELL_EVENT) {
            takers.push((path, run));
            return Ok(());
        }
        for (node, child) in self.live_children(&run) {
            let path = if path.is_empty() { node } else { format!("{path}/{node}") };
            self.find_takers(turn, (path, child), takers)?;
        }
        Ok(())
    }

    /// The one live run that a node of this one has called.
    fn called_at(&mut self, turn: &mut Turn, run: &Name, node: &str) -> Reply<Name> {
        self.hosted(turn, run)?;
        let live = self.live_children(run);
        let here: Vec<&Called> = live.iter().filter(|(name, _)| name == node).collect();
        match here.as_slice() {
            [(_, child)] => Ok(child.clone()),
            [] => {
                let nodes: Vec<String> = live.into_iter().map(|(name, _)| name).collect();
                Err(EngineError::nobody_called_at(run, node, &nodes))
            }
            several => {
                let named = several.iter().map(|(name, child)| (name.clone(), child.to_string())).collect();
                Err(EngineError::several_take_messages(run, named))
            }
        }
    }

    /// Those that a hosted run has called and not heard of since, with the nodes that called them.
    fn live_children(&self, run: &Name) -> Vec<Called> {
        let own = &self.runs[run].run;
        let node = |ix: u32| node_name(own.graph().written_ref(NodeIx(ix))).to_owned();
        let out = own.state().out.values();
        out.filter_map(|out| Some((node(out.node), out.child.clone()?))).collect()
    }
}
