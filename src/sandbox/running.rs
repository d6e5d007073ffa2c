//! A live cell, owned by value: its output, its time, its end.
//!
//! `wait` reads output into bounded memory, tells the tree to end when time is up or the caller
//! cancels, and returns when the main process is gone, its tree is killed and the host is as it was.
//! It never waits for the end of a pipe that a daemon may hold. Dropping a `Running` kills the tree.

use super::capture::{Captured, LiveOutput, Spill};
use super::disk::DiskWatch;
use super::enforced::{AtStep, Enforced, SetupFailed, Step};
use super::monitor::{CLEAN_UP_TIME_MAX, Monitor};
use super::spare::Refill;
use super::spec::{Limits, SandboxSpec};
use super::wire::{
    Cleaned, Ended, ORDER_END, ORDER_KILL, OutcomeReport, ProtectedName, ReportReader,
};
use crate::base::limits::OUTPUT_DRAIN;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{OFlags, fcntl_setfl};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Bytes read from an output pipe at once: what a pipe holds.
const READ_BYTES: usize = 64 * 1024;
/// Time between looks at a cancellation that cannot wake us.
const CANCEL_LOOK: Duration = Duration::from_millis(100);
/// Exit code with which a shell reports a child that SIGKILL ended.
const SHELL_KILLED: i32 = 128 + libc::SIGKILL;

/// The supervisor's ends of a cell's pipes.
#[derive(Debug)]
pub(super) struct Pipes {
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: Option<OwnedFd>,
    pub(super) stderr: Option<OwnedFd>,
    pub(super) outcome: OwnedFd,
}

/// Ends a waiting `wait`, from any thread, at once.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<CancelState>);

#[derive(Debug)]
struct CancelState {
    cancelled: AtomicBool,
    wake: Option<OwnedFd>,
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}

impl Cancel {
    /// A handle that nobody has cancelled. Where the kernel has no event descriptor left, a waiting
    /// `wait` notices the cancellation at its next look, ten times a second.
    #[must_use]
    pub fn new() -> Self {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok();
        Self(Arc::new(CancelState { cancelled: AtomicBool::new(false), wake }))
    }

    /// Cancels, for good.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Release);
        if let Some(wake) = &self.0.wake {
            // A full counter already wakes every waiter.
            rustix::io::write(wake, &1_u64.to_ne_bytes()).ok();
        }
    }

    /// Whether somebody cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire)
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The program ended with this code.
    Code(i32),
    /// A signal ended the program.
    Signal(i32),
    /// Time was up.
    TimedOut,
    /// The kernel killed a process of the tree for want of memory.
    OutOfMemory,
    /// It wrote more than it may.
    OutputCapped,
    /// It filled the private temporary directory.
    DiskFull,
    /// The caller cancelled.
    Cancelled,
}

/// What a call used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resources {
    /// Time from start to end.
    pub wall: Duration,
    /// Processor time of the tree.
    pub cpu: Duration,
    /// Largest resident memory of one process.
    pub resident_bytes: u64,
    /// Largest memory of the tree, where a control group counts it.
    pub tree_memory_bytes: Option<u64>,
}

/// Everything about a call that has ended.
#[derive(Debug, Clone)]
pub struct Finished {
    /// How it ended.
    pub exit: Exit,
    /// Its standard output, and standard error too when merged.
    pub stdout: Captured,
    /// Its standard error.
    pub stderr: Captured,
    /// What held it.
    pub enforced: Enforced,
    /// What it used.
    pub resources: Resources,
    /// Processes that outlived the main process and were killed.
    pub survivors_killed: u32,
    /// Protected names that it created; they are moved aside.
    pub protected_created: Vec<ProtectedName>,
}

/// A live cell.
#[derive(Debug)]
pub struct Running {
    monitor: Monitor,
    pipes: Pipes,
    limits: Limits,
    stdout: LiveOutput,
    spill: Option<Spill>,
    disk: Option<DiskWatch>,
    started: Instant,
    enforced: Enforced,
    /// Dropped last.
    _refill: Refill,
}

impl Running {
    pub(super) fn new(
        (monitor, _refill): (Monitor, Refill),
        pipes: Pipes,
        enforced: Enforced,
        spec: &SandboxSpec,
    ) -> Result<Self, SetupFailed> {
        let limits = spec.limits.clone();
        let spill = match &limits.spill {
            Some(path) => Some(
                Spill::create(path, limits.spill_bytes)
                    .about(Step::Descriptors, || path.display().to_string())?,
            ),
            None => None,
        };
        for pipe in [&pipes.stdout, &pipes.stderr].into_iter().flatten() {
            fcntl_setfl(pipe, OFlags::NONBLOCK).at(Step::Descriptors)?;
        }
        let started = Instant::now();
        let disk = spec.private_tmp.clone().zip(limits.private_tmp_bytes);
        let disk = disk.map(|(directory, most)| DiskWatch::new(directory, most, started));
        let stdout = LiveOutput::new(limits.output_head_bytes, limits.output_tail_bytes);
        Ok(Self { monitor, pipes, limits, stdout, spill, disk, started, enforced, _refill })
    }

