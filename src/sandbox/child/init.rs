//! Process 1 of a cell: builds the cell from inside, starts the program, ends everything with it.
//!
//! When this process ends the kernel kills every other process of the namespace, so nothing the
//! program starts can outlive it.

use super::super::enforced::{AtStep, SetupFailed, Step};
use super::super::spec::{self, Network};
use super::super::wire::{self, Ended, ORDER_END, OutcomeReport, SetupReport};
use super::confine::{self, Program};
use super::groups::ControlGroup;
use super::monitor::Wires;
use super::privileges::{self, Ids};
use super::{release_standard_streams, sweep, sys, view};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::Pid;
use std::convert::Infallible;
use std::time::Duration;

/// What the init needs from the monitor it was copied from.
pub(super) struct Start<'a> {
    pub(super) program: Program<'a>,
    pub(super) entry: Entry<'a>,
    pub(super) wires: Wires<'a>,
    /// Where the names to watch go, and the word that everything else in the cell has ended.
    pub(super) names: OwnedFd,
}

/// What has been done before.
pub(super) enum Entry<'a> {
    /// Nothing. `map`: the caller's ids, when there is a user namespace that must map them.
    Fresh { group: &'a ControlGroup, map: Option<Ids> },
    /// It is settled, and in its control group. `user`: in a user namespace.
    Settled { user: bool },
}

/// Runs the init's whole life.
pub(super) fn run(start: Start<'_>) -> ! {
    let wires = start.wires;
    let code = match prepare(&start) {
        Ok(process) => {
            // The last copies of these that are not the program's own.
            sys::close_number(wire::SETUP_DESCRIPTOR);
            release_standard_streams();
            reap(process, &Orders::new(wires.lifeline), wires.outcome, Reach::Namespace);
            super::sentinel::say_over(&start.names);
            0
        }
        Err(failed) => {
            drop(wire::send(wires.setup, &SetupReport::Failed(failed)));
            1
        }
    };
    sys::end_process(code)
}

/// What an init is whatever its cell: it dies with its monitor, has its caller's ids, and in a network of
/// its own the loopback device is on.
pub(super) fn settle(map: Option<Ids>, own_network: bool) -> Result<(), SetupFailed> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)
        .map_err(std::io::Error::from)
        .at(Step::Session)?;
    if let Some(ids) = map {
        privileges::map_identity(ids).at(Step::IdentityMap)?;
    }
    if own_network {
        sys::loopback_up().at(Step::Loopback)?;
    }
    Ok(())
}

/// Builds the cell, in order; every step may fail the launch.
fn prepare(start: &Start<'_>) -> Result<Pid, SetupFailed> {
    let spec = start.program.spec;
    let user = match start.entry {
        Entry::Fresh { group, map } => {
            settle(map, spec.network == Network::Off)?;
            group.join().at(Step::ControlGroup)?;
            map.is_some()
        }
        Entry::Settled { user } => user,
    };
    unshare(CloneFlags::CLONE_NEWNS).map_err(std::io::Error::from).at(Step::Namespaces)?;
    let view = view::build(spec)?;
    super::sentinel::announce(&start.names, &view.watched).at(Step::Mask)?;
    privileges::give_up(Ids::wanted(spec.identity))?;
    let become_program =
        || -> Infallible { confine::with_view(&start.program, &view, user, start.wires.setup) };
    let process = match &spec.program {
        // It brings a memory of its own.
        spec::Program::Exec { .. } => sys::start_sharing(become_program).at(Step::Fork)?,
        // It stays this binary.
        spec::Program::FileJob { .. } | spec::Program::Acts { .. } => {
            sys::copy_process(0).at(Step::Fork)?.or_else(|| match become_program() {})
        }
    };
    process.ok_or_else(|| SetupFailed::because(Step::Fork, "the kernel gave no process id"))
}

/// Time between looks at killed processes that have not ended yet.
const KILL_LOOK: Duration = Duration::from_millis(1);

/// Where the processes of a cell are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Everything else in this process's namespace.
    Namespace,
    /// Everything that descends from this process.
    Descent,
}

impl Reach {
    /// Tells all of them to end; that there is none is no error.
    fn end(self) {
        match self {
            Self::Namespace => signal_namespace(Signal::SIGTERM),
            Self::Descent => sweep::signal_descendants(&[rustix::process::Signal::TERM]),
        }
    }

