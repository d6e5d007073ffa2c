//! How a run is stopped while cells work for it: that it is being aborted is durable in the journal before
//! a cell is told to end, so that a crash in between leaves no doubt about what was wanted.
//!
//! The record may hold a cell up for [`STOP_RECORD_MAX`] and no longer, and if it cannot be written the
//! cells end all the same: somebody who stops a run wants its effects to stop. A second signal waits for
//! nothing; it ends the process in the signal's handler (`run::signals`).

use super::{Agent, Fault};
use crate::base::limits::STOP_RECORD_MAX;
use crate::chain::abort::{AbortSignal, StopCause};
use crate::session::Journal;
use std::future::Future;
use std::pin::pin;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// What has to be at hand while cells work, to stop them in the right order.
#[derive(Debug)]
pub(super) struct Watch<'a> {
    journal: &'a mut Journal,
    abort: AbortSignal,
    time_left: Option<Duration>,
}

impl<'a> Watch<'a> {
    /// `time_left` is what is left of the run's time, if that is bounded.
    pub(super) const fn new(
        journal: &'a mut Journal,
        abort: AbortSignal,
        time_left: Option<Duration>,
    ) -> Self {
        Self { journal, abort, time_left }
    }

    /// Waits for `work` to end, which it does by itself when its cells end. The second value tells whether
    /// a stop that came meanwhile could be recorded.
    pub(super) async fn over<T>(self, work: impl Future<Output = T>) -> (T, Result<(), Fault>) {
        let mut work = pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return (done, Ok(())),
            () = self.abort.asked() => {}
            () = run_out(self.time_left) => self.abort.ask(StopCause::Time),
        }
        let recorded = record_and_end_cells(self.journal, &self.abort);
        (work.await, recorded)
    }
}

async fn run_out(time_left: Option<Duration>) {
    match time_left {
        Some(left) => tokio::time::sleep(left).await,
        None => std::future::pending().await,
    }
}

impl Agent {
    /// A watch for the time in which cells work.
    pub(super) fn watch(&mut self) -> Watch<'_> {
        let (abort, time_left) = (self.parts.chain.abort.clone(), self.time_left());
        Watch::new(&mut self.parts.journal, abort, time_left)
    }

    /// What the end of a run does first, if the run is to stop: hooks and jobs may still be under way. A
    /// run that ended for another reason just before is none that was aborted.
    pub(super) fn stop_cells(&mut self, ends_by_stop: bool) -> Result<(), Fault> {
        let abort = self.parts.chain.abort.clone();
        if ends_by_stop {
            return record_and_end_cells(&mut self.parts.journal, &abort);
        }
        if abort.is_aborted() {
            abort.end_cells();
        }
        Ok(())
    }
}

fn record_and_end_cells(journal: &mut Journal, abort: &AbortSignal) -> Result<(), Fault> {
    if abort.for_cell().is_cancelled() {
        return Ok(());
    }
    let deadline = Deadline::begin(abort, STOP_RECORD_MAX);
    let recorded = if journal.state().is_idle() { Ok(()) } else { journal.abort_requested() };
    drop(deadline);
    Ok(recorded?)
}

/// Ends the cells when it is dropped, or when its time is up.
#[derive(Debug)]
struct Deadline {
    abort: AbortSignal,
    /// Its end wakes the thread that counts the time.
    _ends: Option<mpsc::Sender<()>>,
}

impl Deadline {
    /// A thread of its own counts the time: the one that writes may hang in the system.
    fn begin(abort: &AbortSignal, most: Duration) -> Self {
        let (ends, ended) = mpsc::channel();
        let counted = abort.clone();
        let count = move || {
            ended.recv_timeout(most).ok();
            counted.end_cells();
        };
        let counts = thread::Builder::new().name("stop-deadline".to_owned()).spawn(count);
        if counts.is_err() {
            // Nobody would end them if the write hung.
            abort.end_cells();
        }
        Self { abort: abort.clone(), _ends: counts.is_ok().then_some(ends) }
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.abort.end_cells();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn cells_end_with_the_record_or_when_it_takes_too_long() {
        let (quick, slow) = (AbortSignal::new(), AbortSignal::new());
        let deadline = Deadline::begin(&quick, Duration::from_secs(3_600));
        assert!(!quick.for_cell().is_cancelled());
        drop(deadline);
        assert!(quick.for_cell().is_cancelled());
        let began = Instant::now();
        let _hangs = Deadline::begin(&slow, Duration::from_millis(50));
        assert!(!slow.for_cell().is_cancelled() || began.elapsed() >= Duration::from_millis(50));
        while !slow.for_cell().is_cancelled() {
            assert!(began.elapsed() < Duration::from_secs(30));
            thread::sleep(Duration::from_millis(5));
        }
        assert!(began.elapsed() >= Duration::from_millis(50));
    }
}
