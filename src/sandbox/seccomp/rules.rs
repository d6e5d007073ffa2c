//! What each rule of the table means under a [`FilterSpec`]: a fixed verdict, or a check of
//! arguments.
//!
//! INVARIANT: arguments that the kernel declares as 32 bits wide are compared on their low half
//! alone. The kernel ignores the high half, so a test of all 64 bits could be dodged by setting it.

use super::{FilterSpec, Layer, ProgramKind, Treatment};

/// How a row of the table is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Allowed.
    Allow,
    /// EPERM.
    Refuse,
    /// ENOSYS, for calls whose callers fall back to an older one.
    Absent,
    /// Allowed where the layer is in force, else EPERM.
    Needs(Layer),
    /// Extended attributes by path: allowed with a mount view; else "not supported", which programs
    /// take for a plain file system where EPERM would end them.
    Attributes,
    /// Starts a program: refused for a file job.
    Execute,
    /// `openat2`: for a file job alone.
    OpenByStructure,
    /// Process number in this argument: without a PID namespace only 0, the caller.
    OwnProcess(u8),
    /// `setpriority` and `ioprio_set`: without a PID namespace only the caller or its group. The
    /// values are those of the first argument for "process" and "group".
    OwnPriority([u32; 2]),
    /// A signal to any process number: needs a layer that keeps it inside.
    Signal,
    /// `kill`: as `Signal`, but the own group may always be signalled.
    Kill,
    /// `fcntl`: the owner of a descriptor gets signals from it, which is a second `kill`.
    DescriptorControl,
    /// Flags of `clone` or `unshare` in this argument: no new namespace.
    NoNewNamespace(u32),
    /// A mode in this argument: no set-user-id file is created.
    Mode(u8),
    /// As `Mode`, by path: metadata outside the grants, so without a mount view it is attended.
    ModeByPath(u8),
    /// Owner or times by path: without a mount view it is attended.
    MetadataByPath,
    /// `open`, with its flags in this argument and the mode in the next.
    Open(u8),
    /// `utimensat`: on a descriptor always, by path as `MetadataByPath`.
    Times,
    /// `ioctl`.
    DeviceControl,
    /// `personality`.
    Personality,
    /// `socket`.
    Socket,
    /// `socketpair`.
    SocketPair,
}

/// What the filter answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The call runs.
    Allow,
    /// The call fails with this error number.
    Fail(u16),
    /// The attendant answers.
    Attend,
}

/// One test of half an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Test {
    /// The masked low half equals the value.
    Low { argument: u8, mask: u32, value: u32 },
    /// The high half equals the value.
    High { argument: u8, value: u32 },
    /// Any of these bits is set in the low half.
    AnyBit { argument: u8, bits: u32 },
}

/// Arguments decide: `matched` if every test of any one clause holds, else `otherwise`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) clauses: Vec<Vec<Test>>,
    pub(super) matched: Answer,
    pub(super) otherwise: Answer,
}

/// The verdict for one call number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The same for all arguments.
    Fixed(Answer),
    /// It depends on the arguments.
    Checked(Check),
}

impl Verdict {
    /// The verdict in words.
    pub(super) fn treatment(&self) -> Treatment {
        match self {
            Self::Fixed(Answer::Allow) => Treatment::Allowed,
            Self::Fixed(ABSENT) => Treatment::Absent,
            Self::Fixed(NOT_SUPPORTED) => Treatment::NotSupported,
            Self::Fixed(Answer::Fail(_)) => Treatment::Refused,
            Self::Fixed(Answer::Attend) => Treatment::Attended,
            Self::Checked(_) => Treatment::ByArguments,
        }
    }
}

const ALLOW: Verdict = Verdict::Fixed(Answer::Allow);
const REFUSED: Answer = Answer::Fail(1); // EPERM
const NOT_SUPPORTED: Answer = Answer::Fail(95); // EOPNOTSUPP
pub(super) const ABSENT: Answer = Answer::Fail(38); // ENOSYS

