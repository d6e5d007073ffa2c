//! What this machine gives: kernel, Landlock, namespaces, control groups, the filter.
//!
//! Cheap where it can be: files and two calls. Only whether namespaces can be had is tried for real,
//! in a child that ends at once, since no file tells it.

use super::acts::Act;
use super::bench::Bench;
use crate::sandbox::sys;
use serde::Serialize;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What Landlock of an older interface lacks, by the first version that has it.
const LANDLOCK_RIGHTS: [(u32, &str); 6] = [
    (2, "renaming between directories"),
    (3, "truncation"),
    (4, "TCP ports"),
    (5, "device requests"),
    (6, "scopes for signals and abstract sockets"),
    (7, "records in the kernel's audit log"),
];
/// Settings that explain why namespaces are refused, and the value that refuses.
const NAMESPACE_SETTINGS: [(&str, &str); 3] = [
    ("/proc/sys/user/max_user_namespaces", "0"),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0"),
    ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
];
/// Kinds of namespaces a cell takes, with their flag.
const NAMESPACES: [(&str, i32); 5] = [
    ("mount", libc::CLONE_NEWNS),
    ("pid", libc::CLONE_NEWPID),
    ("network", libc::CLONE_NEWNET),
    ("ipc", libc::CLONE_NEWIPC),
    ("uts", libc::CLONE_NEWUTS),
];

/// What this machine gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// Release of the kernel.
    pub kernel: String,
    /// Architecture.
    pub machine: String,
    /// User id of the supervisor.
    pub user: u32,
    /// Version of Landlock's interface; `None` where the kernel has none.
    pub landlock: Option<u32>,
    /// The kernel's version, where an older one is emulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landlock_of_the_kernel: Option<u32>,
    /// Corrections of Landlock that the kernel says it has, as bits; `None` before they were told.
    pub landlock_errata: Option<u32>,
    /// Whether system calls can be filtered.
    pub seccomp: bool,
    /// Namespaces, and why one cannot be had.
    pub namespaces: Vec<NamespaceFact>,
    /// Control groups.
    pub control_groups: ControlGroups,
}

/// One kind of namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NamespaceFact {
    /// Which.
    pub kind: &'static str,
    /// Why it cannot be had; `None` where it can.
    pub refused: Option<String>,
}

/// Control groups of this process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ControlGroups {
    /// `v2`, `v1`, or `none`.
    pub version: &'static str,
    /// Whether this process may make groups below its own.
    pub delegated: bool,
    /// The directory that was looked at.
    pub directory: Option<PathBuf>,
}

impl Facts {
    /// The facts, with namespaces tried on `bench`.
    #[must_use]
    pub fn of(bench: &Bench) -> Self {
        let system = rustix::system::uname();
        let kernel = known(sys::landlock_abi());
        let landlock = kernel.map(|kernel| bench.landlock().at_most.unwrap_or(kernel).min(kernel));
        Self {
            kernel: system.release().to_string_lossy().into_owned(),
            machine: system.machine().to_string_lossy().into_owned(),
            user: rustix::process::getuid().as_raw(),
            landlock,
            landlock_of_the_kernel: kernel.filter(|_| landlock != kernel),
            landlock_errata: known(sys::landlock_errata()),
            seccomp: Path::new("/proc/sys/kernel/seccomp/actions_avail").exists(),
            namespaces: namespaces(bench),
            control_groups: control_groups(),
        }
    }

    /// What Landlock of this kernel lacks.
    pub fn landlock_lacks(&self) -> impl Iterator<Item = &'static str> {
        let version = self.landlock.unwrap_or(0);
        LANDLOCK_RIGHTS
            .into_iter()
            .filter(move |(since, _)| *since > version)
            .map(|(_, right)| right)
    }
}

fn known(answer: io::Result<i32>) -> Option<u32> {
    answer.ok().and_then(|value| u32::try_from(value).ok())
}

