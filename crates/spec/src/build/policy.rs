//! Retries, responses to failures, budgets, fan-outs and fan-ins.

use wonder_core::def::{
    Backoff, Budget, Change, Concurrency, Estimate, Foreach, Merge, Response, Retry, Rule, Strategy,
    Synchronization, Text, TransitionDef,
};

use super::{Build, DocumentKind, one_or_list, word};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::scalar::permille;
use crate::tree::{Data, Entry, Node};

/// Keys of a rule that belong to one response only.
const PARTS: [(&str, &[&str]); 4] = [
    ("to", &["loop_with_feedback", "goto"]),
    ("output", &["skip"]),
    ("append", &["stricter_prompt"]),
    ("task", &["add_validator"]),
];

impl Build {
    pub(super) fn retry(&self, map: &Node<'_>, key: &str) -> Option<Retry> {
        let node = map.get(key)?;
        let (max_attempts, backoff) = match node.data {
            Data::Int(number) => (u32::try_from(number).ok(), Backoff::default()),
            _ => (self.positive(node, "max_attempts"), self.backoff(node).unwrap_or_default()),
        };
        Some(Retry { max_attempts: max_attempts.filter(|tries| *tries > 0)?, backoff })
    }

    /// None if nothing is written about it.
    fn backoff(&self, map: &Node<'_>) -> Option<Backoff> {
        let kind = self.word(map, "backoff");
        let (initial, max) = (self.duration(map, "initial_delay"), self.duration(map, "max_delay"));
        if kind.is_none() && initial.is_none() && max.is_none() {
            return None;
        }
        Some(Backoff {
            kind: kind.unwrap_or_default(),
            initial_delay_ms: initial.unwrap_or_else(Backoff::default_initial_delay_ms),
            max_delay_ms: max.unwrap_or_else(Backoff::default_max_delay_ms),
        })
    }

    pub(super) fn budget(&self, map: &Node<'_>) -> Option<Budget> {
        let node = map.get("budget")?;
        let warn_at = node.get("warn_at").map(|share| share.span.of(&self.source.text));
        let warn_at = warn_at.and_then(|text| u32::try_from(permille(text).ok()?).ok());
        let budget = Budget {
            usd_micros: self.money(node, "usd"),
            tokens: self.count(node, "tokens"),
            calls: self.count(node, "calls"),
            wall_ms: self.duration(node, "wall"),
            warn_at_permille: warn_at.unwrap_or_else(Budget::default_warn_at_permille),
            on_exceeded: self.word(node, "on_exceeded").unwrap_or_default(),
        };
        let bounded = budget.usd_micros.is_some() || budget.tokens.is_some() || budget.calls.is_some();
        (bounded || budget.wall_ms.is_some()).then_some(budget)
    }

    pub(super) fn estimate(&self, map: &Node<'_>) -> Option<Estimate> {
        let node = map.get("estimate")?;
        Some(Estimate { usd_micros: self.money(node, "usd"), duration_ms: self.duration(node, "duration") })
    }

    pub(super) fn concurrency(&mut self, map: &Node<'_>) -> Option<Concurrency> {
        let node = map.get("concurrency")?;
        Some(Concurrency {
            limit: self.positive(node, "limit")?,
            key: self.text(node, "key"),
            hold_while_waiting: self.flag(node, "hold_while_waiting"),
        })
    }

    pub(super) fn strategy(&self, map: &Node<'_>, key: &str) -> Option<Strategy> {
        let node = map.get(key)?;
        match node.text() {
            Some(text) => word(text),
            None => self.positive(node, "m_of_n").map(Strategy::MOfN),
        }
    }

    pub(super) fn foreach(&mut self, map: &Node<'_>) -> Option<Foreach> {
        let node = map.get("foreach")?;
        self.item_names.extend(self.name(node, "as"));
        Some(Foreach {
            items: self.text(node, "items")?,
            item_name: self.text(node, "as"),
            max_parallel: self.positive(node, "max_parallel"),
            on_branch_failure: self.word(node, "on_branch_failure").unwrap_or_default(),
            keep_failed: self.flag(node, "keep_failed"),
        })
    }

    /// None if it leads nowhere, which has been reported.
    pub(super) fn transition(&mut self, node: &Node<'_>, from: Text) -> Option<TransitionDef> {
        if matches!(node.data, Data::Text(_)) {
            let to = self.text_of(node)?;
            return Some(TransitionDef { from, spot: to.spot, to, ..TransitionDef::default() });
        }
        let to = self.text(node, "to")?;
        Some(TransitionDef {
            id: self.name(node, "id"),
            reference: self.text(node, "ref"),
            from,
            spot: to.spot,
            to,
            priority: self.count(node, "priority"),
            on: self.word(node, "on").unwrap_or_default(),
            condition: self.text(node, "when").or_else(|| self.text(node, "condition")),
            spawn_count: self.positive(node, "spawn_count"),
            foreach: self.foreach(node),
            max_iterations: self.bound(node, "max_iterations"),
            synchronization: self.synchronization(node),
        })
    }

