//! `token`: the tokens of a home, with or without a server.

use serde_json::json;
use wonder_core::time::parse_duration_ms;
use wonder_engine::{EngineError, ErrorCode};
use wonder_server::{NewToken, Role, Token, TokenError, TokenStore};

use crate::args::{TokenArgs, TokenCreateArgs, TokenVerb};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::screen::now;
use crate::session::Session;
use crate::view::paint::Tone;
use crate::view::table::Table;

pub(crate) fn token(args: TokenArgs, session: &Session) -> Result<Exit, Fault> {
    let store = TokenStore::at(session.home()?);
    match args.what {
        TokenVerb::Create(args) => create(args, &store, session)?,
        TokenVerb::List => list(&store, session)?,
        TokenVerb::Revoke(args) => {
            let token = store.revoke(&args.name).map_err(fault)?;
            match session.screen.json {
                true => session.screen.print_json(&token)?,
                false => session.screen.say(format!("{} is refused from now on", token.name)),
            }
        }
    }
    Ok(Exit::Fine)
}

fn create(args: TokenCreateArgs, store: &TokenStore, session: &Session) -> Result<(), Fault> {
    let expires_in_ms = args.expires.as_deref().map(expires).transpose()?;
    let role =
        Role::parse(&args.role).ok_or_else(|| Fault::usage(format!("there is no role {}", args.role)))?;
    let new = NewToken { name: args.name, role, project: args.project, expires_in_ms };
    let (token, text) = store.create(new, now()).map_err(fault)?;
    if session.screen.json {
        let mut made = json!(token);
        made["token"] = text.into();
        return session.screen.print_json(&made);
    }
    session.screen.print_line(text)?;
    session.screen.say(format!("{}: shown this once, and kept as a hash", token.name));
    Ok(())
}

fn expires(text: &str) -> Result<u64, Fault> {
    let ms = parse_duration_ms(text).filter(|_| text.trim().parse::<u64>().is_err());
    ms.ok_or_else(|| {
        Fault::usage(format!("--expires {text}: this is no duration")).help("such as 12h or 30d")
    })
}

fn list(store: &TokenStore, session: &Session) -> Result<(), Fault> {
    let tokens = store.list().map_err(fault)?;
    if session.screen.json {
        return session.screen.print_json(&tokens);
    }
    if tokens.is_empty() {
        session.screen.say("no tokens yet: `wonder token create --role ROLE` makes one, and so does the first `wonder serve`");
        return Ok(());
    }
    let mut table = Table::new(&["NAME", "ROLE", "PROJECT", "CREATED", "EXPIRES"]);
    let plain = |text: String| (Tone::Plain, text);
    for Token { name, role, project, created_at, expires_at } in tokens {
        let expires = match expires_at {
            Some(end) if end <= now() => (Tone::Bad, "expired".to_owned()),
            Some(end) => plain(end.to_text()),
            None => plain("never".to_owned()),
        };
        let project = project.unwrap_or_else(|| "all".to_owned());
        table.row(vec![
            plain(name),
            plain(role.as_str().to_owned()),
            plain(project),
            plain(created_at.to_text()),
            expires,
        ]);
    }
    let page = session.screen.page();
    session.screen.print(&table.render(page.paint, page.width))
}

pub(crate) fn fault(error: TokenError) -> Fault {
    match error {
        TokenError::Refused(_) => Fault::usage(error.to_string()),
        TokenError::Unknown(_) => {
            Fault::usage(error.to_string()).help("`wonder token list` shows those that there are")
        }
        TokenError::File(..) | TokenError::Damaged(..) => {
            EngineError::new(ErrorCode::Storage, error.to_string()).into()
        }
    }
}
