//! Passes the caller's streams on to one command and back. It knows nothing of the command.

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::io::IsTerminal as _;

/// Bytes passed on at once: what a pipe holds.
const RELAY_BYTES: usize = 64 * 1024;

/// Whether nobody can have anything to say to the command: a terminal is never handed on, and the null
/// device is what a command without input gets anyway.
pub(super) fn has_no_input() -> bool {
    let stdin = std::io::stdin();
    let null = rustix::fs::makedev(1, 3);
    let is_null = rustix::fs::fstat(&stdin).is_ok_and(|status| {
        let kind = rustix::fs::FileType::from_raw_mode(status.st_mode);
        kind == rustix::fs::FileType::CharacterDevice && status.st_rdev == null
    });
    is_null || stdin.is_terminal()
}

/// Passes both streams on, as they come, until both have ended. One thread is enough for that: a reader
/// of ours that does not read holds up a command that writes to it, as it would without us.
pub(super) fn output(stdout: Option<OwnedFd>, stderr: Option<OwnedFd>) {
    // Not filled beforehand: most of it is seldom used.
    let mut buffer: Vec<u8> = Vec::with_capacity(RELAY_BYTES);
    let mut open: Vec<(OwnedFd, Stream)> = Vec::new();
    open.extend(stdout.map(|pipe| (pipe, Stream::Output)));
    open.extend(stderr.map(|pipe| (pipe, Stream::Error)));
    while !open.is_empty() {
        let mut ready: Vec<_> = open.iter().map(|(p, _)| PollFd::new(p, PollFlags::IN)).collect();
        // An interrupted look is followed by reads that find nothing.
        poll(&mut ready, None).ok();
        open.retain(|(pipe, stream)| {
            buffer.clear();
            match rustix::io::read(pipe, spare_capacity(&mut buffer)) {
                Ok(0) => false,
                // A reader that went away (`| head`) is no error of ours; the command is told by its pipe.
                Ok(_) => stream.write(&buffer).is_ok(),
                Err(error) => matches!(error, Errno::AGAIN | Errno::INTR),
            }
        });
    }
}

/// One of our own streams.
#[derive(Clone, Copy)]
enum Stream {
    Output,
    Error,
}

impl Stream {
    fn write(self, bytes: &[u8]) -> std::io::Result<()> {
        use std::io::Write as _;
        match self {
            Self::Output => {
                let mut stream = std::io::stdout().lock();
                stream.write_all(bytes).and_then(|()| stream.flush())
            }
            Self::Error => std::io::stderr().lock().write_all(bytes),
        }
    }
}

/// Passes our input on until it ends or the command does not read.
pub(super) fn input(to: OwnedFd) {
    // A command that ended early is no error of ours.
    drop(std::io::copy(&mut std::io::stdin(), &mut std::fs::File::from(to)));
}