    fn synchronization(&mut self, map: &Node<'_>) -> Option<Synchronization> {
        let entry = map.entry("synchronization")?;
        let node = &entry.value;
        let spot = self.spots.add(entry.key_span);
        if let Some(strategy) = node.get("strategy") {
            self.strategies.insert(spot, strategy.span);
        }
        Some(Synchronization {
            strategy: self.strategy(node, "strategy"),
            sibling_group: self.text(node, "sibling_group"),
            timeout_ms: self.duration(node, "timeout"),
            on_timeout: self.word(node, "on_timeout"),
            on_early_complete: self.word(node, "on_early_complete"),
            on_branch_failure: self.word(node, "on_branch_failure"),
            merge: self.merge(node),
            spot,
        })
    }

    fn merge(&mut self, map: &Node<'_>) -> Option<Merge> {
        let node = map.get("merge")?;
        Some(Merge {
            source: self.text(node, "source"),
            target: self.text(node, "target")?,
            strategy: self.word(node, "strategy").unwrap_or_default(),
            keep_failed: self.flag(node, "keep_failed"),
        })
    }

    pub(super) fn rules(&mut self, map: &Node<'_>) -> Vec<Rule> {
        let Some(node) = map.get("on_error") else { return Vec::new() };
        one_or_list(node).iter().filter_map(|rule| self.rule(rule)).collect()
    }

    fn rule(&mut self, node: &Node<'_>) -> Option<Rule> {
        let entry = node.entry("do")?;
        let response = self.response(node, entry)?;
        Some(Rule {
            when: self.text(node, "when"),
            response,
            max: self.positive(node, "max"),
            backoff: self.backoff(node),
            spot: self.spot_of(entry),
        })
    }

    fn response(&mut self, rule: &Node<'_>, entry: &Entry<'_>) -> Option<Response> {
        let (name, inside) = match entry.value.text() {
            Some(text) => (text, rule),
            None => {
                let only = entry.value.entries().first()?;
                (only.key.as_ref(), &only.value)
            }
        };
        self.stray_parts(rule, entry, name);
        Some(match name {
            "retry" => Response::Retry,
            "switch_model" => Response::SwitchModel,
            "stricter_prompt" => Response::StricterPrompt { append: self.name(inside, "append") },
            "change" => Response::Change(self.change(inside, entry)?),
            "loop_with_feedback" => Response::LoopWithFeedback { to: self.text(inside, "to") },
            "add_validator" => Response::AddValidator { task: self.validator(inside, entry)? },
            "add_review" => Response::AddReview,
            "downgrade_model" => Response::DowngradeModel,
            "pause" => Response::Pause,
            "goto" => Response::Goto(self.goto(inside, entry)?),
            "skip" => Response::Skip { output: inside.get("output").map(Node::value) },
            "escalate" => Response::Escalate,
            "fail" => Response::Fail,
            _ => return None,
        })
    }

    fn change(&mut self, node: &Node<'_>, entry: &Entry<'_>) -> Option<Change> {
        if entry.value.text().is_some() {
            self.needs_more(entry, "change", "do: {change: {model: strong}}");
            return None;
        }
        Some(Change {
            model: self.text(node, "model"),
            system: self.text(node, "system"),
            tools: node.get("tools").map(|_| self.names_at(DocumentKind::Action, node, "tools")),
            input: self.mapping(node, "input"),
        })
    }

    fn validator(&mut self, node: &Node<'_>, entry: &Entry<'_>) -> Option<Text> {
        if let Some(task) = node.get("task").or_else(|| node.text().map(|_| node)) {
            return self.name_at(DocumentKind::Task, task).map(|(task, _)| task);
        }
        if entry.value.text().is_some() {
            self.needs_more(entry, "add_validator", "{do: add_validator, task: check}");
        }
        None
    }

    fn goto(&mut self, node: &Node<'_>, entry: &Entry<'_>) -> Option<Text> {
        if entry.value.text().is_none() {
            return self.text_of(node);
        }
        let to = self.text(node, "to");
        if to.is_none() {
            self.needs_more(entry, "goto", "do: {goto: node}");
        }
        to
    }

    fn needs_more(&mut self, entry: &Entry<'_>, response: &str, example: &str) {
        let message = format!("`{response}` needs more than its name");
        self.problems.push(
            Diagnostic::error(codes::RESPONSE, entry.value.span, message)
                .label("not complete")
                .help(format!("write `{example}`")),
        );
    }

    /// Keys beside `do` that its response does not read.
    fn stray_parts(&mut self, rule: &Node<'_>, entry: &Entry<'_>, response: &str) {
        for (part, of) in PARTS {
            let Some(stray) = rule.entry(part) else { continue };
            if !of.contains(&response) || entry.value.text().is_none() {
                let message = format!("`{response}` reads no `{part}` here");
                let help = match of.contains(&response) {
                    true => format!("write it inside: `do: {{{response}: {{{part}: ...}}}}`"),
                    false => format!("`{part}` belongs to `{}`", of[0]),
                };
                self.problems.push(
                    Diagnostic::error(codes::RESPONSE, stray.key_span, message)
                        .label("not read")
                        .also(entry.value.span, "the response is here")
                        .help(help),
                );
            }
        }
    }
}
