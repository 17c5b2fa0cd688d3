//! Plain graph theory over indices: a visit of every place, which links lead back, which places lead to each
//! other.

use std::collections::BTreeSet;

/// A visit of every place from a first one, deep before wide.
#[derive(Debug)]
pub(super) struct Walk {
    /// Places in the order they were left: what follows a place comes before it, links that lead back cut.
    pub(super) order: Vec<usize>,
    /// Links that lead back to where the walk still was.
    pub(super) back: BTreeSet<(usize, usize)>,
    /// Places that can be reached from each other, so that whatever follows them comes before them.
    pub(super) components: Vec<Vec<usize>>,
    pub(super) component_of: Vec<usize>,
}

impl Walk {
    /// With a stack of its own: a chain of 100 000 places must not be one of calls.
    pub(super) fn of(first: usize, next: &[Vec<usize>]) -> Walk {
        let len = next.len();
        let (mut order, mut back) = (Vec::with_capacity(len), BTreeSet::new());
        let (mut seen, mut open) = (vec![false; len], vec![false; len]);
        for start in std::iter::once(first).chain(0..len).filter(|start| *start < len) {
            if seen[start] {
                continue;
            }
            (seen[start], open[start]) = (true, true);
            let mut stack = vec![(start, next[start].iter())];
            while let Some((at, left)) = stack.last_mut() {
                match left.next() {
                    Some(to) if open[*to] => _ = back.insert((*at, *to)),
                    Some(to) if seen[*to] => {}
                    Some(to) => {
                        (seen[*to], open[*to]) = (true, true);
                        stack.push((*to, next[*to].iter()));
                    }
                    None => {
                        open[*at] = false;
                        order.push(*at);
                        stack.pop();
                    }
                }
            }
        }
        let components = components(&order, next);
        let mut component_of = vec![0; len];
        for (number, members) in components.iter().enumerate() {
            members.iter().for_each(|at| component_of[*at] = number);
        }
        Walk { order, back, components, component_of }
    }

    /// The longest distance from a first place, links that lead back cut.
    pub(super) fn distances(&self, next: &[Vec<usize>]) -> Vec<u32> {
        let mut distances = vec![0; next.len()];
        for at in self.order.iter().rev() {
            for to in next[*at].iter().filter(|to| !self.back.contains(&(*at, **to))) {
                distances[*to] = distances[*to].max(distances[*at] + 1);
            }
        }
        distances
    }
}

/// Kosaraju: in the reverse order of leaving, whoever leads to a place that is not taken yet is with it.
fn components(order: &[usize], next: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut before = vec![Vec::new(); next.len()];
    for (at, to) in next.iter().enumerate() {
        to.iter().for_each(|to| before[*to].push(at));
    }
    let (mut found, mut seen) = (Vec::new(), vec![false; next.len()]);
    for start in order.iter().rev() {
        if std::mem::replace(&mut seen[*start], true) {
            continue;
        }
        let (mut members, mut at) = (vec![*start], 0);
        while at < members.len() {
            for from in &before[members[at]] {
                if !std::mem::replace(&mut seen[*from], true) {
                    members.push(*from);
                }
            }
            at += 1;
        }
        members.sort_unstable();
        found.push(members);
    }
    found.reverse();
    found
}
