//! The two streams we write to, and the one clock we read. Data goes to stdout, all else to stderr, colour
//! only to a terminal. A reader that has gone away is no error: `wonder list | head` ends quietly.

use std::cell::Cell;
use std::io::{self, IsTerminal, Write};

use console::Term;
use serde::Serialize;
use wonder_core::Time;

use crate::args::Format;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::view::list::Page;
use crate::view::paint::Paint;

#[derive(Debug)]
pub(crate) struct Screen {
    pub json: bool,
    /// Of what goes to stdout and to stderr.
    pub out: Paint,
    pub err: Paint,
    stdout_is_terminal: bool,
    /// Stderr is a terminal that can be redrawn.
    pub live: bool,
    /// A person sits at both ends.
    pub interactive: bool,
    /// Nobody reads stdout any more.
    gone: Cell<bool>,
}

impl Screen {
    pub(crate) fn new(output: Format) -> Screen {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let (stdout, stderr) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let color = !set("NO_COLOR") && !dumb;
        Screen {
            json: output == Format::Json,
            out: Paint { color: color && stdout },
            err: Paint { color: color && stderr },
            stdout_is_terminal: stdout,
            live: stderr && !dumb,
            interactive: stderr && io::stdin().is_terminal(),
            gone: Cell::new(false),
        }
    }

    /// How a page for stdout is to be drawn.
    pub(crate) fn page(&self) -> Page {
        let width = self.stdout_is_terminal.then(|| usize::from(Term::stdout().size().1));
        Page { now: now(), width, paint: self.out }
    }

    /// Data. What cannot be written because the reader has gone is not missed by anybody.
    pub(crate) fn print(&self, text: &str) -> Result<(), Fault> {
        if self.gone.get() {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.gone.set(true);
                Ok(())
            }
            Err(error) => {
                let message = format!("cannot write to stdout: {error}");
                Err(wonder_engine::EngineError::new(wonder_engine::ErrorCode::Storage, message).into())
            }
        }
    }

    /// Nobody reads what we print: whoever only prints may stop.
    pub(crate) fn is_unread(&self) -> bool {
        self.gone.get()
    }

    /// A value as JSON: to read on a terminal, on one line otherwise.
    pub(crate) fn print_json(&self, value: &impl Serialize) -> Result<(), Fault> {
        let text = match self.stdout_is_terminal {
            true => serde_json::to_string_pretty(value),
            false => serde_json::to_string(value),
        };
        let text = text.map_err(|error| wonder_engine::EngineError::internal(error.to_string()))?;
        self.print(&format!("{text}\n"))
    }

    /// One JSON line, whoever reads.
    pub(crate) fn print_json_line(&self, value: &impl Serialize) -> Result<(), Fault> {
        let text = serde_json::to_string(value);
        let text = text.map_err(|error| wonder_engine::EngineError::internal(error.to_string()))?;
        self.print(&format!("{text}\n"))
    }

    /// A word to the person; lost if nobody listens.
    pub(crate) fn say(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        let _ = stderr.write_all(text.as_bytes());
        let _ = stderr.write_all(b"\n");
    }

    /// Tells why it could not be done, and gives the code to leave with.
    pub(crate) fn fault(&self, fault: &Fault) -> Exit {
        if self.json {
            let _ = self.print_json(&fault.to_json());
        } else {
            self.say(fault.render(self.err).trim_end());
        }
        fault.exit()
    }
}

pub(crate) fn now() -> Time {
    wonder_host::Clock::System.now()
}
