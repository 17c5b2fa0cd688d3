//! Rewriting what a file of cases expects, and nothing else of it: values are replaced where they stand, as deep down
//! as they differ, so that comments, order and quoting around them stay.

use wonder_core::value::Value;

use crate::expand::scalar;
use crate::place::Span;
use crate::tree::{self, Data, Node};

/// One expectation of one case, and what it is to be.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The case, from 0.
    pub case: usize,
    /// The key under `expect`.
    pub key: &'static str,
    pub value: Value,
}

/// The text with these expectations in it; None if it cannot be read.
pub fn rewritten(text: &str, edits: &[Edit]) -> Option<String> {
    let prepared = tree::prepare(text);
    let forest = tree::parse(text, &prepared);
    let document = forest.documents.iter().find(|node| !matches!(node.data, Data::Null))?;
    let cases = document.get("cases")?.items();
    let mut places: Vec<(Span, String)> = Vec::new();
    for (at, case) in cases.iter().enumerate() {
        let own: Vec<&Edit> = edits.iter().filter(|edit| edit.case == at).collect();
        expectations(text, case, &own, &mut places);
    }
    // From the last to the first: what stands before keeps its place.
    places.sort_by_key(|(span, _)| std::cmp::Reverse(*span));
    let mut text = text.to_owned();
    for (span, new) in places {
        text.replace_range(span.start as usize..span.end as usize, &new);
    }
    Some(text)
}

fn expectations(text: &str, case: &Node<'_>, edits: &[&Edit], places: &mut Vec<(Span, String)>) {
    let mut missing = Vec::new();
    let expect = case.get("expect").filter(|expect| !expect.entries().is_empty());
    for edit in edits {
        match expect.and_then(|expect| expect.get(edit.key)) {
            Some(node) => replace(node, &edit.value, places),
            None => missing.push(format!("{}: {}", edit.key, flow(&edit.value))),
        }
    }
    if missing.is_empty() {
        return;
    }
    let first = |node: &Node<'_>| node.entries().first().map(|entry| entry.key_span.start as usize);
    match (expect.and_then(first), first(case)) {
        // Before the first of them, as deep as it stands or beside it in braces.
        (Some(start), _) => places.push(inserted(text, start, &missing)),
        (None, Some(start)) => {
            let block = format!("expect: {{{}}}", missing.join(", "));
            match case.entry("expect") {
                Some(entry) => {
                    let span = Span {
                        start: entry.key_span.start,
                        end: entry.value.span.end.max(entry.key_span.end + 1),
                    };
                    places.push((span, block));
                }
                None => places.push(behind_name(text, case, start, block)),
            }
        }
        (None, None) => {}
    }
}

/// New keys before the key that stands at `start`.
fn inserted(text: &str, start: usize, keys: &[String]) -> (Span, String) {
    let line = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let before = &text[line..start];
    let is_block = before.chars().all(|c| c == ' ' || c == '-');
    let separator =
        if is_block { format!("\n{}", " ".repeat(before.chars().count())) } else { ", ".to_owned() };
    (Span::new(start, start), keys.iter().map(|key| format!("{key}{separator}")).collect())
}

/// A new key in a case, behind its name if it has one.
fn behind_name(text: &str, case: &Node<'_>, start: usize, block: String) -> (Span, String) {
    let column = start - text[..start].rfind('\n').map_or(0, |at| at + 1);
    let name = case.entry("name").map_or(start, |entry| entry.value.span.end as usize);
    let is_block = text[case.span.start as usize..].starts_with(|c| c != '{');
    match is_block {
        true => {
            // Behind whatever else stands in the line, a comment too.
            let end = text[name..].find('\n').map_or(text.len(), |at| name + at);
            (Span::new(end, end), format!("\n{}{block}", " ".repeat(column)))
        }
        false => (Span::new(name, name), format!(", {block}")),
    }
}

/// Replaces what differs, as deep down as the two are alike.
fn replace(node: &Node<'_>, value: &Value, places: &mut Vec<(Span, String)>) {
    if node.value() == *value {
        return;
    }
    match (&node.data, value) {
        (Data::Map(entries), Value::Map(map))
            if !entries.list.is_empty()
                && entries.list.len() == map.len()
                && entries.list.iter().all(|entry| map.contains_key(&*entry.key)) =>
        {
            for entry in &entries.list {
                replace(&entry.value, &map[&*entry.key], places);
            }
        }
        (Data::List(items), Value::List(values)) if !items.is_empty() && items.len() == values.len() => {
            items.iter().zip(values.iter()).for_each(|(node, value)| replace(node, value, places));
        }
        _ => places
            .push((node.span, if node.span.is_empty() { format!(" {}", flow(value)) } else { flow(value) })),
    }
}

/// A value on one line. JSON is YAML; only what reads better without quotes goes without.
fn flow(value: &Value) -> String {
    match value {
        Value::Map(map) => {
            let entries: Vec<String> =
                map.iter().map(|(key, value)| format!("{}: {}", scalar(key), flow(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::String(text) => scalar(text),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(case: usize, key: &'static str, json: &str) -> Edit {
        Edit { case, key, value: Value::from_json_str(json).unwrap() }
    }

    #[test]
    fn only_what_differs_is_rewritten_and_comments_stay() {
        let text = "# above\ncases:\n  - name: one  # a comment\n    expect:\n      status: failed  # was\n      output:\n        a: 1   # first\n        b: [x, y]\n  - {name: two, expect: {cost: 0}}\n  - name: three  # no expectations\n    input: {}\n";
        let edits = [
            edit(0, "status", "\"completed\""),
            edit(0, "output", "{\"a\":2,\"b\":[\"x\",\"z w\"]}"),
            edit(1, "status", "\"waiting\""),
            edit(2, "output", "{\"ok\":true}"),
        ];
        let new = rewritten(text, &edits).unwrap();
        assert_eq!(
            new,
            "# above\ncases:\n  - name: one  # a comment\n    expect:\n      status: completed  # was\n      output:\n        a: 2   # first\n        b: [x, \"z w\"]\n  - {name: two, expect: {status: waiting, cost: 0}}\n  - name: three  # no expectations\n    expect: {output: {ok: true}}\n    input: {}\n"
        );
        assert_eq!(rewritten(&new, &edits).unwrap(), new, "twice is the same");
    }
}