    /// What the kernel holds this cell to.
    #[must_use]
    pub fn enforced(&self) -> &Enforced {
        &self.enforced
    }

    /// What is captured of standard output, and of standard error where it is merged, for a reader who
    /// does not wait for the end.
    #[must_use]
    pub fn output(&self) -> LiveOutput {
        self.stdout.clone()
    }

    /// The program's standard input (when the spec asked for a pipe) and output, for a caller that
    /// talks with it while it runs. What is taken is not captured; the caller reads without blocking.
    pub fn take_pipes(&mut self) -> (Option<OwnedFd>, Option<OwnedFd>) {
        (self.pipes.stdin.take(), self.pipes.stdout.take())
    }

    /// Standard error, for a caller that passes it on while the program runs.
    pub fn take_stderr(&mut self) -> Option<OwnedFd> {
        self.pipes.stderr.take()
    }

    /// Waits until the main process is gone, time is up or somebody cancels; then nothing of the
    /// call lives.
    #[must_use]
    pub fn wait(mut self, cancel: &Cancel) -> Finished {
        self.pipes.stdin = None;
        let mut collected = Collected::new(&self);
        while !collected.is_done() {
            let filled =
                self.disk.as_mut().is_some_and(|disk| disk.is_being_filled(Instant::now()));
            collected.keep_time(&self.monitor, cancel, filled);
            let look = self.disk.as_ref().map(DiskWatch::due);
            collected.collect(&mut self.pipes, self.spill.as_mut(), (cancel, look));
        }
        let Self { monitor, stdout, spill, started, enforced, .. } = self;
        drop(stdout);
        let forced = if collected.cleaned.is_some() { monitor.part() } else { monitor.end() };
        collected.into_finished((spill.as_ref(), started, enforced), forced)
    }
}

/// What `wait` has seen so far.
#[derive(Debug)]
struct Collected {
    stdout: LiveOutput,
    stderr: LiveOutput,
    reports: ReportReader,
    ended: Option<(Ended, Instant)>,
    /// The monitor's last word: nothing is left.
    cleaned: Option<Cleaned>,
    outcome_open: bool,
    streams_open: bool,
    /// Why the tree was told to end, and when it is killed.
    stopping: Option<(Exit, Instant)>,
    kill_sent: bool,
    deadline: Instant,
    kill_grace: Duration,
    output_left: u64,
}

impl Collected {
    fn new(running: &Running) -> Self {
        let limits = &running.limits;
        Self {
            stdout: running.stdout.clone(),
            stderr: LiveOutput::new(limits.output_head_bytes, limits.output_tail_bytes),
            reports: ReportReader::default(),
            ended: None,
            cleaned: None,
            outcome_open: true,
            streams_open: true,
            stopping: None,
            kill_sent: false,
            deadline: running.started + limits.wall,
            kill_grace: limits.kill_grace,
            output_left: limits.output_total_bytes.unwrap_or(u64::MAX),
        }
    }

    fn is_done(&self) -> bool {
        let drained =
            !self.streams_open || self.ended.is_none_or(|(_, at)| at.elapsed() >= OUTPUT_DRAIN);
        let given_up = self.ended.is_some_and(|(_, at)| at.elapsed() >= CLEAN_UP_TIME_MAX)
            || self.stopping.is_some_and(|(_, at)| at.elapsed() >= CLEAN_UP_TIME_MAX);
        given_up || (!self.outcome_open && drained)
    }

    /// Gives the orders that are due.
    fn keep_time(&mut self, monitor: &Monitor, cancel: &Cancel, disk_filled: bool) {
        if self.ended.is_some() || self.kill_sent {
            return;
        }
        let now = Instant::now();
        if self.stopping.is_none() {
            let reason = if cancel.is_cancelled() {
                Some(Exit::Cancelled)
            } else if self.output_left == 0 {
                Some(Exit::OutputCapped)
            } else if disk_filled {
                Some(Exit::DiskFull)
            } else {
                (now >= self.deadline).then_some(Exit::TimedOut)
            };
            if let Some(reason) = reason {
                monitor.order(ORDER_END);
                self.stopping = Some((reason, now + self.kill_grace));
            }
        }
        if self.stopping.is_some_and(|(_, kill_at)| now >= kill_at) {
            monitor.order(ORDER_KILL);
            self.kill_sent = true;
        }
    }

    /// The time until which nothing is due.
    fn patience(&self, now: Instant) -> Duration {
        let next = match (self.ended, self.stopping) {
            (Some((_, at)), _) if self.outcome_open => at + CLEAN_UP_TIME_MAX,
            (Some((_, at)), _) => at + OUTPUT_DRAIN,
            (None, Some((_, kill_at))) if self.kill_sent => kill_at + CLEAN_UP_TIME_MAX,
            (None, Some((_, kill_at))) => kill_at,
            (None, None) => self.deadline,
        };
        next.saturating_duration_since(now)
    }

