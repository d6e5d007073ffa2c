//! The guarantees that the cell alone gives, each by a live probe: the act is shown to work outside,
//! then tried inside, then the target is looked at. Other layers bring their own rows.

use super::acts::{Act, Answer, Reach};
use super::bench::{Bench, CANARY, ProbeFault, put};
use super::calls::{CALLS, Call, Stopped};
use super::report::{Finding, Held, Probe};
use crate::sandbox::{
    Degraded, Enforced, Exit, Grant, GrantAccess, Limits, Mask, MaskKind, MaskPattern, Namespaces,
    SandboxSpec,
};
use std::fs;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::Path;
use std::time::Duration;

type Found = Result<Finding, ProbeFault>;

/// The probes of the cell.
pub const PROBES: [Probe; 13] = [
    Probe { guarantee: 4, name: "files outside", run: files_outside },
    Probe { guarantee: 4, name: "names outside", run: names_outside },
    Probe { guarantee: 4, name: "deny inside allow", run: deny_inside_allow },
    Probe { guarantee: 4, name: "sockets of the host", run: sockets_of_the_host },
    Probe { guarantee: 4, name: "second doors", run: second_doors },
    Probe { guarantee: 5, name: "network", run: network },
    Probe { guarantee: 6, name: "what is inherited", run: inheritance },
    Probe { guarantee: 7, name: "other processes", run: other_processes },
    Probe { guarantee: 8, name: "survivors", run: survivors },
    Probe { guarantee: 9, name: "endless output", run: endless_output },
    Probe { guarantee: 9, name: "time", run: time },
    Probe { guarantee: 9, name: "memory", run: memory },
    Probe { guarantee: 16, name: "broken set-up", run: broken_set_up },
];

/// One attack in words, and the act.
type Case = (&'static str, Act);

/// What came of cases that were tried outside and inside.
#[derive(Debug)]
pub struct Contrast {
    /// Cases that worked inside.
    pub through: Vec<&'static str>,
    /// Cases that did not work outside either, so they show nothing.
    pub unproven: Vec<String>,
    /// Cases that worked outside and failed inside.
    pub stopped: usize,
    /// What the cell had.
    pub enforced: Enforced,
}

/// Tries `control` outside and `confined` inside; the two are the same cases on two targets.
///
/// # Errors
/// When a side cannot be run.
pub fn contrast(
    bench: &Bench,
    control: &[Case],
    confined: &[Case],
) -> Result<Contrast, ProbeFault> {
    let acts = |cases: &[Case]| cases.iter().map(|(_, act)| act.clone()).collect::<Vec<_>>();
    let outside = bench.plain(&acts(control))?;
    let (enforced, inside) = bench.confined(&acts(confined))?;
    let mut contrast = Contrast { through: Vec::new(), unproven: Vec::new(), stopped: 0, enforced };
    for (((name, _), outside), inside) in confined.iter().zip(outside).zip(inside) {
        if inside.worked() {
            contrast.through.push(name);
        } else if outside.worked() {
            contrast.stopped += 1;
        } else {
            contrast.unproven.push(format!("{name} ({})", outside.value));
        }
    }
    Ok(contrast)
}

impl Contrast {
    fn finding(&self, subject: &str) -> Finding {
        if !self.through.is_empty() {
            return Finding::fail(format!("{subject}: got through: {}", self.through.join(", ")));
        }
        let mut detail = format!("{} {subject} worked outside and failed inside", self.stopped);
        if !self.unproven.is_empty() {
            detail.push_str("; not shown, since they fail outside too: ");
            detail.push_str(&self.unproven.join(", "));
        }
        if self.stopped == 0 { Finding::not_supported(detail) } else { Finding::pass(detail) }
    }
}

/// Two directories with the same files: one for the control, one that must stay as it is.
fn targets(bench: &Bench) -> io::Result<[std::path::PathBuf; 2]> {
    let directories = ["control", "target"].map(|name| bench.outside().join(name));
    for directory in &directories {
        if !directory.exists() {
            fs::create_dir(directory)?;
        }
        for name in ["secret", "second", "third"] {
            put(&directory.join(name), CANARY)?;
        }
    }
    Ok(directories)
}

/// Names, contents, modes and times of a directory and its files.
fn snapshot(directory: &Path) -> io::Result<Vec<(String, String, u32, i64)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        let content = fs::read_to_string(entry.path())?;
        let name = entry.file_name().to_string_lossy().into_owned();
        found.push((name, content, metadata.mode(), metadata.mtime()));
    }
    found.sort();
    Ok(found)
}

