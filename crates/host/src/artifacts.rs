//! Artifacts as this host has them: the files in the store, and the table that says which run kept which. The table
//! follows from the events and is written with them; a file is there before either.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wonder_actions::{ArtifactCatalog, Artifacts, Finding};
use wonder_artifacts::{Collected, Hash, Store};
use wonder_core::artifact::BY_HASH;
use wonder_engine::run_tree::visit_label;
use wonder_engine::timeline::Timeline;
use wonder_engine::{ArtifactPiece, ArtifactView, EngineError, ErrorCode, Reply};

use crate::Options;
use crate::driver::not_loaded;
use crate::readers::Readers;
use crate::store::{self, Reader, StoredArtifact};

/// What is younger than this is not collected: the task that wrote it may not have reported yet.
pub const COLLECT_GRACE: Duration = Duration::from_secs(24 * 3_600);
/// Bytes of one piece.
const PIECE_BYTES_MAX: u64 = 512 << 10;

/// What the worker of a host is given.
pub(crate) fn for_worker(options: &Options) -> Artifacts {
    let path = store::database(&options.home);
    let catalog = Catalog(Arc::new(Tables { path, readers: Readers::new(&options.home) }));
    Artifacts { store: options.artifacts.clone(), catalog: Arc::new(catalog) }
}

/// Looks artifacts up for tasks, in what is committed: all that led to a task is.
#[derive(Debug)]
struct Catalog(Arc<Tables>);

#[derive(Debug)]
struct Tables {
    path: PathBuf,
    readers: Readers,
}

impl ArtifactCatalog for Catalog {
    fn newest<'c>(&'c self, run: &'c str, name: &'c str) -> Finding<'c> {
        let (tables, run, name) = (self.0.clone(), run.to_owned(), name.to_owned());
        Box::pin(async move {
            let turn = tables.readers.turn().await.map_err(|error| error.to_string())?;
            let read = move || {
                let Some(connection) = tables.readers.connection()? else { return Ok(None) };
                let found = Reader::new(&connection, &tables.path).newest_artifact(&run, &name);
                tables.readers.give_back(connection);
                drop(turn);
                found
            };
            let read = tokio::task::spawn_blocking(read).await.map_err(|error| error.to_string())?;
            read.map_err(|error: EngineError| error.to_string())
        })
    }
}

/// What a run and those it called have kept, with the visits that kept it.
pub(crate) fn list(reader: &Reader<'_>, run: &str) -> Reply<Vec<ArtifactView>> {
    let mut views = Vec::new();
    let mut folded: Option<(String, Timeline)> = None;
    for stored in reader.artifacts(run)? {
        if folded.as_ref().is_none_or(|(known, _)| *known != stored.run) {
            folded = Some((stored.run.clone(), timeline(reader, &stored.run)?));
        }
        let timeline = &folded.as_ref().expect("it was just folded").1;
        views.push(view(stored, timeline));
    }
    Ok(views)
}

fn timeline(reader: &Reader<'_>, run: &str) -> Reply<Timeline> {
    let stored = reader.find(run)?;
    let events = reader.events(stored.no, 0, usize::MAX);
    Ok(Timeline::of(&events.map_err(|error| not_loaded(run, error))?))
}

fn view(stored: StoredArtifact, timeline: &Timeline) -> ArtifactView {
    let StoredArtifact { artifact, run, token, at } = stored;
    let visit = timeline.visits.get(&token);
    ArtifactView {
        run,
        name: artifact.name.to_string(),
        artifact_type: artifact.artifact_type.map(|of| of.to_string()),
        media_type: artifact.media_type.to_string(),
        bytes: artifact.bytes,
        artifact: format!("{BY_HASH}{}", artifact.hash),
        node: visit.map_or(String::new(), |visit| visit_label(timeline, visit)),
        at,
    }
}

/// Some bytes of one that a run has: by name the newest of its own, else of those it called; or by address.
pub(crate) fn piece(
    reader: &Reader<'_>,
    store: &Store,
    (run, artifact): (&str, &str),
    offset: u64,
) -> Reply<ArtifactPiece> {
    let all = reader.artifacts(run)?;
    let is_meant = |stored: &StoredArtifact| match artifact.strip_prefix(BY_HASH) {
        Some(hash) => *stored.artifact.hash == *hash,
        None => *stored.artifact.name == *artifact,
    };
    let newest = |own: bool| all.iter().rfind(|stored| is_meant(stored) && (stored.run == run) == own);
    let found = newest(true).or_else(|| newest(false)).cloned();
    let found = found.ok_or_else(|| EngineError::no_such_artifact(run, artifact))?;
    let lost = |error: &dyn std::fmt::Display| {
        let message = format!("what the artifact {} refers to cannot be read: {error}", found.artifact.name);
        EngineError::new(ErrorCode::Storage, message)
    };
    let hash: Hash = found.artifact.hash.parse().map_err(|_| lost(&"its hash is none"))?;
    let bytes = store.piece(&hash, offset, PIECE_BYTES_MAX).map_err(|error| lost(&error))?;
    let timeline = timeline(reader, &found.run)?;
    Ok(ArtifactPiece { artifact: view(found, &timeline), base64: STANDARD.encode(bytes) })
}

/// Removes the files that no run has kept, unless they are young. Only for the process that owns the database: nobody
/// else writes files meanwhile.
pub(crate) fn collect(home: &Path, store: &Store, grace: Duration) -> Reply<Collected> {
    let (path, readers) = (store::database(home), Readers::new(home));
    let Some(connection) = readers.connection()? else { return Ok(Collected::default()) };
    let reader = Reader::new(&connection, &path);
    // What cannot be looked up is kept.
    let is_wanted = |hash: &Hash| reader.is_artifact(&hash.to_string()).unwrap_or(true);
    store.collect(&is_wanted, grace).map_err(|error| {
        EngineError::new(ErrorCode::Storage, format!("artifacts could not be collected: {error}"))
    })
}
