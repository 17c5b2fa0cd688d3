//! Blocks of a graph: sequences, choices, loops, fan-outs with and without fan-in.

use super::{Draft, Hop, parts};

/// How deep fan-outs nest.
const DEPTH_MAX: u64 = 3;

/// A part of the graph: where it begins, and the transitions that still lead nowhere.
struct Block {
    entry: usize,
    exits: Vec<Exit>,
}

/// A node and which of its transitions.
type Exit = (usize, usize);

pub(super) fn fill(draft: &mut Draft, size: u64) {
    let block = sequence(draft, size, 0);
    let open_ended = block.exits.iter().all(|(node, _)| draft.nodes[*node].next.len() == 1);
    if open_ended && draft.rng.percent(15) {
        unjoined(draft, block.exits);
    } else if !open_ended || draft.rng.percent(50) {
        let last = parts::work(draft);
        connect(draft, &block.exits, last, &[]);
    }
}

fn connect(draft: &mut Draft, exits: &[Exit], to: usize, keys: &[String]) {
    for (node, hop) in exits {
        let hop = &mut draft.nodes[*node].next[*hop];
        hop.to = Some(to);
        hop.keys.extend_from_slice(keys);
    }
}

/// A node with one way out.
fn single(draft: &mut Draft, node: usize) -> Block {
    let exit = open(draft, node, Vec::new());
    Block { entry: node, exits: vec![exit] }
}

fn open(draft: &mut Draft, node: usize, keys: Vec<String>) -> Exit {
    let next = &mut draft.nodes[node].next;
    next.push(Hop { to: None, keys });
    (node, next.len() - 1)
}

fn lead(draft: &mut Draft, from: usize, to: usize, keys: Vec<String>) {
    draft.nodes[from].next.push(Hop { to: Some(to), keys });
}

fn sequence(draft: &mut Draft, size: u64, depth: u64) -> Block {
    let mut whole = block(draft, size, depth);
    let mut left = size.saturating_sub(1);
    while left > 0 && draft.rng.percent(75) {
        let next = block(draft, left, depth);
        connect(draft, &whole.exits, next.entry, &[]);
        whole.exits = next.exits;
        left -= 1;
    }
    whole
}

fn block(draft: &mut Draft, size: u64, depth: u64) -> Block {
    let simple = size <= 1;
    match draft.rng.below(if simple { 8 } else { 18 }) {
        0..=3 => {
            let node = parts::work(draft);
            guarded(draft, node)
        }
        4..=6 => {
            let node = parts::wait(draft);
            guarded(draft, node)
        }
        7 => {
            let node = parts::mutator(draft);
            single(draft, node)
        }
        8..=9 => choice(draft, size - 1, depth),
        10..=11 => repeated(draft, size - 1, depth),
        _ if depth < DEPTH_MAX => fanned(draft, size - 1, depth + 1),
        _ => {
            let node = parts::work(draft);
            single(draft, node)
        }
    }
}

/// A node, sometimes with a way out for failures.
fn guarded(draft: &mut Draft, node: usize) -> Block {
    let mut block = single(draft, node);
    match draft.rng.below(10) {
        0..=1 => {
            let handler = parts::work(draft);
            lead(draft, node, handler, vec!["on: failure".to_owned()]);
            block.exits.push(open(draft, handler, Vec::new()));
        }
        2 => draft.nodes[node].next[0].keys.push("on: any".to_owned()),
        _ => {}
    }
    block
}

fn choice(draft: &mut Draft, size: u64, depth: u64) -> Block {
    let node = parts::work(draft);
    let mut exits = Vec::new();
    let ways = draft.rng.between(1, 2);
    for _ in 0..ways {
        let mut keys = vec![format!("when: \"{}\"", parts::condition(draft))];
        if draft.rng.percent(20) {
            keys.push(format!("priority: {}", draft.rng.below(3)));
        }
        if draft.rng.percent(40) {
            exits.push(open(draft, node, keys));
        } else {
            let way = sequence(draft, size / 2, depth);
            lead(draft, node, way.entry, keys);
            exits.extend(way.exits);
        }
    }
    // Rarely without a default: then the run may fail as `no_transition`.
    if draft.rng.percent(96) {
        exits.push(open(draft, node, vec!["priority: 9".to_owned()]));
    }
    if exits.is_empty() {
        exits.push(open(draft, node, Vec::new()));
    }
    Block { entry: node, exits }
}