/// Flags of `clone` and `unshare` that make a namespace. The one for time (0x80) is separate, since
/// `clone` keeps its exit signal in those bits.
pub(super) const NEW_NAMESPACE: u32 = bits(
    libc::CLONE_NEWNS
        | libc::CLONE_NEWCGROUP
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET,
);
/// The flag of `unshare` that makes a time namespace.
pub(super) const NEW_TIME_NAMESPACE: u32 = 0x80;
/// The set-user-id bit. Set-group-id stays allowed: directories of shared projects carry it, and
/// every copy of such a tree sets it again.
const SET_USER_ID: u32 = libc::S_ISUID;
/// The bits of a socket's type; the rest are flags.
const SOCKET_TYPE: u32 = 0xf;
/// All bits.
const WHOLE: u32 = u32::MAX;
/// `TIOCSTI`, `TIOCLINUX`: type into a terminal. `TIOCSETD`: loads a line discipline.
const TERMINAL_REQUESTS: [u32; 3] = [0x5412, 0x541C, 0x5423];
/// `FIOSETOWN`, `SIOCSPGRP`: like `F_SETOWN`.
const OWNER_REQUESTS: [u32; 2] = [0x8901, 0x8902];
/// `F_SETOWN`, `F_SETSIG`, `F_SETOWN_EX`.
const OWNER_COMMANDS: [u32; 3] = [8, 10, 15];
/// `PER_LINUX`, and the value that only asks.
const PERSONALITIES: [u32; 2] = [0, WHOLE];

/// The bits of a C `int`.
#[expect(clippy::cast_sign_loss, reason = "flags are a bit pattern, the sign bit among them")]
const fn bits(flags: libc::c_int) -> u32 {
    flags as u32
}

/// The verdict of `rule` under `spec`.
pub(super) fn verdict(rule: Rule, spec: &FilterSpec) -> Verdict {
    let view = spec.has(Layer::MountView);
    match rule {
        Rule::Allow => ALLOW,
        Rule::Refuse => Verdict::Fixed(REFUSED),
        Rule::Absent => Verdict::Fixed(ABSENT),
        Rule::Needs(layer) => fixed(spec.has(layer), REFUSED),
        Rule::Attributes => fixed(view, NOT_SUPPORTED),
        Rule::Execute => fixed(spec.program == ProgramKind::Foreign, REFUSED),
        Rule::OpenByStructure => fixed(spec.program == ProgramKind::FileJob, ABSENT),
        Rule::OwnProcess(argument) if !spec.has(Layer::PidNamespace) => {
            only_if(vec![vec![equals(argument, 0)]])
        }
        Rule::OwnPriority(targets) if !spec.has(Layer::PidNamespace) => {
            only_if(targets.map(|target| vec![equals(0, target), equals(1, 0)]).to_vec())
        }
        Rule::OwnProcess(_) | Rule::OwnPriority(_) => ALLOW,
        Rule::Signal => fixed(spec.signals_are_own(), REFUSED),
        Rule::Kill if !spec.signals_are_own() => only_if(vec![vec![equals(0, 0)]]),
        Rule::Kill => ALLOW,
        Rule::DescriptorControl if !spec.signals_are_own() => refuse_any(1, &OWNER_COMMANDS),
        Rule::DescriptorControl => ALLOW,
        Rule::NoNewNamespace(flags) => refuse_if(vec![vec![any_bit(0, flags)]]),
        Rule::Mode(argument) => refuse_if(vec![vec![any_bit(argument, SET_USER_ID)]]),
        Rule::ModeByPath(argument) => Verdict::Checked(Check {
            clauses: vec![vec![any_bit(argument, SET_USER_ID)]],
            matched: REFUSED,
            otherwise: by_path(spec),
        }),
        Rule::MetadataByPath => Verdict::Fixed(by_path(spec)),
        Rule::Open(argument) => open(argument),
        Rule::Times if view => ALLOW,
        Rule::Times => Verdict::Checked(Check {
            clauses: vec![vec![equals(1, 0), Test::High { argument: 1, value: 0 }]],
            matched: Answer::Allow,
            otherwise: by_path(spec),
        }),
        Rule::DeviceControl => device_control(spec),
        Rule::Personality => {
            only_if(PERSONALITIES.map(|persona| vec![equals(0, persona)]).to_vec())
        }
        Rule::Socket => socket(spec),
        Rule::SocketPair => socket_pair(spec),
    }
}

