//! `wonder-modelserver --script FILE [--listen 127.0.0.1:0]`: prints its address on the first line, then serves.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use wonder_modelserver::{Script, serve};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wonder-modelserver: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mut script = None;
    let mut listen = "127.0.0.1:0".to_owned();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match &*argument {
            "--script" => script = Some(PathBuf::from(value()?)),
            "--listen" => listen = value()?,
            _ => return Err(format!("{argument} is not known; say --script FILE [--listen ADDRESS]")),
        }
    }
    let script = Script::load(&script.ok_or("say --script FILE")?)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no runtime: {error}"))?;
    runtime.block_on(async {
        let listener =
            tokio::net::TcpListener::bind(&listen).await.map_err(|error| format!("{listen}: {error}"))?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        println!("http://{address}");
        std::io::stdout().flush().map_err(|error| error.to_string())?;
        serve(listener, script).await.map_err(|error| error.to_string())
    })
}
