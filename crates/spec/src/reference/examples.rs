//! The examples of the reference, inside the binary, and which of them shows what. Each is a file of
//! `examples/reference/` that says in its head how it is run and how it ends; tests run it so.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use crate::build::DocumentKind;
use crate::check::accepts;
use crate::shape::{Form, Found, Shape};
use crate::tree::{self, Data, Node};

#[derive(Debug)]
pub struct Example {
    pub name: &'static str,
    pub text: &'static str,
}

macro_rules! examples {
    ($($name:literal)*) => {
        /// All of them, by name.
        pub static EXAMPLES: &[Example] = &[$(Example {
            name: $name,
            text: include_str!(concat!("../../../../examples/reference/", $name, ".yaml")),
        }),*];
    };
}

examples! {
    "add_validator" "agent" "artifacts" "assert" "budget" "called_file" "concurrency" "condition" "dag" "documents" "execution"
    "fail_fast" "fan_out" "fan_out_all" "foreach" "http_request" "human_gate" "human_gate_default" "isolation" "join"
    "loop_with_feedback" "may_mutate" "mcp" "merge" "mock" "models" "next" "node" "on_error" "people" "responses"
    "retry" "scope" "secret" "shell" "sleep" "stored" "task" "timeouts" "tools" "transition" "turns" "update_context" "wait_event"
    "workflow" "workflow_call"
}

impl Example {
    pub fn file(&self) -> String {
        format!("examples/reference/{}.yaml", self.name)
    }

    /// Whether a word stands in its text, as a name.
    pub(super) fn names(&self, word: &str) -> bool {
        let part = |c: char| c.is_alphanumeric() || c == '_';
        let body = self.text.lines().filter(|line| !line.starts_with('#'));
        body.flat_map(|line| line.split(|c: char| !part(c))).any(|name| name == word)
    }
}

/// A key in an object, perhaps with the word that is its value.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Use {
    pub(super) place: &'static str,
    pub(super) key: &'static str,
    pub(super) word: Option<String>,
}

/// The example that shows something best: the one of that name, else the shortest that has it.
pub(super) fn showing(name: &str, fits: impl Fn(&Use) -> bool) -> Option<&'static Example> {
    let all = uses().iter().filter(|(_, uses)| uses.iter().any(&fits)).map(|(example, _)| *example);
    all.min_by_key(|example| (example.name != name, example.text.len()))
}

fn uses() -> &'static [(&'static Example, BTreeSet<Use>)] {
    static USES: OnceLock<Vec<(&'static Example, BTreeSet<Use>)>> = OnceLock::new();
    USES.get_or_init(|| EXAMPLES.iter().map(|example| (example, uses_of(example))).collect())
}

fn uses_of(example: &Example) -> BTreeSet<Use> {
    let prepared = tree::prepare(example.text);
    let mut found = BTreeSet::new();
    for document in &tree::parse(example.text, &prepared).documents {
        let kind = DocumentKind::of(document).unwrap_or(DocumentKind::Workflow);
        in_object(document, kind.shape(), &mut found);
    }
    found
}

fn in_object(node: &Node<'_>, shape: &'static Shape, found: &mut BTreeSet<Use>) {
    for entry in node.entries() {
        let Some(Found::Own(key) | Found::Millis(key)) = shape.find(&entry.key) else { continue };
        found.insert(Use {
            place: shape.plain_name(),
            key: key.name,
            word: entry.value.text().map(str::to_owned),
        });
        in_form(&entry.value, &key.form, found);
    }
}

fn in_form(node: &Node<'_>, form: &'static Form, found: &mut BTreeSet<Use>) {
    match (form, &node.data) {
        (Form::Object(shape), _) => in_object(node, shape, found),
        (Form::List(inner) | Form::OneOrList(inner), Data::List(items)) => {
            items.iter().for_each(|item| in_form(item, inner, found));
        }
        (Form::OneOrList(inner), _) => in_form(node, inner, found),
        (Form::Map(inner) | Form::NameMap(inner), Data::Map(entries)) => {
            entries.list.iter().for_each(|entry| in_form(&entry.value, inner, found));
        }
        (Form::Either(forms), _) => {
            if let Some(form) = forms.iter().find(|form| accepts(form, node)) {
                in_form(node, form, found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One may call another.
    struct Embedded;

    impl crate::Files for Embedded {
        fn open(&self, path: &str, _from: &str) -> Result<crate::FileText, String> {
            let name = path.trim_start_matches("./").trim_end_matches(".yaml");
            let example = EXAMPLES.iter().find(|example| example.name == name).ok_or("it is not there")?;
            Ok(crate::FileText { name: example.file(), text: example.text.to_owned() })
        }
    }

    #[test]
    fn every_file_is_embedded_and_can_be_read() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/reference");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().trim_end_matches(".yaml").to_owned())
            .collect();
        files.sort();
        assert_eq!(files, EXAMPLES.iter().map(|example| example.name).collect::<Vec<_>>());
        for example in EXAMPLES {
            let library = crate::Library::default();
            let around =
                crate::Around { library: &library, files: &Embedded, everything: true, unable: None };
            let file = crate::FileText { name: example.file(), text: example.text.to_owned() };
            if let Err(problems) = crate::read_files(vec![file], &around) {
                panic!("{}", problems.render(false));
            }
        }
    }
}