    /// Waits for the next thing to happen, at most until `look`, and takes it in.
    fn collect(
        &mut self,
        pipes: &mut Pipes,
        spill: Option<&mut Spill>,
        (cancel, look): (&Cancel, Option<Instant>),
    ) {
        let now = Instant::now();
        let mut patience = self.patience(now);
        if let Some(look) = look.filter(|_| self.ended.is_none()) {
            patience = patience.min(look.saturating_duration_since(now));
        }
        if cancel.0.wake.is_none() {
            patience = patience.min(CANCEL_LOOK);
        }
        let mut ready = Vec::with_capacity(4);
        let streams = [pipes.stdout.as_ref(), pipes.stderr.as_ref()];
        ready.extend(streams.into_iter().flatten().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        if self.outcome_open {
            ready.push(PollFd::new(&pipes.outcome, PollFlags::IN));
        }
        // Once seen, the wake stays readable; it is left out so that the loop does not spin.
        if let Some(wake) = cancel.0.wake.as_ref().filter(|_| !cancel.is_cancelled()) {
            ready.push(PollFd::new(wake, PollFlags::IN));
        }
        let timeout = Timespec::try_from(patience).ok();
        poll(&mut ready, timeout.as_ref()).ok();
        drop(ready);
        self.take_output(pipes, spill);
        self.take_reports(pipes);
    }

    fn take_output(&mut self, pipes: &mut Pipes, mut spill: Option<&mut Spill>) {
        // Not filled beforehand: most of it is seldom used.
        let mut buffer: Vec<u8> = Vec::new();
        for (pipe, output) in [(&mut pipes.stdout, &self.stdout), (&mut pipes.stderr, &self.stderr)]
        {
            let Some(open) = pipe.as_ref() else { continue };
            buffer.clear();
            buffer.reserve(READ_BYTES);
            match rustix::io::read(open, rustix::buffer::spare_capacity(&mut buffer)) {
                Ok(0) => *pipe = None,
                Ok(count) => {
                    output.push(&buffer);
                    self.output_left = self.output_left.saturating_sub(count as u64);
                    if let Some(spill) = spill.as_deref_mut() {
                        spill.push(&buffer);
                    }
                }
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                Err(_) => *pipe = None,
            }
        }
        self.streams_open = pipes.stdout.is_some() || pipes.stderr.is_some();
    }

    fn take_reports(&mut self, pipes: &Pipes) {
        let outcome = pipes.outcome.as_fd();
        if !self.outcome_open
            || !poll(&mut [PollFd::new(&outcome, PollFlags::IN)], Some(&Timespec::default()))
                .is_ok_and(|count| count > 0)
        {
            return;
        }
        self.outcome_open = self.reports.read(outcome).unwrap_or(false);
        while let Ok(Some(report)) = self.reports.next() {
            match report {
                OutcomeReport::Ended(ended) => self.ended = Some((ended, Instant::now())),
                OutcomeReport::Cleaned(cleaned) => {
                    (self.cleaned, self.outcome_open) = (Some(cleaned), false);
                }
            }
        }
    }

    fn exit(&self) -> Exit {
        if let Some((reason, _)) = self.stopping {
            return reason;
        }
        let killed_for_memory =
            self.cleaned.as_ref().map_or(0, |cleaned| cleaned.killed_for_memory);
        if killed_for_memory > 0 && self.killed() {
            return Exit::OutOfMemory;
        }
        // A tree that was killed with its monitor leaves no status of its own.
        self.ended.map_or(Exit::Signal(libc::SIGKILL), |(ended, _)| exit_of(ended.status))
    }

    /// Whether the main process, or a shell's child that it reports, was ended by SIGKILL.
    fn killed(&self) -> bool {
        self.ended.is_none_or(|(ended, _)| {
            matches!(exit_of(ended.status), Exit::Signal(libc::SIGKILL) | Exit::Code(SHELL_KILLED))
        })
    }

    fn into_finished(
        self,
        (spill, started, enforced): (Option<&Spill>, Instant, Enforced),
        forced: bool,
    ) -> Finished {
        let exit = if forced && self.ended.is_none() && self.stopping.is_none() {
            Exit::Signal(libc::SIGKILL)
        } else {
            self.exit()
        };
        let cleaned = self.cleaned.unwrap_or_default();
        Finished {
            exit,
            stdout: self.stdout.finish(spill),
            stderr: self.stderr.finish(spill),
            enforced,
            resources: Resources {
                wall: started.elapsed(),
                cpu: Duration::from_micros(
                    self.ended.map_or(0, |(ended, _)| ended.cpu_microseconds),
                ),
                resident_bytes: self.ended.map_or(0, |(ended, _)| ended.resident_bytes),
                tree_memory_bytes: cleaned.tree_memory_bytes,
            },
            survivors_killed: self.ended.map_or(0, |(ended, _)| ended.survivors),
            protected_created: cleaned.protected,
        }
    }
}

/// The status of `waitpid`, in our words.
fn exit_of(status: i32) -> Exit {
    if libc::WIFSIGNALED(status) {
        Exit::Signal(libc::WTERMSIG(status))
    } else {
        Exit::Code(libc::WEXITSTATUS(status))
    }
}
