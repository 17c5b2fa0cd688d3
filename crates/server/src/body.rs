//! What comes with a request: query parameters and a JSON body, exact or refused. A key that is not known is refused,
//! because it would have no effect.

use std::str::FromStr;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use wonder_core::problem::nearest;
use wonder_core::time::parse_duration_ms;
use wonder_core::{Time, Value, strict_json};

use crate::access::Caller;
use crate::problem::Problem;

/// Parameters that may come more than once.
const REPEATED: [&str; 1] = ["label"];
const PAGE: usize = 100;
const PAGE_MAX: usize = 1_000;

#[derive(Debug)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    pub(crate) fn read(uri: &Uri, known: &[&str]) -> Result<Params, Problem> {
        let query = uri.query().unwrap_or_default();
        let pairs: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        for (at, (key, _)) in pairs.iter().enumerate() {
            if !known.contains(&key.as_str()) {
                return Err(unknown("parameter", key, known));
            }
            if !REPEATED.contains(&key.as_str()) && pairs[..at].iter().any(|(before, _)| before == key) {
                return Err(Problem::usage(format!("the parameter {key} comes twice")));
            }
        }
        Ok(Params(pairs))
    }

    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.all(name).next().map(str::to_owned)
    }

    pub(crate) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, Problem> {
        let wrong = |text: &str| Problem::usage(format!("{name}={text}: this is no whole number that fits"));
        self.all(name).next().map(|text| text.parse().map_err(|_| wrong(text))).transpose()
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.all(name).next() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(Problem::usage(format!("{name}={other}: this is true or false"))),
        }
    }

    pub(crate) fn time(&self, name: &str) -> Result<Option<Time>, Problem> {
        let wrong = |text: &str| {
            Problem::usage(format!("{name}={text}: this is no time such as 2026-01-31T12:00:00Z"))
        };
        self.all(name).next().map(|text| Time::parse(text).ok_or_else(|| wrong(text))).transpose()
    }

    pub(crate) fn duration_ms(&self, name: &str) -> Result<Option<u64>, Problem> {
        let text = self.all(name).next();
        text.map(|text| duration_ms(name, text)).transpose()
    }

    /// How many things one answer has.
    pub(crate) fn limit(&self) -> Result<usize, Problem> {
        match self.number::<usize>("limit")? {
            Some(0) => Err(Problem::usage("limit=0: at least 1")),
            limit => Ok(limit.unwrap_or(PAGE).min(PAGE_MAX)),
        }
    }

    /// What a `next` of an answer said.
    pub(crate) fn cursor(&self) -> Result<Option<String>, Problem> {
        let Some(text) = self.all("cursor").next() else { return Ok(None) };
        let decoded = URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        decoded.map(Some).ok_or_else(|| {
            Problem::usage("the cursor is none that an answer gave").help("Begin again without it.")
        })
    }
}

/// Where the next page begins, as text that only this server reads.
pub(crate) fn cursor(place: &str) -> String {
    URL_SAFE_NO_PAD.encode(place)
}

pub(crate) fn duration_ms(name: &str, text: &str) -> Result<u64, Problem> {
    let wrong = || Problem::usage(format!("{name}={text}: this is no duration such as 30s or 5m"));
    // A bare number would be a guess at its unit.
    if text.trim().parse::<u64>().is_ok() { Err(wrong()) } else { parse_duration_ms(text).ok_or_else(wrong) }
}

fn unknown(what: &str, key: &str, known: &[&str]) -> Problem {
    let problem = Problem::usage(format!("there is no {what} `{key}` here"));
    match nearest(key, known.iter().copied()) {
        Some(near) => problem.help(format!("Did you mean `{near}`?")),
        None if known.is_empty() => problem.help(format!("This takes no {what}.")),
        None => problem.help(format!("There are {}.", known.join(", "))),
    }
}

/// The body of a request, as JSON; null without one.
#[derive(Debug)]
pub(crate) struct Json(pub Value);

