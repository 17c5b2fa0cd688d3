//! Dags: every node needs some of those before it.

use super::{Draft, parts};

pub(super) fn fill(draft: &mut Draft, size: u64) {
    for at in 0..size as usize {
        let node = if draft.rng.percent(75) { parts::work(draft) } else { parts::wait(draft) };
        let needs = needs(draft, at);
        let mut keys = Vec::new();
        if !needs.is_empty() || at + 1 == size as usize {
            keys.push(format!("needs: [{}]", needs.join(", ")));
        }
        if needs.len() > 1 {
            match draft.rng.below(4) {
                0 => keys.push("join: any".to_owned()),
                1 => keys.push(format!("join: {{m_of_n: {}}}", draft.rng.between(1, needs.len() as u64))),
                _ => {}
            }
        }
        if draft.rng.percent(25) {
            keys.push(format!("when: \"{}\"", parts::dag_condition(draft, needs.first())));
        }
        if draft.rng.percent(25) {
            keys.push(foreach(draft, needs.first()));
        }
        if draft.rng.percent(30) {
            keys.push(format!(
                "estimate: {{duration: {}s, usd: 0.0{}}}",
                draft.rng.between(1, 9),
                draft.rng.below(5)
            ));
        }
        draft.nodes[node].keys.extend(keys);
    }
    // What makes it a dag, should nobody have needed anybody.
    if !draft.nodes.iter().any(|node| node.keys.iter().any(|key| key.starts_with("needs: [n"))) {
        let last = draft.nodes.len() - 1;
        draft.nodes[last].keys.retain(|key| !key.starts_with("needs:"));
        draft.nodes[last].keys.push("needs: [n0]".to_owned());
    }
}

fn needs(draft: &mut Draft, at: usize) -> Vec<String> {
    if at == 0 {
        return Vec::new();
    }
    let count = draft.rng.below(4).min(at as u64);
    let mut needs: Vec<usize> = (0..count).map(|_| draft.rng.below(at as u64) as usize).collect();
    needs.sort_unstable();
    needs.dedup();
    needs.into_iter().map(|need| format!("n{need}")).collect()
}

fn foreach(draft: &mut Draft, need: Option<&String>) -> String {
    let items = match need {
        Some(need) if draft.rng.percent(40) => format!("get(needs.{need}, 'items', [1, 2])"),
        _ => parts::literal_items(draft),
    };
    let mut keys = format!("items: \"{items}\"");
    if draft.rng.percent(40) {
        keys += &format!(", max_parallel: {}", draft.rng.between(1, 2));
    }
    if draft.rng.percent(40) {
        keys += ", on_branch_failure: continue";
        if draft.rng.percent(50) {
            keys += ", keep_failed: true";
        }
    }
    format!("foreach: {{{keys}}}")
}
