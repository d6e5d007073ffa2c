//! The last steps of every program, in order, seccomp last. Any of them may fail the launch.

use super::super::enforced::{AtStep, Enforced, LimitsHeld, SetupFailed, Step};
use super::super::seccomp::{self, Filter, FilterSpec, Layer, ProgramKind};
use super::super::spec::{self, Limits, Network, SandboxSpec};
use super::super::wire::{self, SetupReport};
use super::attendant::{self, Role};
use super::landlock::{self, Rule, Tcp};
use super::metadata::Places;
use super::privileges::{self, Ids};
use super::view::{self, View};
use super::{Gate, Serve, grants, sys};
use crate::base::limits::PROCESSES_MAX;
use crate::sandbox::probe;
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, symlinkat};
use rustix::process::setsid;
use std::convert::Infallible;
use std::ffi::{CString, OsStr, OsString};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// What runs, and what was arranged for it outside.
#[derive(Clone, Copy)]
pub(super) struct Program<'a> {
    pub(super) spec: &'a SandboxSpec,
    pub(super) serve: Serve,
    pub(super) gate: &'a Gate,
    pub(super) limits: LimitsHeld,
}

/// Confines a process whose file tree, namespaces and privileges are done, and becomes the program.
pub(super) fn with_view(program: &Program<'_>, view: &View, user: bool, setup: &OwnedFd) -> ! {
    let mut namespaces = vec!["mount", "pid", "ipc", "uts"];
    namespaces.extend((program.spec.network == Network::Off).then_some("net"));
    namespaces.extend(user.then_some("user"));
    let enforced = Enforced {
        namespaces: namespaces.into_iter().map(str::to_owned).collect(),
        mount_view: true,
        landlock_abi: 0,
        landlock_capped_from: None,
        seccomp: true,
        limits: program.limits,
        identity: program.spec.identity,
        network: program.spec.network,
        masked: view.masked,
        watched: u32::try_from(view.watched.len()).unwrap_or(u32::MAX),
        lost: Vec::new(),
    };
    finish(confine(program, Walls { rules: &view.rules, places: None }, enforced, setup), setup)
}

/// Confines a process on a machine that refuses namespaces, and becomes the program.
pub(super) fn without_namespaces(
    program: &Program<'_>,
    joined: Result<(), SetupFailed>,
    setup: &OwnedFd,
) -> ! {
    let spec = program.spec;
    let confined = joined.and_then(|()| grants::without_view(spec)).and_then(|(rules, places)| {
        privileges::give_up(Ids::wanted(spec.identity))?;
        let enforced = Enforced {
            namespaces: Vec::new(),
            mount_view: false,
            landlock_abi: 0,
            landlock_capped_from: None,
            seccomp: true,
            limits: program.limits,
            identity: spec.identity,
            network: spec.network,
            masked: 0,
            watched: 0,
            lost: grants::lost_without_view(spec),
        };
        confine(program, Walls { rules: &rules, places: Some(&places) }, enforced, setup)
    });
    finish(confined, setup)
}

/// What the last steps need to know about files.
#[derive(Clone, Copy)]
struct Walls<'a> {
    /// Landlock's rules.
    rules: &'a [Rule],
    /// Where metadata may be changed, when there is no mount view to judge it.
    places: Option<&'a Places>,
}

/// The flat list. The order matters where a comment says so.
fn confine(
    program: &Program<'_>,
    walls: Walls<'_>,
    mut enforced: Enforced,
    setup: &OwnedFd,
) -> Result<i32, SetupFailed> {
    let spec = program.spec;
    setsid().at(Step::Session)?;
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(io::Error::from).at(Step::Session)?;
    // Rust ignores it; the program must not inherit that.
    sys::default_broken_pipe_signal().at(Step::Session)?;
    let counted_alone = enforced.namespaces.iter().any(|held| held == "user");
    limit(&spec.limits, program.limits, counted_alone).at(Step::Limits)?;
    // After the change of identity, so that the program's own rights decide.
    enter(spec, walls.places)?;
    let landlock = landlock::restrict(walls.rules, tcp(spec, &enforced), spec.landlock)?;
    enforced.landlock_abi = landlock.version;
    enforced.landlock_capped_from = landlock.capped_from;
    landlock::must_hold_content(enforced.mount_view, enforced.landlock_abi)?;
    enforced.must_satisfy(spec)?;
    // A file job changes no metadata by path, and is not worth a second process.
    let places = walls.places.filter(|_| matches!(spec.program, spec::Program::Exec { .. }));
    let filter = filter(spec, &enforced, places.is_some())?;
    wire::send(setup, &SetupReport::Enforced(Box::new(enforced))).at(Step::Wire)?;
    match places {
        Some(places) => match attendant::split(&filter, places)? {
            Role::Attendant(code) => return Ok(code),
            Role::Program => {}
        },
        None => filter.install().at(Step::Seccomp)?,
    }
    match run(program, walls.places.is_none())? {}
}

