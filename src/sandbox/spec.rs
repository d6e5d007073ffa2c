//! What a cell is to be: plain data, serialisable, printable. The default grants nothing.
//!
//! Decides no policy and touches no disk. `tools` fills it in from an approved call; `launch` hands
//! it to the child, which builds exactly this and reports what it got.

use super::lossless;
use crate::base::limits;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Everything the child needs to know, and all that it is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxSpec {
    /// What runs inside.
    pub program: Program,
    /// Working directory; must exist inside the view.
    #[serde(with = "lossless::path")]
    pub cwd: PathBuf,
    /// The whole environment; nothing else is passed.
    #[serde(with = "lossless::pairs")]
    pub environment: Vec<(OsString, OsString)>,
    /// What exists in the cell.
    pub grants: Vec<Grant>,
    /// What is taken back inside a grant.
    pub masks: Vec<Mask>,
    /// Directory shown as `/tmp` and `/var/tmp`; `None` gives a fresh file system in memory.
    #[serde(with = "lossless::optional_path")]
    pub private_tmp: Option<PathBuf>,
    /// Directories that exist empty and writable, and are gone with the cell (an empty HOME).
    #[serde(with = "lossless::paths")]
    pub scratch: Vec<PathBuf>,
    /// Files that are made anew in those directories.
    pub scratch_files: Vec<ScratchFile>,
    /// Directory that protected names created by the call are moved to; `None` renames in place.
    #[serde(with = "lossless::optional_path")]
    pub quarantine: Option<PathBuf>,
    /// Whether pseudo-terminals can be opened.
    pub pseudo_terminals: bool,
    /// The network the cell sees.
    pub network: Network,
    /// Time, memory, processes, files, output.
    pub limits: Limits,
    /// Whose rights the program has on files.
    pub identity: Identity,
    /// What to do where no mount view can be had.
    pub degraded: Degraded,
    /// Layers without which the launch fails, whatever `degraded` says.
    pub require: Vec<Layer>,
    /// Versions of Landlock's interface that will do.
    pub landlock: LandlockVersions,
    /// Whether namespaces may be used; `Never` shows what a machine without them gives.
    pub namespaces: Namespaces,
}

impl Default for SandboxSpec {
    fn default() -> Self {
        Self {
            program: Program::FileJob { job: Vec::new() },
            cwd: PathBuf::from("/"),
            environment: Vec::new(),
            grants: Vec::new(),
            masks: Vec::new(),
            private_tmp: None,
            scratch: Vec::new(),
            scratch_files: Vec::new(),
            quarantine: None,
            pseudo_terminals: false,
            network: Network::Off,
            limits: Limits::default(),
            identity: Identity::Caller,
            degraded: Degraded::Refuse,
            require: Vec::new(),
            landlock: LandlockVersions::default(),
            namespaces: Namespaces::Auto,
        }
    }
}

/// A small file right in a scratch directory: settings that a program looks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScratchFile {
    /// Its path.
    #[serde(with = "lossless::path")]
    pub path: PathBuf,
    /// All that is in it.
    pub content: String,
}

/// What runs inside the cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Program {
    /// A program; a name without a slash is looked up in the PATH of the cell's own environment.
    Exec {
        /// Name and arguments; at least the name.
        #[serde(with = "lossless::strings")]
        argv: Vec<OsString>,
        /// Standard input.
        stdin: Stdin,
    },
    /// One file job, served by this binary itself after confinement.
    FileJob {
        /// The encoded job; this module does not look into it.
        job: Vec<u8>,
    },
    /// What the probe program would try, tried by this binary itself under the filter of a program:
    /// nothing of the host has to be granted for it.
    Acts {
        /// The encoded acts.
        acts: String,
    },
}

/// Where standard input comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stdin {
    /// `/dev/null`.
    Empty,
    /// These bytes, then end of file.
    Bytes(Vec<u8>),
    /// A pipe that the caller writes to and reads answers from (`Running::take_pipes`).
    Pipe,
}

/// One path that exists in the cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Absolute path, the same outside and inside.
    #[serde(with = "lossless::path")]
    pub path: PathBuf,
    /// What may be done below it.
    pub access: GrantAccess,
    /// Whether the path may be missing; a missing path otherwise fails the launch.
    pub optional: bool,
}

