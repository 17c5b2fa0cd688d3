//! Files whose shape is off in a way that is plain to see: nodes written as a list of maps, keys that are indented as
//! far as what they belong to. Each is one message, and the rest of the file is read as it was meant, so that nothing
//! is said of what only follows from it.

use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::place::Span;
use crate::shape::{Form, Shape, WORKFLOW_DOCUMENT, node_shape, step_shape, task_shape};
use crate::tree::{Data, Entries, Entry, Node};

/// Looks through a document that seems to be a workflow.
pub(crate) fn document(node: &mut Node<'_>, problems: &mut Vec<Diagnostic>) {
    let is_workflow = node.entries().iter().any(|entry| matches!(&*entry.key, "nodes" | "transitions"));
    if !is_workflow {
        return;
    }
    gather_strays(node, WORKFLOW_DOCUMENT, problems);
    if let Some(nodes) = value_mut(node, "nodes") {
        by_name(nodes, node_shape(), "node", problems);
        gather_into_empty(nodes, node_shape(), "node", problems);
        for entry in entries_mut(nodes) {
            if let Some(steps) = value_mut(&mut entry.value, "steps") {
                steps_by_name(steps, problems);
            }
        }
    }
    if let Some(tasks) = value_mut(node, "tasks") {
        gather_into_empty(tasks, task_shape(), "task", problems);
    }
}

fn entries_mut<'n, 's>(node: &'n mut Node<'s>) -> &'n mut [Entry<'s>] {
    match &mut node.data {
        Data::Map(entries) => &mut entries.list,
        _ => &mut [],
    }
}

fn value_mut<'n, 's>(node: &'n mut Node<'s>, key: &str) -> Option<&'n mut Node<'s>> {
    entries_mut(node).iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.value)
}

/// A list of maps with one key each, `- a: {…}`: meant is the map of all of them.
fn by_name(node: &mut Node<'_>, shape: &'static Shape, what: &str, problems: &mut Vec<Diagnostic>) {
    let Data::List(items) = &mut node.data else { return };
    let first = items
        .iter()
        .find_map(|item| named_item(item, shape))
        .map(|entry| (entry.key.to_string(), entry.key_span));
    let Some((name, span)) = first.filter(|_| items.iter().all(|item| named_item(item, shape).is_some()))
    else {
        return;
    };
    let message = format!("{what}s by their refs are a map, not a list");
    let problem = Diagnostic::error(codes::WRONG_FORM, span, message)
        .label(format!("`{name}` is a key here, and stands behind a dash"))
        .help(format!(
            "leave the dashes out: `{name}: {{...}}`; in a list the ref is inside: `- {{ref: {name}, ...}}`"
        ));
    problems.push(problem);
    let mut list = Vec::with_capacity(items.len());
    for item in std::mem::take(items) {
        if let Data::Map(entries) = item.data {
            list.extend(entries.list);
        }
    }
    node.data = Data::Map(Entries { list, partial: false });
}

/// The one entry of an item that has a name as its key and a map behind it.
fn named_item<'n, 's>(item: &'n Node<'s>, shape: &'static Shape) -> Option<&'n Entry<'s>> {
    match item.entries() {
        [only]
            if shape.find(&only.key).is_none()
                && only.key != "ref"
                && matches!(only.value.data, Data::Map(_)) =>
        {
            Some(only)
        }
        _ => None,
    }
}

/// `steps: [{fetch: {shell: …}}]`: meant is `{ref: fetch, shell: …}`.
fn steps_by_name(node: &mut Node<'_>, problems: &mut Vec<Diagnostic>) {
    let Data::List(items) = &mut node.data else { return };
    let mut said = false;
    for item in items {
        let Some(entry) = named_item(item, step_shape()) else { continue };
        let (name, span) = (entry.key.clone(), entry.key_span);
        if !said {
            said = true;
            let problem = Diagnostic::error(codes::WRONG_FORM, span, "a step has its ref inside")
                .label(format!("`{name}` is a key here"))
                .help(format!("write `- {{ref: {name}, ...}}`"));
            problems.push(problem);
        }
        let Data::Map(entries) = &mut item.data else { continue };
        let Some(Entry { value: Node { data: Data::Map(inner), .. }, .. }) = entries.list.pop() else {
            continue;
        };
        entries.list = inner.list;
        let value = Node { data: Data::Text(name), span };
        entries.list.insert(0, Entry { key: "ref".into(), key_span: span, value });
    }
}

