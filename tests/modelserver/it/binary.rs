//! The program: an address on the first line, then answers.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::client::get;

const PROGRAM: &str = env!("CARGO_BIN_EXE_wonder-modelserver");

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn it_says_where_it_is_and_serves() {
    let script = std::env::temp_dir().join(format!("wonder-modelserver-{}.yaml", std::process::id()));
    std::fs::write(&script, "turns: [{text: hello}]").unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["--listen", "127.0.0.1:0", "--script"]).arg(&script).stdout(Stdio::piped());
    let mut running = Running(command.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(running.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    std::fs::remove_file(&script).unwrap();
    assert_eq!(get(&format!("{}/count", line.trim())).await["count"], 0);
}

#[test]
fn a_script_that_is_wrong_is_said() {
    for (script, expected) in
        [("", "empty"), ("turns: [{txt: x}]", "unknown field `txt`"), ("turns: [", "script")]
    {
        let error = wonder_modelserver::Script::read(script).unwrap_err();
        assert!(error.contains(expected), "{script}: {error}");
    }
    let output = Command::new(PROGRAM).arg("--scrip").output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("--scrip is not known"));
}
