//! What passes between supervisor and child: the spec one way, reports the other.
//!
//! The spec travels in a sealed memory file whose descriptor the child is handed with those of its
//! streams, never in arguments or the environment, which others on a shared machine can read. Reports are JSON lines on two pipes:
//! set-up (ends when the program starts) and outcome (ends when the last process is gone). Every
//! length that comes from the other side is checked before memory is taken for it.

use super::enforced::{Enforced, SetupFailed};
use super::spec::SandboxSpec;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fstat, memfd_create};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Seek, Write};
use std::mem::MaybeUninit;
use std::path::PathBuf;

/// Bytes of an encoded spec: a file job with a large file in it, and ten thousand masks.
const SPEC_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Bytes of all reports on one pipe: a long list of protected names still fits.
const REPORT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Descriptors of the child, by their fixed numbers. 0 to 2 are the program's own. This one brings the
/// descriptors of a cell; until then 0 to 2, 4 and 5 are the null device.
pub(super) const CONTROL_DESCRIPTOR: i32 = 3;
/// First number above the standard streams.
pub(super) const FIRST_OWN_DESCRIPTOR: u32 = 3;
/// Write end of the set-up pipe.
pub(super) const SETUP_DESCRIPTOR: i32 = 4;
/// Write end of the outcome pipe.
pub(super) const OUTCOME_DESCRIPTOR: i32 = 5;
/// Read end of the lifeline: orders, and end of file when the supervisor is gone.
pub(super) const LIFELINE_DESCRIPTOR: i32 = 6;
/// Descriptors that a child has from its start.
pub(super) const INHERITED_DESCRIPTORS: usize = 7;
/// First number that nothing of ours is at.
pub(super) const FIRST_FREE_DESCRIPTOR: u32 = 7;

/// What the control socket brings: standard input, output and error, the spec, and the write ends of
/// the set-up and the outcome pipe.
pub(super) const CELL_DESCRIPTORS: usize = 6;

/// When a program may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// As soon as its cell stands.
    AtOnce,
    /// When the supervisor says so, on the socket that brought the descriptors.
    AtRelease,
}

/// What comes with the descriptors: no word is waited for.
pub(super) const AT_ONCE: u8 = b'c';
/// What comes with the descriptors: the word to start follows.
const AT_RELEASE: u8 = b'h';
/// The word to start.
const RELEASE: u8 = b'r';

/// Order on the lifeline: tell every process of the tree to end.
pub(super) const ORDER_END: u8 = b'T';
/// Order on the lifeline: kill every process of the tree.
pub(super) const ORDER_KILL: u8 = b'K';

/// A report on the set-up pipe.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum SetupReport {
    /// All steps but the last two are done: next come the filter and the program.
    Enforced(Box<Enforced>),
    /// A step failed; nothing runs.
    Failed(SetupFailed),
}

/// A report on the outcome pipe.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum OutcomeReport {
    /// The main process ended.
    Ended(Ended),
    /// All processes are gone and the host is as it was.
    Cleaned(Cleaned),
}

/// How the main process ended.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Ended {
    /// Status as the kernel gives it to a parent.
    pub(super) status: i32,
    /// Processes that outlived the main process and were killed.
    pub(super) survivors: u32,
    /// Processor time of the tree in microseconds.
    pub(super) cpu_microseconds: u64,
    /// Largest resident memory of one process in bytes.
    pub(super) resident_bytes: u64,
}

/// What the last look found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Cleaned {
    /// Processes killed for want of memory, where a control group counts them.
    pub(super) killed_for_memory: u64,
    /// Largest memory of the tree, where a control group counts it.
    pub(super) tree_memory_bytes: Option<u64>,
    /// Protected names that the call created, and where they are now.
    pub(super) protected: Vec<ProtectedName>,
}

/// A protected name that did not exist when the call started and existed when it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtectedName {
    /// The protected name.
    #[serde(with = "crate::sandbox::lossless::path")]
    pub path: PathBuf,
    /// Where the created file was moved to; `None` when moving it failed.
    #[serde(with = "crate::sandbox::lossless::optional_path")]
    pub moved_to: Option<PathBuf>,
    /// The rule that protects it.
    pub reason_id: String,
}

/// A sealed memory file with `content`, positioned at its start.
pub(super) fn sealed_file(name: &str, content: &[u8]) -> io::Result<OwnedFd> {
    let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = File::from(file);
    file.write_all(content)?;
    file.rewind()?;
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}

/// Sends the descriptors of a cell in one message.
pub(super) fn send_descriptors(
    to: impl AsFd,
    descriptors: &[OwnedFd; CELL_DESCRIPTORS],
    start: Start,
) -> io::Result<()> {
    let word = match start {
        Start::AtOnce => AT_ONCE,
        Start::AtRelease => AT_RELEASE,
    };
    send_message(to, &[word], &descriptors.each_ref().map(AsFd::as_fd))
}

/// Waits for the descriptors of a cell; `None` when there will be none.
pub(super) fn receive_descriptors(
    from: impl AsFd,
) -> io::Result<Option<([OwnedFd; CELL_DESCRIPTORS], Start)>> {
    let mut word = [0_u8; 1];
    let Some((_, received)) = receive_message(from, &mut word)? else { return Ok(None) };
    as_cell(received, word == [AT_ONCE]).map(Some)
}

/// What is not known to start at once waits for a word.
pub(super) fn as_cell(
    received: Vec<OwnedFd>,
    at_once: bool,
) -> io::Result<([OwnedFd; CELL_DESCRIPTORS], Start)> {
    let missing = |_: Vec<OwnedFd>| io::Error::other("the cell's descriptors did not arrive");
    let start = if at_once { Start::AtOnce } else { Start::AtRelease };
    Ok((<[OwnedFd; CELL_DESCRIPTORS]>::try_from(received).map_err(missing)?, start))
}

