//! SIGINT, SIGTERM and SIGHUP: the first one stops the run in an orderly way, the second one at once.
//!
//! SIGHUP says that the terminal is gone. A process that was started to survive that (`nohup`) has it
//! ignored, and keeps it so.

use crate::base::exit::Exit;
use crate::chain::abort::{AbortSignal, StopCause};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a process that waits for a signal hears.
#[derive(Debug)]
pub struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl StopSignals {
    /// Listens from now on.
    ///
    /// # Errors
    /// If the handlers cannot be installed.
    pub fn new() -> std::io::Result<Self> {
        let hangup = (!is_hangup_ignored()).then(|| signal(SignalKind::hangup())).transpose()?;
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup,
        })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> StopCause {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => StopCause::Interrupt,
            _ = self.terminate.recv() => StopCause::Termination,
            _ = hangup => StopCause::Termination,
        }
    }
}

/// Whether SIGHUP is ignored, or was when the process started. Source: proc(5), `SigIgn`.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Bit 0 stands for signal 1, which is SIGHUP.
    mask.is_some_and(|mask| mask & 1 == 1)
}

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
    let mut signals = StopSignals::new()?;
    let abort = abort.clone();
    let listening = tokio::spawn(async move {
        loop {
            let cause = signals.next().await;
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

#[expect(
    clippy::exit,
    clippy::disallowed_methods,
    reason = "the second signal ends the process now; its cells end with it"
)]
fn end_at_once(cause: StopCause) {
    std::process::exit(i32::from(exit_of(cause).code()));
}