impl<S: Send + Sync> FromRequest<S> for Json {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Json, Problem> {
        let is_json = is_json(request.headers());
        let most = request.extensions().get::<BodyMax>().map_or(0, |most| most.0);
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| {
            match rejection.into_response_status() {
                StatusCode::PAYLOAD_TOO_LARGE => Problem::too_large(most),
                _ => Problem::usage("the body of the request did not arrive whole"),
            }
        })?;
        if bytes.is_empty() {
            return Ok(Json(Value::Null));
        }
        if !is_json {
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return Err(Problem::new(status, "not_json", "the body must say that it is JSON")
                .help("Send `Content-Type: application/json`."));
        }
        let text = std::str::from_utf8(&bytes).map_err(|_| Problem::usage("the body is no UTF-8 text"))?;
        let value = strict_json::read(text);
        value.map(Json).map_err(|error| Problem::usage(format!("the body: {error}")).help(error.help()))
    }
}

trait Status {
    fn into_response_status(self) -> StatusCode;
}

impl<T: axum::response::IntoResponse> Status for T {
    fn into_response_status(self) -> StatusCode {
        self.into_response().status()
    }
}

/// The limit that holds for a request, for the sentence that refuses it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyMax(pub usize);

fn is_json(headers: &HeaderMap) -> bool {
    let said = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = said.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

/// The keys of a body that is an object, each taken once.
#[derive(Debug)]
pub(crate) struct Fields(Value);

impl Fields {
    pub(crate) fn of(Json(value): Json, known: &[&str]) -> Result<Fields, Problem> {
        match &value {
            Value::Null => Ok(Fields(value)),
            Value::Map(map) => match map.keys().find(|key| !known.contains(&&***key)) {
                Some(key) => Err(unknown("key", key, known)),
                None => Ok(Fields(value)),
            },
            other => {
                Err(Problem::usage(format!("the body is an object, and this is a {}", other.type_name())))
            }
        }
    }

    /// What stands there; null if nothing does.
    pub(crate) fn value(&self, key: &str) -> Value {
        self.0.get(key).cloned().unwrap_or_default()
    }

    pub(crate) fn text(&self, key: &str) -> Result<Option<String>, Problem> {
        match self.value(key) {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text.to_string())),
            other => Err(Problem::usage(format!("`{key}` is a text, and this is a {}", other.type_name()))),
        }
    }

    pub(crate) fn required(&self, key: &str) -> Result<String, Problem> {
        self.text(key)?.ok_or_else(|| Problem::usage(format!("`{key}` is missing")))
    }

    pub(crate) fn flag(&self, key: &str) -> Result<bool, Problem> {
        match self.value(key) {
            Value::Null => Ok(false),
            Value::Bool(flag) => Ok(flag),
            other => {
                Err(Problem::usage(format!("`{key}` is true or false, and this is a {}", other.type_name())))
            }
        }
    }

    /// `from`: the least that it may be.
    pub(crate) fn number(&self, key: &str, from: u32) -> Result<Option<u32>, Problem> {
        let value = self.value(key);
        if value.is_null() {
            return Ok(None);
        }
        let number =
            value.as_i64().and_then(|number| u32::try_from(number).ok()).filter(|number| *number >= from);
        number.map(Some).ok_or_else(|| Problem::usage(format!("`{key}` is a whole number from {from} on")))
    }

    pub(crate) fn duration_ms(&self, key: &str) -> Result<Option<u64>, Problem> {
        self.text(key)?.map(|text| duration_ms(key, &text)).transpose()
    }

    pub(crate) fn texts(&self, key: &str) -> Result<Vec<(String, String)>, Problem> {
        let wrong = || Problem::usage(format!("`{key}` is an object of texts"));
        let value = self.value(key);
        if value.is_null() {
            return Ok(Vec::new());
        }
        let map = value.as_map().ok_or_else(wrong)?;
        let text = |value: &Value| value.as_str().map(str::to_owned).ok_or_else(wrong);
        map.iter().map(|(key, value)| Ok((key.to_string(), text(value)?))).collect()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Caller, Problem> {
        parts.extensions.get::<Caller>().cloned().ok_or_else(|| Problem::unauthorized("nobody said who asks"))
    }
}
