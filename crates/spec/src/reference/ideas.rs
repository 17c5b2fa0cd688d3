//! Topics that are no single word of a file: what the words have in common. They explain and point; the facts are
//! where the words are.

use super::examples::EXAMPLES;
use super::{Group, Sample, Topic};

/// A name, what is to be said, and the example that shows it.
#[rustfmt::skip]
const IDEAS: [(&str, &str, &str); 11] = [
    ("expression",
     "CEL, after `when`, `that`, `items`, `key` and in mappings: `state.score >= 7 && has(input.draft)`. It combines with `&&`, `||` and \
      `!`, chooses with `x ? a : b`, and looks into lists with `x in list`. A text inside an expression has quotes of its own: \
      `\"'a text'\"`. Whole numbers and doubles do not mix in arithmetic: `double(x)`. What is absent is an error: ask \
      `has(a.b)` or `get(a, 'b', 0)` first. The roots and functions that there are have pages of their own.",
     "update_context"),
    ("template",
     "A text with `{{ … }}` in it: commands, URLs, bodies, titles, prompts. Between the braces stands a path, perhaps with \
      filters: `{{ state.names | join(', ') }}`; `{% if %}` and `{% for %}` work as well. A template sees the keys of the \
      action's `input_mapping`, or without one the same roots as an expression. What is absent is an error: `{{ x | \
      default('none') }}`. In a command a value stays one word, whatever is in it; in a URL it is percent-encoded.",
     "shell"),
    ("mapping",
     "In `input_mapping` and `output_mapping` a text is an expression, a number, a boolean or null is itself, and a map or \
      list is mapped inside. The keys of an `output_mapping` and of `set` are where the values go: `state.x`, `output.x`, or bare `x`, \
      which is `state.x`. Without an `output_mapping` a node writes `state.<ref>: result`.",
     "node"),
    ("duration",
     "A number with its unit, from long to short: `200ms`, `30s`, `5m`, `1h30m`, `2d`. A bare number is refused; every such key \
      also exists with `_ms` behind it and takes milliseconds.",
     "timeouts"),
    ("loop",
     "A transition that leads back. `max_iterations` bounds how often it is taken; put a way out before or behind it. For \
      \"again, with what was wrong\" there is the response `loop_with_feedback`.",
     "next"),
    ("fan-out",
     "Several tokens from one: `foreach` or `spawn_count` on a transition, `fan_out: all` on a node, `foreach` on a node of a \
      dag. What each does until the fan-in is its branch, and what it writes stays in it.",
     "foreach"),
    ("fan-in",
     "Where the branches of a fan-out come together: the transition into that node has `synchronization`, which says how \
      many are waited for and what is kept of them (`merge`). After it there is one token again.",
     "fan_out"),
    ("parallel",
     "In a graph: a fan-out. In a dag: everything whose `needs` have ended. `max_parallel` bounds it for a workflow or a \
      `foreach`, the setting `max_parallel_tasks` for the machine.",
     "dag"),
    ("attempt",
     "One try of a node's task. Attempts are counted from 1, the first included: `max_attempts: 3` is three in all. `max` \
      of a rule in `on_error` counts what comes on top of that. Tries of an action on network trouble (`retry_policy`) are \
      inside an attempt.",
     "retry"),
    ("failure",
     "What happens when a node fails, in this order: the action's own tries, the task's `retry`, the node's `on_error`, the \
      workflow's `on_error`, a default by the kind of failure, a transition with `on: failure`, the fan-in it is in, and last the run \
      fails. The kinds have pages of their own.",
     "on_error"),
    ("deadline",
     "A timeout, a reminder, the end of a sleep. It acts on time while a process carries the run on. Without one, a gate's or a \
      workflow's timeout acts when the next command opens the runs, and what follows from it waits for `wonder resume`.",
     "human_gate"),
];

pub(super) fn topics() -> impl Iterator<Item = Topic> {
    IDEAS.iter().map(|(name, about, example)| Topic {
        sample: EXAMPLES.iter().find(|known| known.name == *example).map_or(Sample::None, Sample::File),
        ..Topic::new(Group::Idea, name, *about)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_idea_has_its_example() {
        for topic in topics() {
            assert!(matches!(topic.sample, Sample::File(_)), "{}", topic.name);
        }
    }
}
