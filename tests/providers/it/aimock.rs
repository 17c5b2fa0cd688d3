//! The independent double: `@copilotkit/aimock`, started once on a port of its own choosing, with the fixtures it is
//! given. It ends with whoever started it.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value as Json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::page::root;

const START_MAX: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct Aimock {
    /// Where it listens.
    pub(crate) address: String,
    _child: Child,
    fixtures: std::path::PathBuf,
}

impl Aimock {
    pub(crate) async fn start(fixtures: &Json) -> Aimock {
        let program = root().join("tests/providers/node_modules/@copilotkit/aimock/dist/cli.js");
        assert!(program.exists(), "{} is not there: `make tools` installs it", program.display());
        let path = root().join("target").join(format!("aimock-{}.json", std::process::id()));
        std::fs::write(&path, fixtures.to_string()).expect("target can be written to");
        let mut child = Command::new("node")
            .arg(&program)
            .args(["--port", "0", "--strict", "--fixtures"])
            .arg(&path)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("node is here");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let mut said = String::new();
        let starting = tokio::time::timeout(START_MAX, async {
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some((_, url)) = line.split_once("listening on http://") {
                    return Some(url.trim().to_owned());
                }
                said.push_str(&line);
            }
            None
        });
        let address = starting.await.expect("aimock starts");
        let Some(address) = address else {
            let mut error = String::new();
            let _ = child.stderr.take().expect("its errors").read_to_string(&mut error).await;
            panic!("aimock did not start: {said}\n{error}");
        };
        // What it says from now on is nobody's business, but must not fill the pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Aimock { address, _child: child, fixtures: path }
    }
}

impl Drop for Aimock {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.fixtures);
    }
}
