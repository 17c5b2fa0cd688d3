//! The two streams we write to, and the one clock we read. Data goes to stdout, all else to stderr, colour
//! only to a terminal. A reader that has gone away is no error: `wonder list | head` ends quietly.
//!
//! Nothing else writes to them, and nothing is written but [`Text`] and JSON: what came from outside has been cleaned.
//! The one exception is a file that somebody asked for, and that goes to no terminal.
#![expect(clippy::disallowed_methods, reason = "the one place that writes")]

use std::cell::Cell;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;

use console::Term;
use rustix::fs::OFlags;
use serde::Serialize;
use wonder_core::{Time, visible};

use crate::args::Format;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::text::Text;
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

    /// Somebody watches who can be asked what comes up meanwhile.
    pub(crate) fn asks(&self) -> bool {
        self.live && self.interactive && !self.json
    }

    /// How a page for stdout is to be drawn.
    pub(crate) fn page(&self) -> Page {
        let width = self.stdout_is_terminal.then(|| usize::from(Term::stdout().size().1));
        Page { now: now(), width, paint: self.out }
    }

    /// Data. What cannot be written because the reader has gone is not missed by anybody.
    pub(crate) fn print(&self, text: &Text) -> Result<(), Fault> {
        self.write(text.as_str())
    }

    /// A file as it is, byte for byte, where a program or a file takes it. False: a terminal would obey what is in it.
    pub(crate) fn print_file(&self, bytes: &[u8]) -> Result<bool, Fault> {
        if self.stdout_is_terminal {
            return Ok(false);
        }
        self.write_bytes(bytes).map(|()| true)
    }

    fn write(&self, text: &str) -> Result<(), Fault> {
        self.write_bytes(text.as_bytes())
    }

    fn write_bytes(&self, bytes: &[u8]) -> Result<(), Fault> {
        if self.gone.get() {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
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

    pub(crate) fn print_line(&self, line: impl Into<Text>) -> Result<(), Fault> {
        let mut text = Text::EMPTY;
        text.push_line(line);
        self.print(&text)
    }

    /// Nobody reads what we print: whoever only prints may stop.
    pub(crate) fn is_unread(&self) -> bool {
        self.gone.get()
    }

    /// A value as JSON: to read on a terminal, on one line otherwise. The value is exact; characters that cannot be
    /// seen are written as escapes.
    pub(crate) fn print_json(&self, value: &impl Serialize) -> Result<(), Fault> {
        let text = match self.stdout_is_terminal {
            true => serde_json::to_string_pretty(value),
            false => serde_json::to_string(value),
        };
        self.write_json(text)
    }

    /// One JSON line, whoever reads.
    pub(crate) fn print_json_line(&self, value: &impl Serialize) -> Result<(), Fault> {
        self.write_json(serde_json::to_string(value))
    }

    fn write_json(&self, written: serde_json::Result<String>) -> Result<(), Fault> {
        let json = written.map_err(|error| wonder_engine::EngineError::internal(error.to_string()))?;
        self.write(&format!("{}\n", visible::json(&json)))
    }

    /// A word to the person; lost if nobody listens.
    pub(crate) fn say(&self, line: impl Into<Text>) {
        let mut text = Text::EMPTY;
        text.push_line(line);
        self.draw(&text);
    }

    /// The same as it is, without the line's end.
    pub(crate) fn draw(&self, text: &Text) {
        let mut stderr = io::stderr().lock();
        let _ = stderr.write_all(text.as_str().as_bytes()).and_then(|()| stderr.flush());
    }

    /// Rows and columns of the terminal that stderr is.
    pub(crate) fn size(&self) -> (usize, usize) {
        let (height, width) = Term::stderr().size();
        (height.into(), width.into())
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

/// The terminal, to read keys from without waiting. Opened anew: how it is read is nobody else's business who has it.
pub(crate) fn terminal_keys() -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
    File::options().read(true).custom_flags(flags).open("/dev/tty")
}

/// The terminal for a program that has it to itself for a while, such as an editor.
pub(crate) fn terminal_for(program: &mut Command) -> io::Result<&mut Command> {
    let open = || File::options().read(true).write(true).open("/dev/tty");
    Ok(program.stdin(open()?).stdout(open()?).stderr(open()?))
}

pub(crate) fn now() -> Time {
    wonder_host::Clock::System.now()
}
