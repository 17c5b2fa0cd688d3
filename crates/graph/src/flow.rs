//! In which groups a token can be at each node.
//!
//! A token's groups are a stack: a fan-out pushes its source, a fan-in pops down to and including its group.
//! Stacks are shared and named by number, a node keeps the set of those it can be reached with, and a source
//! that is pushed while it is on the stack (a loop that fans out again) falls back to where it was, so there
//! are finitely many. Sets and depth are bounded: beyond the bounds the analysis gives up politely and the
//! errors that would rest on it are not raised.

use std::collections::{BTreeMap, HashMap};

use super::shape::{Arrow, Shape};
use super::{NodeIx, Source, TransitionIx};
use wonder_lang::def::{FanOut, On};

/// Stacks one node is followed with. Real workflows have one or two.
const STACKS_PER_NODE_MAX: usize = 32;
/// Groups within groups that are followed.
pub(super) const DEPTH_MAX: u32 = 64;

/// The name of a stack. 0 is the empty one.
pub(super) type StackId = u32;

pub(super) const EMPTY: StackId = 0;

#[derive(Debug)]
struct Stack {
    below: StackId,
    top: Option<Source>,
    depth: u32,
}

#[derive(Debug)]
pub(super) struct Flow {
    stacks: Vec<Stack>,
    ids: HashMap<(StackId, Source), StackId>,
    /// The stacks each node can be reached with; one more at the end for "any node that fails".
    pub(super) at: Vec<Vec<StackId>>,
    /// For each transition that joins: the groups it can close, and whether that can lead out of all groups.
    pub(super) closes: BTreeMap<TransitionIx, BTreeMap<Source, bool>>,
    /// A set was full: there may be more stacks than are known.
    pub(super) gave_up: bool,
    /// The first transition that would nest too deeply.
    pub(super) too_deep: Option<NodeIx>,
}

impl Flow {
    pub(super) fn of(shape: &Shape<'_>, starts: &[NodeIx]) -> Flow {
        let mut flow = Flow {
            stacks: vec![Stack { below: EMPTY, top: None, depth: 0 }],
            ids: HashMap::new(),
            at: vec![Vec::new(); shape.slots.len() + 1],
            closes: BTreeMap::new(),
            gave_up: false,
            too_deep: None,
        };
        let mut todo = Vec::new();
        for start in starts {
            flow.visit(start.0 as usize, EMPTY, &mut todo);
        }
        while let Some((at, stack)) = todo.pop() {
            if at == shape.slots.len() {
                shape.jumps_of_all.iter().for_each(|to| flow.visit(to.0 as usize, stack, &mut todo));
                continue;
            }
            for ix in &shape.out[at] {
                flow.follow(shape, *ix, stack, &mut todo);
            }
            shape.jumps[at].iter().for_each(|to| flow.visit(to.0 as usize, stack, &mut todo));
            if let Some(behind) = shape.slots[at].behind {
                flow.visit(behind.0 as usize, stack, &mut todo);
            }
            if !shape.jumps_of_all.is_empty() {
                flow.visit(shape.slots.len(), stack, &mut todo);
            }
        }
        flow
    }

    /// The transitions that can close each group.
    pub(super) fn closers(&self) -> BTreeMap<Source, Vec<TransitionIx>> {
        let mut closers: BTreeMap<Source, Vec<TransitionIx>> = BTreeMap::new();
        for (ix, groups) in &self.closes {
            groups.keys().for_each(|source| closers.entry(*source).or_default().push(*ix));
        }
        closers
    }

    /// Whether a token can be here in a branch, as far as is known.
    pub(super) fn in_branch(&self, node: usize) -> bool {
        self.gave_up || self.at[node].is_empty() || self.at[node].iter().any(|stack| *stack != EMPTY)
    }

    /// Whether a token can be here outside all branches.
    pub(super) fn outside(&self, node: usize) -> bool {
        self.at[node].contains(&EMPTY)
    }

