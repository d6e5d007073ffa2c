//! SIGINT and SIGTERM: the first one stops the run in an orderly way, the second one at once.

use crate::base::exit::Exit;
use crate::chain::abort::AbortSignal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Which signal stopped the run, if one did.
#[derive(Debug, Clone, Default)]
pub struct Stopped(Arc<AtomicU8>);

const NOTHING: u8 = 0;
const INTERRUPT: u8 = 1;
const TERMINATE: u8 = 2;

impl Stopped {
    /// The exit code that goes with the signal.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        match self.0.load(Ordering::SeqCst) {
            INTERRUPT => Some(Exit::Interrupted),
            TERMINATE => Some(Exit::Terminated),
            _nothing => None,
        }
    }
}

/// Listens until the runtime ends. The cells of a run die with the supervisor, so that the second
/// signal needs no more than its end.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn listen(abort: &AbortSignal) -> std::io::Result<Stopped> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let stopped = Stopped::default();
    let (seen, abort) = (stopped.clone(), abort.clone());
    tokio::spawn(async move {
        loop {
            let which = next(&mut interrupt, &mut terminate).await;
            let earlier = seen.0.swap(which, Ordering::SeqCst);
            if earlier != NOTHING {
                end_at_once(which);
            }
            abort.abort();
        }
    });
    Ok(stopped)
}

async fn next(interrupt: &mut Signal, terminate: &mut Signal) -> u8 {
    tokio::select! {
        _ = interrupt.recv() => INTERRUPT,
        _ = terminate.recv() => TERMINATE,
    }
}

#[expect(
    clippy::exit,
    clippy::disallowed_methods,
    reason = "the second signal ends the process now; its cells end with it"
)]
fn end_at_once(which: u8) {
    let exit = if which == TERMINATE { Exit::Terminated } else { Exit::Interrupted };
    std::process::exit(i32::from(exit.code()));
}
