//! An `http_request` action with its texts filled in, and what a redirect makes of it. Values in a URL are
//! percent-encoded; one that stands at its very beginning and is an http address is taken as it is, since no
//! encoded value could begin a URL.

use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use reqwest::{Method, StatusCode, Url};
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::graph::HttpSpec;
use wonder_core::value::{Map, Value};

use super::{is_safe, same_server};
use crate::context::ActionContext;
use crate::parts::{Part, parts};
use crate::redact::{HIDDEN, percent_encoded};
use crate::texts::{Pair, bad_field, pairs, render, render_tree};
use crate::variables::holds_secret;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// What may follow a redirect to another server; everything else may be a credential.
const HARMLESS: [&str; 5] = ["accept", "accept-language", "content-type", "user-agent", "idempotency-key"];

#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<String>,
}

/// What an action says of its request: all that its texts give, not yet looked at as an address and headers.
#[derive(Debug)]
struct Filled {
    method: String,
    url: Vec<Part>,
    query: Vec<Pair>,
    headers: Vec<Pair>,
    body: Option<Body>,
}

#[derive(Debug)]
enum Body {
    Json(Value),
    Text(String),
}

impl Filled {
    fn of(scope: &Value, http: &HttpSpec) -> Result<Filled, Failure> {
        let method = http.method.as_ref().map(|text| render(text, "method", scope)).transpose()?;
        let url = parts(&http.url, scope).map_err(|why| bad_field("url", &why))?;
        if leaves_its_place(&url) {
            let why = "a value makes a part of the path `.` or `..`, which leads to another path";
            return Err(bad_field("url", why));
        }
        let body = match (&http.json, &http.body) {
            (Some(tree), _) => Some(Body::Json(render_tree(tree, "json", scope)?)),
            (None, Some(text)) => Some(Body::Text(render(text, "body", scope)?)),
            (None, None) => None,
        };
        Ok(Filled {
            method: method.unwrap_or_else(|| Method::GET.to_string()),
            url,
            query: pairs(http.query.as_ref(), "query", scope)?,
            headers: pairs(http.headers.as_ref(), "headers", scope)?,
            body,
        })
    }
}

/// The request as a cassette has it: what is asked of which address, without what may be a credential.
pub(super) fn asked(scope: &Value, http: &HttpSpec) -> Result<Value, Failure> {
    let filled = Filled::of(scope, http)?;
    let text = address(&filled.url);
    let url = Url::parse(&text).map_or(text, |url| without_credentials(url).to_string());
    let mut fields = Map::new();
    fields.insert("method".into(), Value::from(filled.method.trim().to_ascii_uppercase()));
    fields.insert("url".into(), Value::from(url));
    let plain = |name: &str, value: String| if may_be_credential(name) { HIDDEN.to_owned() } else { value };
    for (field, pairs) in [("query", filled.query), ("headers", filled.headers)] {
        let shown = pairs.into_iter().map(|(name, values)| {
            let values = values.into_iter().flatten().map(|value| Value::from(plain(&name, value)));
            let mut values: Vec<Value> = values.collect();
            let value = if values.len() == 1 { values.remove(0) } else { Value::list(values) };
            (if field == "headers" { name.to_ascii_lowercase() } else { name }, value)
        });
        let shown: Vec<(String, Value)> = shown.collect();
        if !shown.is_empty() {
            fields.insert(field.into(), Value::map(shown));
        }
    }
    match filled.body {
        Some(Body::Json(value)) => drop(fields.insert("json".into(), value)),
        Some(Body::Text(text)) => drop(fields.insert("body".into(), Value::from(text))),
        None => {}
    }
    if !http.expect.is_empty() {
        fields.insert("expect".into(), Value::list(http.expect.iter().cloned()));
    }
    Ok(Value::from(fields))
}

fn without_credentials(mut url: Url) -> Url {
    if url.password().is_some() {
        // It cannot fail: an address that has a password can have another.
        let _ = url.set_password(Some(HIDDEN));
    }
    if url.query_pairs().any(|(name, _)| may_be_credential(&name)) {
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let mut query = url.query_pairs_mut();
        query.clear();
        for (name, value) in pairs {
            query.append_pair(&name, if may_be_credential(&name) { HIDDEN } else { &value });
        }
    }
    url
}

