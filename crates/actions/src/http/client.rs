//! HTTP clients, made when the first request needs one: a host that makes none does not pay for TLS.
//!
//! One is for requests that may reach anything, one resolves names to public addresses only. They share no
//! connections. Neither follows redirects, tries again or reads proxies from the environment: a proxy would
//! resolve names where they cannot be checked.

use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::Client;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;

use super::guard::check_address;

const CONNECT_WITHIN: Duration = Duration::from_secs(10);
const USER_AGENT: &str = concat!("wonder/", env!("CARGO_PKG_VERSION"));

#[derive(Debug, Default)]
pub(crate) struct Clients {
    open: OnceLock<Result<Client, String>>,
    guarded: OnceLock<Result<Client, String>>,
}

impl Clients {
    /// For requests that may reach private addresses.
    pub(crate) fn open(&self) -> Result<&Client, String> {
        self.open.get_or_init(|| client(false)).as_ref().map_err(String::clone)
    }

    /// For all others.
    pub(crate) fn guarded(&self) -> Result<&Client, String> {
        self.guarded.get_or_init(|| client(true)).as_ref().map_err(String::clone)
    }
}

fn client(guarded: bool) -> Result<Client, String> {
    // Somebody else in the process may have installed one: then that is the one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .user_agent(USER_AGENT)
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(CONNECT_WITHIN)
        .no_proxy();
    let builder = if guarded { builder.dns_resolver(PublicOnly) } else { builder };
    builder.build().map_err(|error| {
        format!("no HTTP client could be made ({error:?}): are the system's certificates installed (ca-certificates)?")
    })
}

/// Resolves a name to its public addresses; a name that has none is refused.
#[derive(Debug)]
struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let host = name.as_str();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host, 0)).await?.collect();
            let mut refused = None;
            let mut public = Vec::new();
            for address in found {
                match check_address(host, address.ip()) {
                    Ok(()) => public.push(address),
                    Err(why) => refused = Some(why),
                }
            }
            match refused {
                Some(why) if public.is_empty() => Err(why.into()),
                _ => Ok(Box::new(public.into_iter()) as Addrs),
            }
        })
    }
}
