//! The hidden probe program: does what an attacker would try, one act after the other, and prints
//! what the kernel answered to each.
//!
//! It runs twice: outside any cell as the control, which shows that the act works, and inside. It
//! judges nothing and stops at nothing; `bench` starts it, `guarantees` and the tests judge.

use super::calls;
use crate::sandbox::sys;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::ptrace;
use rustix::fs::{AtFlags, CWD, FlockOperation, Timespec, Timestamps, XattrFlags};
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sendto, socket_with,
    socketpair,
};
use rustix::process::{Pid, Resource, Rlimit, Signal};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Hidden first argument that makes this binary the probe program.
pub const PROBE_ARGUMENT: &str = "--stoplog-probe";
/// Bytes of a file that are shown.
const SHOWN_BYTES: u64 = 4_096;
/// Time for one connection: all are to this machine.
const CONNECT_TIME: Duration = Duration::from_millis(500);

/// One thing to try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// Read a file's content.
    ReadFile(PathBuf),
    /// Add to a file that exists.
    AppendFile(PathBuf),
    /// Cut a file to nothing, by path.
    CutFile(PathBuf),
    /// Make a new file.
    CreateFile(PathBuf),
    /// Remove a file.
    RemoveFile(PathBuf),
    /// List a directory.
    ListDirectory(PathBuf),
    /// Ask for size and times.
    ReadMetadata(PathBuf),
    /// Change the mode.
    SetMode(PathBuf),
    /// Change the times.
    SetTimes(PathBuf),
    /// Set an extended attribute.
    SetAttribute(PathBuf),
    /// Watch for changes.
    Watch(PathBuf),
    /// Rename.
    Rename(PathBuf, PathBuf),
    /// Take the exclusive lock.
    Lock(PathBuf),
    /// Give a name to a second name.
    Link(PathBuf, PathBuf),
    /// Reach for a process.
    Process(i32, Reach),
    /// Connect to a Unix socket by path.
    ConnectPath(PathBuf),
    /// Connect to a Unix socket by abstract name.
    ConnectAbstract(String),
    /// Send from one end of a datagram pair to a Unix socket.
    SendFromPair(PathBuf),
    /// Connect by TCP.
    ConnectTcp(SocketAddr),
    /// Send by UDP.
    SendUdp(SocketAddr),
    /// Send with the first packet, without `connect`.
    SendFastOpen(SocketAddr),
    /// A call of the table in `calls`, by name.
    Call(String),
    /// A call by the 32-bit door.
    ForeignCall,
    /// Names of the environment variables.
    ListEnvironment,
    /// Numbers of the open descriptors.
    ListDescriptors,
    /// Open the controlling terminal.
    OpenTerminal,
    /// Capability sets and the like, from the process's own status.
    ReadOwnStatus,
    /// Take this many bytes of memory and touch them.
    TakeMemory(usize),
    /// Make namespaces, by the flags of `unshare`.
    MakeNamespaces(i32),
    /// Mount an empty file system.
    MountMemory(PathBuf),
}

/// Ways to reach for another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reach {
    /// Signal it.
    Signal,
    /// Signal it through a process descriptor.
    SignalByDescriptor,
    /// Limit its core files.
    SetLimit,
    /// Lower its priority.
    SetPriority,
    /// Choose its processors.
    SetAffinity,
    /// Trace it.
    Trace,
    /// Take a copy of one of its descriptors.
    TakeDescriptor,
    /// Read its environment.
    ReadEnvironment,
}

impl Reach {
    /// Every way.
    pub const ALL: [Self; 8] = [
        Self::Signal,
        Self::SignalByDescriptor,
        Self::SetLimit,
        Self::SetPriority,
        Self::SetAffinity,
        Self::Trace,
        Self::TakeDescriptor,
        Self::ReadEnvironment,
    ];

    /// The way in words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::SignalByDescriptor => "signal by descriptor",
            Self::SetLimit => "limit",
            Self::SetPriority => "priority",
            Self::SetAffinity => "processors",
            Self::Trace => "trace",
            Self::TakeDescriptor => "take a descriptor",
            Self::ReadEnvironment => "read the environment",
        }
    }
}

