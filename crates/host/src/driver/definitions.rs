//! Definitions: stored once by content, numbered by name, compiled once.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use wonder_actions::Worker;
use wonder_core::Time;
use wonder_core::def::{Bundle, Name};
use wonder_core::graph::Graph;
use wonder_engine::{EngineError, Reply, Workflow};

use super::hosted::damaged;
use super::panic_text;
use crate::store::{Reader, StoredDefinition, StoredRun, Write};

/// Compiled graphs kept, beside those that runs hold.
const KEPT: usize = 64;

#[derive(Debug)]
pub(crate) struct Definitions {
    next: i64,
    /// What was registered or looked up, by name and hash; some of it may be in the batch still.
    known: BTreeMap<(Name, [u8; 32]), (i64, u32)>,
    graphs: BTreeMap<i64, Arc<Graph>>,
    /// The very bundle that was registered last: who starts one file many times has it hashed once.
    last: Option<(Arc<Bundle>, i64)>,
    /// Who has to know which secrets are named, before a task of a definition runs.
    worker: Option<Worker>,
}

impl Definitions {
    pub(crate) fn new(next: i64) -> Definitions {
        Definitions { next, known: BTreeMap::new(), graphs: BTreeMap::new(), last: None, worker: None }
    }

    /// The same for a host that performs tasks.
    pub(crate) fn for_worker(self, worker: &Worker) -> Definitions {
        Definitions { worker: Some(worker.clone()), ..self }
    }

    /// The stored definition with this content: the one that is there, or a new version.
    pub(crate) fn register(
        &mut self,
        workflow: Workflow,
        reader: &Reader<'_>,
        now: Time,
        batch: &mut Vec<Write>,
    ) -> Reply<(i64, Arc<Graph>)> {
        if let Some((bundle, id)) = &self.last
            && Arc::ptr_eq(bundle, &workflow.bundle)
            && let Some(graph) = self.graphs.get(id)
        {
            return Ok((*id, graph.clone()));
        }
        let (text, hash) = content(&workflow.bundle)?;
        let name: Name = workflow.bundle.workflow.name.text.clone();
        let key = (name.clone(), hash);
        let known = match self.known.get(&key) {
            Some(known) => Some(*known),
            None => reader.definition_by_hash(&name, &hash)?,
        };
        let (id, version) = match known {
            Some(known) => known,
            None => {
                let latest = reader.latest_version(&name)?.max(self.latest_known(&name));
                let (id, version) = (self.next, latest + 1);
                self.next += 1;
                let created_at = now.0;
                let stored = StoredDefinition { id, name, version, hash, bundle: text, created_at };
                batch.push(Write::Definition(Arc::new(stored)));
                (id, version)
            }
        };
        self.known.insert(key, (id, version));
        self.last = Some((workflow.bundle.clone(), id));
        if let Some(graph) = self.graphs.get(&id) {
            return Ok((id, graph.clone()));
        }
        let graph = match workflow.graph {
            Some(graph) => numbered(graph, version),
            None => checked(workflow.bundle, version)?,
        };
        self.keep(id, graph.clone());
        Ok((id, graph))
    }

    /// The compiled graph of a stored definition. One that cannot be compiled is of code `quarantined`.
    pub(crate) fn graph(&mut self, id: i64, reader: &Reader<'_>) -> Reply<Arc<Graph>> {
        if let Some(graph) = self.graphs.get(&id) {
            return Ok(graph.clone());
        }
        let (bundle, version) = stored_bundle(id, reader)?;
        let compiled = catch_unwind(AssertUnwindSafe(|| Graph::compile(&Arc::new(bundle))));
        let graph = match compiled {
            // It was accepted when it was stored: no check of today is asked.
            Ok(Ok(graph)) => numbered(Arc::new(graph), version),
            Ok(Err(error)) => return Err(damaged(format!("definition {id}: {error}"))),
            Err(panic) => return Err(damaged(format!("definition {id}: {}", panic_text(&*panic)))),
        };
        self.keep(id, graph.clone());
        Ok(graph)
    }

    fn latest_known(&self, name: &Name) -> u32 {
        let versions = self.known.range((name.clone(), [0; 32])..).take_while(|((of, _), _)| of == name);
        versions.map(|(_, (_, version))| *version).max().unwrap_or(0)
    }

    fn keep(&mut self, id: i64, graph: Arc<Graph>) {
        if let Some(worker) = &self.worker {
            worker.learn_secrets(&graph);
        }
        if self.graphs.len() >= KEPT {
            // Those that no run holds are cheap to have again.
            self.graphs.retain(|_, graph| Arc::strong_count(graph) > 1);
        }
        self.graphs.insert(id, graph);
    }
}

/// Whether these are the definitions that a run goes by.
pub(crate) fn are_those_of(stored: &StoredRun, workflows: &[Workflow], reader: &Reader<'_>) -> Reply<bool> {
    for (at, workflow) in workflows.iter().enumerate() {
        let name = &workflow.bundle.workflow.name.text;
        let (_, hash) = content(&workflow.bundle)?;
        let known = reader.definition_by_hash(name, &hash)?.map(|(id, _)| id);
        let own = if at == 0 { Some(stored.definition) } else { stored.callable.get(name).copied() };
        if known.is_none() || known != own {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What a definition is stored as, and its hash. Content only: the same file run twice is the same definition.
fn content(bundle: &Bundle) -> Reply<(String, [u8; 32])> {
    let text = unversioned(bundle)?;
    let hash = *blake3::hash(text.as_bytes()).as_bytes();
    Ok((text, hash))
}

fn unversioned(bundle: &Bundle) -> Reply<String> {
    let json = if bundle.workflow.version.is_none() {
        serde_json::to_string(bundle)
    } else {
        let mut bundle = bundle.clone();
        bundle.workflow.version = None;
        serde_json::to_string(&bundle)
    };
    json.map_err(|error| EngineError::internal(format!("a definition is not JSON: {error}")))
}

fn numbered(graph: Arc<Graph>, version: u32) -> Arc<Graph> {
    if graph.version == version {
        return graph;
    }
    let mut graph = Arc::unwrap_or_clone(graph);
    graph.version = version;
    Arc::new(graph)
}

/// A new definition, from another process.
pub(super) fn checked(bundle: Arc<Bundle>, version: u32) -> Reply<Arc<Graph>> {
    let name = bundle.workflow.name.text.clone();
    match Graph::build(bundle) {
        Ok((graph, _)) => Ok(numbered(Arc::new(graph), version)),
        Err(problems) => {
            let first = problems.first().map_or_else(String::new, |problem| problem.message.clone());
            Err(EngineError::definition_refused(&name, &first))
        }
    }
}

pub(crate) fn stored_bundle(id: i64, reader: &Reader<'_>) -> Reply<(Bundle, u32)> {
    let (text, version) = reader.definition(id)?;
    let bundle = serde_json::from_str(&text)
        .map_err(|error| damaged(format!("definition {id} cannot be read: {error}")))?;
    Ok((bundle, version))
}
