//! The process between supervisor and cell. It is outside the cell and outlives it.
//!
//! It waits for the end of the cell or of the supervisor, whichever comes first; kills what is left;
//! removes the control group; moves protected names that the call created aside; reports; ends. It
//! holds no secret and its environment is empty.

use super::super::enforced::{AtStep, SetupFailed, Step};
use super::super::spec::{Namespaces, Network, SandboxSpec};
use super::super::wire::{self, CELL_DESCRIPTORS, Cleaned, OutcomeReport, SetupReport};
use super::confine::{self, Program};
use super::early::{Became, Early, Made};
use super::groups::ControlGroup;
use super::init::{self, Entry, Orders, Start};
use super::privileges::Ids;
use super::sentinel::{self, Sentinel};
use super::{Gate, Inherited, Serve, release_standard_streams, sweep, sys};
use nix::sched::CloneFlags;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, geteuid, pidfd_open, pidfd_send_signal, setsid, waitpid,
};
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Runs the child's whole life. The copies of this process never return here.
pub(super) fn run(serve: Serve) -> ExitCode {
    let begun = stand_apart().and_then(|()| Inherited::take());
    // There is nobody to tell yet; the supervisor sees that the pipes end.
    let Ok((control, inherited)) = begun else { return ExitCode::FAILURE };
    let handed = match Early::make() {
        Made::Copy(init) => init.live(control, inherited, serve),
        Made::Refused => wire::receive_descriptors(&control),
        Made::Init(early) => match early.wait() {
            Became::Cell(watched, outcome, quarantine) => {
                // Their ends must be seen while this process lives.
                drop((inherited.setup, inherited.outcome, control));
                return watched.until_over(quarantine.as_deref(), &outcome, &inherited.lifeline);
            }
            Became::Declined(descriptors, start) => Ok(Some((descriptors, start))),
            Became::Nothing => return ExitCode::SUCCESS,
        },
    };
    match handed {
        Ok(Some((descriptors, start))) => {
            run_cell(inherited, descriptors, (serve, Gate::new(control, start)))
        }
        Ok(None) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// The life of a cell of which nothing has been made yet.
fn run_cell(
    mut inherited: Inherited,
    descriptors: [OwnedFd; CELL_DESCRIPTORS],
    (serve, gate): (Serve, Gate),
) -> ExitCode {
    let placed = inherited.place(descriptors);
    let Inherited { setup, outcome, lifeline } = inherited;
    let wires = Wires { setup: &setup, outcome: &outcome, lifeline: &lifeline };
    let started = placed.and_then(|file| {
        let spec = wire::decode_spec(&file).at(Step::Wire)?;
        let watched = supervise(&spec, wires, Inside { serve, gate: &gate })?;
        Ok((watched, spec.quarantine))
    });
    match started {
        Ok((watched, quarantine)) => {
            drop((setup, gate));
            watched.until_over(quarantine.as_deref(), &outcome, &lifeline)
        }
        Err(failed) => {
            drop(wire::send(&setup, &SetupReport::Failed(failed)));
            ExitCode::FAILURE
        }
    }
}

/// The pipes to the supervisor.
#[derive(Clone, Copy)]
pub(super) struct Wires<'a> {
    pub(super) setup: &'a OwnedFd,
    pub(super) outcome: &'a OwnedFd,
    pub(super) lifeline: &'a OwnedFd,
}

/// What the program's own process needs beside the spec.
struct Inside<'a> {
    serve: Serve,
    gate: &'a Gate,
}

/// A started cell.
pub(super) struct Watched {
    process: Pid,
    group: ControlGroup,
    kind: Kind,
}

enum Kind {
    /// The process is the init of the cell; the pipe brings the names to watch.
    Init(OwnedFd),
    /// The process is the program itself, and this process reaps.
    Program,
}

/// What this process is from its first moment on, also while it waits to be needed: without anything
/// that it was not handed, out of reach of others of the same user, in a session of its own and in
/// nobody's directory.
fn stand_apart() -> Result<(), SetupFailed> {
    sys::close_from(wire::FIRST_FREE_DESCRIPTOR).at(Step::CloseDescriptors)?;
    sys::close_from_at_exec(wire::FIRST_OWN_DESCRIPTOR).at(Step::CloseDescriptors)?;
    nix::sys::prctl::set_dumpable(false).map_err(io::Error::from).at(Step::Undumpable)?;
    setsid().at(Step::Session)?;
    rustix::process::chdir("/").at(Step::Session)
}

