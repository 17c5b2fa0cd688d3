//! Requests that were done before: who asks twice, because the first answer was lost, gets the same answer and changes
//! nothing. An id is remembered in the commit of what was done under it.

use wonder_core::def::Name;
use wonder_engine::{EngineError, Reply, Request};

use super::{Driver, Turn};
use crate::store::{StoredRequest, Write};

/// How long an id is remembered: whoever has not asked again by then never will.
const REMEMBERED_MS: i64 = 7 * 24 * 3600 * 1000;
const FORGET_EVERY_MS: i64 = 3600 * 1000;

/// What is asked: an id and a hash of the rest. A start or a fork has none here: the run that it makes has its id.
#[derive(Debug)]
pub(super) struct Asked {
    id: String,
    hash: [u8; 32],
}

impl Asked {
    /// None for what changes nothing, and for what nobody gave an id.
    pub(super) fn of(request: &mut Request) -> Option<Asked> {
        if matches!(request, Request::Start(_) | Request::Fork(_)) {
            return None;
        }
        let id = request.id_mut()?.take()?;
        let text = serde_json::to_vec(request).unwrap_or_default();
        Some(Asked { id, hash: *blake3::hash(&text).as_bytes() })
    }
}

impl Driver {
    /// The run that the answer was about, if this was done before.
    pub(super) fn done_before(&self, turn: &Turn, asked: &Asked) -> Reply<Option<Name>> {
        let found = match turn.requested.get(&asked.id) {
            Some(found) => Some(found.clone()),
            None => self.store.reader().request(&asked.id)?,
        };
        match found {
            Some((hash, _)) if hash != asked.hash => Err(EngineError::request_reused(&asked.id)),
            found => Ok(found.map(|(_, run)| run)),
        }
    }

    /// Remembers what was done, with what follows from it; and forgets, now and then, what nobody will ask again.
    pub(super) fn remember(&mut self, turn: &mut Turn, asked: Asked, run: &Name) {
        let now = self.clock.now().0;
        if now >= self.forget_at {
            turn.batch.push(Write::ForgetRequests { until: now.saturating_sub(REMEMBERED_MS) });
            self.forget_at = now.saturating_add(FORGET_EVERY_MS);
        }
        turn.requested.insert(asked.id.clone(), (asked.hash, run.clone()));
        let stored = StoredRequest { id: asked.id, hash: asked.hash, run: run.clone(), at: now };
        turn.batch.push(Write::Request(Box::new(stored)));
    }
}
