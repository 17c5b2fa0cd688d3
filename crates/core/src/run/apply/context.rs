//! Writes. In the run's own scope they land in `state` and `output`; in a branch every one of them lands
//! in the branch's output, and shows through `state` there.

use crate::event::{BranchRef, Patch, PatchValue, TokenId};
use crate::path::{Root, Target, Way};
use crate::run::Run;
use crate::state::State;
use crate::value::{Map, Value};

impl Run {
    pub(super) fn context_updated(&mut self, token: TokenId, patches: &[Patch]) {
        let branch = self.state.tokens[&token].branch;
        self.patch(branch, patches, &Value::Null);
    }

    /// `result` is that of the event which holds the patches.
    pub(super) fn patch(&mut self, branch: Option<BranchRef>, patches: &[Patch], result: &Value) {
        for patch in patches {
            let value = match &patch.value {
                PatchValue::Value(value) => value.clone(),
                PatchValue::Result(path) => result.get_path(path).cloned().unwrap_or_default(),
            };
            match branch {
                None => write_run(&mut self.state, &patch.to, value),
                Some(at) => self.write_branch(at, &patch.to, value),
            }
        }
    }

    fn write_branch(&mut self, at: BranchRef, to: &Target, value: Value) {
        let Some((key, rest)) = to.path.split_first() else {
            let branch = self.branch_mut(at);
            branch.local = if value.as_map().is_some() { value.clone() } else { Value::from(Map::new()) };
            branch.output = Some(value);
            return;
        };
        // A write into the middle of something that lies outside shows the rest of it too.
        let shown = if rest.is_empty() && to.way == Way::Replace {
            value.clone()
        } else {
            let outside = crate::scope::View::of_run(&self.state, &self.graph).in_branch(Some(at));
            let mut shown =
                crate::expr::Scope::read(&outside, "state", std::slice::from_ref(key)).unwrap_or_default();
            to.add(shown.entry_mut(rest), value.clone());
            shown
        };
        let branch = self.branch_mut(at);
        branch.local.set_path(std::slice::from_ref(key), shown);
        // What is appended in a branch is the branch's own, until its fan-in appends it outside.
        to.add(branch.output.get_or_insert_with(Value::empty_map).entry_mut(&to.path), value);
    }
}

pub(super) fn write_run(state: &mut State, to: &Target, value: Value) {
    let whole = if to.root == Root::Output { &mut state.output } else { &mut state.state };
    let after = value.size() as u64;
    // What is appended adds to what is there, whose size would take as long to find out as it is large.
    let before = match to.way {
        Way::Replace => whole.get_path(&to.path).map_or(0, Value::size) as u64,
        Way::Append | Way::AppendEach => 0,
    };
    let added = to.add(whole.entry_mut(&to.path), value);
    assert!(added, "{to} was looked at before this was recorded");
    state.context_bytes = (state.context_bytes + after).saturating_sub(before);
}
