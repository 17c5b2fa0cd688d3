//! The secrets that a worker knows: those that its tasks and definitions name, and those that whoever provides them
//! knows without being asked. An action gets the secrets that its texts name and no others; what is hidden is all of
//! them, in every task, for a secret that one task had may come back in another.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use wonder_core::def::Name;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::graph::{Action, Graph, Task, Work};
use wonder_core::value::Value;

use crate::redact::Redactor;
use crate::settings::Secrets;

pub(crate) const ROOT: &str = "secret";
/// A shorter one may stand in what people type by chance: `postgres` is a poor password and an ordinary word.
const TYPED_BYTES_MIN: usize = 12;

/// All that has to be hidden. It only ever grows.
pub(crate) struct KnownSecrets {
    provider: Arc<dyn Secrets>,
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    /// The provider was asked for what it knows by itself.
    begun: bool,
    /// Names that definitions have, and that were looked up.
    names: BTreeSet<Name>,
    values: BTreeSet<String>,
    redactor: Arc<Redactor>,
    /// Of those that nobody types by chance.
    typed: Arc<Redactor>,
}

/// Says how many there are: a secret must not end up in a log.
impl fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KnownSecrets({})", self.read(|known| known.values.len()))
    }
}

impl KnownSecrets {
    pub(crate) fn new(provider: Arc<dyn Secrets>) -> KnownSecrets {
        KnownSecrets { provider, known: RwLock::default() }
    }

    #[cfg(test)]
    pub(crate) fn of<'a>(values: impl IntoIterator<Item = &'a str>) -> KnownSecrets {
        let known = KnownSecrets::new(Arc::new(crate::settings::NoSecrets));
        known.learn(values.into_iter().map(str::to_owned).collect());
        known
    }

    /// What hides all that is known now.
    pub(crate) fn redactor(&self) -> Arc<Redactor> {
        if let Some(redactor) = self.read(|known| known.begun.then(|| known.redactor.clone())) {
            return redactor;
        }
        let own = self.provider.known();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.begun = true;
        known.add(own);
        known.redactor.clone()
    }

    /// The same without asking the provider for anything.
    pub(crate) fn redactor_so_far(&self) -> Arc<Redactor> {
        self.read(|known| known.redactor.clone())
    }

    /// Whether what somebody typed has a secret in it: it would be stored as it is.
    pub(crate) fn is_in(&self, value: &Value) -> bool {
        // Whoever provides secrets is asked for those that it knows by itself.
        drop(self.redactor());
        self.read(|known| known.typed.clone()).shows_in(value)
    }

    /// Looks up what a definition names, so that it is hidden wherever it comes from, before anything of it has run.
    pub(crate) fn learn_names(&self, graph: &Graph) {
        let tasks = graph.tasks.values().chain(graph.nodes.iter().filter_map(|node| node.task()));
        let names: BTreeSet<&Name> = tasks.flat_map(|task| names(task)).collect();
        let new: Vec<Name> = self
            .read(|known| names.into_iter().filter(|name| !known.names.contains(*name)).cloned().collect());
        if new.is_empty() {
            return;
        }
        let values = new.iter().filter_map(|name| self.provider.find(name)).collect();
        self.known.write().unwrap_or_else(PoisonError::into_inner).names.extend(new);
        self.learn(values);
    }

    /// One that is looked up when it is needed.
    pub(crate) fn find(&self, name: &str) -> Option<String> {
        let value = self.provider.find(name)?;
        self.learn(vec![value.clone()]);
        Some(value)
    }

    pub(crate) fn learn(&self, mut values: Vec<String>) {
        self.read(|known| values.retain(|value| !known.values.contains(value)));
        if !values.is_empty() {
            self.known.write().unwrap_or_else(PoisonError::into_inner).add(values);
        }
    }

    fn read<T>(&self, read: impl FnOnce(&Known) -> T) -> T {
        read(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Known {
    fn add(&mut self, values: Vec<String>) {
        let new: Vec<String> = values.into_iter().filter(|value| self.values.insert(value.clone())).collect();
        if !new.is_empty() {
            self.redactor = Arc::new(self.redactor.with(new.iter().map(String::as_str)));
            let long = new.iter().map(String::as_str).filter(|value| value.len() >= TYPED_BYTES_MIN);
            self.typed = Arc::new(self.typed.with(long));
        }
    }
}

/// The secrets a task names: found once when it starts.
#[derive(Default)]
pub(crate) struct TaskSecrets {
    found: BTreeMap<Name, Option<String>>,
}

impl TaskSecrets {
    pub(crate) fn find(task: &Task, secrets: &KnownSecrets) -> TaskSecrets {
        let mut found = BTreeMap::new();
        for name in names(task) {
            found.entry(name.clone()).or_insert_with_key(|name| secrets.provider.find(name));
        }
        secrets.learn(found.values().flatten().cloned().collect());
        TaskSecrets { found }
    }

    /// What an action's texts see: its scope, and the secrets they name.
    pub(crate) fn scope<'s>(&self, action: &Action, scope: &'s Value) -> Result<Cow<'s, Value>, Failure> {
        if action.secrets.is_empty() {
            return Ok(Cow::Borrowed(scope));
        }
        if action.secrets.whole {
            return Err(unnamed());
        }
        let mut values = Value::empty_map();
        for name in &action.secrets.names {
            let value = self.found.get(name).cloned().flatten().ok_or_else(|| missing(name))?;
            values.set_path(std::slice::from_ref(name), Value::from(value));
        }
        let mut scope = scope.clone();
        scope.set_path(&[ROOT.into()], values);
        Ok(Cow::Owned(scope))
    }
}

/// What the texts of a task name, and those of the model profiles and MCP servers that it may use.
fn names(task: &Task) -> impl Iterator<Item = &Name> {
    let actions = task.steps.iter().map(|step| &step.action);
    let tables = task.steps.iter().filter_map(|step| match &step.action.work {
        Some(Work::LlmCall(call)) => Some(&call.table),
        Some(Work::McpTool(call)) => Some(&call.table),
        _ => None,
    });
    let of_tables = tables.flat_map(|table| {
        let profiles = table.texts.values().flat_map(|texts| &texts.secrets);
        profiles.chain(table.servers.values().flat_map(|server| &server.secrets))
    });
    actions.flat_map(|action| &action.secrets.names).chain(of_tables)
}

fn missing(name: &str) -> Failure {
    let message = format!(
        "the secret `{name}` is not set: set the environment variable {name}, or add a line `{name}=...` to \
         the secrets file"
    );
    Failure::new(ErrorKind::ExpressionError, message)
}

fn unnamed() -> Failure {
    let message = "a text reads `secret` as a whole: name the one it needs, as in `{{ secret.API_KEY }}`";
    Failure::new(ErrorKind::ExpressionError, message)
}
