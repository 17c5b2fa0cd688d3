//! The servers of this process: one of a kind for each project, whoever needs it. They stay until the process ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;
use wonder_core::def::Name;
use wonder_core::graph::ModelTable;
use wonder_core::graph::tools::Tool;

use super::connect::Connection;
use super::filled::Filled;
use super::tools::{self, Tools};
use crate::context::Caller;
use crate::handler::TryError;
use crate::http::Clients;
use crate::job::Stream;
use crate::settings::Settings;
use crate::shell::ShellHandler;

/// Between the end of a server and its next start: twice as long each time.
const BACKOFF: Duration = Duration::from_millis(250);
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// A server that lived so long is not one that cannot live.
const WELL_AFTER: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Pool {
    pub(super) settings: Arc<Settings>,
    pub(super) shell: Arc<ShellHandler>,
    pub(super) clients: Clients,
    slots: StdMutex<BTreeMap<String, Arc<Mutex<Slot>>>>,
}

#[derive(Debug, Default)]
struct Slot {
    connection: Option<Arc<Connection>>,
    opened: Option<Instant>,
    /// How often it was started.
    starts: u32,
    /// How often it ended too early, one after the other.
    failures: u32,
    not_before: Option<Instant>,
}

impl Pool {
    pub(crate) fn new(settings: Arc<Settings>, shell: Arc<ShellHandler>) -> Pool {
        Pool { settings, shell, clients: Clients::default(), slots: StdMutex::default() }
    }

    /// A connection that is whole, as far as anybody knows; it is made if there is none.
    pub(super) async fn connection(
        &self,
        caller: &Caller<'_>,
        filled: &Filled,
    ) -> Result<Arc<Connection>, TryError> {
        let slot = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            slots.entry(filled.key()).or_default().clone()
        };
        let mut slot = caller.deadline.limit(slot.lock()).await?;
        if let Some(connection) = slot.connection.as_ref().filter(|connection| !connection.is_broken()) {
            return Ok(connection.clone());
        }
        slot.lost(caller, filled).await;
        if let Some(wait) = slot.not_before.map(|at| at.saturating_duration_since(Instant::now())) {
            let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            if ms > 0 {
                caller.line(
                    Stream::Note,
                    format!("MCP server `{}`: waits {ms} ms before it starts again", filled.name),
                );
            }
            caller.deadline.wait(ms).await?;
        }
        match Connection::open(self, filled, caller.deadline).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                slot.starts += 1;
                slot.opened = Some(Instant::now());
                slot.connection = Some(connection.clone());
                let again = if slot.starts > 1 { " again" } else { "" };
                caller.line(Stream::Note, format!("MCP server `{}`: started{again}", filled.name));
                Ok(connection)
            }
            Err(error) => {
                slot.failed();
                Err(error)
            }
        }
    }

    /// The tools that a server has, as they are offered to a model.
    pub(crate) async fn offered(
        &self,
        caller: &Caller<'_>,
        table: &ModelTable,
        server: &Name,
        only: &[Name],
    ) -> Result<Vec<Tool>, TryError> {
        let tools = self.tools(caller, table, server).await?;
        Ok(tools.offered(server, only)?)
    }

    pub(crate) async fn tools(
        &self,
        caller: &Caller<'_>,
        table: &ModelTable,
        server: &Name,
    ) -> Result<Arc<Tools>, TryError> {
        let spec = Filled::named(&self.settings, table, server)?;
        let filled = Filled::of(caller, spec, &table.project)?;
        let connection = self.connection(caller, &filled).await?;
        tools::of(&connection, &filled, caller.deadline).await
    }
}

impl Slot {
    /// The connection that was there is gone.
    async fn lost(&mut self, caller: &Caller<'_>, filled: &Filled) {
        let Some(connection) = self.connection.take() else { return };
        let how = connection.how_it_ended().await;
        caller.line(Stream::Note, format!("MCP server `{}`: it is gone{how}", filled.name));
        let was_well = self.opened.is_some_and(|opened| opened.elapsed() >= WELL_AFTER);
        if was_well {
            self.failures = 0;
        }
        self.failed();
    }

    fn failed(&mut self) {
        let wait = BACKOFF.saturating_mul(1 << self.failures.min(16)).min(BACKOFF_MAX);
        self.failures += 1;
        self.not_before = Some(Instant::now() + wait);
    }
}
