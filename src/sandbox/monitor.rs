//! The supervisor's hold on the process that watches a cell from outside: orders, its end, and those that
//! have nothing left to do but exit. What it does itself is `child::monitor`.

use super::wire::ORDER_KILL;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, waitpid};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time for the monitor to kill what is left and to clean up, after which it is killed itself.
pub(super) const CLEAN_UP_TIME_MAX: Duration = Duration::from_secs(10);
/// Monitors that may be on their way out at the same time: each holds a descriptor.
const PARTED_MAX: usize = 32;

/// Monitors that were let go.
static PARTED: Mutex<Vec<Monitor>> = Mutex::new(Vec::new());

fn parted() -> MutexGuard<'static, Vec<Monitor>> {
    // What a panicking holder left is a list of monitors all the same.
    PARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for the exit of every monitor that was let go.
pub(super) fn wait_for_parted() {
    let all = std::mem::take(&mut *parted());
    drop(all);
}

/// The process that watches the cell. Dropping it kills the tree and waits until nothing is left.
#[derive(Debug)]
pub(super) struct Monitor {
    pid: Option<Pid>,
    lifeline: OwnedFd,
}

impl Monitor {
    pub(super) fn new(pid: Pid, lifeline: OwnedFd) -> Self {
        Self { pid: Some(pid), lifeline }
    }

    /// Sends an order; a monitor that is gone needs none.
    pub(super) fn order(&self, order: u8) {
        rustix::io::write(&self.lifeline, &[order]).ok();
    }

    /// Kills what is left and waits for the monitor's end. Whether it had to be forced.
    pub(super) fn end(mut self) -> bool {
        self.finish()
    }

    /// Lets a monitor go that has said its last word. Nothing depends on its exit, which takes a tenth of
    /// a short call; it is waited for with the next launch, or by [`wait_for_parted`]. Nothing had to be forced.
    pub(super) fn part(self) -> bool {
        // Its word alone is not relied on: whatever may be left is told to go.
        self.order(ORDER_KILL);
        let mut parted = parted();
        parted.retain_mut(|monitor| !monitor.has_ended());
        parted.push(self);
        let oldest = (parted.len() > PARTED_MAX).then(|| parted.remove(0));
        drop(parted);
        // Waits, which must not hold up others.
        drop(oldest);
        false
    }

    /// Whether it has ended; takes note of that.
    pub(super) fn has_ended(&mut self) -> bool {
        let reaped = self.pid.is_some_and(|pid| {
            !matches!(
                waitpid(Some(pid), WaitOptions::NOHANG),
                Ok(None) | Err(rustix::io::Errno::INTR)
            )
        });
        if reaped {
            self.pid = None;
        }
        self.pid.is_none()
    }

    /// Waits for the monitor's end, and forces it when it hangs. Whether it had to be forced.
    fn finish(&mut self) -> bool {
        let Some(pid) = self.pid.take() else { return false };
        self.order(ORDER_KILL);
        let ended = pidfd_open(pid, PidfdFlags::empty()).is_ok_and(|handle| {
            let deadline = Instant::now() + CLEAN_UP_TIME_MAX;
            ready_by(&handle, deadline)
        });
        if !ended {
            kill_process(pid, Signal::KILL).ok();
        }
        while matches!(waitpid(Some(pid), WaitOptions::empty()), Err(rustix::io::Errno::INTR)) {}
        !ended
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.finish();
    }
}

fn ready_by(handle: &OwnedFd, deadline: Instant) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(timeout) = Timespec::try_from(left) else { return false };
        match poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => {}
            other => return other.is_ok_and(|count| count > 0),
        }
    }
}
