//! A process that is followed from one system call to the next, so that it can be killed at an exact
//! place: before or after a line of its journal is written. With it the power can fail: what no flush has
//! covered by then is gone.
//!
//! What may be stopped is the thread that writes the journal, which is the first one. Nothing in the
//! program knows of this: the kernel stops it, as a debugger would have it.

use super::rig::{PROGRAM, Rig};
use nix::libc::{PTRACE_SYSCALL_INFO_ENTRY, SYS_close, SYS_fdatasync, SYS_fsync, SYS_write};
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread;

/// Where a process is killed, seen from its journal. Lines are counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The line is in the file, flushed or not, and nothing else has happened since.
    After(usize),
    /// All that comes before the line has happened, and no byte of it is in the file.
    Before(usize),
}

/// Starts `arguments` and kills the process at `moment`; `false` if it ended before.
pub(crate) fn kill_at(rig: &Rig, arguments: &[String], moment: Moment) -> bool {
    hold_at(rig, arguments, moment, |_| ()).map(Held::kill).is_some()
}

/// Starts `arguments`, does `meanwhile` to the process, and holds it at `moment`; none if it ended before.
pub(crate) fn hold_at<'r>(
    rig: &'r Rig,
    arguments: &[String],
    moment: Moment,
    meanwhile: impl FnOnce(Pid) + Send,
) -> Option<Held<'r>> {
    let mut traced = Traced::start(rig, arguments);
    let id = traced.id;
    thread::scope(|scope| {
        scope.spawn(move || meanwhile(id));
        while traced.next_call() {
            if traced.is_at(moment) {
                return Some(Held(traced));
            }
        }
        None
    })
}

/// What dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dies {
    /// The process.
    Process,
    /// The machine: what was not flushed is gone as well.
    Machine,
}

/// A process whose writing thread is held; its other threads go on.
pub(crate) struct Held<'r>(Traced<'r>);

impl Held<'_> {
    pub(crate) fn ends_by(self, dies: Dies) {
        match dies {
            Dies::Process => self.kill(),
            Dies::Machine => self.fail_power(),
        }
    }

    pub(crate) fn kill(self) {
        drop(self.0.kill());
    }

    /// Kills it together with the machine: of each file of records that is left which it had flushed.
    pub(crate) fn fail_power(self) {
        let Traced { rig, records, .. } = self.0.kill();
        for path in files_of_records(rig) {
            let length = records.flushed.get(&path).copied().unwrap_or(0);
            fs::File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        nix::sys::signal::kill(self.0.id, signal).unwrap();
    }

    /// Waits for its end, although nobody lets it go on; gives the exit code.
    pub(crate) fn ends(self) -> i32 {
        let WaitStatus::Exited(_, code) = wait(self.0.id) else { panic!("it did not exit") };
        code
    }
}

/// A system call at its beginning or its end, with its first argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stop {
    number: i64,
    descriptor: u64,
    begins: bool,
}

struct Traced<'r> {
    rig: &'r Rig,
    child: Child,
    id: Pid,
    stop: Stop,
    /// The journal's descriptor in the process, once its first line has been written.
    descriptor: Option<u64>,
    /// Complete lines in the journal.
    lines: usize,
    records: Records,
}

/// The files of records that the process writes. Which descriptor is which is told by their growth: an
/// ordinary user does not see the descriptors of a process that keeps its memory to itself.
#[derive(Default)]
struct Records {
    lengths: BTreeMap<PathBuf, u64>,
    written: BTreeMap<u64, PathBuf>,
    /// Those that were flushed, and how long they were then.
    flushed: BTreeMap<PathBuf, u64>,
}

impl Records {
    /// A system call has ended.
    fn note(&mut self, rig: &Rig, Stop { number, descriptor, .. }: Stop) {
        if number == SYS_write {
            for path in files_of_records(rig) {
                let length = fs::metadata(&path).unwrap().len();
                let before = self.lengths.insert(path.clone(), length).unwrap_or(0);
                if length > before {
                    self.written.insert(descriptor, path);
                }
            }
        } else if [SYS_fdatasync, SYS_fsync].contains(&number)
            && let Some(path) = self.written.get(&descriptor)
        {
            self.flushed.insert(path.clone(), self.lengths[path]);
        } else if number == SYS_close {
            self.written.remove(&descriptor);
        }
    }
}