impl Grant {
    /// A grant whose path must exist.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, access: GrantAccess) -> Self {
        Self { path: path.into(), access, optional: false }
    }

    /// A grant that is left out when its path is missing.
    #[must_use]
    pub fn optional(path: impl Into<PathBuf>, access: GrantAccess) -> Self {
        Self { path: path.into(), access, optional: true }
    }
}

/// What a grant allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum GrantAccess {
    /// Read files and list directories.
    ReadOnly,
    /// And run programs.
    ReadExecute,
    /// Read, change, create and remove.
    ReadWrite,
    /// Everything.
    ReadWriteExecute,
}

impl GrantAccess {
    /// Whether content may change.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(self, Self::ReadWrite | Self::ReadWriteExecute)
    }

    /// Whether programs may be run.
    #[must_use]
    pub fn executes(self) -> bool {
        matches!(self, Self::ReadExecute | Self::ReadWriteExecute)
    }

    /// The least access that allows what both allow.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        match (self.writes() || other.writes(), self.executes() || other.executes()) {
            (false, false) => Self::ReadOnly,
            (false, true) => Self::ReadExecute,
            (true, false) => Self::ReadWrite,
            (true, true) => Self::ReadWriteExecute,
        }
    }

    /// Whether this allows nothing that `other` refuses.
    #[must_use]
    pub fn is_within(self, other: Self) -> bool {
        (!self.writes() || other.writes()) && (!self.executes() || other.executes())
    }
}

/// A name inside a grant that is taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mask {
    /// Which names.
    pub pattern: MaskPattern,
    /// What is taken back.
    pub kind: MaskKind,
    /// The rule that asked for it, for messages and records.
    pub reason_id: String,
}

/// The names a mask covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MaskPattern {
    /// One absolute path and all below it.
    Exact(#[serde(with = "lossless::path")] PathBuf),
    /// Every path below `root` whose remainder matches one of `patterns` (globset syntax, `*` stops at
    /// `/`).
    Glob {
        /// Absolute directory that is searched.
        #[serde(with = "lossless::path")]
        root: PathBuf,
        /// Patterns of the path relative to `root`.
        patterns: Vec<String>,
        /// Patterns of the same form; what one of them matches is left.
        except: Vec<String>,
    },
}

/// What a mask takes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MaskKind {
    /// Content cannot be read: a file looks absent, a directory empty.
    Hide,
    /// Content can be read and cannot be changed, removed or renamed.
    ReadOnly,
}

/// The network a cell sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// An empty network with loopback alone, and no sockets but those inside one process tree.
    Off,
    /// The host's network.
    Host,
}

/// Whose rights the program has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Identity {
    /// The caller's user and group; for root, root without any capability.
    Caller,
    /// Another user; only root can ask for it.
    User {
        /// User id.
        uid: u32,
        /// Group id; supplementary groups are dropped.
        gid: u32,
    },
}

/// What to do where a guarantee cannot be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Degraded {
    /// The launch fails if anything is lost: nobody is there to read what.
    RefuseAny,
    /// The launch fails if masks cannot be held.
    Refuse,
    /// The launch goes on and `Enforced::lost` names what is missing.
    Allow,
}

/// A layer of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// A file tree of its own.
    MountView,
    /// Landlock.
    Landlock,
    /// The system call filter.
    Seccomp,
    /// A network of its own.
    NetworkNamespace,
    /// A process tree of its own.
    PidNamespace,
    /// A control group over the whole tree, if there is a limit for it to hold.
    Cgroup,
}

impl Layer {
    /// The stable name, as policies and messages have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MountView => "mount-view",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::NetworkNamespace => "network-namespace",
            Self::PidNamespace => "pid-namespace",
            Self::Cgroup => "cgroup",
        }
    }
}

/// Versions of Landlock's interface that a cell takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LandlockVersions {
    /// The launch fails below this one.
    pub at_least: u32,
    /// Behave as a kernel that has no newer one: for tests and `doctor`, which show what older
    /// kernels give. Only code sets it; no policy, flag of a run or environment does.
    pub at_most: Option<u32>,
}