fn file_cases(bench: &Bench, directory: &Path) -> Vec<Case> {
    let secret = directory.join("secret");
    let linked = bench.workspace().join(directory.file_name().unwrap_or_default());
    let upwards = Path::new("/..").join(secret.strip_prefix("/").unwrap_or(&secret));
    vec![
        ("read", Act::ReadFile(secret.clone())),
        ("append", Act::AppendFile(secret.clone())),
        ("cut", Act::CutFile(directory.join("third"))),
        ("create", Act::CreateFile(directory.join("new"))),
        ("remove", Act::RemoveFile(directory.join("second"))),
        ("rename", Act::Rename(directory.join("third"), directory.join("moved"))),
        ("link", Act::Link(secret.clone(), linked)),
        ("mode", Act::SetMode(secret.clone())),
        ("times", Act::SetTimes(secret.clone())),
        ("times by a way up", Act::SetTimes(upwards)),
        ("attribute", Act::SetAttribute(secret)),
    ]
}

fn files_outside(bench: &Bench) -> Found {
    let [control, target] = targets(bench)?;
    let before = snapshot(&target)?;
    let contrast = contrast(bench, &file_cases(bench, &control), &file_cases(bench, &target))?;
    if snapshot(&target)? != before {
        return Ok(Finding::fail("the files outside have changed"));
    }
    Ok(contrast.finding("ways to reach a file outside"))
}

/// Sizes and times by a path as it is, and by paths that go up from the root, which must lead to where
/// they started.
const LOOKS: [(&str, &str); 4] = [
    ("size and times", "/"),
    ("up from the root", "/.."),
    ("up from a system directory", "/usr/../.."),
    ("up from the temporary directory", "/tmp/../.."),
];

fn names_outside(bench: &Bench) -> Found {
    let [control, target] = targets(bench)?;
    let cases = |directory: &Path| {
        let secret = directory.join("secret");
        let secret = secret.strip_prefix("/").unwrap_or(&secret);
        let look = |(name, way): (&'static str, &str)| {
            (name, Act::ReadMetadata(Path::new(way).join(secret)))
        };
        let mut cases: Vec<Case> = LOOKS.map(look).into();
        cases.push(("list", Act::ListDirectory(directory.to_path_buf())));
        cases.push(("watch", Act::Watch(directory.to_path_buf())));
        cases
    };
    let contrast = contrast(bench, &cases(&control), &cases(&target))?;
    let is_look = |name: &&str| LOOKS.iter().any(|(look, _)| look == name);
    let stays_visible = !contrast.through.is_empty() && contrast.through.iter().all(is_look);
    if !contrast.enforced.mount_view && stays_visible {
        return Ok(Finding::not_supported(
            "without a mount view sizes and times of files outside stay visible (limit L2)",
        ));
    }
    Ok(contrast.finding("ways to see a name outside"))
}

