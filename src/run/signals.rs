//! SIGINT and SIGTERM: the first one stops the run in an orderly way, the second one at once.

use crate::base::exit::Exit;
use crate::chain::abort::{AbortSignal, StopCause};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals are listened to until this is dropped.
#[derive(Debug)]
pub struct Listening(tokio::task::JoinHandle<()>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Listens until the run ends. The cells of a run die with the supervisor, so that the second
/// signal needs no more than its end.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn listen(abort: &AbortSignal) -> std::io::Result<Listening> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let abort = abort.clone();
    let listening = tokio::spawn(async move {
        loop {
            let cause = next(&mut interrupt, &mut terminate).await;
            if abort.is_aborted() {
                end_at_once(cause);
            }
            abort.abort(cause);
        }
    });
    Ok(Listening(listening))
}

/// The exit code that goes with what stopped a run.
#[must_use]
pub const fn exit_of(cause: StopCause) -> Exit {
    match cause {
        StopCause::Interrupt => Exit::Interrupted,
        StopCause::Termination => Exit::Terminated,
    }
}

async fn next(interrupt: &mut Signal, terminate: &mut Signal) -> StopCause {
    tokio::select! {
        _ = interrupt.recv() => StopCause::Interrupt,
        _ = terminate.recv() => StopCause::Termination,
    }
}

#[expect(
    clippy::exit,
    clippy::disallowed_methods,
    reason = "the second signal ends the process now; its cells end with it"
)]
fn end_at_once(cause: StopCause) {
    std::process::exit(i32::from(exit_of(cause).code()));
}
