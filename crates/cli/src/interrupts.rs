//! Ctrl-C and its kin, as something to wait for.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listening from the moment it is made: what comes before anybody waits is not lost.
#[derive(Debug)]
pub(crate) struct Interrupts {
    signals: Option<(Signal, Signal)>,
}

impl Interrupts {
    pub(crate) fn listen() -> Interrupts {
        let both = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
        let signals = match both {
            (Ok(interrupt), Ok(terminate)) => Some((interrupt, terminate)),
            // Then a signal ends us as it ends everybody; the run is safe all the same.
            _ => None,
        };
        Interrupts { signals }
    }

    /// The next one.
    pub(crate) async fn next(&mut self) {
        match &mut self.signals {
            Some((interrupt, terminate)) => {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            }
            None => std::future::pending().await,
        }
    }
}