fn deny_inside_allow(bench: &Bench) -> Found {
    let (hidden, fixed) = (bench.workspace().join(".env"), bench.workspace().join("fixed"));
    put(&hidden, CANARY)?;
    put(&fixed, CANARY)?;
    let mask = |path: &Path, kind| Mask {
        pattern: MaskPattern::Exact(path.to_path_buf()),
        kind,
        reason_id: "selftest".into(),
    };
    let masks = vec![mask(&hidden, MaskKind::Hide), mask(&fixed, MaskKind::ReadOnly)];
    let acts = [
        Act::ReadFile(hidden.clone()),
        Act::AppendFile(fixed.clone()),
        Act::RemoveFile(fixed.clone()),
        Act::ReadFile(fixed.clone()),
    ];
    let result = bench.confined_in(SandboxSpec { masks, ..bench.spec() }, &acts);
    let kept = fs::read_to_string(&fixed)? == CANARY && fs::read_to_string(&hidden)? == CANARY;
    let control = bench.plain(&[acts[0].clone(), acts[1].clone()])?;
    let (_, answers) = match result {
        Err(ProbeFault::Setup(failed)) if failed.step.needs_namespaces() => {
            return Ok(Finding::not_supported(format!("the cell refuses to start: {failed}")));
        }
        other => other?,
    };
    let shut = answers.iter().take(3).all(|answer| !answer.worked() || answer.value.is_empty());
    let open = answers.last().is_some_and(Answer::worked);
    Ok(if kept && shut && open && control.iter().all(Answer::worked) {
        Finding::pass("a hidden and a read-only name held inside a writable directory")
    } else {
        Finding::fail(format!("kept {kept}, answers {answers:?}"))
    })
}

fn sockets_of_the_host(bench: &Bench) -> Found {
    let path = bench.outside().join("stream");
    let packets = bench.outside().join("datagram");
    let name = format!("stoplog-probe-{}", std::process::id());
    let listener = UnixListener::bind(&path)?;
    let receiver = UnixDatagram::bind(&packets)?;
    let address = SocketAddr::from_abstract_name(&name)?;
    let hidden_name = UnixListener::bind_addr(&address)?;
    let cases = [
        ("by path", Act::ConnectPath(path)),
        ("by abstract name", Act::ConnectAbstract(name)),
        ("from a datagram pair", Act::SendFromPair(packets)),
    ];
    let contrast = contrast(bench, &cases, &cases)?;
    drop((listener, receiver, hidden_name));
    Ok(contrast.finding("ways to a Unix socket of the host"))
}

fn second_doors(bench: &Bench) -> Found {
    let cases: Vec<Act> = CALLS.iter().map(|call| Act::Call(call.name.into())).collect();
    let control = bench.plain(&cases)?;
    let (_, inside) = bench.confined(&cases)?;
    let judged = CALLS.iter().zip(control).zip(inside);
    let (mut open, mut shown) = (Vec::new(), 0_usize);
    for ((call, control), inside) in judged {
        if inside.errno != expected_errno(call) {
            open.push(format!("{} ({})", call.name, inside.value));
        } else if control.errno != inside.errno {
            shown += 1;
        }
    }
    if !open.is_empty() {
        return Ok(Finding::fail(format!("not stopped by the filter: {}", open.join(", "))));
    }
    Ok(Finding::pass(format!(
        "{} of {} calls reach the kernel outside, none inside",
        shown,
        CALLS.len()
    )))
}

/// What the filter answers.
#[must_use]
pub fn expected_errno(call: &Call) -> i32 {
    match call.stopped {
        Stopped::Refused => libc::EPERM,
        Stopped::Absent => libc::ENOSYS,
        Stopped::NotSupported => libc::EOPNOTSUPP,
    }
}

fn network(bench: &Bench) -> Found {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let receiver = UdpSocket::bind("127.0.0.1:0")?;
    receiver.set_nonblocking(true)?;
    let acts = [
        Act::ConnectTcp(listener.local_addr()?),
        Act::SendFastOpen(listener.local_addr()?),
        Act::SendUdp(receiver.local_addr()?),
    ];
    // What counts is what arrives: inside an empty network a packet may be sent to nobody.
    let arrived = || {
        let connections = std::iter::from_fn(|| listener.accept().ok()).count();
        connections + std::iter::from_fn(|| receiver.recv(&mut [0; 8]).ok()).count()
    };
    bench.plain(&acts)?;
    let control = arrived();
    bench.confined(&acts)?;
    let confined = arrived();
    Ok(match (control, confined) {
        (0, 0) => Finding::not_supported("this machine lets nothing arrive on its own loopback"),
        (_, 0) => Finding::pass(format!("{control} sent outside arrived, none from inside")),
        (_, _) => Finding::fail(format!("{confined} of {control} arrived from inside")),
    })
}

