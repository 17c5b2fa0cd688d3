//! A server to ask, and the ways to ask it.

use std::path::Path;
use std::sync::{Arc, Once};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode};
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wonder_core::Time;
use wonder_host::{Connection, Leaving, Purpose};
use wonder_server::{Access, Limits, NewToken, Options, Role, TokenStore};

/// Ends at once.
pub(crate) const HELLO: &str = "wonder: 1\nname: hello\nnodes:\n  greet: {update_context: {set: {output.said: \"'hi ' + input.who\"}}}\n";
/// Waits for the event `stop`, and takes any other meanwhile.
pub(crate) const WAITS: &str = "wonder: 1\nname: waits\nnodes:\n  stop: {wait_event: stop}\n";
/// Waits for a person.
pub(crate) const ASKS: &str = "wonder: 1\nname: asks\nnodes:\n  ok:\n    human_gate: {title: \"Fine?\", form: {type: object, required: [ok], properties: {ok: {type: boolean}}}}\n";

pub(crate) struct Server {
    pub home: Arc<TempDir>,
    pub url: String,
    /// An admin's.
    pub token: String,
    connection: Connection,
    closing: CancellationToken,
    serving: JoinHandle<std::io::Result<()>>,
}

pub(crate) struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Json,
}

impl Server {
    pub(crate) async fn start() -> Server {
        Server::with(Limits::default()).await
    }

    pub(crate) async fn with(limits: Limits) -> Server {
        let home = Arc::new(tempfile::tempdir().unwrap());
        let token = TokenStore::at(home.path()).first(Time(0)).unwrap().unwrap();
        Server::open(home, token, limits).await
    }

    pub(crate) async fn open(home: Arc<TempDir>, token: String, limits: Limits) -> Server {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
        let connection =
            wonder_host::open(wonder_host::Options::new(home.path()), Purpose::Act).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let options = Options {
            engine: Arc::new(connection.clone()),
            home: home.path().to_owned(),
            workdir: "/".to_owned(),
            performs: Arc::new(|_| None),
            library: Default::default(),
            access: Access::Tokens,
            hosts: Vec::new(),
            limits,
        };
        let closing = CancellationToken::new();
        let serving = tokio::spawn(wonder_server::serve(listener, None, options, closing.clone()));
        Server { home, url, token, connection, closing, serving }
    }

    /// Leaves, and is there again with the same home.
    pub(crate) async fn again(self) -> Server {
        let (home, token) = (self.home.clone(), self.token.clone());
        self.stop().await;
        Server::open(home, token, Limits::default()).await
    }

    pub(crate) async fn stop(self) {
        self.closing.cancel();
        self.serving.await.unwrap().unwrap();
        self.connection.close(Leaving::Now).await;
    }

    /// Says that it leaves; what waits is answered.
    pub(crate) fn leave(&self) {
        self.closing.cancel();
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn made(&self, name: &str, role: Role, project: Option<&str>) -> String {
        let project = project.map(str::to_owned);
        let new = NewToken { name: Some(name.to_owned()), role, project, expires_in_ms: None };
        TokenStore::at(self.home()).create(new, Time(0)).unwrap().1
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        reqwest::Client::builder().build().unwrap().request(method, format!("{}{path}", self.url))
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        answer(self.request(Method::GET, path).bearer_auth(&self.token)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Json) -> Answer {
        self.post_with(path, body, &[]).await
    }

    pub(crate) async fn post_with(&self, path: &str, body: &Json, headers: &[(&str, &str)]) -> Answer {
        let request = self.request(Method::POST, path).bearer_auth(&self.token);
        answer(with(request, headers).header("content-type", "application/json").body(body.to_string())).await
    }

    /// Starts a run and gives its id.
    pub(crate) async fn run(&self, file: &str) -> String {
        let started = self.post("/api/v1/runs", &json!({"file": file, "input": {"who": "you"}})).await;
        assert_eq!(started.status, 201, "{}", started.body);
        started.body["run"].as_str().unwrap().to_owned()
    }
}

pub(crate) fn with(request: reqwest::RequestBuilder, headers: &[(&str, &str)]) -> reqwest::RequestBuilder {
    let pair = |(name, value): &(&str, &str)| {
        (HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap())
    };
    request.headers(headers.iter().map(pair).collect())
}

pub(crate) async fn answer(request: reqwest::RequestBuilder) -> Answer {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    let text = response.text().await.unwrap();
    let body = serde_json::from_str(&text).unwrap_or(Json::String(text));
    Answer { status, headers, body }
}