/// Goes to the working directory. A view shows no other; without one the kernel would go anywhere.
fn enter(spec: &SandboxSpec, places: Option<&Places>) -> Result<(), SetupFailed> {
    let shown = || spec.cwd.display().to_string();
    rustix::process::chdir(&spec.cwd).about(Step::WorkingDirectory, shown)?;
    let real = std::env::current_dir().about(Step::WorkingDirectory, shown)?;
    if places.is_some_and(|places| !places.hold(&real)) {
        let reason = format!("{} is not granted", shown());
        return Err(SetupFailed::because(Step::WorkingDirectory, reason));
    }
    Ok(())
}

/// A home directory in the private temporary one, which calls of a session share: what is there stays.
/// Programs look by it for what is granted in the caller's own, so links lead there.
fn make_home(spec: &SandboxSpec, own: &Path, home: &Path) -> io::Result<()> {
    let unless_there = |made: io::Result<()>| match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    };
    unless_there(std::fs::create_dir(home))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::open(home, flags, Mode::empty())?;
    for file in spec.scratch_files.iter().filter(|file| file.path.parent() == Some(own)) {
        unless_there(view::make_file(&directory, file).map(drop))?;
    }
    let granted = spec.grants.iter().filter_map(|grant| grant.path.strip_prefix(own).ok());
    for name in granted.filter_map(|path| path.iter().next()) {
        let link = symlinkat(own.join(name), &directory, name);
        unless_there(link.map_err(io::Error::from))?;
    }
    Ok(())
}

/// The program's environment. Without a view the private temporary directory has only its own name,
/// and an empty home lies in it: the caller's home exists there, and a program that is refused its
/// own settings often stops, where it would go on without them.
fn environment(spec: &SandboxSpec, view: bool) -> Result<Vec<(OsString, OsString)>, SetupFailed> {
    let mut variables = spec.environment.clone();
    if let Some(private) = spec.private_tmp.as_ref().filter(|_| !view) {
        if !variables.iter().any(|(name, _)| name == "TMPDIR") {
            variables.push(("TMPDIR".into(), "/tmp".into()));
        }
        for (name, value) in &mut variables {
            let at = Path::new(value);
            if name == "HOME" && spec.scratch.iter().any(|path| path == at) {
                let home = private.join("home");
                make_home(spec, at, &home).about(Step::View, || home.display().to_string())?;
                *value = home.into();
            } else if name == "TMPDIR" {
                let below = ["/tmp", "/var/tmp"].iter().find_map(|tmp| at.strip_prefix(tmp).ok());
                *value = private.join(below.unwrap_or(Path::new(""))).into();
            }
        }
    }
    if let Some((_, tmp)) = variables.iter().find(|(name, _)| name == "TMPDIR") {
        // With the program's own rights. Where it may not be made, programs say so when they need it.
        drop(std::fs::DirBuilder::new().mode(0o700).create(tmp));
    }
    Ok(variables)
}

/// A cell without the host's network may have sockets only in a network of its own, so only without
/// one is there something for Landlock to deny.
fn tcp(spec: &SandboxSpec, enforced: &Enforced) -> Tcp {
    let own_network = enforced.namespaces.iter().any(|held| held == "net");
    if spec.network == Network::Host || own_network { Tcp::Free } else { Tcp::Denied }
}

/// The system-call filter that refuses by itself what the layers in force do not stop.
fn filter(spec: &SandboxSpec, enforced: &Enforced, attended: bool) -> Result<Filter, SetupFailed> {
    let namespace = |name: &str| enforced.namespaces.iter().any(|held| held == name);
    let scopes = enforced.landlock_abi >= landlock::SCOPES_SINCE;
    let layers = [
        (Layer::MountView, enforced.mount_view),
        (Layer::PidNamespace, namespace("pid")),
        (Layer::IpcNamespace, namespace("ipc")),
        (Layer::NetworkNamespace, namespace("net")),
        (Layer::AbstractSocketScope, scopes),
        (Layer::SignalScope, scopes),
        (Layer::MetadataAttendant, attended),
    ];
    let filter_spec = FilterSpec {
        program: match spec.program {
            spec::Program::Exec { .. } | spec::Program::Acts { .. } => ProgramKind::Foreign,
            spec::Program::FileJob { .. } => ProgramKind::FileJob,
        },
        host_network: spec.network == Network::Host,
        layers: layers.into_iter().filter_map(|(layer, held)| held.then_some(layer)).collect(),
    };
    seccomp::build(&filter_spec).map_err(io::Error::other).at(Step::Seccomp)
}

/// Ends a process that did not become another program: a served job, or a failure to report.
fn finish(confined: Result<i32, SetupFailed>, setup: &OwnedFd) -> ! {
    let code = confined.unwrap_or_else(|failed| {
        drop(wire::send(setup, &SetupReport::Failed(failed)));
        EXEC_FAILED
    });
    sys::end_process(code)
}