/// By its name: what is there to say who asks.
fn may_be_credential(name: &str) -> bool {
    const KNOWN: [&str; 3] = ["authorization", "proxy-authorization", "cookie"];
    KNOWN.contains(&name.to_ascii_lowercase().as_str())
        || holds_secret(&name.to_ascii_uppercase().replace('-', "_"))
}

impl Request {
    pub(super) fn of(context: &ActionContext<'_>, http: &HttpSpec) -> Result<Request, Failure> {
        let filled = Filled::of(context.scope, http)?;
        let method = method(&filled.method)?;
        let mut url = url(&filled.url)?;
        for (name, values) in filled.query {
            for value in values.into_iter().flatten() {
                url.query_pairs_mut().append_pair(&name, &value);
            }
        }
        let mut headers = HeaderMap::new();
        for (name, values) in filled.headers {
            let name = header_name(&name)?;
            for value in values.into_iter().flatten() {
                headers.append(&name, header_value(&name, &value)?);
            }
        }
        let body = match filled.body {
            Some(Body::Json(value)) => {
                let json = HeaderValue::from_static("application/json");
                headers.entry(CONTENT_TYPE).or_insert(json);
                Some(value.to_string())
            }
            Some(Body::Text(text)) => Some(text),
            None => None,
        };
        if !is_safe(&method) {
            let key = header_value(&IDEMPOTENCY_KEY, &context.key())?;
            headers.entry(IDEMPOTENCY_KEY).or_insert(key);
        }
        Ok(Request { method, url, headers, body })
    }

    /// What to send where a redirect leads, by the status that led there.
    pub(super) fn redirect(&mut self, status: StatusCode, to: Url) {
        let posted = self.method == Method::POST;
        let asks = match status.as_u16() {
            303 => self.method != Method::HEAD,
            301 | 302 => posted,
            _ => false,
        };
        if asks {
            self.method = Method::GET;
            self.body = None;
            for name in [CONTENT_TYPE, CONTENT_LENGTH, TRANSFER_ENCODING, IDEMPOTENCY_KEY] {
                self.headers.remove(name);
            }
        }
        if !same_server(&self.url, &to) {
            let kept = self.headers.iter().filter(|(name, _)| HARMLESS.contains(&name.as_str()));
            self.headers = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
        }
        self.url = to;
    }

    /// For people: the method and the address, without what may be a credential.
    pub(super) fn shown(&self) -> String {
        let mut url = self.url.clone();
        // Neither can fail for http; if it did, only the display would suffer.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        url.set_fragment(None);
        format!("{} {url}", self.method)
    }
}

fn method(text: &str) -> Result<Method, Failure> {
    Method::from_bytes(text.trim().to_ascii_uppercase().as_bytes())
        .map_err(|_| bad_field("method", &format!("{text:?} is no method")))
}

fn url(parts: &[Part]) -> Result<Url, Failure> {
    let text = address(parts);
    Url::parse(&text).map_err(|error| {
        let message = format!("`url`: {text:?} is no address ({error}): expected http:// or https://");
        Failure::new(ErrorKind::ExpressionError, message)
    })
}

fn address(parts: &[Part]) -> String {
    let mut text = String::new();
    for (at, part) in parts.iter().enumerate() {
        match part {
            Part::Written(written) => text.push_str(if at == 0 { written.trim_start() } else { written }),
            Part::Value(value) if at == 0 && is_address(value) => text.push_str(value),
            Part::Value(value) => text.push_str(&percent_encoded(value)),
        }
    }
    text
}

/// Whether values make a part of the path that is no name but a way: `.` or `..`, also if it is encoded once more. What
/// the author wrote is the author's to say.
fn leaves_its_place(parts: &[Part]) -> bool {
    let (mut segment, mut has_value) = (String::new(), false);
    let leads = |segment: &str| matches!(percent_decoded(segment).as_slice(), b"." | b"..");
    for (at, part) in parts.iter().enumerate() {
        let written = match part {
            Part::Value(value) if at > 0 || !is_address(value) => {
                segment.push_str(value);
                has_value = true;
                continue;
            }
            Part::Written(text) | Part::Value(text) => text,
        };
        for c in written.chars() {
            match c {
                '/' | '\\' | '?' | '#' if has_value && leads(&segment) => return true,
                '?' | '#' => return false,
                '/' | '\\' => {
                    segment.clear();
                    has_value = false;
                }
                c => segment.push(c),
            }
        }
    }
    has_value && leads(&segment)
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match digits.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = &after[2..];
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    out
}

