//! TLS by files, with the rustls of the rest of the tree.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long a client may take over its first words.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// Connections that have shaken hands and are not taken yet.
const READY_MAX: usize = 64;

/// A certificate and its key.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

#[derive(Debug)]
pub enum TlsError {
    File(PathBuf, String),
    /// They do not belong together, or are of a kind that is not spoken.
    Refused(String),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::File(path, why) => write!(f, "{}: {why}", path.display()),
            TlsError::Refused(why) => write!(f, "the certificate and the key cannot be used: {why}"),
        }
    }
}

impl std::error::Error for TlsError {}

impl Tls {
    /// `certificate`: a chain in PEM, the server's own first.
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Tls, TlsError> {
        let wrong = |path: &Path, why: String| TlsError::File(path.to_owned(), why);
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(|found| found.collect::<Result<Vec<_>, _>>())
            .map_err(|error| wrong(certificate, error.to_string()))?;
        if chain.is_empty() {
            return Err(wrong(certificate, "there is no certificate in it".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
        let config = config.map_err(|error| TlsError::Refused(error.to_string()))?;
        Ok(Tls(TlsAcceptor::from(Arc::new(config))))
    }

    /// Hands are shaken beside each other: one client that says nothing holds nobody up.
    pub(crate) fn over(self, listener: TcpListener) -> io::Result<TlsListener> {
        let address = listener.local_addr()?;
        let (ready, taken) = mpsc::channel(READY_MAX);
        tokio::spawn(async move {
            loop {
                let Some(accepted) = accepted(&listener, &ready).await else { return };
                let (acceptor, ready) = (self.0.clone(), ready.clone());
                tokio::spawn(async move {
                    let (stream, from) = accepted;
                    let shaken = tokio::time::timeout(HANDSHAKE_WITHIN, acceptor.accept(stream)).await;
                    if let Ok(Ok(stream)) = shaken {
                        // An error is a server that has left.
                        drop(ready.send((stream, from)).await);
                    }
                });
            }
        });
        Ok(TlsListener { taken, address })
    }
}

async fn accepted(
    listener: &TcpListener,
    ready: &mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
) -> Option<(TcpStream, SocketAddr)> {
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => return Some(accepted),
                // Out of file handles: others will be let go.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            () = ready.closed() => return None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct TlsListener {
    taken: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    address: SocketAddr,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.taken.recv().await {
            Some(accepted) => accepted,
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}
