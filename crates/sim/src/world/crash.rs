//! The host dies between two steps: what it had in memory is gone, the logs are not. Every run is replayed
//! and performs what it is owed. Workers and people outlive it: tasks report when they would have, and
//! inputs from outside come when they would have.

use std::collections::BTreeMap;

use wonder_core::Run;
use wonder_core::def::Name;

use super::{QueueItem, World};

impl World {
    /// Dies and comes back. A replay that differs from what was in memory is a violation.
    pub fn crash(&mut self) {
        for (id, hosted) in &mut self.runs {
            match Run::replay(hosted.graph.clone(), &hosted.log) {
                Ok(run) => {
                    if let Some(difference) = difference(&run, &hosted.run) {
                        self.violations.push(format!("{id}: {difference}"));
                    }
                    hosted.run = run;
                }
                Err(error) => self.violations.push(format!("{id} cannot be replayed: {error}")),
            }
        }
        let queue = std::mem::take(&mut self.queue);
        // A pause and a resume under way together come to nothing, or to one of them: no order to compare.
        let mut messages: BTreeMap<Name, u32> = BTreeMap::new();
        for item in queue.values() {
            if let QueueItem::TellChild { child, .. } = item {
                *messages.entry(child.clone()).or_default() += 1;
            }
        }
        for (due, item) in queue {
            // A run that has ended is owed nothing; what it set going goes on without it.
            let survives = match &item {
                QueueItem::Outside { .. } => true,
                QueueItem::TellChild { child, .. } => {
                    messages[child] > 1 || parent_of(child).is_some_and(|parent| self.has_ended(parent))
                }
                QueueItem::Report { task, .. } => self.has_ended(&task.0),
                QueueItem::ChildReport { parent, .. } => self.has_ended(parent),
                QueueItem::StartChild { child, .. } => {
                    parent_of(child).is_some_and(|parent| self.has_ended(parent))
                }
            };
            if survives {
                self.queue.insert(due, item);
            } else if !matches!(item, QueueItem::Report { .. }) {
                self.lost.push((due, item));
            }
        }
        let ids: Vec<Name> = self.runs.keys().cloned().collect();
        for id in ids {
            for command in self.runs[&id].run.owed() {
                self.perform(&id, command);
            }
        }
        self.lost.clear();
    }

    fn has_ended(&self, id: &str) -> bool {
        self.runs.get(id).is_some_and(|hosted| hosted.run.status().is_end())
    }
}

/// A child's id is its parent's, the token and the attempt.
fn parent_of(child: &str) -> Option<&str> {
    child.rsplitn(3, '.').nth(2)
}

/// How a replayed run differs from the one that lived; nothing if it does not.
pub fn difference(replayed: &Run, live: &Run) -> Option<String> {
    let text =
        |run: &Run| serde_json::to_string_pretty(run.state()).unwrap_or_else(|error| error.to_string());
    if replayed.state() != live.state() || replayed.owed() != live.owed() {
        let shown =
            crate::diff::lines(&text(live), &text(replayed)).unwrap_or_else(|| "(what is owed)".to_owned());
        return Some(format!("replaying its log gives another state:\n{shown}"));
    }
    let (live, replayed) = (serde_json::to_vec(live.state()), serde_json::to_vec(replayed.state()));
    match (live, replayed) {
        (Ok(live), Ok(replayed)) if live == replayed => None,
        (Ok(_), Ok(_)) => Some("equal states have different bytes".to_owned()),
        (Err(error), _) | (_, Err(error)) => Some(format!("its state cannot be stored: {error}")),
    }
}
