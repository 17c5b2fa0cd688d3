//! `wonder-checker DATABASE LOG`: says what is broken, or how much there was to check.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [database, log] = arguments.as_slice() else {
        eprintln!("usage: wonder-checker DATABASE LOG");
        return ExitCode::from(2);
    };
    match wonder_checker::check(Path::new(database), Path::new(log)) {
        Ok(summary) => {
            println!("{summary:?}");
            ExitCode::SUCCESS
        }
        Err(broken) => {
            broken.iter().for_each(|what| println!("{what}"));
            ExitCode::FAILURE
        }
    }
}
