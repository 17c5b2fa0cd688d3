//! A directory with its own runs, and the binary started in it with nothing else around.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

use crate::mask::mask;

pub(crate) struct Home {
    dir: TempDir,
}

impl Home {
    pub(crate) fn new() -> Home {
        let home = Home { dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir(home.work()).unwrap();
        home
    }

    /// With one workflow file, `flow.yaml`.
    pub(crate) fn with(flow: &str) -> Home {
        let home = Home::new();
        home.write("flow.yaml", &format!("wonder: 1\n{flow}"));
        home
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.path().join("desk")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path().join("runs/wonder.db")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.work().join(name), text).unwrap();
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wonder"));
        command.args(args).current_dir(self.work()).stdin(Stdio::null()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.path().join("person")).env("USER", "ann");
        command.env("WONDER_HOME", self.path().join("runs"));
        command
    }

    /// A line for the shell, with the binary in its path.
    pub(crate) fn shell(&self, line: &str) -> Command {
        let own = Path::new(env!("CARGO_BIN_EXE_wonder")).parent().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let command = self.command(&[]);
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(self.work()).stdin(Stdio::null()).env_clear();
        shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.env("PATH", format!("{}:{path}", own.display()));
        shell
    }

    /// Runs it and masks what differs from day to day.
    pub(crate) fn wonder(&self, args: &[&str]) -> String {
        self.shot(&self.command(args).output().unwrap())
    }

    pub(crate) fn wonder_fed(&self, args: &[&str], input: &str) -> String {
        let mut child = self.start(self.command(args).stdin(Stdio::piped()));
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        self.shot(&child.wait_with_output().unwrap())
    }

    /// What it prints, as JSON.
    pub(crate) fn json(&self, args: &[&str]) -> serde_json::Value {
        let output = self.command(args).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    /// What it prints, without the line's end.
    pub(crate) fn text(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    pub(crate) fn start(&self, command: &mut Command) -> Child {
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    pub(crate) fn shot(&self, output: &Output) -> String {
        let mut text = format!("exit {}\n", output.status.code().unwrap_or(-1));
        for (name, stream) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
            let said = String::from_utf8_lossy(stream);
            if !said.is_empty() {
                write!(text, "--- {name}\n{said}").unwrap();
            }
        }
        mask(&text, self.path())
    }
}

/// Reads what a process says on stderr until a line has all these words, then lets it go on.
pub(crate) fn until(child: &mut Child, words: &str) -> String {
    let mut lines = BufReader::new(child.stderr.as_mut().unwrap());
    let mut said = String::new();
    loop {
        let mut line = String::new();
        assert!(lines.read_line(&mut line).unwrap() > 0, "it never said `{words}`:\n{said}");
        said.push_str(&line);
        if line.contains(words) {
            // What was read ahead would be lost: the process must say nothing more until it is told to.
            assert!(lines.buffer().is_empty(), "it went on: {:?}", lines.buffer());
            return said;
        }
    }
}

pub(crate) fn interrupt(child: &Child) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}