/// Sends one message, and descriptors with it.
pub(super) fn send_message(
    to: impl AsFd,
    content: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(CELL_DESCRIPTORS))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    rights.push(SendAncillaryMessage::ScmRights(descriptors));
    loop {
        match sendmsg(&to, &[IoSlice::new(content)], &mut rights, SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            other => return Ok(other.map(drop)?),
        }
    }
}

/// Waits for one message: how many bytes it has, and the descriptors that came with it. `None` when the
/// other side is gone.
pub(super) fn receive_message(
    from: impl AsFd,
    content: &mut [u8],
) -> io::Result<Option<(usize, Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(CELL_DESCRIPTORS))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let count = loop {
        let bytes = &mut [IoSliceMut::new(content)];
        match recvmsg(&from, bytes, &mut rights, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(message) if message.bytes == 0 => return Ok(None),
            Ok(message) => break message.bytes,
        }
    };
    let received = rights.drain().find_map(|message| {
        let RecvAncillaryMessage::ScmRights(descriptors) = message else { return None };
        Some(descriptors.collect())
    });
    Ok(Some((count, received.unwrap_or_default())))
}

/// Lets a held program start.
pub(super) fn send_release(to: impl AsFd) -> io::Result<()> {
    loop {
        match rustix::net::send(&to, &[RELEASE], SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            other => return Ok(other.map(drop)?),
        }
    }
}

/// Waits for the word to start.
///
/// # Errors
/// It will not come.
pub(super) fn await_release(from: impl AsFd) -> io::Result<()> {
    let mut word = [0_u8; 1];
    loop {
        match rustix::io::read(&from, &mut word) {
            Err(Errno::INTR) => {}
            Ok(1) if word == [RELEASE] => return Ok(()),
            Ok(_) => return Err(io::Error::other("the supervisor did not let the program start")),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Encodes a spec for the child.
pub(super) fn encode_spec(spec: &SandboxSpec) -> io::Result<OwnedFd> {
    sealed_file("stoplog-spec", &serde_json::to_vec(spec)?)
}

/// Decodes the spec in the child. The file stays as it is, for another reader.
pub(super) fn decode_spec(file: &OwnedFd) -> io::Result<SandboxSpec> {
    let size = u64::try_from(fstat(file)?.st_size).map_err(io::Error::other)?;
    if size > SPEC_BYTES_MAX {
        return Err(io::Error::other("the spec is larger than any spec can be"));
    }
    let mut content = vec![0_u8; usize::try_from(size).map_err(io::Error::other)?];
    let mut done = 0;
    while let Some(rest) = content.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match rustix::io::pread(file, rest, done as u64) {
            Ok(0) => return Err(io::Error::other("the spec ends early")),
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(serde_json::from_slice(&content)?)
}

/// Writes one report line.
pub(super) fn send<T: Serialize>(pipe: impl AsFd, report: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    let mut rest = line.as_slice();
    while !rest.is_empty() {
        let written = match rustix::io::write(&pipe, rest) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        rest = rest.get(written..).unwrap_or_default();
    }
    Ok(())
}

/// Collects report lines from a pipe that may deliver them in pieces.
#[derive(Debug, Default)]
pub(super) struct ReportReader {
    pending: Vec<u8>,
    total: u64,
}

impl ReportReader {
    /// Takes what the pipe has now. `false` at end of file.
    pub(super) fn read(&mut self, pipe: impl AsFd) -> io::Result<bool> {
        let mut buffer = [0_u8; 4096];
        match rustix::io::read(&pipe, &mut buffer) {
            Ok(0) => Ok(false),
            Ok(count) => {
                self.total = self.total.saturating_add(count as u64);
                if self.total > REPORT_BYTES_MAX {
                    return Err(io::Error::other("the child reports more than it can have to say"));
                }
                self.pending.extend_from_slice(buffer.get(..count).unwrap_or_default());
                Ok(true)
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// The next whole line, decoded.
    pub(super) fn next<T: for<'de> Deserialize<'de>>(&mut self) -> io::Result<Option<T>> {
        let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') else {
            return Ok(None);
        };
        let line: Vec<u8> = self.pending.drain(..=end).collect();
        Ok(Some(serde_json::from_slice(&line)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_crosses_the_wire_and_cannot_be_changed_on_the_way() {
        let spec = SandboxSpec::default();
        let file = encode_spec(&spec).unwrap();
        let refused = rustix::io::write(&file, b"x").unwrap_err();
        assert_eq!(refused, rustix::io::Errno::PERM);
        assert_eq!(decode_spec(&file).unwrap(), spec);
        assert_eq!(decode_spec(&file).unwrap(), spec, "it can be read twice");
    }

    #[test]
    fn reports_survive_any_cut() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let ended = Ended { status: 9, survivors: 2, cpu_microseconds: 3, resident_bytes: 4 };
        send(&writer, &OutcomeReport::Ended(ended)).unwrap();
        send(&writer, &OutcomeReport::Cleaned(Cleaned::default())).unwrap();
        drop(writer);
        let mut reports = ReportReader::default();
        while reports.read(&reader).unwrap() {}
        let first = reports.next::<OutcomeReport>().unwrap().unwrap();
        assert!(matches!(first, OutcomeReport::Ended(Ended { status: 9, .. })), "{first:?}");
        assert!(matches!(reports.next().unwrap(), Some(OutcomeReport::Cleaned(_))));
        assert!(reports.next::<OutcomeReport>().unwrap().is_none());
    }
}
