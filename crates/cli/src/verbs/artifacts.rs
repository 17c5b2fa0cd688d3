//! `artifacts`: what a run has kept, or one of these files.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use wonder_engine::{ArtifactPiece, ArtifactView, Engine, EngineError, ErrorCode};

use crate::args::ArtifactsArgs;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::session::Session;
use crate::text::Text;
use crate::verbs::last::found;
use crate::verbs::look::look;
use crate::view::artifacts::table;
use crate::view::words::shell_word;

/// What fits a screen or a line of JSON; more is saved.
const SHOWN_BYTES_MAX: u64 = 8 << 20;

pub(crate) async fn artifacts(args: ArtifactsArgs, session: &Session) -> Result<Exit, Fault> {
    look(session, async |engine| {
        let run = found(engine, args.run, &session.screen).await?.row.run;
        let Some(name) = args.artifact else { return list(engine, run, session).await };
        let mut file = File::open(engine, &run, &name).await?;
        match (&args.to, session.screen.json) {
            (Some(to), _) => save(&mut file, to, session).await?,
            (None, true) => print_json(&mut file, session).await?,
            (None, false) => print(&mut file, (&run, &name), session).await?,
        }
        Ok(Exit::Fine)
    })
    .await
}

async fn list(engine: &dyn Engine, run: String, session: &Session) -> Result<Exit, Fault> {
    let artifacts = engine.artifacts(run.clone()).await?;
    if session.screen.json {
        session.screen.print_json(&artifacts)?;
        return Ok(Exit::Fine);
    }
    session.screen.print(&table(&artifacts, &run, session.screen.page()))?;
    if artifacts.is_empty() {
        session.screen.say(format!("run {run} has kept nothing"));
    }
    Ok(Exit::Fine)
}

/// An artifact that is read piece by piece.
struct File<'e> {
    engine: &'e dyn Engine,
    artifact: ArtifactView,
    next: Option<Vec<u8>>,
    read: u64,
}

impl<'e> File<'e> {
    async fn open(engine: &'e dyn Engine, run: &str, name: &str) -> Result<File<'e>, Fault> {
        let piece = engine.artifact_piece(run.to_owned(), name.to_owned(), 0).await?;
        let next = Some(decoded(&piece)?);
        Ok(File { engine, artifact: piece.artifact, next, read: 0 })
    }

    /// The next bytes; none at the end. Whatever is written meanwhile, it is the same artifact.
    async fn piece(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        let bytes = match self.next.take() {
            Some(bytes) => bytes,
            None => {
                let (run, address) = (self.artifact.run.clone(), self.artifact.artifact.clone());
                decoded(&*self.engine.artifact_piece(run, address, self.read).await?)?
            }
        };
        self.read += bytes.len() as u64;
        if !bytes.is_empty() {
            return Ok(Some(bytes));
        }
        if self.read == self.artifact.bytes {
            return Ok(None);
        }
        let ArtifactView { name, bytes, .. } = &self.artifact;
        let message = format!("{name} had {bytes} bytes and now has {}: the file was changed", self.read);
        Err(EngineError::new(ErrorCode::Storage, message).into())
    }

    /// All of it, if it can be shown at once.
    async fn whole(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        if self.artifact.bytes > SHOWN_BYTES_MAX {
            return Ok(None);
        }
        let mut whole = Vec::new();
        while let Some(bytes) = self.piece().await? {
            whole.extend(bytes);
        }
        Ok(Some(whole))
    }
}

fn decoded(piece: &ArtifactPiece) -> Result<Vec<u8>, Fault> {
    let bytes = STANDARD.decode(&piece.base64);
    bytes.map_err(|error| EngineError::internal(format!("a piece is no base64: {error}")).into())
}

async fn save(file: &mut File<'_>, to: &Path, session: &Session) -> Result<(), Fault> {
    let wrong = |error: std::io::Error| {
        let fault = Fault::usage(format!("{} cannot be written: {error}", to.display()));
        match error.kind() {
            std::io::ErrorKind::AlreadyExists => fault.help("name a file that is not there yet"),
            _ => fault,
        }
    };
    let mut saved = OpenOptions::new().write(true).create_new(true).open(to).map_err(wrong)?;
    while let Some(bytes) = file.piece().await? {
        saved.write_all(&bytes).map_err(wrong)?;
    }
    if session.screen.json {
        return session.screen.print_json(&json!({"artifact": file.artifact, "saved": to}));
    }
    session.screen.say(format!("{} bytes of {} are in {}", file.read, file.artifact.name, to.display()));
    Ok(())
}

async fn print_json(file: &mut File<'_>, session: &Session) -> Result<(), Fault> {
    let Some(bytes) = file.whole().await? else { return Err(too_large(&file.artifact)) };
    let content = match String::from_utf8(bytes) {
        Ok(text) => json!({"artifact": file.artifact, "text": text}),
        Err(error) => json!({"artifact": file.artifact, "base64": STANDARD.encode(error.as_bytes())}),
    };
    session.screen.print_json(&content)
}

async fn print(file: &mut File<'_>, (run, name): (&str, &str), session: &Session) -> Result<(), Fault> {
    if session.screen.print_file(&[])? {
        while let Some(bytes) = file.piece().await? {
            session.screen.print_file(&bytes)?;
            if session.screen.is_unread() {
                break;
            }
        }
        return Ok(());
    }
    let Some(bytes) = file.whole().await? else { return Err(too_large(&file.artifact)) };
    let Ok(text) = String::from_utf8(bytes) else {
        let fault = Fault::usage(format!("{name} is {}, which is no text", file.artifact.media_type));
        let to = name.rsplit('/').next().unwrap_or(name);
        let (run, name, to) = (shell_word(run), shell_word(name), shell_word(to));
        return Err(fault.help(format!("save it: wonder artifacts {run} {name} --to {to}")));
    };
    session.screen.print_line(Text::block(text.strip_suffix('\n').unwrap_or(&text)))
}

fn too_large(artifact: &ArtifactView) -> Fault {
    let message = format!("{} has {} bytes, too many to be shown at once", artifact.name, artifact.bytes);
    Fault::usage(message).help("save it: --to FILE")
}