impl Default for LandlockVersions {
    fn default() -> Self {
        Self { at_least: 1, at_most: None }
    }
}

/// Whether namespaces may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Namespaces {
    /// Use them; where the kernel refuses them, see `Degraded`.
    Auto,
    /// Behave as on a machine that refuses them (tests, doctor).
    Never,
}

/// Every bound on one call. `None` = not bounded by this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Wall-clock time, after which the tree is told to end.
    pub wall: Duration,
    /// Time between SIGTERM and SIGKILL.
    pub kill_grace: Duration,
    /// Processor seconds: of each process, and of the tree where a control group can count it.
    pub cpu_seconds: Option<u64>,
    /// Memory in bytes: of the tree with a control group, else of each process.
    pub memory_bytes: Option<u64>,
    /// Processes of the tree with a control group, else of the user.
    pub processes: Option<u64>,
    /// Size of one file that is written.
    pub file_size_bytes: Option<u64>,
    /// Open files of one process.
    pub open_files: Option<u64>,
    /// Bytes on disk in the private temporary directory, above which a call that adds to them is ended.
    pub private_tmp_bytes: Option<u64>,
    /// Bytes kept from the start of each output stream.
    pub output_head_bytes: usize,
    /// Bytes kept from the end of each output stream.
    pub output_tail_bytes: usize,
    /// Total output after which the call is ended.
    pub output_total_bytes: Option<u64>,
    /// File that takes the whole output; created new, readable by its owner alone.
    #[serde(with = "lossless::optional_path")]
    pub spill: Option<PathBuf>,
    /// Size at which the spill file stops growing.
    pub spill_bytes: u64,
    /// Whether standard error goes to standard output, in the order written.
    pub merge_output: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: limits::TOOL_TIME_MAX,
            kill_grace: limits::KILL_GRACE,
            cpu_seconds: None,
            memory_bytes: None,
            processes: None,
            file_size_bytes: None,
            open_files: None,
            private_tmp_bytes: None,
            output_head_bytes: limits::TOOL_RESULT_BYTES_MAX,
            output_tail_bytes: limits::TOOL_RESULT_BYTES_MAX,
            output_total_bytes: None,
            spill: None,
            spill_bytes: limits::SPILL_BYTES_MAX,
            merge_output: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn the_default_grants_nothing() {
        let spec = SandboxSpec::default();
        assert!(spec.grants.is_empty() && spec.environment.is_empty() && spec.scratch.is_empty());
        assert_eq!((spec.network, spec.degraded), (Network::Off, Degraded::Refuse));
    }

    #[test]
    fn names_that_are_not_text_survive_the_wire() {
        let odd = OsString::from_vec(vec![b'/', 0xff, b'a']);
        let spec = SandboxSpec {
            program: Program::Exec { argv: vec![odd.clone()], stdin: Stdin::Bytes(vec![0, 255]) },
            cwd: odd.clone().into(),
            environment: vec![(odd.clone(), "plain".into())],
            grants: vec![Grant::new(odd.clone(), GrantAccess::ReadWrite)],
            private_tmp: Some(odd.clone().into()),
            scratch: vec![odd.into()],
            ..SandboxSpec::default()
        };
        let text = serde_json::to_vec(&spec).unwrap();
        assert_eq!(serde_json::from_slice::<SandboxSpec>(&text).unwrap(), spec);
    }

    #[test]
    fn the_printed_form_is_stable() {
        let grant = Grant::new("/w", GrantAccess::ReadWriteExecute);
        assert_eq!(
            serde_json::to_string(&grant).unwrap(),
            r#"{"path":"/w","access":"ReadWriteExecute","optional":false}"#
        );
    }

    #[test]
    fn access_is_a_lattice() {
        use GrantAccess::{ReadExecute, ReadOnly, ReadWrite, ReadWriteExecute};
        assert_eq!(ReadExecute.union(ReadWrite), ReadWriteExecute);
        assert_eq!(ReadOnly.union(ReadOnly), ReadOnly);
        assert!(ReadOnly.is_within(ReadWrite) && !ReadExecute.is_within(ReadWrite));
    }
}
