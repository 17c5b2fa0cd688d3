//! Keeping: what any handler hands over becomes an artifact of its task, without secrets, streamed.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wonder_artifacts::{KeepError, Kept};
use wonder_core::artifact::{Artifact, name_problem};
use wonder_core::def::Name;
use wonder_core::error::{ErrorKind, Failure};

use super::media::MediaSniffer;
use super::{ARTIFACT_BYTES_MAX, ARTIFACTS_PER_TRY_MAX, storage_failure, too_large};
use crate::context::ActionContext;
use crate::handler::TryError;
use crate::secrets::KnownSecrets;
use crate::stream::StreamRedactor;
use crate::texts::bad_field;

/// Read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// What an artifact is called, and what is known of it before it is kept.
#[derive(Clone, Debug)]
pub struct NewArtifact {
    pub name: String,
    pub artifact_type: Option<Name>,
    /// None: by the name, else by the content.
    pub media_type: Option<Name>,
}

impl NewArtifact {
    pub fn named(name: impl Into<String>) -> NewArtifact {
        NewArtifact { name: name.into(), artifact_type: None, media_type: None }
    }
}

/// What is to be kept.
#[derive(Debug)]
pub enum Content {
    Bytes(Vec<u8>),
    /// Read from where it stands to its end.
    File(File),
}

impl Content {
    fn into_reader(self) -> Box<dyn Read + Send> {
        match self {
            Content::Bytes(bytes) => Box::new(Cursor::new(bytes)),
            Content::File(file) => Box::new(file),
        }
    }
}

impl ActionContext<'_> {
    /// Keeps this as an artifact of the task, and gives what stands for it: [`Artifact::reference`] is for a result. It is
    /// on the disk when this returns, without the secrets that are known; the run has it when the task completes, and
    /// never if this try fails. A handler that is dropped meanwhile leaves nothing that anybody names.
    pub async fn keep_artifact(&mut self, new: NewArtifact, content: Content) -> Result<Artifact, TryError> {
        let place = self.artifacts.place()?;
        // A secret in a name would be on every screen.
        let name = self.hide(new.name);
        if let Some(why) = name_problem(&name) {
            return Err(bad_field("name", &format!("{name:?} is no name of an artifact: {why}")).into());
        }
        if self.artifacts.new.len() >= ARTIFACTS_PER_TRY_MAX {
            let message = format!("more artifacts than artifacts_per_try_max ({ARTIFACTS_PER_TRY_MAX})");
            return Err(Failure::new(ErrorKind::LimitExceeded, message).into());
        }
        let (store, secrets) = (place.store.clone(), self.secrets.clone());
        let dropped = Dropped::default();
        let is_dropped = dropped.0.clone();
        let keep = move || {
            let mut source = Source::new(content.into_reader(), &secrets, is_dropped);
            let kept = store.keep(&mut source, ARTIFACT_BYTES_MAX)?;
            Ok((kept, source.sniffer))
        };
        let keeping = tokio::task::spawn_blocking(keep);
        let kept: Result<(Kept, MediaSniffer), KeepError> = match self.deadline.limit(keeping).await? {
            Ok(kept) => kept,
            Err(error) => return Err(storage_failure("kept", &error).into()),
        };
        drop(dropped);
        let (Kept { hash, bytes }, sniffer) = kept.map_err(|error| not_kept(&name, error))?;
        let media_type = new.media_type.unwrap_or_else(|| sniffer.media_type(&name).into());
        let hash: Name = hash.to_string().into();
        let artifact =
            Artifact { name: name.into(), artifact_type: new.artifact_type, media_type, bytes, hash };
        self.artifacts.new.push(artifact.clone());
        Ok(artifact)
    }
}

fn not_kept(name: &str, error: KeepError) -> Failure {
    match error {
        KeepError::TooLarge { bytes_max } => too_large(name, "artifact_bytes_max", bytes_max),
        KeepError::Unreadable(error) => bad_field("path", &format!("{name:?} cannot be read: {error}")),
        KeepError::Unwritable(error) => storage_failure("kept", &error),
    }
}

