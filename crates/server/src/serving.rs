//! A server from its first connection to its last: routes with what surrounds them, and leaving.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;

use crate::app::{Access, App, Options};
use crate::guard::guard;
use crate::problem::Problem;
use crate::tls::Tls;
use crate::{openapi, routes};

/// How long answers that are on their way are waited for at the end.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// Answers until `closing`; then what waits is answered at once and streams end at their cursor.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Tls>,
    options: Options,
    closing: CancellationToken,
) -> io::Result<()> {
    refuse_open_address(listener.local_addr()?, options.access)?;
    let app = Arc::new(App::new(options, closing.clone()));
    let router = router(app);
    let closed = closing.clone().cancelled_owned();
    let serving: std::pin::Pin<Box<dyn Future<Output = io::Result<()>> + Send>> = match tls {
        None => Box::pin(axum::serve(listener, router).with_graceful_shutdown(closed).into_future()),
        Some(tls) => {
            Box::pin(axum::serve(tls.over(listener)?, router).with_graceful_shutdown(closed).into_future())
        }
    };
    let patience = async {
        closing.cancelled().await;
        tokio::time::sleep(LAST_ANSWERS).await;
    };
    tokio::select! {
        served = serving => served,
        () = patience => Ok(()),
    }
}

/// Everybody who reaches the address could do everything: then only this machine may reach it.
pub fn refuse_open_address(address: SocketAddr, access: Access) -> io::Result<()> {
    match access {
        Access::Open if !address.ip().is_loopback() => {
            let message = format!(
                "{address} can be reached from elsewhere, and without tokens everybody could do everything"
            );
            Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
        }
        _ => Ok(()),
    }
}

fn router(app: Arc<App>) -> Router {
    let (routes, document) = openapi::split(routes::all());
    let routes = routes.merge(openapi::pages(document));
    routes
        .fallback(|uri: Uri| async move { Problem::no_such_route(uri.path()) })
        .method_not_allowed_fallback(|| async { Problem::wrong_method() })
        .layer(DefaultBodyLimit::max(app.options.limits.body_bytes_max))
        .layer(axum::middleware::from_fn_with_state(app.clone(), guard))
        .layer(CatchPanicLayer::custom(broke))
        .layer(CompressionLayer::new())
        .with_state(app)
}

/// A mistake of ours: the one request fails, the others go on.
fn broke(_: Box<dyn std::any::Any + Send>) -> Response {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "a mistake of the server's own")
        .help("Please report it with what was asked.")
        .into_response()
}
