//! The database's tables, and how an older file becomes today's.
//!
//! `docs/storage.md` says the same to people. A step, once released, is never changed: add one.

use rusqlite::Connection;

/// "Wond": tells our files from other people's.
pub(crate) const APPLICATION_ID: i64 = 0x576f_6e64;

/// Each step takes a file from the version of its index to the next.
const STEPS: [&str; 7] = [FIRST, FORKS_AND_PROJECTS, FEWER_PAGES, FILES, FOUND_BY, REQUESTS, ARTIFACTS];

/// The version that this binary writes.
pub(crate) const VERSION: i64 = STEPS.len() as i64;

const FIRST: &str = "
-- Workflows with all they name, by content.
CREATE TABLE definitions (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  hash BLOB NOT NULL,
  bundle TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  UNIQUE (name, version),
  UNIQUE (name, hash)
);
-- What a list shows of a run; all of it follows from its events, but the row is there first.
CREATE TABLE runs (
  no INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  workflow TEXT NOT NULL,
  version INTEGER NOT NULL,
  definition INTEGER NOT NULL,
  callable TEXT NOT NULL,
  root TEXT NOT NULL,
  parent TEXT,
  status TEXT NOT NULL,
  workdir TEXT NOT NULL,
  labels TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  usd_micros INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  evidence TEXT
);
CREATE INDEX runs_by_root ON runs (root);
CREATE INDEX runs_live ON runs (status) WHERE ended_at IS NULL;
-- The truth: one row per step, a JSON array of its events. refs: parts of it are in blobs.
CREATE TABLE events (
  run INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  refs INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (run, seq)
) WITHOUT ROWID;
-- Parts of events above 4 KiB, once each, by their BLAKE3 hash.
CREATE TABLE blobs (hash BLOB PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
-- A run's state after its event `seq`: a shortcut that can be thrown away.
CREATE TABLE snapshots (run INTEGER PRIMARY KEY, seq INTEGER NOT NULL, state TEXT NOT NULL);
-- When a run that waits wants to be woken.
CREATE TABLE timers (run INTEGER PRIMARY KEY, at INTEGER NOT NULL);
CREATE INDEX timers_by_time ON timers (at);
CREATE TABLE gates (
  run INTEGER NOT NULL,
  gate INTEGER NOT NULL,
  node TEXT,
  kind TEXT NOT NULL,
  title TEXT NOT NULL,
  body TEXT,
  form TEXT NOT NULL,
  assignees TEXT NOT NULL,
  opened_at INTEGER NOT NULL,
  deadline INTEGER,
  open INTEGER NOT NULL,
  PRIMARY KEY (run, gate)
) WITHOUT ROWID;
CREATE INDEX gates_open ON gates (open) WHERE open = 1;
-- Tasks with effect `once` that a worker has begun.
CREATE TABLE started (
  run INTEGER NOT NULL,
  token INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  PRIMARY KEY (run, token, attempt)
) WITHOUT ROWID;
-- What tasks said while they ran.
CREATE TABLE logs (
  number INTEGER PRIMARY KEY,
  run INTEGER NOT NULL,
  at INTEGER NOT NULL,
  node TEXT NOT NULL,
  token INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  step TEXT NOT NULL,
  stream TEXT NOT NULL,
  text TEXT NOT NULL
);
CREATE INDEX logs_by_run ON logs (run, number);
-- The last durations and costs of nodes that completed, of workflows that ask for estimates.
CREATE TABLE learnt (
  workflow TEXT NOT NULL,
  node TEXT NOT NULL,
  durations_ms TEXT NOT NULL,
  usd_micros TEXT NOT NULL,
  PRIMARY KEY (workflow, node)
) WITHOUT ROWID;
CREATE TABLE artifacts (
  run INTEGER NOT NULL,
  name TEXT NOT NULL,
  number INTEGER NOT NULL,
  hash BLOB NOT NULL,
  type TEXT,
  bytes INTEGER NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (run, name, number)
) WITHOUT ROWID;
";

const FORKS_AND_PROJECTS: &str = "
-- The run it was forked from, and what of its sums was spent there.
ALTER TABLE runs ADD COLUMN forked_from TEXT;
ALTER TABLE runs ADD COLUMN copied_usd_micros INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN copied_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN project TEXT NOT NULL DEFAULT 'default';
-- What each project spent on each day (UTC, days since 1970): the sum of what its tasks reported.
CREATE TABLE spent (
  project TEXT NOT NULL,
  day INTEGER NOT NULL,
  usd_micros INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  PRIMARY KEY (project, day)
) WITHOUT ROWID;
";

/// Steps of many runs at once go to the end of one table, one page after the other, instead of each to the
/// pages of its run: a commit writes a fraction of the pages. A run's deadline is in its row.
const FEWER_PAGES: &str = "
ALTER TABLE events RENAME TO events_by_key;
CREATE TABLE events (
  no INTEGER PRIMARY KEY,
  run INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  refs INTEGER NOT NULL,
  body TEXT NOT NULL
);
INSERT INTO events SELECT NULL, run, seq, refs, body FROM events_by_key ORDER BY run, seq;
DROP TABLE events_by_key;
CREATE UNIQUE INDEX events_by_run ON events (run, seq);
-- When a run that waits wants to be woken.
ALTER TABLE runs ADD COLUMN wake_at INTEGER;
UPDATE runs SET wake_at = (SELECT at FROM timers WHERE run = no);
DROP TABLE timers;
CREATE INDEX runs_by_wake ON runs (wake_at) WHERE wake_at IS NOT NULL;
DROP INDEX runs_live;
DROP INDEX runs_by_root;
CREATE INDEX runs_by_root ON runs (root) WHERE parent IS NOT NULL;
";

const FILES: &str = "
-- The file it was started from, if there was one.
ALTER TABLE runs ADD COLUMN file TEXT;
";

/// What people look for is found without reading every run: by label, workflow, status and start. Of runs that
/// completed, which are most, no status is kept: the newest are soon found.
const FOUND_BY: &str = "
CREATE TABLE labels (
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  run INTEGER NOT NULL,
  PRIMARY KEY (key, value, run)
) WITHOUT ROWID;
INSERT INTO labels SELECT key, value, no FROM runs, json_each(labels);
CREATE INDEX runs_by_workflow ON runs (workflow);
CREATE INDEX runs_by_start ON runs (started_at);
CREATE INDEX runs_by_status ON runs (status) WHERE status != 'completed';
-- How long it lay ended before it was retried.
ALTER TABLE runs ADD COLUMN closed_ms INTEGER NOT NULL DEFAULT 0;
-- The visit that waits there, with its branch, and what the branch works on.
ALTER TABLE gates ADD COLUMN visit TEXT;
ALTER TABLE gates ADD COLUMN item TEXT;
";

/// What was asked under which id, and which run it was about: asking twice does it once. In the order of time, so that
/// new ones go to one end and old ones leave at the other.
const REQUESTS: &str = "
CREATE TABLE requests (
  no INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  hash BLOB NOT NULL,
  run TEXT NOT NULL,
  at INTEGER NOT NULL
);
";

/// Artifacts by the event that names them. The table that was there before was never written to.
const ARTIFACTS: &str = "
DROP TABLE artifacts;
CREATE TABLE artifacts (
  run INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  place INTEGER NOT NULL,
  token INTEGER NOT NULL,
  name TEXT NOT NULL,
  type TEXT,
  media_type TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  hash TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (run, seq, place)
) WITHOUT ROWID;
CREATE INDEX artifacts_by_hash ON artifacts (hash);
-- It reads its parent's artifacts by name too.
ALTER TABLE runs ADD COLUMN inherits_artifacts INTEGER NOT NULL DEFAULT 0;
";

/// Takes the file from version `from` to today's, all or nothing.
pub(crate) fn migrate(connection: &mut Connection, from: i64) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    for step in STEPS.iter().skip(from as usize) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_file_becomes_todays_with_all_that_is_in_it() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(FIRST).unwrap();
        connection
            .execute_batch(
                "INSERT INTO runs VALUES
                   (1, 'A', 'w', 1, 1, '{}', 'A', NULL, 'waiting', '/', '{\"team\":\"docs\"}', 5, NULL, 7, 9, NULL);
                 INSERT INTO events VALUES (1, 3, 0, 'second'), (1, 1, 0, 'first');
                 INSERT INTO timers VALUES (1, 77);",
            )
            .unwrap();
        migrate(&mut connection, 1).unwrap();
        let text = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
        assert_eq!(
            text("SELECT group_concat(body) FROM (SELECT body FROM events ORDER BY seq)"),
            "first,second"
        );
        assert_eq!(text("SELECT wake_at || project || usd_micros FROM runs"), "77default7");
        assert_eq!(text("SELECT key || value || run FROM labels"), "teamdocs1");
        let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!(version, VERSION);
    }
}