fn inheritance(bench: &Bench) -> Found {
    let leaked = fs::File::open(bench.canary())?;
    // Open across exec, as a careless library leaves descriptors.
    rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).map_err(io::Error::from)?;
    let acts = [Act::ListDescriptors, Act::ListEnvironment, Act::OpenTerminal];
    let control = bench.plain(&acts[..1])?;
    let mut acts = acts.to_vec();
    acts.push(Act::Process(1, Reach::ReadEnvironment));
    let (_, answers) = bench.confined(&acts)?;
    drop(leaked);
    let [descriptors, environment, terminal, init] = answers.as_slice() else {
        return Ok(Finding::fail("answers are missing"));
    };
    // The fourth is the one that lists the others.
    let only_three = descriptors.value.split(' ').count() <= 4;
    let leaks_outside = control.first().is_some_and(|answer| answer.value.split(' ').count() > 4);
    let init_tells = init.value.contains('=') && !init.value.starts_with("PATH=");
    Ok(if !only_three || environment.value != "PATH" || terminal.worked() || init_tells {
        Finding::fail(format!("{answers:?}"))
    } else if leaks_outside {
        Finding::pass("a descriptor that leaks outside is closed inside; one variable; no terminal")
    } else {
        Finding::not_supported("the control could not leak a descriptor")
    })
}

fn other_processes(bench: &Bench) -> Found {
    let (control, target) = (bench.victim()?, bench.victim()?);
    let cases = |pid: i32| Reach::ALL.map(|reach| (reach.name(), Act::Process(pid, reach)));
    let contrast = contrast(bench, &cases(control.number()), &cases(target.number()))?;
    Ok(contrast.finding("ways to reach another process"))
}

/// Leaves a daemon, a process that ignores SIGTERM, and a plain one.
fn leftovers(mark: &str) -> String {
    format!(
        "setsid sh -c 'sleep 60; : {mark}' >/dev/null 2>&1 & \
         sh -c 'trap \"\" TERM; sleep 60; : {mark}' & \
         sh -c 'sleep 60; : {mark}' & sleep 0.1"
    )
}

/// Processes whose arguments name `mark`.
fn marked(mark: &str) -> io::Result<Vec<i32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Ok(number) = entry?.file_name().to_string_lossy().parse::<i32>() else { continue };
        // A process may end between the listing and the look at it.
        let arguments = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&arguments).contains(mark) {
            found.push(number);
        }
    }
    Ok(found)
}

fn survivors(bench: &Bench) -> Found {
    let (control, target) = (bench.mark("control"), bench.mark("target"));
    // Inside, the leftovers hold the output pipe; here nothing would end the wait for it.
    bench.plain_script(&format!("exec >/dev/null; {}", leftovers(&control)))?;
    let left_outside = marked(&control)?;
    for number in &left_outside {
        // Started by this probe a moment ago, and named by a mark that nothing else has.
        if let Some(pid) = rustix::process::Pid::from_raw(*number) {
            rustix::process::kill_process(pid, rustix::process::Signal::KILL)
                .map_err(io::Error::from)?;
        }
    }
    let finished = bench.run(&bench.script(&leftovers(&target)))?;
    let left = marked(&target)?;
    Ok(if !left.is_empty() {
        Finding::fail(format!("{} processes live on after the call", left.len()))
    } else if left_outside.len() < 3 {
        Finding::not_supported("the control left no processes")
    } else {
        Finding::pass(format!(
            "{} processes live on outside; inside {} were ended with the call",
            left_outside.len(),
            finished.survivors_killed
        ))
    })
}