/// Exit code of a process that could not become its program; what a shell uses.
const EXEC_FAILED: i32 = 127;

/// Sets soft and hard limits; none is ever raised. In a user namespace of its own a cell is counted
/// alone, so there a number of processes can be named without a look at what else the user runs.
fn limit(limits: &Limits, held: LimitsHeld, counted_alone: bool) -> io::Result<()> {
    // A control group counts what is really used; the limit of a process would count what is only
    // reserved, too.
    let tree_is_held = held != LimitsHeld::Rlimit;
    let alone = |value: Option<u64>| value.filter(|_| !tree_is_held);
    let processes = match limits.processes {
        None => counted_alone.then_some(PROCESSES_MAX),
        some => alone(some),
    };
    let wanted = [
        (Resource::RLIMIT_CORE, Some(0)),
        (Resource::RLIMIT_DATA, alone(limits.memory_bytes)),
        (Resource::RLIMIT_NPROC, processes),
        (Resource::RLIMIT_FSIZE, limits.file_size_bytes),
        (Resource::RLIMIT_NOFILE, limits.open_files),
    ];
    for (resource, value) in wanted {
        if let Some(value) = value {
            let (_, hard) = getrlimit(resource)?;
            setrlimit(resource, value.min(hard), value.min(hard))?;
        }
    }
    if let Some(seconds) = limits.cpu_seconds {
        // SIGXCPU first, SIGKILL a second later.
        let (_, hard) = getrlimit(Resource::RLIMIT_CPU)?;
        let last = seconds.saturating_add(1).min(hard);
        setrlimit(Resource::RLIMIT_CPU, seconds.min(last), last)?;
    }
    Ok(())
}

fn run(program: &Program<'_>, view: bool) -> Result<Infallible, SetupFailed> {
    program.gate.pass()?;
    match &program.spec.program {
        spec::Program::Exec { argv, .. } => exec(argv, &environment(program.spec, view)?),
        spec::Program::FileJob { job } => stay(|output| (program.serve)(job, output)),
        spec::Program::Acts { acts } => stay(|output| probe::perform(acts, output)),
    }
}

/// The work of a process that stays this binary, after what exec would have done.
fn stay(work: impl FnOnce(&mut dyn Write) -> i32) -> Result<Infallible, SetupFailed> {
    // So that it may look at its own descriptors.
    nix::sys::prctl::set_dumpable(true).map_err(io::Error::from).at(Step::Undumpable)?;
    // It reads hostile bytes: nothing that the cell was made with may be within its reach. With the end
    // of the setup pipe the supervisor knows that it has started.
    sys::close_from(wire::FIRST_OWN_DESCRIPTOR).at(Step::CloseDescriptors)?;
    // No owner of a descriptor that was closed here is dropped.
    sys::end_process(serve(work))
}

fn serve(work: impl FnOnce(&mut dyn Write) -> i32) -> i32 {
    let Ok(output) = sys::take_inherited(1) else { return EXEC_FAILED };
    let mut output = BufWriter::new(std::fs::File::from(output));
    let code = work(&mut output);
    if output.flush().is_ok() { code } else { EXEC_FAILED }
}

/// Becomes the program. A name without a slash is tried in each directory of the cell's own PATH.
fn exec(
    argv: &[OsString],
    environment: &[(OsString, OsString)],
) -> Result<Infallible, SetupFailed> {
    let name = argv.first().map(OsString::as_os_str).unwrap_or_default();
    let failed = |error: Errno| {
        SetupFailed::new(Step::Exec, &error.into(), name.to_string_lossy().into_owned())
    };
    let text = |value: &OsStr| CString::new(value.as_bytes()).map_err(|_nul| failed(Errno::EINVAL));
    let arguments = argv.iter().map(|value| text(value)).collect::<Result<Vec<_>, _>>()?;
    let variables = environment
        .iter()
        .map(|(name, value)| {
            let mut variable = name.clone();
            variable.push("=");
            variable.push(value);
            text(&variable)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut last = Errno::ENOENT;
    for candidate in candidates(name, environment) {
        match nix::unistd::execve(&text(candidate.as_os_str())?, &arguments, &variables) {
            Err(Errno::ENOENT | Errno::ENOTDIR) => {}
            // Another directory may have one that can be run; if none has, this is the reason.
            Err(Errno::EACCES) => last = Errno::EACCES,
            Err(error) => return Err(failed(error)),
        }
    }
    Err(failed(last))
}

fn candidates(name: &OsStr, environment: &[(OsString, OsString)]) -> Vec<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return vec![name.into()];
    }
    let path = environment.iter().find(|(variable, _)| variable == "PATH");
    path.map(|(_, path)| std::env::split_paths(path).map(|entry| entry.join(name)).collect())
        .unwrap_or_default()
}