/// In a map of definitions: one with nothing in it, and behind it keys that belong inside one.
fn gather_into_empty(node: &mut Node<'_>, shape: &'static Shape, what: &str, problems: &mut Vec<Diagnostic>) {
    gather(node, what, problems, |owner, entry, open| {
        let inside = shape.find(&entry.key).is_some() && !looks_like(&entry.value, shape);
        inside && (open || matches!(owner.value.data, Data::Null))
    });
}

/// A key of the document with nothing in it, and behind it keys that the document does not have.
fn gather_strays(node: &mut Node<'_>, shape: &'static Shape, problems: &mut Vec<Diagnostic>) {
    gather(node, "key", problems, |owner, entry, open| {
        let stray = shape.find(&entry.key).is_none() && matches!(entry.value.data, Data::Map(_));
        stray && (open || is_empty_container(owner, shape))
    });
}

/// Puts entries into the one before them that they belong to. `belongs` is told the owner, the entry, and whether the
/// owner has got one already; the first of each owner is a problem.
fn gather(
    node: &mut Node<'_>,
    what: &str,
    problems: &mut Vec<Diagnostic>,
    belongs: impl Fn(&Entry<'_>, &Entry<'_>, bool) -> bool,
) {
    let Data::Map(entries) = &mut node.data else { return };
    let mut list: Vec<Entry<'_>> = Vec::with_capacity(entries.list.len());
    let mut open = false;
    for entry in std::mem::take(&mut entries.list) {
        match list.last_mut() {
            Some(owner) if belongs(owner, &entry, open) => {
                if !open {
                    problems.push(misplaced(owner, &entry, what));
                }
                open = true;
                adopt(owner, entry);
            }
            _ => {
                open = false;
                list.push(entry);
            }
        }
    }
    entries.list = list;
}

/// Whether a value could itself be one of these, so that its key is its name.
fn looks_like(value: &Node<'_>, shape: &'static Shape) -> bool {
    !value.entries().is_empty() && value.entries().iter().all(|entry| shape.find(&entry.key).is_some())
}

fn is_empty_container(entry: &Entry<'_>, shape: &'static Shape) -> bool {
    let form = shape.all_keys().find(|key| key.name == entry.key).map(|key| &key.form);
    let holds = |form: &Form| matches!(form, Form::Map(_) | Form::NameMap(_));
    let takes = match form {
        Some(Form::Either(forms)) => forms.iter().any(holds),
        Some(form) => holds(form),
        None => false,
    };
    takes && matches!(entry.value.data, Data::Null)
}

fn misplaced(owner: &Entry<'_>, inside: &Entry<'_>, what: &str) -> Diagnostic {
    let (outer, key) = (&owner.key, &inside.key);
    let message = match what {
        "key" => format!("the indentation does not fit: `{key}` begins in the same column as `{outer}`"),
        what => format!(
            "the indentation does not fit: {what} `{outer}` is empty, and `{key}` beside it is a key of a {what}"
        ),
    };
    Diagnostic::error(codes::INDENTATION, inside.key_span, message)
        .label(format!("expected inside `{outer}`"))
        .also(owner.key_span, format!("`{outer}` has nothing in it"))
        .help(format!("indent `{key}` and what follows it deeper than `{outer}`"))
}

fn adopt<'s>(owner: &mut Entry<'s>, entry: Entry<'s>) {
    let end = entry.value.span.end.max(entry.key_span.end);
    if !matches!(owner.value.data, Data::Map(_)) {
        owner.value =
            Node { data: Data::Map(Entries::default()), span: Span { start: entry.key_span.start, end } };
    }
    owner.value.span.end = end;
    if let Data::Map(entries) = &mut owner.value.data {
        entries.list.push(entry);
    }
}
