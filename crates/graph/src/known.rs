//! What is known of values before anything runs: which keys a schema, a mapping or a kind of action gives. It never
//! guesses: what is not known may be anything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wonder_lang::def::{ActionDef, Implementation, Mock, MockOutcome, Name, Tree};
use wonder_lang::schema::resolve;
use wonder_lang::terms;
use wonder_lang::value::Value;

/// How deep schemas are looked into; beyond, anything may be there.
const DEPTH_MAX: usize = 8;

#[derive(Clone, Debug, Default)]
pub(super) enum Known {
    #[default]
    Anything,
    Map(KnownMap),
    List,
    Null,
}

#[derive(Clone, Debug)]
pub(super) struct KnownMap {
    pub(super) keys: BTreeMap<Name, Known>,
    /// There are no others.
    pub(super) closed: bool,
    /// Who says so: `input_schema`.
    pub(super) whose: Arc<str>,
}

/// The run's `state`, or a task's: who writes what.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownState {
    pub(super) keys: BTreeMap<Name, Known>,
    /// Something writes keys that are known only in the run.
    pub(super) anything: bool,
    /// The run may add nodes to itself, which may write as well.
    pub(super) grows: bool,
    /// Properties of `context_schema`.
    pub(super) declared: BTreeSet<Name>,
    /// Nodes or steps whose result is mapped elsewhere.
    pub(super) mapped: BTreeSet<Name>,
    pub(super) of_task: bool,
}

/// What is known of the roots that a text sees.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownRoots {
    pub(super) input: Arc<Known>,
    pub(super) state: Option<Arc<KnownState>>,
    pub(super) result: Arc<Known>,
    pub(super) needs: Arc<Known>,
}

/// Why a path leads nowhere.
#[derive(Debug)]
pub(super) enum Lack<'k> {
    /// The key at this place of the path is never there.
    Absent(usize, &'k KnownMap),
    /// It is not declared, though it may come.
    Undeclared(usize, &'k KnownMap),
    /// What stands before this place of the path has no keys: it is this.
    NoMap(usize, &'static str),
}

impl Known {
    pub(super) fn lack(&self, path: &[Arc<str>]) -> Option<Lack<'_>> {
        let mut known = self;
        for (at, key) in path.iter().enumerate() {
            known = match known {
                Known::Anything => return None,
                Known::List if key.parse::<usize>().is_ok() => return None,
                Known::List => return Some(Lack::NoMap(at, "a list")),
                Known::Null => return Some(Lack::NoMap(at, "null")),
                Known::Map(map) => match map.keys.get(key) {
                    Some(known) => known,
                    None if map.closed => return Some(Lack::Absent(at, map)),
                    None => return Some(Lack::Undeclared(at, map)),
                },
            };
        }
        None
    }

    /// These keys and no others, each with whatever value.
    pub(super) fn fields<'n>(names: impl IntoIterator<Item = &'n str>, whose: &str) -> Known {
        let keys = names.into_iter().map(|name| (name.into(), Known::Anything)).collect();
        Known::Map(KnownMap { keys, closed: true, whose: whose.into() })
    }

    /// What a mapping gives.
    pub(super) fn of_mapping(mapping: &Tree, whose: &str) -> Known {
        match mapping {
            Tree::Map(map) => Known::fields(map.keys().map(|key| &**key), whose),
            _ => Known::Anything,
        }
    }

    /// What fits a schema.
    pub(super) fn of_schema(doc: &Value, whose: &str) -> Known {
        of_schema(doc, doc, whose, DEPTH_MAX)
    }

    /// The same with one key more, where keys are known.
    pub(super) fn with(self, key: &str) -> Known {
        match self {
            Known::Map(mut map) => {
                map.keys.insert(key.into(), Known::Anything);
                Known::Map(map)
            }
            known => known,
        }
    }

    /// What an action gives, by what it promises, else by its kind.
    pub(super) fn of_action(def: &ActionDef) -> Known {
        let kind = def.implementation.kind();
        if let Some(produces) = &def.produces {
            return Known::of_schema(&produces.doc, &format!("what `{kind}` produces"));
        }
        let whose = format!("the result of `{kind}`");
        match &def.implementation {
            Implementation::Mock(mock) => of_mock(mock, &whose),
            Implementation::HumanGate(gate) if gate.quorum.is_some() => Known::List,
            Implementation::HumanGate(gate) => gate
                .form
                .as_ref()
                .map_or(Known::Anything, |form| Known::of_schema(&form.doc, "the gate's `form`")),
            Implementation::Assert(_) | Implementation::Sleep(_) => Known::Null,
            Implementation::LlmCall(call) => {
                let mut fields =
                    Known::fields(terms::result_fields(kind).iter().map(|(name, _)| *name), &whose);
                if let (Known::Map(map), Some(schema)) = (&mut fields, &call.output_schema) {
                    let json = Known::of_schema(&schema.doc, "`output_schema` of `llm_call`");
                    map.keys.insert("json".into(), json);
                }
                fields
            }
            _ => match terms::result_fields(kind) {
                [] => Known::Anything,
                fields => Known::fields(fields.iter().map(|(name, _)| *name), &whose),
            },
        }
    }
}

impl KnownState {
    /// Somebody writes this key, and it is this.
    pub(super) fn write(&mut self, key: Name, value: Known) {
        let known = self.keys.entry(key);
        // Of two that write it, either may have been the last.
        known.and_modify(|known| *known = Known::Anything).or_insert(value);
    }
}

fn of_schema(doc: &Value, schema: &Value, whose: &str, depth: usize) -> Known {
    let Some(top) = resolve(doc, schema).and_then(Value::as_map).filter(|_| depth > 0) else {
        return Known::Anything;
    };
    if top.get("type").and_then(Value::as_str) == Some("array") {
        return Known::List;
    }
    // What these say together with the properties is more than is looked at here.
    if ["allOf", "anyOf", "oneOf", "if", "patternProperties"].iter().any(|key| top.contains_key(*key)) {
        return Known::Anything;
    }
    let closed = top.get("additionalProperties") == Some(&Value::Bool(false));
    let properties = top.get("properties").and_then(Value::as_map);
    if properties.is_none() && !closed {
        return Known::Anything;
    }
    let keys = properties.into_iter().flatten();
    let keys = keys.map(|(key, value)| (key.clone(), of_schema(doc, value, whose, depth - 1))).collect();
    Known::Map(KnownMap { keys, closed, whose: whose.into() })
}

/// The keys of all scripted outputs, if each of them is a map.
fn of_mock(mock: &Mock, whose: &str) -> Known {
    let mut keys = BTreeSet::new();
    for outcome in &mock.outcomes {
        match outcome {
            MockOutcome { error: Some(_), .. } => {}
            MockOutcome { output: Some(Tree::Map(map)), .. } if !map.is_empty() => {
                keys.extend(map.keys().map(|key| &**key))
            }
            _ => return Known::Anything,
        }
    }
    if keys.is_empty() { Known::Anything } else { Known::fields(keys, whose) }
}