fn fixed(allowed: bool, otherwise: Answer) -> Verdict {
    Verdict::Fixed(if allowed { Answer::Allow } else { otherwise })
}

/// A change of metadata by path: the mount view judges it, else the attendant, else nobody can.
fn by_path(spec: &FilterSpec) -> Answer {
    if spec.has(Layer::MountView) {
        Answer::Allow
    } else if spec.has(Layer::MetadataAttendant) {
        Answer::Attend
    } else {
        REFUSED
    }
}

fn only_if(clauses: Vec<Vec<Test>>) -> Verdict {
    Verdict::Checked(Check { clauses, matched: Answer::Allow, otherwise: REFUSED })
}

fn refuse_if(clauses: Vec<Vec<Test>>) -> Verdict {
    Verdict::Checked(Check { clauses, matched: REFUSED, otherwise: Answer::Allow })
}

fn refuse_any(argument: u8, values: &[u32]) -> Verdict {
    refuse_if(values.iter().map(|value| vec![equals(argument, *value)]).collect())
}

const fn equals(argument: u8, value: u32) -> Test {
    Test::Low { argument, mask: WHOLE, value }
}

const fn any_bit(argument: u8, bits: u32) -> Test {
    Test::AnyBit { argument, bits }
}

/// The mode counts only when the call can create a file; else the register holds anything.
fn open(flags: u8) -> Verdict {
    let creates = bits(libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY));
    let mode = flags.saturating_add(1);
    refuse_if(vec![vec![any_bit(flags, creates), any_bit(mode, SET_USER_ID)]])
}

fn device_control(spec: &FilterSpec) -> Verdict {
    let mut requests = TERMINAL_REQUESTS.to_vec();
    if !spec.signals_are_own() {
        requests.extend(OWNER_REQUESTS);
    }
    refuse_any(1, &requests)
}

fn family(domain: libc::c_int) -> Test {
    equals(0, bits(domain))
}

fn kind(of: libc::c_int) -> Test {
    Test::Low { argument: 1, mask: SOCKET_TYPE, value: bits(of) }
}

fn protocol(number: libc::c_int) -> Test {
    equals(2, bits(number))
}

/// Unix sockets where none of the host can be reached; interface and route queries, which name
/// lookup makes; TCP and UDP where granted. Multipath TCP, raw and every other family never.
fn socket(spec: &FilterSpec) -> Verdict {
    if spec.program == ProgramKind::FileJob {
        return Verdict::Fixed(REFUSED);
    }
    let mut clauses = vec![vec![family(libc::AF_NETLINK), protocol(libc::NETLINK_ROUTE)]];
    if spec.unix_sockets_are_own() {
        clauses.push(vec![family(libc::AF_UNIX)]);
    }
    if spec.internet_sockets_are_granted() {
        for domain in [libc::AF_INET, libc::AF_INET6] {
            for (of, own) in
                [(libc::SOCK_STREAM, libc::IPPROTO_TCP), (libc::SOCK_DGRAM, libc::IPPROTO_UDP)]
            {
                for number in [0, own] {
                    clauses.push(vec![family(domain), kind(of), protocol(number)]);
                }
            }
        }
    }
    only_if(clauses)
}

/// One end of a datagram pair can send to any datagram socket that it can name, so without own
/// Unix sockets only the connected kinds are left. `SOCK_RAW` is a datagram here too.
fn socket_pair(spec: &FilterSpec) -> Verdict {
    if spec.program == ProgramKind::FileJob {
        return Verdict::Fixed(REFUSED);
    }
    if spec.unix_sockets_are_own() {
        return only_if(vec![vec![family(libc::AF_UNIX)]]);
    }
    only_if(
        [libc::SOCK_STREAM, libc::SOCK_SEQPACKET]
            .map(|of| vec![family(libc::AF_UNIX), kind(of)])
            .to_vec(),
    )
}