fn is_address(value: &str) -> bool {
    ["http://", "https://"]
        .iter()
        .any(|scheme| value.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
}

fn header_name(name: &str) -> Result<HeaderName, Failure> {
    HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| bad_field("headers", &format!("{name:?} cannot be the name of a header")))
}

fn header_value(name: &HeaderName, value: &str) -> Result<HeaderValue, Failure> {
    HeaderValue::from_bytes(value.trim().as_bytes()).map_err(|_| {
        bad_field("headers", &format!("the value of `{name}` has a line break or another control character"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_leave_its_place_in_an_address() {
        let (written, value) = (|t: &str| Part::Written(t.into()), |t: &str| Part::Value(t.into()));
        let cases = [
            (
                vec![written("https://a.example/u/"), value("../x?y=1#z")],
                "https://a.example/u/..%2Fx%3Fy%3D1%23z",
            ),
            (
                vec![written("https://"), value("b@evil.example/"), written(".example/")],
                "https://b%40evil.example%2F.example/",
            ),
            (
                vec![value("https://a.example/p?q=1"), written("&n="), value("a&b")],
                "https://a.example/p?q=1&n=a%26b",
            ),
            (vec![value("file:///etc/passwd")], "file%3A%2F%2F%2Fetc%2Fpasswd"),
            (
                vec![written("https://a.example/"), value("http://c.example")],
                "https://a.example/http%3A%2F%2Fc.example",
            ),
        ];
        for (parts, expected) in cases {
            assert_eq!(address(&parts), expected);
        }
    }

    #[test]
    fn a_value_cannot_lead_to_another_path() {
        let (written, value) = (|t: &str| Part::Written(t.into()), |t: &str| Part::Value(t.into()));
        let base = "https://a.example/u/";
        for way in [".", "..", "%2e%2e", "%2E", ".%2e"] {
            for after in ["", "/b", "?q=1", "#z"] {
                assert!(leaves_its_place(&[written(base), value(way), written(after)]), "{way}{after}");
                assert!(leaves_its_place(&[
                    value("https://a.example"),
                    written("/"),
                    value(way),
                    written(after)
                ]));
            }
        }
        assert!(leaves_its_place(&[written("https://a.example/."), value("."), written("/b")]));
        assert!(leaves_its_place(&[written(base), value("."), value(".")]));
        for parts in [
            vec![written(base), value("...")],
            vec![written(base), value("a..")],
            vec![written(base), value("../x")],
            vec![written("https://a.example/../"), value("x")],
            vec![written("https://a.example/?back="), value("..")],
            vec![written("https://a.example/#"), value("..")],
            vec![value("https://a.example/a/../b"), written("/c")],
        ] {
            assert!(!leaves_its_place(&parts), "{parts:?}");
        }
    }

    fn posted() -> Request {
        let mut headers = HeaderMap::new();
        for (name, value) in
            [("authorization", "Bearer x"), ("x-api-key", "k"), ("content-type", "text/plain")]
        {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let url = Url::parse("https://a.example/one").unwrap();
        Request { method: Method::POST, url, headers, body: Some("b".into()) }
    }

    #[test]
    fn credentials_do_not_follow_a_redirect_to_another_server() {
        for (to, kept) in
            [("https://a.example/two", true), ("https://b.example/", false), ("http://a.example/", false)]
        {
            let mut request = posted();
            request.redirect(StatusCode::TEMPORARY_REDIRECT, Url::parse(to).unwrap());
            assert_eq!(request.headers.contains_key("authorization"), kept, "{to}");
            assert_eq!(request.headers.contains_key("x-api-key"), kept, "{to}");
            assert_eq!((request.method, request.body.as_deref()), (Method::POST, Some("b")));
        }
        let mut request = posted();
        request.redirect(StatusCode::SEE_OTHER, Url::parse("https://a.example/two").unwrap());
        assert_eq!((request.method, request.body), (Method::GET, None));
    }
}