/// Bytes that the endless program may write before it is stopped by its own end.
const FLOOD_BYTES: u64 = 20_000_000;
/// Bytes kept of each end of an output.
const KEPT_BYTES: usize = 10_000;

fn endless_output(bench: &Bench) -> Found {
    let script = format!("head -c {FLOOD_BYTES} /dev/zero");
    let limits = Limits {
        output_head_bytes: KEPT_BYTES,
        output_tail_bytes: KEPT_BYTES,
        ..bench.spec().limits
    };
    let finished = bench.run(&SandboxSpec { limits, ..bench.script(&script) })?;
    let kept = finished.stdout.head.len() + finished.stdout.tail.len();
    let detail = format!("{kept} bytes kept of {}", finished.stdout.total_bytes);
    Ok(if kept <= 2 * KEPT_BYTES && finished.stdout.total_bytes == FLOOD_BYTES {
        Finding::pass(detail)
    } else {
        Finding::fail(detail)
    })
}

fn time(bench: &Bench) -> Found {
    let brief = Duration::from_millis(200);
    let limits = Limits { wall: brief, kill_grace: brief, ..bench.spec().limits };
    let script = "trap '' TERM; while :; do sleep 1; done";
    let started = std::time::Instant::now();
    let finished = bench.run(&SandboxSpec { limits, ..bench.script(script) })?;
    let took = started.elapsed();
    let detail = format!("{:?} after {} ms", finished.exit, took.as_millis());
    Ok(if finished.exit == Exit::TimedOut && took < Duration::from_secs(5) {
        Finding::pass(detail)
    } else {
        Finding::fail(detail)
    })
}

/// Memory that the cell may have, and what the program asks for.
const MEMORY_BYTES: u64 = 200_000_000;

fn memory(bench: &Bench) -> Found {
    let asked = [Act::TakeMemory(2 * 200_000_000)];
    let control = bench.plain(&asked)?;
    let limits = Limits { memory_bytes: Some(MEMORY_BYTES), ..bench.spec().limits };
    match bench.confined_in(SandboxSpec { limits, ..bench.spec() }, &asked) {
        Ok(_) => Ok(Finding::fail("twice the limit was given")),
        Err(ProbeFault::Silent { end, .. }) if control.iter().all(Answer::worked) => {
            Ok(Finding::pass(format!("twice the limit ended the program: {end}")))
        }
        Err(ProbeFault::Silent { .. }) => Ok(Finding::not_supported("the control got none either")),
        Err(fault) => Err(fault),
    }
}

fn broken_set_up(bench: &Bench) -> Found {
    let ran = bench.workspace().join("ran");
    let script = bench.script("touch ran");
    let mut missing = script.clone();
    missing.grants.push(Grant::new(bench.place().join("gone"), GrantAccess::ReadOnly));
    let nowhere = SandboxSpec { cwd: bench.outside(), ..script.clone() };
    let mask = Mask {
        pattern: MaskPattern::Exact(bench.workspace().join("hidden")),
        kind: MaskKind::Hide,
        reason_id: "selftest".into(),
    };
    let no_view = SandboxSpec {
        masks: vec![mask],
        namespaces: Namespaces::Never,
        degraded: Degraded::Refuse,
        ..script.clone()
    };
    for (what, spec) in [
        ("a grant that is not there", missing),
        ("a working directory outside", nowhere),
        ("a mask without a mount view", no_view),
    ] {
        if bench.run(&spec).is_ok() || ran.exists() {
            return Ok(Finding::fail(format!("the cell started with {what}")));
        }
    }
    let control = bench.run(&script)?;
    Ok(if control.exit == Exit::Code(0) && ran.exists() {
        Finding::pass("three broken set-ups started nothing; the whole one did")
    } else {
        Finding { held: Held::Fail, detail: format!("the control ended with {:?}", control.exit) }
    })
}
