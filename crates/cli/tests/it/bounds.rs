//! What is read is bounded, exact, and said to be neither where it is not: endless files, long lines, large numbers,
//! names that are no text.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::{Output, Stdio};

use insta::assert_snapshot;

use crate::home::Home;

const FLOW: &str = "name: done\nnodes:\n  a: {mock: {output: {x: 1}}}\noutput_mapping: {n: input.n}\n";

fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!text.contains("panicked"), "{text}");
    text
}

#[test]
fn a_file_without_an_end_is_read_up_to_its_limit() {
    let home = Home::with(FLOW);
    for verb in ["validate", "run", "plan", "graph"] {
        let output = home.command(&[verb, "/dev/zero"]).output().unwrap();
        assert!(said(&output).contains("more than 33554432 bytes"), "{verb}: {output:?}");
        assert_eq!(output.status.code(), Some(2), "{verb}");
    }
    for input in ["@/dev/zero", "@/dev/stdin", "-"] {
        for args in [&["run", "flow.yaml", "-i", input][..], &["fork", "last", "--from", "a", "-i", input]] {
            let endless = std::fs::File::open("/dev/zero").unwrap();
            let output = home.command(args).stdin(Stdio::from(endless)).output().unwrap();
            assert!(
                said(&output).contains("more than 16777216 bytes, the limit result_bytes_max"),
                "{output:?}"
            );
        }
    }
    let endless = std::fs::File::open("/dev/zero").unwrap();
    let output = home.command(&["run", "-"]).stdin(Stdio::from(endless)).output().unwrap();
    assert!(said(&output).contains("more than 33554432 bytes"), "{output:?}");
    assert_snapshot!("a_directory_is_no_file", home.wonder(&["run", ".."]));
    assert_snapshot!("a_directory_is_no_input", home.wonder(&["run", "flow.yaml", "-i", "@.."]));
    std::fs::create_dir(home.work().join(".env")).unwrap();
    assert!(said(&home.command(&["run", "flow.yaml"]).output().unwrap()).contains("cannot read the file"));
}

#[test]
fn json_is_read_exactly_or_refused() {
    let home = Home::with(FLOW);
    let run = |input: &str| home.wonder(&["run", "flow.yaml", "-i", input]);
    assert!(run("n:=9223372036854775807").contains("{\"n\":9223372036854775807}"));
    assert!(run("n:=9007199254740993").contains("{\"n\":9007199254740993}"));
    assert_snapshot!("number_in_an_object", run("{\"n\": 9223372036854775808}"));
    assert_snapshot!("number_behind_a_key", run("n:=-9223372036854775809"));
    assert_snapshot!("key_twice", run("{\"n\": {\"a\": 1, \"b\": 2, \"a\": 3}}"));
    home.write("input.json", "{\n  \"n\": [18446744073709551616]\n}\n");
    assert_snapshot!("number_in_a_file", run("@input.json"));
    assert_snapshot!("payload_with_a_key_twice", home.wonder(&["signal", "last", "x", "{\"a\":1,\"a\":2}"]));
}

#[test]
fn names_that_are_no_text_are_refused_and_break_nothing() {
    let home = Home::with(FLOW);
    let odd = |below: &str| {
        let mut bytes = home.path().as_os_str().as_bytes().to_vec();
        bytes.extend(below.as_bytes());
        bytes.push(0xff);
        OsStr::from_bytes(&bytes).to_owned()
    };
    for variable in ["WONDER_HOME", "HOME", "XDG_DATA_HOME"] {
        for args in [&["list"][..], &["run", "flow.yaml", "-i", "n=1"], &["show", "last"]] {
            let mut command = home.command(args);
            command.env_remove("WONDER_HOME").env(variable, odd("/odd"));
            let output = command.output().unwrap();
            assert!(
                said(&output).contains("the path of the home is no UTF-8 text"),
                "{variable}: {output:?}"
            );
            assert_eq!(output.status.code(), Some(2));
        }
    }
    let output = home.command(&["run", "flow.yaml"]).arg("--home").arg(odd("/odd")).output().unwrap();
    assert!(said(&output).contains("the path of the home is no UTF-8 text"), "{output:?}");
    let left: Vec<_> =
        std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["desk"], "nothing was made anywhere");

    let file = odd("/desk/flow");
    std::fs::copy(home.work().join("flow.yaml"), &file).unwrap();
    for verb in ["run", "validate", "plan"] {
        let output = home.command(&[verb]).arg(&file).output().unwrap();
        assert!(said(&output).contains("the name of this file is no UTF-8 text"), "{verb}: {output:?}");
    }
    let output = home.command(&["show"]).arg(&file).output().unwrap();
    assert!(said(&output).contains("invalid UTF-8"), "{output:?}");

    let desk = odd("/other");
    std::fs::create_dir(&desk).unwrap();
    std::fs::copy(home.work().join("flow.yaml"), std::path::Path::new(&desk).join("flow.yaml")).unwrap();
    let output = home.command(&["run", "flow.yaml", "-i", "n=1"]).current_dir(&desk).output().unwrap();
    assert!(said(&output).contains("the path of the working directory is no UTF-8 text"), "{output:?}");
    for args in [&["validate", "flow.yaml"][..], &["plan", "flow.yaml"], &["graph", "flow.yaml"], &["list"]] {
        let output = home.command(args).current_dir(&desk).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
    }
    let output = home.command(&["list"]).env("WONDER_GRACE", OsStr::from_bytes(b"5s\xff")).output().unwrap();
    assert!(said(&output).contains("$WONDER_GRACE: expected a duration"), "{output:?}");
}
