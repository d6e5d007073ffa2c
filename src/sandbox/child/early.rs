//! An init that is made while it is not known yet what cell it will be: its namespaces take a fifth of a
//! launch and need nothing from the spec.
//!
//! It waits, and is the one that is handed the cell. Most cells have namespaces and no network, and that is
//! what it is made for; any other cell it passes on to the monitor. The mount namespace is made when the
//! cell is, so that the cell has the host's mounts of that moment. Where namespaces are refused there is
//! no such init, and what is wrong is told by the launch that tries again.

use super::super::enforced::{AtStep, LimitsHeld, SetupFailed, Step};
use super::super::spec::{Namespaces, Network, SandboxSpec};
use super::super::wire::{self, CELL_DESCRIPTORS, SetupReport, Start};
use super::claim::{self, Claim, Watch};
use super::confine::Program;
use super::groups::ControlGroup;
use super::init::{self, Entry};
use super::monitor::{self, Watched, Wires};
use super::privileges::Ids;
use super::{Gate, Inherited, Serve, sys};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::path::PathBuf;

/// The init that waits, seen from the monitor.
pub(super) struct Early {
    process: Pid,
    link: OwnedFd,
    names: OwnedFd,
}

/// Both sides of a new one.
pub(super) enum Made {
    /// In the monitor.
    Init(Early),
    /// In the init, which has only to [`Waiting::live`].
    Copy(Waiting),
    /// In the monitor, where it was refused.
    Refused,
}

/// What has become of it.
pub(super) enum Became {
    /// The cell; its outcome pipe, and the place for what the call was not to create.
    Cell(Watched, OwnedFd, Option<PathBuf>),
    /// Nothing, and here is a cell that needs another init.
    Declined([OwnedFd; CELL_DESCRIPTORS], Start),
    /// Nothing, since no cell was needed.
    Nothing,
}

impl Early {
    /// Makes the init, which gets copies of everything that this process has.
    pub(super) fn make() -> Made {
        let link =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (Ok((link, link_theirs)), Ok((names, names_theirs))) =
            (link, pipe_with(PipeFlags::CLOEXEC))
        else {
            return Made::Refused;
        };
        // Read out here: in a user namespace without a map everybody is nobody.
        let map = (!monitor::may_make_namespaces()).then(Ids::own);
        match sys::copy_process(monitor::namespaces(Network::Off, map.is_some()).bits()) {
            Ok(Some(process)) => Made::Init(Self { process, link, names }),
            Ok(None) => Made::Copy(Waiting { link: link_theirs, names: names_theirs, map }),
            Err(_) => Made::Refused,
        }
    }

    /// Waits until it has become something.
    pub(super) fn wait(self) -> Became {
        match claim::receive(&self.link) {
            Ok(Some(Claim::Taken(outcome, watch))) => {
                let Watch { limits, quarantine } = *watch;
                let group = ControlGroup::create(&limits);
                if ControlGroup::is_wanted(&limits) {
                    let taken_in = group.take_in(self.process).at(Step::ControlGroup);
                    // An init that is gone needs no answer, and its end is seen.
                    claim::answer(&self.link, &taken_in.map(|()| group.held())).ok();
                }
                let watched = Watched::init(self.process, group, self.names);
                Became::Cell(watched, outcome, quarantine)
            }
            Ok(Some(Claim::Declined(descriptors, start))) => {
                self.reap();
                Became::Declined(descriptors, start)
            }
            Ok(None) | Err(_) => {
                self.reap();
                Became::Nothing
            }
        }
    }

    /// Waits for the end of an init that is nothing.
    fn reap(self) {
        let Self { process, link, .. } = self;
        // One that waits for an answer ends with the link.
        drop(link);
        while matches!(waitpid(Some(process), WaitOptions::empty()), Err(rustix::io::Errno::INTR)) {
        }
    }
}

/// The init itself, before it is handed a cell.
pub(super) struct Waiting {
    link: OwnedFd,
    names: OwnedFd,
    /// The caller's ids, when there is a user namespace that must map them.
    map: Option<Ids>,
}

impl Waiting {
    /// Its whole life.
    pub(super) fn live(self, control: OwnedFd, inherited: Inherited, serve: Serve) -> ! {
        let settled = init::settle(self.map, true);
        let Ok(Some((descriptors, start))) = wire::receive_descriptors(&control) else {
            // Not needed, or nobody to tell: the supervisor sees that the pipes end.
            sys::end_process(0)
        };
        let [_, _, _, file, ..] = &descriptors;
        match wire::decode_spec(file) {
            Ok(spec) if settled.is_ok() && serves(&spec) => {
                let gate = Gate::new(control, start);
                self.become_cell(&spec, descriptors, inherited, (serve, gate))
            }
            // What is wrong is found again, and told, where a cell is made from the start.
            Ok(_) | Err(_) => {
                let declined = claim::decline(&self.link, &descriptors, start);
                sys::end_process(i32::from(declined.is_err()))
            }
        }
    }

    fn become_cell(
        self,
        spec: &SandboxSpec,
        descriptors: [OwnedFd; CELL_DESCRIPTORS],
        mut inherited: Inherited,
        (serve, gate): (Serve, Gate),
    ) -> ! {
        let Self { link, names, map } = self;
        let claimed =
            inherited.place(descriptors).and_then(|_spec| claim_it(link, &inherited, spec));
        let Inherited { setup, outcome, lifeline } = &inherited;
        match claimed {
            Ok(limits) => init::run(init::Start {
                program: Program { spec, serve, gate: &gate, limits },
                entry: Entry::Settled { user: map.is_some() },
                wires: Wires { setup, outcome, lifeline },
                names,
            }),
            Err(failed) => {
                drop(wire::send(setup, &SetupReport::Failed(failed)));
                sys::end_process(1)
            }
        }
    }
}

/// The cells that such an init is made for.
fn serves(spec: &SandboxSpec) -> bool {
    spec.namespaces == Namespaces::Auto && spec.network == Network::Off
}

/// Tells the monitor; gives what bounds this process from now on.
fn claim_it(
    link: OwnedFd,
    inherited: &Inherited,
    spec: &SandboxSpec,
) -> Result<LimitsHeld, SetupFailed> {
    let watch = Watch { limits: spec.limits.clone(), quarantine: spec.quarantine.clone() };
    claim::take(&link, &inherited.outcome, &watch).at(Step::Wire)?;
    if ControlGroup::is_wanted(&spec.limits) {
        claim::await_answer(&link).at(Step::Wire)?
    } else {
        Ok(LimitsHeld::Rlimit)
    }
}
