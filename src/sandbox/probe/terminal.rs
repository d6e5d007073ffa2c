//! A pseudo-terminal with somebody at it: a proof starts this program there as a person would, sees
//! every byte that arrives, and types an answer whenever a question stands.
//!
//! It judges nothing. A program gets a terminal of its own through a second hidden argument of this
//! binary, so that no helper of the machine has to be there.

use super::bench::{Bench, ProbeFault};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Hidden first argument that makes this binary become a program whose controlling terminal is its
/// standard input.
pub(super) const TERMINAL_ARGUMENT: &str = "--stoplog-probe-terminal";
/// Time for everything that is done at the terminal: a few calls and questions.
const SEAT_TIME_MAX: Duration = Duration::from_secs(60);
/// Time between two looks at whether the program has ended.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// What is typed: an answer each time that `question` appears, and the last one from then on.
#[derive(Debug, Clone, Copy)]
pub struct Typing<'a> {
    /// Text by which a question is known.
    pub question: &'a str,
    /// The lines, without their ends.
    pub answers: &'a [&'a str],
}

/// What was seen.
#[derive(Debug)]
pub struct Sitting {
    /// How the program ended; `None` if its time was up.
    pub status: Option<ExitStatus>,
    /// Its standard output, which is no terminal.
    pub stdout: Vec<u8>,
    /// All that arrived at the terminal, as text.
    pub shown: String,
    /// Questions that stood there.
    pub questions: usize,
}

/// Becomes the named program if that is what this process was started as.
pub(super) fn terminal_entry() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != TERMINAL_ARGUMENT {
        return None;
    }
    let program = arguments.next()?;
    let taken = rustix::process::setsid()
        .and_then(|_session| rustix::process::ioctl_tiocsctty(rustix::stdio::stdin()));
    if taken.is_ok() {
        // It comes back only if it fails.
        drop(command(&program).args(arguments).exec());
    }
    Some(ExitCode::FAILURE)
}

#[expect(clippy::disallowed_methods, reason = "the hidden argument is for controls and own runs")]
fn command(program: &OsStr) -> Command {
    Command::new(program)
}

impl Bench {
    /// Runs a program, unconfined, at a terminal of its own, and answers its questions.
    ///
    /// # Errors
    /// When there are no pseudo-terminals, or the program does not start.
    pub fn sit_at_terminal(
        &self,
        program: &OsStr,
        arguments: &[OsString],
        typing: Typing<'_>,
    ) -> Result<Sitting, ProbeFault> {
        let (person, terminal) = pseudo_terminal()?;
        let mut starter = self.own_program();
        starter.env("HOME", self.place()).arg(TERMINAL_ARGUMENT).arg(program).args(arguments);
        starter.stdin(Stdio::from(terminal.try_clone()?)).stderr(Stdio::from(terminal));
        let mut child = starter.spawn()?;
        // The starter holds the terminal's other end; nothing would end the reading while it lives.
        drop(starter);
        let stdout = child.stdout.take();
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // A pipe that breaks gives what came before.
            stdout.map(|mut pipe| pipe.read_to_end(&mut bytes));
            bytes
        });
        let mut seat = Seat { person: File::from(person), shown: Vec::new(), questions: 0 };
        let status = seat.stay(&mut child, typing)?;
        let Seat { shown, questions, .. } = seat;
        Ok(Sitting {
            status,
            stdout: reader.join().unwrap_or_default(),
            shown: String::from_utf8_lossy(&shown).into_owned(),
            questions,
        })
    }
}

/// The person's end and the program's end.
fn pseudo_terminal() -> io::Result<(OwnedFd, File)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let person = openpt(flags)?;
    grantpt(&person)?;
    unlockpt(&person)?;
    let name = ptsname(&person, Vec::new())?;
    let options = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
    let terminal = rustix::fs::open(
        OsStr::from_bytes(name.to_bytes()),
        options | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?;
    Ok((person, File::from(terminal)))
}

/// The person's side.
struct Seat {
    person: File,
    shown: Vec<u8>,
    questions: usize,
}

impl Seat {
    /// Reads and answers until the program has ended or its time is up; then it is killed.
    fn stay(&mut self, child: &mut Child, typing: Typing<'_>) -> io::Result<Option<ExitStatus>> {
        let end = Instant::now() + SEAT_TIME_MAX;
        let mut answers: VecDeque<&str> = typing.answers.iter().copied().collect();
        loop {
            let ended = child.try_wait()?;
            while self.read()? {
                self.answer(typing.question, &mut answers)?;
            }
            if ended.is_some() {
                return Ok(ended);
            }
            if Instant::now() > end {
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
        }
    }

    /// Takes what has arrived; `false` when nothing came for a moment.
    fn read(&mut self) -> io::Result<bool> {
        let mut ready = [PollFd::new(&self.person, PollFlags::IN)];
        if poll(&mut ready, Some(&LOOK_EVERY))? == 0 {
            return Ok(false);
        }
        let mut buffer = [0_u8; 4_096];
        match self.person.read(&mut buffer) {
            Ok(count) => {
                self.shown.extend_from_slice(buffer.get(..count).unwrap_or_default());
                Ok(count > 0)
            }
            // Nobody holds the other end any more.
            Err(error) if error.raw_os_error() == Some(libc::EIO) => {
                std::thread::sleep(Duration::from_millis(20));
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn answer(&mut self, question: &str, answers: &mut VecDeque<&str>) -> io::Result<()> {
        let standing = String::from_utf8_lossy(&self.shown).matches(question).count();
        while !question.is_empty() && self.questions < standing {
            self.questions += 1;
            let line = answers.front().copied().unwrap_or("n");
            if answers.len() > 1 {
                answers.pop_front();
            }
            self.person.write_all(line.as_bytes())?;
            self.person.write_all(b"\n")?;
        }
        Ok(())
    }
}