    /// Kills all of them. They are stopped first, so that none acts on the death of another.
    fn kill(self) {
        match self {
            Self::Namespace => {
                signal_namespace(Signal::SIGSTOP);
                signal_namespace(Signal::SIGKILL);
            }
            Self::Descent => {
                use rustix::process::Signal as Of;
                sweep::signal_descendants(&[Of::STOP, Of::KILL]);
            }
        }
    }
}

fn signal_namespace(signal: Signal) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(-1), signal).ok();
}

/// The supervisor's orders, and its end.
pub(super) struct Orders<'a> {
    lifeline: &'a OwnedFd,
}

/// What the lifeline says.
enum Order {
    None,
    End,
    Kill,
}

impl<'a> Orders<'a> {
    pub(super) fn new(lifeline: &'a OwnedFd) -> Self {
        Self { lifeline }
    }

    fn next(&self) -> Order {
        let mut byte = [0_u8; 1];
        match rustix::io::read(self.lifeline, &mut byte) {
            Ok(1) if byte == [ORDER_END] => Order::End,
            Err(rustix::io::Errno::INTR) => Order::None,
            // An order to kill, the supervisor's end, or a broken pipe.
            Ok(_) | Err(_) => Order::Kill,
        }
    }
}

/// Waits for the main process, obeying orders; then kills what it left and reports.
pub(super) fn reap(main: Pid, orders: &Orders<'_>, outcome: &OwnedFd, reach: Reach) {
    let children = ChildSignals::new();
    let mut ended = Ended { status: 0, survivors: 0, cpu_microseconds: 0, resident_bytes: 0 };
    loop {
        if let Some(status) = collect_children(main) {
            ended.status = status;
            break;
        }
        match children.wait(orders.lifeline) {
            Event::Child => {}
            Event::Order => match orders.next() {
                Order::None => {}
                Order::End => reach.end(),
                Order::Kill => reach.kill(),
            },
        }
    }
    end_survivors(reach, &mut ended.survivors);
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_CHILDREN);
    if let Ok(usage) = usage {
        ended.cpu_microseconds =
            microseconds(usage.user_time()) + microseconds(usage.system_time());
        ended.resident_bytes = u64::try_from(usage.max_rss()).unwrap_or(0) * 1024;
    }
    drop(wire::send(outcome, &OutcomeReport::Ended(ended)));
}

fn microseconds(time: nix::sys::time::TimeVal) -> u64 {
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    seconds * 1_000_000 + u64::try_from(time.tv_usec()).unwrap_or(0)
}

/// Kills until nothing is left. Every process whose parent has ended is a child of this one, so the
/// tree is gone when, and only when, there is no child: a look at the tree alone may miss a process
/// that forks, or whose parent ends, meanwhile.
fn end_survivors(reach: Reach, survivors: &mut u32) {
    use rustix::process::{WaitOptions, wait};
    loop {
        reach.kill();
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => *survivors += 1,
            Ok(None) => std::thread::sleep(KILL_LOOK),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Reaps what has ended. The status of `main` when it was among them.
fn collect_children(main: Pid) -> Option<i32> {
    loop {
        match rustix::process::wait(rustix::process::WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == main => return Some(status.as_raw()),
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) | Err(_) => return None,
        }
    }
}

enum Event {
    Child,
    Order,
}

/// Notice of ended children.
struct ChildSignals(Option<SignalFd>);

impl ChildSignals {
    fn new() -> Self {
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGCHLD);
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        // Without a notice the children are looked at by the clock.
        let signals = mask.thread_block().and_then(|()| SignalFd::with_flags(&mask, flags));
        Self(signals.ok())
    }

    fn wait(&self, lifeline: &OwnedFd) -> Event {
        const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        let mut ready = vec![PollFd::new(lifeline, PollFlags::IN)];
        ready.extend(self.0.iter().map(|signals| PollFd::new(signals, PollFlags::IN)));
        let timeout = self.0.is_none().then_some(&LOOK);
        if poll(&mut ready, timeout).is_err() {
            return Event::Child;
        }
        if let Some(signals) = &self.0 {
            while matches!(signals.read_signal(), Ok(Some(_))) {}
        }
        let ordered = ready.first().is_some_and(|lifeline| !lifeline.revents().is_empty());
        if ordered { Event::Order } else { Event::Child }
    }
}