    /// Folds a fact about each node into the groups it lies in, those of groups within included.
    pub(super) fn by_group<T: Clone + Default>(
        &self,
        fact: &dyn Fn(usize) -> T,
        fold: &dyn Fn(&mut T, &T),
    ) -> BTreeMap<Source, T> {
        let mut of_stack = vec![T::default(); self.stacks.len()];
        for (node, stacks) in self.at.iter().enumerate().take(self.at.len() - 1) {
            let inside = stacks.iter().filter(|stack| **stack != EMPTY);
            let mut known = None;
            for stack in inside {
                fold(&mut of_stack[*stack as usize], known.get_or_insert_with(|| fact(node)));
            }
        }
        // A stack is named after the one below it, so going down meets every inner one first.
        let mut of_group = BTreeMap::new();
        for id in (1..self.stacks.len()).rev() {
            let Stack { below, top, .. } = &self.stacks[id];
            let inner = of_stack[id].clone();
            fold(&mut of_stack[*below as usize], &inner);
            if let Some(source) = top {
                fold(of_group.entry(*source).or_default(), &inner);
            }
        }
        of_group
    }

    fn visit(&mut self, node: usize, stack: StackId, todo: &mut Vec<(usize, StackId)>) {
        let known = &mut self.at[node];
        if known.contains(&stack) {
            return;
        }
        if known.len() >= STACKS_PER_NODE_MAX {
            self.gave_up = true;
            return;
        }
        known.push(stack);
        todo.push((node, stack));
    }

    /// Takes one transition with one stack. A failed fan-in is a failure of the node that fanned out, one
    /// level out, so a failure leaves without the node's own group.
    fn follow(
        &mut self,
        shape: &Shape<'_>,
        ix: TransitionIx,
        stack: StackId,
        todo: &mut Vec<(usize, StackId)>,
    ) {
        let arrow = &shape.arrows[ix.0 as usize];
        let all = shape.node_of(arrow.from).def.is_some_and(|def| def.fan_out == FanOut::All);
        if all && arrow.on() != On::Failure {
            let inner = self.push(stack, Source::Node(arrow.from), arrow.from);
            self.take(arrow, ix, inner, todo);
        }
        if !all || arrow.on() != On::Success {
            self.take(arrow, ix, stack, todo);
        }
    }

    fn take(
        &mut self,
        arrow: &Arrow<'_>,
        ix: TransitionIx,
        stack: StackId,
        todo: &mut Vec<(usize, StackId)>,
    ) {
        let mut stack = stack;
        if arrow.spreads() {
            stack = self.push(stack, Source::Transition(ix), arrow.from);
        }
        if arrow.joins() {
            let Some((source, below)) = self.pop(stack, arrow.group) else { return };
            *self.closes.entry(ix).or_default().entry(source).or_default() |= below == EMPTY;
            stack = below;
        }
        self.visit(arrow.to.0 as usize, stack, todo);
    }

    fn push(&mut self, stack: StackId, source: Source, node: NodeIx) -> StackId {
        let mut at = stack;
        while at != EMPTY {
            let Stack { below, top, .. } = &self.stacks[at as usize];
            if *top == Some(source) {
                return at;
            }
            at = *below;
        }
        let depth = self.stacks[stack as usize].depth + 1;
        if depth > DEPTH_MAX {
            self.too_deep.get_or_insert(node);
            return stack;
        }
        let next = self.stacks.len() as StackId;
        let id = *self.ids.entry((stack, source)).or_insert(next);
        if id == next {
            self.stacks.push(Stack { below: stack, top: Some(source), depth });
        }
        id
    }

    /// Pops down to and including a group: the one named, or the innermost.
    fn pop(&self, stack: StackId, group: Option<Source>) -> Option<(Source, StackId)> {
        let mut at = stack;
        while at != EMPTY {
            let Stack { below, top, .. } = &self.stacks[at as usize];
            match top {
                Some(top) if group.is_none_or(|group| group == *top) => return Some((*top, *below)),
                _ => at = *below,
            }
        }
        None
    }
}

#[cfg(test)]
impl Flow {
    /// The groups of each stack of a node, outermost first.
    pub(super) fn stacks_of(&self, node: usize) -> Vec<Vec<Source>> {
        let unfold = |stack: &StackId| {
            let (mut at, mut sources) = (*stack, Vec::new());
            while let Stack { below, top: Some(top), .. } = &self.stacks[at as usize] {
                sources.push(*top);
                at = *below;
            }
            sources.reverse();
            sources
        };
        let mut stacks: Vec<Vec<Source>> = self.at[node].iter().map(unfold).collect();
        stacks.sort();
        stacks
    }
}
