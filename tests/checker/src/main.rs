//! `wonder-checker DATABASE LOG [DEATHS]`: says what is broken, or how much there was to check.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (database, log, deaths) = match arguments.as_slice() {
        [database, log] => (database, log, Ok(1)),
        [database, log, deaths] => (database, log, deaths.parse()),
        _ => {
            eprintln!("usage: wonder-checker DATABASE LOG [DEATHS]");
            return ExitCode::from(2);
        }
    };
    let Ok(deaths) = deaths else {
        eprintln!("DEATHS is how many hosts were killed");
        return ExitCode::from(2);
    };
    match wonder_checker::check(Path::new(database), Path::new(log), deaths) {
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