/// Tries one kind after the other in one child; an ordinary user first takes a user namespace,
/// which gives the right to the others.
fn namespaces(bench: &Bench) -> Vec<NamespaceFact> {
    let user = (!rustix::process::geteuid().is_root()).then_some(("user", libc::CLONE_NEWUSER));
    let kinds: Vec<(&str, i32)> = user.into_iter().chain(NAMESPACES).collect();
    let mut acts: Vec<Act> = kinds.iter().map(|(_, flag)| Act::MakeNamespaces(*flag)).collect();
    // Some machines give the namespace and refuse its use.
    acts.push(Act::MountMemory(bench.outside()));
    let names = kinds.iter().map(|(kind, _)| *kind).chain(["mounting"]);
    match bench.plain(&acts) {
        Ok(answers) => names
            .zip(answers)
            .map(|(kind, answer)| NamespaceFact {
                kind,
                refused: (!answer.worked()).then(|| explain(&answer.value)),
            })
            .collect(),
        Err(fault) => {
            names.map(|kind| NamespaceFact { kind, refused: Some(fault.to_string()) }).collect()
        }
    }
}

/// The kernel's words, and the setting that is to blame.
fn explain(error: &str) -> String {
    let blamed = NAMESPACE_SETTINGS.into_iter().find(|(path, refusing)| {
        fs::read_to_string(path).is_ok_and(|value| value.trim() == *refusing)
    });
    match blamed {
        Some((path, value)) => format!("{error}; {path} is {value}"),
        None if is_filtered() => format!("{error}; a filter of a container is over this process"),
        None => error.to_owned(),
    }
}

fn is_filtered() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"))
}

/// Looks at the group of this process, and whether it may make others below.
fn control_groups() -> ControlGroups {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = |controller: &str| {
        groups.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            let named = controllers.split(',').any(|name| name == controller);
            named.then(|| path.trim_start_matches('/').to_owned())
        })
    };
    let unified = own("").map(|path| Path::new("/sys/fs/cgroup").join(path));
    if let Some(directory) = unified.filter(|path| path.join("cgroup.procs").exists()) {
        return found("v2", directory);
    }
    match own("memory").map(|path| Path::new("/sys/fs/cgroup/memory").join(path)) {
        Some(directory) => found("v1", directory),
        None => ControlGroups { version: "none", delegated: false, directory: None },
    }
}

fn found(version: &'static str, directory: PathBuf) -> ControlGroups {
    let writable = rustix::fs::Access::WRITE_OK;
    let delegated = rustix::fs::access(&directory, writable).is_ok();
    ControlGroups { version, delegated, directory: Some(directory) }
}

impl fmt::Display for Facts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "kernel          {} {}", self.kernel, self.machine)?;
        writeln!(formatter, "user            {}", self.user)?;
        match self.landlock {
            Some(version) => write!(formatter, "landlock        interface {version}")?,
            None => write!(formatter, "landlock        not there")?,
        }
        if let Some(kernel) = self.landlock_of_the_kernel {
            write!(formatter, " (emulated, the kernel has {kernel})")?;
        }
        if let Some(errata) = self.landlock_errata {
            write!(formatter, ", corrections {errata:#b}")?;
        }
        let lacks: Vec<&str> = self.landlock_lacks().collect();
        if !lacks.is_empty() {
            write!(formatter, "; lacks {}", lacks.join(", "))?;
        }
        writeln!(formatter)?;
        writeln!(formatter, "seccomp         {}", if self.seccomp { "yes" } else { "no" })?;
        for namespace in &self.namespaces {
            let state =
                namespace.refused.as_deref().map_or("yes".into(), |why| format!("no: {why}"));
            writeln!(formatter, "namespace       {}: {state}", namespace.kind)?;
        }
        let ControlGroups { version, delegated, directory } = &self.control_groups;
        write!(formatter, "control groups  {version}")?;
        if let Some(directory) = directory {
            let state = if *delegated { "delegated" } else { "not delegated" };
            write!(formatter, ", {state} at {}", directory.display())?;
        }
        Ok(())
    }
}
