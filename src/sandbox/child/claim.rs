//! What an init that was made early and its monitor tell each other once there is a cell. Neither the
//! supervisor nor the program has a part in it.
//!
//! The init, which alone reads the spec, claims the cell or passes on everything it was handed. Where a
//! control group is to hold limits, the monitor puts the init into it and answers.

use super::super::enforced::{LimitsHeld, SetupFailed};
use super::super::spec::Limits;
use super::super::wire::{
    AT_ONCE, CELL_DESCRIPTORS, Start, as_cell, receive_message, send_descriptors, send_message,
};
use rustix::fd::{AsFd, OwnedFd};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

/// What the monitor has to know of a cell.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Watch {
    /// Limits that a control group holds.
    pub(super) limits: Limits,
    /// Where names go that the call was not to create.
    #[serde(with = "crate::sandbox::lossless::optional_path")]
    pub(super) quarantine: Option<PathBuf>,
}

/// What the init says of the cell that it was handed.
#[derive(Debug)]
pub(super) enum Claim {
    /// It becomes the cell; with it come the write end of the outcome pipe and what to watch.
    Taken(OwnedFd, Box<Watch>),
    /// The cell needs another init.
    Declined([OwnedFd; CELL_DESCRIPTORS], Start),
}

/// What precedes a [`Watch`].
const TAKEN: u8 = b't';
/// Bytes of a claim: a path of the longest kind in its longest spelling.
const CLAIM_BYTES_MAX: usize = 64 * 1024;
/// Bytes of an answer: an error and what it is about.
const ANSWER_BYTES_MAX: usize = 16 * 1024;

/// Tells the monitor that the init becomes the cell.
pub(super) fn take(link: impl AsFd, outcome: impl AsFd, watch: &Watch) -> io::Result<()> {
    let mut content = vec![TAKEN];
    serde_json::to_writer(&mut content, watch)?;
    send_message(link, &content, &[outcome.as_fd()])
}

/// Passes on everything that the init was handed.
pub(super) fn decline(
    link: impl AsFd,
    descriptors: &[OwnedFd; CELL_DESCRIPTORS],
    start: Start,
) -> io::Result<()> {
    send_descriptors(link, descriptors, start)
}

/// Waits for what the init says; `None` when it has ended without a word.
pub(super) fn receive(link: impl AsFd) -> io::Result<Option<Claim>> {
    let mut content = vec![0_u8; CLAIM_BYTES_MAX];
    let Some((count, received)) = receive_message(link, &mut content)? else { return Ok(None) };
    match content.get(..count) {
        Some([TAKEN, watch @ ..]) => {
            let watch = Box::new(serde_json::from_slice(watch)?);
            let missing = || io::Error::other("the outcome pipe did not arrive");
            let outcome = received.into_iter().next().ok_or_else(missing)?;
            Ok(Some(Claim::Taken(outcome, watch)))
        }
        other => {
            let (descriptors, start) = as_cell(received, other == Some(&[AT_ONCE]))?;
            Ok(Some(Claim::Declined(descriptors, start)))
        }
    }
}

/// Tells the init what bounds its tree, or why it could not be put there.
pub(super) fn answer(link: impl AsFd, held: &Result<LimitsHeld, SetupFailed>) -> io::Result<()> {
    send_message(link, &serde_json::to_vec(held)?, &[])
}

/// Waits for the answer.
pub(super) fn await_answer(link: impl AsFd) -> io::Result<Result<LimitsHeld, SetupFailed>> {
    let mut content = vec![0_u8; ANSWER_BYTES_MAX];
    let gone = || io::Error::other("the monitor is gone");
    let (count, _) = receive_message(link, &mut content)?.ok_or_else(gone)?;
    Ok(serde_json::from_slice(content.get(..count).unwrap_or_default())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::Step;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;

    fn link() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
    }

    fn descriptors() -> [OwnedFd; CELL_DESCRIPTORS] {
        std::array::from_fn(|_| rustix::pipe::pipe().unwrap().0)
    }

    #[test]
    fn a_claim_with_the_longest_path_arrives_with_the_pipe() {
        let (ours, theirs) = link();
        let path: PathBuf = OsString::from_vec(vec![0xff; 4_096]).into();
        let limits = Limits { processes: Some(7), ..Limits::default() };
        let watch = Watch { limits, quarantine: Some(path) };
        take(&theirs, &theirs, &watch).unwrap();
        let Some(Claim::Taken(_, received)) = receive(&ours).unwrap() else { panic!() };
        assert_eq!(*received, watch);
        let failed = SetupFailed::because(Step::ControlGroup, "no room");
        for held in [Ok(LimitsHeld::CgroupV1), Err(failed)] {
            answer(&ours, &held).unwrap();
            assert_eq!(await_answer(&theirs).unwrap(), held);
        }
    }

    #[test]
    fn a_declined_cell_is_passed_on_whole_and_an_end_is_no_claim() {
        for start in [Start::AtOnce, Start::AtRelease] {
            let (ours, theirs) = link();
            decline(&theirs, &descriptors(), start).unwrap();
            let Some(Claim::Declined(_, received)) = receive(&ours).unwrap() else { panic!() };
            assert_eq!(received, start);
            drop(theirs);
            assert!(receive(&ours).unwrap().is_none());
        }
        let (ours, theirs) = link();
        drop(ours);
        assert!(await_answer(&theirs).is_err());
    }
}
