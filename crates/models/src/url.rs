//! Base URLs as far as codecs need them: which server they name, and paths below them. Whether an address may
//! be reached is for whoever reaches it.

use crate::problem::Problem;

/// `scheme://server/path`, without a slash at the end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct BaseUrl {
    scheme: String,
    /// Host and port, lower-case.
    server: String,
    /// Empty, or beginning with a slash.
    path: String,
}

impl BaseUrl {
    pub(crate) fn parse(text: &str) -> Result<BaseUrl, Problem> {
        let wrong = |why: &str| Problem::new("base_url", format!("{why}; say for example `https://host/v1`"));
        let (scheme, rest) = text.trim().split_once("://").ok_or_else(|| wrong("is no address"))?;
        let scheme = scheme.to_ascii_lowercase();
        if !matches!(&*scheme, "http" | "https") {
            return Err(wrong("is neither http nor https"));
        }
        if rest.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '?' | '#' | '\\')) {
            return Err(wrong("has a query, a fragment, a backslash or a space"));
        }
        let (server, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if server.contains('@') {
            return Err(wrong("has a user or a password in it; a key is said in `api_key`"));
        }
        if server.is_empty() {
            return Err(wrong("names no host"));
        }
        let path = path.trim_end_matches('/').to_owned();
        Ok(BaseUrl { scheme, server: server.to_ascii_lowercase(), path })
    }

    /// The same with the version in its path, if it has none.
    pub(crate) fn with_version(mut self, version: &str) -> BaseUrl {
        let is_version = |part: &str| {
            let rest = part.strip_prefix('v').unwrap_or_default();
            rest.starts_with(|c: char| c.is_ascii_digit())
        };
        if !self.path.split('/').any(is_version) {
            self.path = format!("{}/{version}", self.path);
        }
        self
    }

    pub(crate) fn same_server(&self, other: &BaseUrl) -> bool {
        self.scheme == other.scheme && self.server_and_port() == other.server_and_port()
    }

    fn server_and_port(&self) -> String {
        let has_port = self.server.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        let usual = if self.scheme == "https" { 443 } else { 80 };
        if has_port { self.server.clone() } else { format!("{}:{usual}", self.server) }
    }

    pub(crate) fn join(&self, path: &str) -> String {
        format!("{}://{}{}/{path}", self.scheme, self.server, self.path)
    }

    /// The server and its path: who is asked, whatever is asked.
    pub(crate) fn place(&self) -> String {
        format!("{}{}", self.server, self.path)
    }
}

/// A text as one part of a path: nothing in it can end the part.
pub(crate) fn path_part(text: &str) -> String {
    let mut part = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            part.push(byte.into());
        } else {
            part.push_str(&format!("%{byte:02X}"));
        }
    }
    part
}
