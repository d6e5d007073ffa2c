//! SIGINT, SIGTERM and SIGHUP: the first one stops the run in an orderly way, the second one at once.
//!
//! The second one is counted in the signal's own handler, so that it ends the process whatever that
//! waits for: a disk, a reader of its output. Two of one kind count as one only if the kernel holds the
//! first back until the second is there, as it does while the process is stopped.
//!
//! SIGHUP says that the terminal is gone. A process that was started to survive that (`nohup`) has it
//! ignored, and keeps it so.

use crate::base::exit::Exit;
use crate::chain::abort::{AbortSignal, StopCause};
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};
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
        let hangup = (!*IS_HANGUP_IGNORED).then(|| signal(SignalKind::hangup())).transpose()?;
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

/// Whether SIGHUP was ignored when this was first asked, which is before anything of ours could answer
/// it. Source: proc(5), `SigIgn`.
static IS_HANGUP_IGNORED: LazyLock<bool> = LazyLock::new(|| {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Bit 0 stands for signal 1, which is SIGHUP.
    mask.is_some_and(|mask| mask & 1 == 1)
});

/// Signals are listened to until this is dropped.
#[derive(Debug)]
pub struct Listening {
    first: tokio::task::JoinHandle<()>,
    _second: SecondEnds,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.first.abort();
    }
}

/// Listens until the run ends; the first signal does what `stop` says with `abort`. The cells of a run
/// die with the supervisor, so that the second signal needs no more than its end.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn listen(
    abort: &AbortSignal,
    stop: fn(&AbortSignal, StopCause),
) -> std::io::Result<Listening> {
    let mut signals = StopSignals::new()?;
    let _second = SecondEnds::install()?;
    let abort = abort.clone();
    let first = tokio::spawn(async move { stop(&abort, signals.next().await) });
    Ok(Listening { first, _second })
}

/// The handlers that end the process at the second signal.
#[derive(Debug, Default)]
struct SecondEnds(Vec<SigId>);

impl SecondEnds {
    fn install() -> std::io::Result<Self> {
        let came = Arc::new(AtomicBool::new(false));
        let mut installed = Self::default();
        let hangup = (!*IS_HANGUP_IGNORED).then_some((SIGHUP, StopCause::Termination));
        let kinds = [(SIGINT, StopCause::Interrupt), (SIGTERM, StopCause::Termination)];
        for (signal, cause) in kinds.into_iter().chain(hangup) {
            let code = i32::from(exit_of(cause).code());
            // In this order: the first signal finds the flag down and raises it.
            let ends = flag::register_conditional_shutdown(signal, code, Arc::clone(&came))?;
            installed.0.push(ends);
            installed.0.push(flag::register(signal, Arc::clone(&came))?);
        }
        Ok(installed)
    }
}

impl Drop for SecondEnds {
    fn drop(&mut self) {
        for handler in self.0.drain(..) {
            low_level::unregister(handler);
        }
    }
}

/// The exit code that goes with what stopped a run.
#[must_use]
pub const fn exit_of(cause: StopCause) -> Exit {
    match cause {
        StopCause::Interrupt => Exit::Interrupted,
        StopCause::Termination => Exit::Terminated,
        StopCause::Time => Exit::Budget,
    }
}