/// Whoever waited for it does not wait any more.
#[derive(Default)]
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A reader that gives everything without secrets, and sees what it is on the way. It holds a chunk and what may be the
/// beginning of a secret.
struct Source<'s> {
    inner: Box<dyn Read + Send>,
    redactor: StreamRedactor<'s>,
    ready: Vec<u8>,
    given: usize,
    ended: bool,
    sniffer: MediaSniffer,
    is_dropped: Arc<AtomicBool>,
}

impl<'s> Source<'s> {
    fn new(
        inner: Box<dyn Read + Send>,
        secrets: &'s KnownSecrets,
        is_dropped: Arc<AtomicBool>,
    ) -> Source<'s> {
        let redactor = StreamRedactor::new(secrets);
        let (ready, sniffer) = (Vec::new(), MediaSniffer::default());
        Source { inner, redactor, ready, given: 0, ended: false, sniffer, is_dropped }
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK_BYTES];
        while self.given == self.ready.len() && !self.ended {
            if self.is_dropped.load(Ordering::Relaxed) {
                return Err(io::Error::other("nobody waits for it any more"));
            }
            let read = self.inner.read(&mut chunk)?;
            self.ended = read == 0;
            let ready = if self.ended {
                self.redactor.finish()
            } else {
                self.redactor.push(&chunk[..read]).into_owned()
            };
            self.sniffer.see(&ready);
            (self.ready, self.given) = (ready, 0);
        }
        Ok(())
    }
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.fill()?;
        let left = &self.ready[self.given..];
        let count = left.len().min(buffer.len());
        buffer[..count].copy_from_slice(&left[..count]);
        self.given += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a text in pieces of so many bytes.
    struct Pieces(Vec<u8>, usize, usize);

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let end = (self.1 + self.2).min(self.0.len());
            let piece = &self.0[self.1..end];
            buffer[..piece.len()].copy_from_slice(piece);
            self.1 = end;
            Ok(piece.len())
        }
    }

    #[test]
    fn no_secret_comes_through_wherever_it_is_split() {
        let known = KnownSecrets::of(["sk-123456"]);
        let text = b"a sk-123456 b c2stMTIzNDU2 c sk-12345".to_vec();
        for bytes in 1..=text.len() {
            let pieces = Pieces(text.clone(), 0, bytes);
            let mut source = Source::new(Box::new(pieces), &known, Arc::default());
            let mut shown = String::new();
            source.read_to_string(&mut shown).unwrap();
            assert_eq!(shown, "a *** b *** c sk-12345", "in pieces of {bytes}");
        }
    }

    #[test]
    fn however_much_comes_little_is_held() {
        let known = KnownSecrets::of(["sk-123456"]);
        let pieces = io::repeat(b's').take(4 << 20);
        let mut source = Source::new(Box::new(pieces), &known, Arc::default());
        let (mut buffer, mut bytes) = ([0; CHUNK_BYTES], 0);
        loop {
            let read = source.read(&mut buffer).unwrap();
            assert!(source.ready.capacity() <= 2 * CHUNK_BYTES, "{} bytes are held", source.ready.capacity());
            bytes += read;
            if read == 0 {
                break;
            }
        }
        assert_eq!(bytes, 4 << 20);
    }

    #[test]
    fn what_nobody_waits_for_is_not_read_on() {
        let known = KnownSecrets::of([]);
        let dropped = Dropped::default();
        let mut source = Source::new(Box::new(io::repeat(1)), &known, dropped.0.clone());
        let mut buffer = [0; CHUNK_BYTES];
        assert_eq!(source.read(&mut buffer).unwrap(), CHUNK_BYTES);
        drop(dropped);
        assert!(source.read(&mut buffer).is_err());
    }
}