/// What the kernel answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// 0, or the error number; -1 for an error without one.
    pub errno: i32,
    /// What was got.
    pub value: String,
}

impl Answer {
    /// Whether the act had its effect.
    #[must_use]
    pub fn worked(&self) -> bool {
        self.errno == 0
    }
}

/// Runs the probe program if that is what this process was started as.
pub(super) fn acts_entry() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != PROBE_ARGUMENT {
        return None;
    }
    let acts = arguments.next().and_then(|text| text.into_string().ok()).unwrap_or_default();
    Some(match perform_all(&acts, &mut io::stdout().lock()) {
        0 => ExitCode::SUCCESS,
        1 => ExitCode::FAILURE,
        _ => ExitCode::from(2),
    })
}

/// Performs encoded acts, one line of answer each. 0; 1 if an answer could not be written, 2 if the acts
/// are not understood.
pub(in crate::sandbox) fn perform_all(acts: &str, output: &mut dyn io::Write) -> i32 {
    let Ok(acts) = serde_json::from_str::<Vec<Act>>(acts) else { return 2 };
    for act in &acts {
        let answer = match perform(act) {
            Ok(value) => Answer { errno: 0, value },
            Err(error) => {
                Answer { errno: error.raw_os_error().unwrap_or(-1), value: error.to_string() }
            }
        };
        // One line at a time, so that what was answered before a kill is still read.
        let line = serde_json::to_string(&answer).map_err(io::Error::other);
        let written = line.and_then(|line| writeln!(output, "{line}"));
        if written.and_then(|()| output.flush()).is_err() {
            return 1;
        }
    }
    0
}

fn perform(act: &Act) -> io::Result<String> {
    match act {
        Act::ReadFile(path) => read(path),
        Act::AppendFile(path) => {
            done(|| OpenOptions::new().append(true).open(path)?.write_all(b"x"))
        }
        Act::CutFile(path) => done(|| Ok(nix::unistd::truncate(path, 0)?)),
        Act::CreateFile(path) => done(|| File::create_new(path).map(drop)),
        Act::RemoveFile(path) => done(|| fs::remove_file(path)),
        Act::ListDirectory(path) => list(path),
        Act::ReadMetadata(path) => fs::metadata(path).map(|metadata| metadata.len().to_string()),
        Act::SetMode(path) => done(|| fs::set_permissions(path, fs::Permissions::from_mode(0o600))),
        Act::SetTimes(path) => done(|| set_times(path)),
        Act::SetAttribute(path) => {
            done(|| Ok(rustix::fs::setxattr(path, "user.stoplog", b"x", XattrFlags::empty())?))
        }
        Act::Watch(path) => done(|| watch(path)),
        Act::Rename(from, to) => done(|| fs::rename(from, to)),
        Act::Link(from, to) => done(|| fs::hard_link(from, to)),
        Act::Lock(path) => done(|| {
            let file = File::open(path)?;
            Ok(rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?)
        }),
        Act::ConnectPath(path) => done(|| UnixStream::connect(path).map(drop)),
        Act::ConnectAbstract(name) => done(|| connect_abstract(name)),
        Act::SendFromPair(path) => done(|| send_from_pair(path)),
        Act::ConnectTcp(address) => {
            done(|| TcpStream::connect_timeout(address, CONNECT_TIME).map(drop))
        }
        Act::SendUdp(address) => {
            done(|| UdpSocket::bind("0.0.0.0:0")?.send_to(b"x", address).map(drop))
        }
        Act::SendFastOpen(address) => done(|| send_fast_open(*address)),
        Act::Call(name) => {
            let call = calls::find(name).ok_or_else(|| io::Error::other("no such call"))?;
            sys::harmless_call(call).map(|value| value.to_string())
        }
        Act::ForeignCall => sys::foreign_call().map(|value| value.to_string()),
        Act::ListEnvironment => Ok(environment_names()),
        Act::ListDescriptors => list(Path::new("/proc/self/fd")),
        Act::OpenTerminal => done(|| OpenOptions::new().write(true).open("/dev/tty").map(drop)),
        Act::ReadOwnStatus => read(Path::new("/proc/self/status")),
        Act::TakeMemory(bytes) => Ok(vec![1_u8; *bytes].len().to_string()),
        Act::MakeNamespaces(flags) => {
            done(|| Ok(nix::sched::unshare(nix::sched::CloneFlags::from_bits_retain(*flags))?))
        }
        Act::MountMemory(path) => done(|| {
            let none = rustix::mount::MountFlags::empty();
            Ok(rustix::mount::mount("none", path, "tmpfs", none, None)?)
        }),
        Act::Process(number, reach) => reach_for(*number, *reach),
    }
}