fn supervise(
    spec: &SandboxSpec,
    wires: Wires<'_>,
    Inside { serve, gate }: Inside<'_>,
) -> Result<Watched, SetupFailed> {
    let group = ControlGroup::create(&spec.limits);
    let program = Program { spec, serve, gate, limits: group.held() };
    match spec.namespaces {
        Namespaces::Auto => {
            let (names, names_theirs) = pipe_with(PipeFlags::CLOEXEC).at(Step::Descriptors)?;
            let map = (!may_make_namespaces()).then(Ids::own);
            let flags = namespaces(spec.network, map.is_some()).bits();
            let Some(process) = sys::copy_process(flags).at(Step::Namespaces)? else {
                drop(names);
                let entry = Entry::Fresh { group: &group, map };
                init::run(Start { program, entry, wires, names: names_theirs });
            };
            Ok(Watched::init(process, group, names))
        }
        Namespaces::Never => {
            sweep::adopt_orphans().at(Step::Fork)?;
            let Some(process) = sys::copy_process(0).at(Step::Fork)? else {
                let joined = group.join().at(Step::ControlGroup);
                confine::without_namespaces(&program, joined, wires.setup);
            };
            Ok(Watched { process, group, kind: Kind::Program })
        }
    }
}

/// Root makes every namespace by its own right, and files keep their owners without a map.
pub(super) fn may_make_namespaces() -> bool {
    let administers = |sets: CapabilitySets| sets.effective.contains(CapabilitySet::SYS_ADMIN);
    geteuid().is_root() && rustix::thread::capabilities(None).is_ok_and(administers)
}

/// The namespaces that an init is made in; its mount namespace it makes when there is a cell.
pub(super) fn namespaces(network: Network, user: bool) -> CloneFlags {
    let mut flags = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS;
    if network == Network::Off {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    if user {
        flags |= CloneFlags::CLONE_NEWUSER;
    }
    flags
}

impl Watched {
    /// A cell whose init is `process`; `names` brings the names to watch.
    pub(super) fn init(process: Pid, group: ControlGroup, names: OwnedFd) -> Self {
        Self { process, group, kind: Kind::Init(names) }
    }

    /// Watches until nothing of the cell lives, cleans up and reports.
    fn until_over(
        self,
        quarantine: Option<&Path>,
        outcome: &OwnedFd,
        lifeline: &OwnedFd,
    ) -> ExitCode {
        release_standard_streams();
        let (sentinel, init) = match self.kind {
            Kind::Init(names) => {
                let sentinel = Sentinel::read(&names);
                let init = Init(self.process);
                init.wait_for_the_rest(&names, lifeline);
                (sentinel, Some(init))
            }
            Kind::Program => {
                init::reap(self.process, &Orders::new(lifeline), outcome, init::Reach::Descent);
                (Sentinel::default(), None)
            }
        };
        // A control group can be removed when the init has left it, too.
        let (before, after) = if self.group.is_empty() { (None, init) } else { (init, None) };
        before.iter().for_each(Init::reap);
        let mut cleaned =
            Cleaned { protected: sentinel.move_aside(quarantine), ..Cleaned::default() };
        self.group.finish(&mut cleaned);
        let told = wire::send(outcome, &OutcomeReport::Cleaned(cleaned));
        // The supervisor may have been woken on this processor, and waits for nothing else.
        rustix::thread::sched_yield();
        after.iter().for_each(Init::reap);
        // A supervisor that is gone hears nothing; the cleaning is done all the same.
        if told.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// The first process of a cell, until it is reaped.
struct Init(Pid);

impl Init {
    /// Returns when nothing else of the cell lives: by the init's word, or by its end, with which the kernel
    /// has ended the others. Kills it, and so all of them, when the supervisor is gone.
    fn wait_for_the_rest(&self, names: &OwnedFd, lifeline: &OwnedFd) {
        let Ok(handle) = pidfd_open(self.0, PidfdFlags::empty()) else { return self.reap() };
        loop {
            // No event asked of the lifeline: only its hang-up is reported. Orders are the init's.
            let mut ready = [
                PollFd::new(&handle, PollFlags::IN),
                PollFd::new(names, PollFlags::IN),
                PollFd::new(lifeline, PollFlags::empty()),
            ];
            match poll(&mut ready, None) {
                Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {
                    let [init, word, _] = ready.map(|each| !each.revents().is_empty());
                    // A pipe that ends without the word tells of an init that was killed, and whose
                    // namespace the kernel is about to end.
                    if init || word && sentinel::says_over(names) {
                        return;
                    }
                    if word {
                        return self.reap();
                    }
                }
                Err(_) => {}
            }
            pidfd_send_signal(&handle, Signal::KILL).ok();
            return self.reap();
        }
    }

    /// Waits for its end.
    fn reap(&self) {
        while matches!(waitpid(Some(self.0), WaitOptions::empty()), Err(rustix::io::Errno::INTR)) {}
    }
}
