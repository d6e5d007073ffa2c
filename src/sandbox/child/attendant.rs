//! The parent of a program where there is no mount view: answers its metadata calls, and ends as it
//! ends.
//!
//! It has the program's own identity and Landlock rules, so it can do nothing that the program could
//! not do but for the filter. It stays until the program ends. What the program leaves behind then
//! gets ENOSYS, and is ended by the monitor.

use super::super::enforced::{AtStep, SetupFailed, Step};
use super::super::seccomp::Filter;
use super::super::wire;
use super::metadata::{self, Places};
use super::{release_standard_streams, sys};
use nix::sys::signal::{SigSet, Signal};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{Pid, PidfdFlags, WaitOptions, WaitStatus, pidfd_open, waitpid};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// Which of the two processes this is.
pub(super) enum Role {
    /// The program, about to start; the filter is in force.
    Program,
    /// The attendant, when the program has ended: the code to end with.
    Attendant(i32),
}

/// Splits this process: the program goes on under `filter`, this one attends until it ends.
pub(super) fn split(filter: &Filter, places: &Places) -> Result<Role, SetupFailed> {
    let (ours, theirs) = pair().at(Step::Descriptors)?;
    let Some(program) = sys::copy_process(0).at(Step::Fork)? else {
        drop(ours);
        become_program(filter, &theirs)?;
        return Ok(Role::Program);
    };
    drop(theirs);
    // The supervisor takes the end of the set-up pipe for the start of the program, and the end of
    // the streams for the end of its output.
    for number in wire::SETUP_DESCRIPTOR..=wire::LIFELINE_DESCRIPTOR {
        sys::close_number(number);
    }
    release_standard_streams();
    // Orders to the tree are for the program; this process ends with it, or is killed.
    SigSet::all().thread_block().map_err(io::Error::from).at(Step::Fork)?;
    Ok(Role::Attendant(attend(program, &ours, places)))
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

fn become_program(filter: &Filter, to: &OwnedFd) -> Result<(), SetupFailed> {
    // Not the attendant's session: a signal to the own group must reach nobody else.
    rustix::process::setsid().at(Step::Session)?;
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(io::Error::from).at(Step::Session)?;
    let listener = filter.install_attended().at(Step::Seccomp)?;
    let listeners = [listener.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    rights.push(SendAncillaryMessage::ScmRights(&listeners));
    sendmsg(to, &[IoSlice::new(b"l")], &mut rights, SendFlags::empty()).at(Step::Seccomp)?;
    Ok(())
}

/// Takes the listener; `None` when the program ended before it had one.
fn take_listener(from: &OwnedFd) -> Option<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0_u8; 1];
    recvmsg(from, &mut [IoSliceMut::new(&mut byte)], &mut rights, RecvFlags::CMSG_CLOEXEC).ok()?;
    rights.drain().find_map(|message| {
        let RecvAncillaryMessage::ScmRights(mut descriptors) = message else { return None };
        descriptors.next()
    })
}

/// Answers until the program ends; then how it ended, as an exit code. A program that a signal ended
/// ends this process by the same one.
fn attend(program: Pid, from: &OwnedFd, places: &Places) -> i32 {
    if let (Some(listener), Ok(handle)) =
        (take_listener(from), pidfd_open(program, PidfdFlags::empty()))
    {
        while runs(&handle, &listener) {
            // An error is the program's: the call was interrupted, or its process is gone.
            metadata::answer(&listener, places).ok();
        }
    }
    loop {
        match waitpid(Some(program), WaitOptions::empty()) {
            Ok(Some((_, status))) => return mirror(status),
            Err(Errno::INTR) => {}
            Ok(None) | Err(_) => return UNKNOWN_END,
        }
    }
}

/// Exit code when the kernel does not say how the program ended.
const UNKNOWN_END: i32 = 125;
/// What a shell adds to the number of a signal.
const SIGNAL_BASE: i32 = 128;

/// Waits for a call to answer; `false` when the program has ended.
fn runs(program: &OwnedFd, listener: &OwnedFd) -> bool {
    loop {
        let mut ready = [PollFd::new(program, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
        match poll(&mut ready, None) {
            Err(Errno::INTR) => {}
            Err(_) => return false,
            Ok(_) => {
                let [program, listener] = ready;
                if listener.revents().contains(PollFlags::IN) {
                    return true;
                }
                if !program.revents().is_empty() || !listener.revents().is_empty() {
                    return false;
                }
            }
        }
    }
}

fn mirror(status: WaitStatus) -> i32 {
    let Some(number) = status.terminating_signal() else {
        return status.exit_status().unwrap_or(UNKNOWN_END);
    };
    if let Ok(signal) = Signal::try_from(number) {
        SigSet::from(signal).thread_unblock().ok();
        // The first may run the runtime's own handler, which then gives way to the default.
        nix::sys::signal::raise(signal).ok();
        nix::sys::signal::raise(signal).ok();
    }
    SIGNAL_BASE + number
}