fn files_of_records(rig: &Rig) -> Vec<PathBuf> {
    let directories = rig.sessions().into_iter().chain([rig.state().join("audit")]);
    let entries = directories.filter_map(|directory| fs::read_dir(directory).ok()).flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")).collect()
}

impl<'r> Traced<'r> {
    /// The process waits in a shell until it is followed.
    fn start(rig: &'r Rig, arguments: &[String]) -> Self {
        let mut command = rig.program("/bin/sh", &["-c", "read go; exec \"$@\" < /dev/null", "sh"]);
        command.arg(PROGRAM).arg("--state-dir").arg(rig.state()).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let id = Pid::from_raw(i32::try_from(child.id()).unwrap());
        let options = Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_EXITKILL;
        ptrace::seize(id, options).unwrap();
        ptrace::interrupt(id).unwrap();
        wait(id);
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        let stop = Stop { number: -1, descriptor: 0, begins: false };
        Self { rig, child, id, stop, descriptor: None, lines: 0, records: Records::default() }
    }

    /// Goes on to the beginning or the end of the next system call; `false` at the end of the process.
    fn next_call(&mut self) -> bool {
        let mut signal: Option<Signal> = None;
        loop {
            ptrace::syscall(self.id, signal.take()).unwrap();
            match wait(self.id) {
                WaitStatus::PtraceSyscall(_) => break,
                WaitStatus::Stopped(_, delivered) => signal = Some(delivered),
                WaitStatus::Exited(..) | WaitStatus::Signaled(..) => return false,
                WaitStatus::PtraceEvent(..) | WaitStatus::Continued(_) | WaitStatus::StillAlive => {
                }
            }
        }
        let begins = ptrace::syscall_info(self.id).unwrap().op == PTRACE_SYSCALL_INFO_ENTRY;
        if begins {
            // At its end the registers hold its result.
            let (number, descriptor) = registers(self.id);
            self.stop = Stop { number, descriptor, begins };
        } else {
            self.stop.begins = false;
            self.count();
        }
        true
    }

    /// A call has ended. If the journal has grown, it was a write to the journal.
    fn count(&mut self) {
        self.records.note(self.rig, self.stop);
        if self.stop.number != SYS_write {
            return;
        }
        let lines = lines(self.rig);
        if lines > self.lines {
            self.lines = lines;
            self.descriptor = Some(self.stop.descriptor);
        }
    }

    fn is_at(&self, moment: Moment) -> bool {
        let Stop { number, descriptor, begins } = self.stop;
        let of_journal = Some(descriptor) == self.descriptor;
        match moment {
            Moment::After(line) => {
                of_journal && !begins && number == SYS_write && self.lines == line
            }
            Moment::Before(line) => {
                of_journal && begins && number == SYS_write && self.lines + 1 == line
            }
        }
    }

    fn kill(mut self) -> Self {
        nix::sys::signal::kill(self.id, Signal::SIGKILL).unwrap();
        while !matches!(wait(self.id), WaitStatus::Signaled(_, Signal::SIGKILL, _)) {}
        // It has been waited for; this only tells the handle.
        drop(self.child.try_wait());
        self
    }
}

fn wait(id: Pid) -> WaitStatus {
    waitpid(id, Some(WaitPidFlag::__WALL)).unwrap()
}

/// The number of the system call that begins, and its first argument.
#[cfg(target_arch = "x86_64")]
fn registers(id: Pid) -> (i64, u64) {
    let registers = ptrace::getregs(id).unwrap();
    (i64::try_from(registers.orig_rax).unwrap_or(-1), registers.rdi)
}

/// The number of the system call that begins, and its first argument.
#[cfg(target_arch = "aarch64")]
fn registers(id: Pid) -> (i64, u64) {
    let registers = ptrace::getregs(id).unwrap();
    (i64::try_from(registers.regs[8]).unwrap_or(-1), registers.regs[0])
}

fn journal(rig: &Rig) -> Option<PathBuf> {
    Some(rig.sessions().pop()?.join("journal.jsonl"))
}

/// Complete lines in the journal of the newest session.
pub(crate) fn lines(rig: &Rig) -> usize {
    let bytes = journal(rig).and_then(|path| std::fs::read(path).ok()).unwrap_or_default();
    bytes.iter().filter(|byte| **byte == b'\n').count()
}