/// A block that may be gone through again.
fn repeated(draft: &mut Draft, size: u64, depth: u64) -> Block {
    let body = sequence(draft, size / 2, depth);
    let judge = parts::work(draft);
    connect(draft, &body.exits, judge, &[]);
    let times = draft.rng.between(1, 3);
    let mut keys = vec![format!("max_iterations: {times}")];
    if draft.rng.percent(60) {
        keys.push(format!("when: \"{}\"", parts::condition(draft)));
    }
    lead(draft, judge, body.entry, keys);
    if !draft.nodes[judge].keys.iter().any(|key| key.starts_with("on_error")) && draft.rng.percent(40) {
        let back = draft.reference(body.entry).to_owned();
        let rule = if draft.rng.percent(50) {
            format!("do: {{goto: {back}}}")
        } else {
            format!("do: loop_with_feedback, to: {back}")
        };
        draft.nodes[judge].keys.push(format!("on_error: [{{{rule}, max: 2}}]"));
    }
    let exit = open(draft, judge, Vec::new());
    Block { entry: body.entry, exits: vec![exit] }
}

/// A fan-out and its fan-in.
fn fanned(draft: &mut Draft, size: u64, depth: u64) -> Block {
    let node = parts::work(draft);
    let (mut exits, branches) = if draft.rng.percent(35) {
        all_ways(draft, node, size, depth)
    } else {
        spread(draft, node, size, depth)
    };
    // Sometimes one way through the branch ends without coming to the fan-in.
    let droppable = exits.iter().position(|(node, _)| draft.nodes[*node].next.len() == 1);
    if let Some(at) = droppable.filter(|_| exits.len() > 1 && draft.rng.percent(25)) {
        exits.remove(at);
    }
    let target = parts::work(draft);
    let keys = [format!("synchronization: {{{}}}", parts::synchronization(draft, branches, target))];
    connect(draft, &exits[..1], target, &keys);
    connect(draft, &exits[1..], target, &["synchronization: {}".to_owned()]);
    if draft.rng.percent(25) {
        let handler = parts::work(draft);
        lead(draft, node, handler, vec!["on: failure".to_owned()]);
        let mut block = single(draft, target);
        block.exits.push(open(draft, handler, Vec::new()));
        return Block { entry: node, exits: block.exits };
    }
    Block { entry: node, exits: single(draft, target).exits }
}

/// One group of one transition. Also how many branches it has, if that is known.
fn spread(draft: &mut Draft, node: usize, size: u64, depth: u64) -> (Vec<Exit>, Option<u64>) {
    let (keys, branches) = parts::spread(draft, node);
    let named = keys.iter().any(|key| key.contains(" as: "));
    if named {
        draft.items.push(format!("item_{node}"));
    }
    let body = sequence(draft, size / 2, depth);
    if named {
        draft.items.pop();
    }
    lead(draft, node, body.entry, keys);
    (body.exits, branches)
}

/// One group of the node, a branch for each transition that fits.
fn all_ways(draft: &mut Draft, node: usize, size: u64, depth: u64) -> (Vec<Exit>, Option<u64>) {
    draft.nodes[node].keys.push("fan_out: all".to_owned());
    let ways = draft.rng.between(2, 3);
    let mut exits = Vec::new();
    for way in 0..ways {
        let body = sequence(draft, size / 3, depth);
        let mut keys = Vec::new();
        if way > 0 && draft.rng.percent(30) {
            keys.push(format!("when: \"{}\"", parts::condition(draft)));
        }
        lead(draft, node, body.entry, keys);
        exits.extend(body.exits);
    }
    (exits, Some(ways))
}

/// A last fan-out that nothing joins.
fn unjoined(draft: &mut Draft, exits: Vec<Exit>) {
    let node = parts::work(draft);
    connect(draft, &exits, node, &[]);
    let (keys, _) = parts::spread(draft, node);
    let first = parts::work(draft);
    lead(draft, node, first, keys);
    if draft.rng.percent(50) {
        let second = parts::wait(draft);
        lead(draft, first, second, Vec::new());
    }
}