/// Reaches for another process.
fn reach_for(number: i32, reach: Reach) -> io::Result<String> {
    let pid = Pid::from_raw(number).ok_or_else(|| io::Error::other("not a process number"))?;
    let nix_pid = nix::unistd::Pid::from_raw(number);
    match reach {
        Reach::Signal => done(|| Ok(rustix::process::kill_process(pid, Signal::CONT)?)),
        Reach::SignalByDescriptor => {
            done(|| Ok(rustix::process::pidfd_send_signal(open_process(pid)?, Signal::CONT)?))
        }
        Reach::SetLimit => {
            let limit = Rlimit { current: Some(0), maximum: Some(0) };
            done(|| Ok(rustix::process::prlimit(Some(pid), Resource::Core, limit).map(drop)?))
        }
        Reach::SetPriority => done(|| Ok(rustix::process::setpriority_process(Some(pid), 19)?)),
        Reach::SetAffinity => done(|| {
            let mut processors = CpuSet::new();
            processors.set(0)?;
            Ok(sched_setaffinity(nix_pid, &processors)?)
        }),
        Reach::Trace => done(|| Ok(ptrace::seize(nix_pid, ptrace::Options::empty())?)),
        Reach::TakeDescriptor => done(|| {
            let flags = rustix::process::PidfdGetfdFlags::empty();
            Ok(rustix::process::pidfd_getfd(open_process(pid)?, 0, flags).map(drop)?)
        }),
        Reach::ReadEnvironment => read(Path::new(&format!("/proc/{number}/environ"))),
    }
}

fn open_process(pid: Pid) -> io::Result<rustix::fd::OwnedFd> {
    Ok(rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?)
}

fn done(act: impl FnOnce() -> io::Result<()>) -> io::Result<String> {
    act().map(|()| String::new())
}

fn read(path: &Path) -> io::Result<String> {
    let mut content = Vec::new();
    File::open(path)?.take(SHOWN_BYTES).read_to_end(&mut content)?;
    Ok(String::from_utf8_lossy(&content).into_owned())
}

fn list(path: &Path) -> io::Result<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names.join(" "))
}

fn environment_names() -> String {
    let bytes = fs::read("/proc/self/environ").unwrap_or_default();
    let pairs = bytes.split(|byte| *byte == 0).filter(|pair| !pair.is_empty());
    let names = pairs.map(|pair| pair.split(|byte| *byte == b'=').next().unwrap_or_default());
    let mut names: Vec<String> =
        names.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    names.sort();
    names.join(" ")
}

fn set_times(path: &Path) -> io::Result<()> {
    let then = Timespec { tv_sec: 1, tv_nsec: 0 };
    let times = Timestamps { last_access: then, last_modification: then };
    Ok(rustix::fs::utimensat(CWD, path, &times, AtFlags::empty())?)
}

fn watch(path: &Path) -> io::Result<()> {
    use rustix::fs::inotify;
    let watcher = inotify::init(inotify::CreateFlags::CLOEXEC)?;
    inotify::add_watch(&watcher, path, inotify::WatchFlags::CREATE)?;
    Ok(())
}

fn connect_abstract(name: &str) -> io::Result<()> {
    let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
    UnixStream::connect_addr(&address).map(drop)
}

fn send_from_pair(path: &Path) -> io::Result<()> {
    let kind = SocketType::DGRAM;
    let (end, _other) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
    sendto(&end, b"x", SendFlags::empty(), &SocketAddrUnix::new(path)?)?;
    Ok(())
}

fn send_fast_open(address: SocketAddr) -> io::Result<()> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let end = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let flags = SendFlags::from_bits_retain(libc::MSG_FASTOPEN.cast_unsigned());
    sendto(&end, b"x", flags, &address)?;
    Ok(())
}
