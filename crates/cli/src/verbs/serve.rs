//! `serve`: the process that stays. It owns the home, carries all its runs on, and answers over HTTP; other verbs find it
//! as they find any owner.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use wonder_engine::{EngineError, Filter, Status};
use wonder_host::{Connection, Leaving, Purpose};
use wonder_server::{Access, Limits, Options, Tls, TokenStore};

use crate::args::ServeArgs;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::interrupts::Interrupts;
use crate::screen::now;
use crate::session::Session;
use crate::sources::{For, library, unable};
use crate::text::text;

/// How often an owner that is still there is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

pub(crate) async fn serve(args: ServeArgs, session: &Session) -> Result<Exit, Fault> {
    let mut interrupts = Interrupts::listen();
    let access = if args.no_auth { Access::Open } else { Access::Tokens };
    wonder_server::refuse_open_address(args.listen, access).map_err(|error| {
        Fault::usage(error.to_string()).help("leave --no-auth out, or listen on 127.0.0.1")
    })?;
    let tls = tls(&args)?;
    let listener = bind(args.listen).await?;
    let address = listener.local_addr().map_err(|error| EngineError::internal(error.to_string()))?;
    let connection = session.open(Purpose::Act).await?;
    let served = match options(&args, session, &connection, access) {
        Ok((options, token)) => {
            if connection.owner().is_none() {
                carry_on(session, &connection, INTERRUPTED).await;
            }
            announce(session, (address, tls.is_some()), token)?;
            until_told(session, &connection, &mut interrupts, (listener, tls, options)).await
        }
        Err(fault) => Err(fault),
    };
    // A second Ctrl-C: whatever is still to be stopped, the runs are safe without it.
    tokio::select! {
        () = connection.close(Leaving::Now) => {}
        () = interrupts.next() => {}
    }
    served.map(|()| Exit::Fine)
}

async fn until_told(
    session: &Session,
    connection: &Connection,
    interrupts: &mut Interrupts,
    (listener, tls, options): (TcpListener, Option<Tls>, Options),
) -> Result<(), Fault> {
    let closing = CancellationToken::new();
    let serving = wonder_server::serve(listener, tls, options, closing.clone());
    let carrying = async {
        carry_all_on(session, connection).await;
        std::future::pending::<()>().await;
    };
    let told = async {
        interrupts.next().await;
        session.screen.say("leaving: the runs are safe, and the next owner goes on with them");
        closing.cancel();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        served = serving => {
            served.map_err(|error| EngineError::internal(format!("the server ended: {error}")).into())
        }
        () = carrying => Ok(()),
        () = told => Ok(()),
    }
}

/// Everything that is not over. What was interrupted is carried on before anybody is told that the server is there;
/// here it is what waits, so that deadlines lead to work again, and all of it when another owner leaves.
async fn carry_all_on(session: &Session, connection: &Connection) {
    if let Some(process) = connection.owner() {
        session.screen.say(format!("process {process} owns the home: it is asked until it leaves"));
        while connection.owner().is_some() {
            tokio::time::sleep(LOOK_AGAIN).await;
            // Whoever asks notices that the owner has gone, and takes over.
            drop(connection.engine().list(Filter { limit: Some(1), ..Filter::default() }).await);
        }
        carry_on(session, connection, INTERRUPTED).await;
    }
    carry_on(session, connection, WAITING).await;
}

/// The oldest first.
async fn carry_on(session: &Session, connection: &Connection, which: fn() -> Filter) {
    let all = Filter { limit: Some(u32::MAX), ..which() };
    let rows = connection.engine().list(all).await.unwrap_or_default();
    for row in rows.into_iter().rev() {
        if let Err(error) = connection.adopt(&row.run).await {
            session.screen.say(text!("run {} is left as it is: {}", &row.run, &error.message));
        }
    }
}

const INTERRUPTED: fn() -> Filter = || Filter { interrupted: true, ..Filter::default() };
const WAITING: fn() -> Filter = || Filter { status: Some(Status::Waiting), ..Filter::default() };

fn options(
    args: &ServeArgs,
    session: &Session,
    connection: &Connection,
    access: Access,
) -> Result<(Options, Option<String>), Fault> {
    let home = session.home()?;
    let Some(workdir) = session.around.workdir.to_str() else {
        let message = "the path of the working directory is no UTF-8 text";
        return Err(Fault::usage(message)
            .help("runs remember where they work: start the server in another directory"));
    };
    let token = match access {
        Access::Tokens => TokenStore::at(&home).first(now()).map_err(crate::verbs::token::fault)?,
        Access::Open => None,
    };
    let options = Options {
        engine: Arc::new(connection.clone()),
        home,
        workdir: workdir.to_owned(),
        performs: Arc::new(unable()),
        library: library(For::Run)?,
        access,
        hosts: args.hosts.clone(),
        limits: Limits::default(),
    };
    Ok((options, token))
}

/// Where it is, and the first token, which is shown now and never again.
fn announce(
    session: &Session,
    (address, secure): (SocketAddr, bool),
    token: Option<String>,
) -> Result<(), Fault> {
    let screen = &session.screen;
    let scheme = if secure { "https" } else { "http" };
    let url = format!("{scheme}://{address}");
    if screen.json {
        return screen.print_json_line(&json!({"url": url, "process": std::process::id(), "token": token}));
    }
    screen.say(format!("listening on {url}"));
    if let Some(token) = token {
        screen.say("a token for an admin was made; it is shown this once, and kept as a hash:");
        screen.print_line(token)?;
    }
    if !secure && !address.ip().is_loopback() {
        screen.say(
            "without TLS tokens can be read on their way: --tls-cert and --tls-key, or a proxy that has it",
        );
    }
    Ok(())
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Fault> {
    TcpListener::bind(address).await.map_err(|error| {
        let help = match error.kind() {
            std::io::ErrorKind::AddrInUse => "somebody listens there already: choose another with --listen",
            _ => "choose another address with --listen",
        };
        Fault::usage(format!("cannot listen on {address}: {error}")).help(help)
    })
}

fn tls(args: &ServeArgs) -> Result<Option<Tls>, Fault> {
    let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) else { return Ok(None) };
    let tls = Tls::from_files(certificate, key).map_err(|error| Fault::usage(format!("TLS: {error}")))?;
    Ok(Some(tls))
}
