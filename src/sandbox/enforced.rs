//! What the child reports before the program starts: what it got, or the step that failed.
//!
//! `Enforced` is written into every decision record, so that no layer is ever lost silently.

use super::spec::{Degraded, Identity, Layer, Limits, Network, SandboxSpec};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;

/// What the kernel really applied to a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enforced {
    /// Kinds of namespaces the cell has of its own.
    pub namespaces: Vec<String>,
    /// Whether the file tree was built from the grants alone.
    pub mount_view: bool,
    /// Version of Landlock's interface; every right and scope of it is in force.
    pub landlock_abi: u32,
    /// The version that the kernel has, where the spec asked for an older one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landlock_capped_from: Option<u32>,
    /// Whether the system call filter is installed before the program starts.
    pub seccomp: bool,
    /// What bounds memory and processes.
    pub limits: LimitsHeld,
    /// Whose rights the program has.
    pub identity: Identity,
    /// The network the cell sees.
    pub network: Network,
    /// Names covered by masks at the start.
    pub masked: u32,
    /// Protected names that did not exist at the start: not prevented, but moved aside at the end.
    pub watched: u32,
    /// Guarantees that this cell does not give, by their stable ids.
    pub lost: Vec<String>,
}

/// What bounds the memory and the processes of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitsHeld {
    /// A control group of version 2: the whole tree.
    CgroupV2,
    /// Control groups of version 1: the whole tree.
    CgroupV1,
    /// Resource limits: each process.
    Rlimit,
}

impl Enforced {
    /// Refuses a cell that lacks what its spec requires, or has lost what nobody accepted.
    pub(super) fn must_satisfy(&self, spec: &SandboxSpec) -> Result<(), SetupFailed> {
        if let Some(layer) = spec.require.iter().find(|layer| !self.has(**layer, &spec.limits)) {
            let reason = format!("`{}` is required, and this cell has {self}", layer.name());
            return Err(SetupFailed::because(Step::Requirement, reason));
        }
        if spec.degraded == Degraded::RefuseAny && !self.lost.is_empty() {
            let lost = self.lost.join(", ");
            let reason = format!("nobody is there to be told that this cell does not give {lost}");
            return Err(SetupFailed::because(Step::Requirement, reason));
        }
        Ok(())
    }

    fn has(&self, layer: Layer, limits: &Limits) -> bool {
        let namespace = |name: &str| self.namespaces.iter().any(|known| known == name);
        match layer {
            Layer::MountView => self.mount_view,
            Layer::Landlock => self.landlock_abi > 0,
            Layer::Seccomp => self.seccomp,
            Layer::NetworkNamespace => namespace("net"),
            Layer::PidNamespace => namespace("pid"),
            // Without a limit over the whole tree there is nothing for a control group to hold.
            Layer::Cgroup => {
                self.limits != LimitsHeld::Rlimit
                    || (limits.memory_bytes.is_none() && limits.processes.is_none())
            }
        }
    }
}

impl fmt::Display for LimitsHeld {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::CgroupV2 => "cgroup-v2",
            Self::CgroupV1 => "cgroup-v1",
            Self::Rlimit => "rlimit",
        })
    }
}

impl fmt::Display for Enforced {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let namespaces = self.namespaces.join("+");
        let view = if self.mount_view { "own view" } else { "host's view" };
        let seccomp = if self.seccomp { "seccomp" } else { "no seccomp" };
        write!(
            formatter,
            "{view}, namespaces {}, landlock {}",
            if namespaces.is_empty() { "none" } else { &namespaces },
            self.landlock_abi,
        )?;
        if let Some(kernel) = self.landlock_capped_from {
            write!(formatter, " (capped, the kernel has {kernel})")?;
        }
        write!(formatter, ", {seccomp}, limits {}", self.limits)?;
        if !self.lost.is_empty() {
            write!(formatter, ", lost: {}", self.lost.join(", "))?;
        }
        Ok(())
    }
}

/// A step of the launch. The child takes them in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// The spec contradicts itself.
    Spec,
    /// Descriptors for the child.
    Descriptors,
    /// Start of the own binary again.
    Spawn,
    /// Hand-over of the spec.
    Wire,
    /// Protection of the child against other processes of the user.
    Undumpable,
    /// Control group.
    ControlGroup,
    /// Namespaces.
    Namespaces,
    /// User and group map.
    IdentityMap,
    /// Loopback device.
    Loopback,
    /// A granted path.
    Grant,
    /// File tree of the cell.
    View,
    /// A name that is taken back.
    Mask,
    /// Private device directory.
    Devices,
    /// Own process directory.
    Processes,
    /// Change of the root directory.
    Root,
    /// Start of the confined process.
    Fork,
    /// Session of its own.
    Session,
    /// Descriptors that are not the program's.
    CloseDescriptors,
    /// Resource limits.
    Limits,
    /// User and group.
    Identity,
    /// Working directory.
    WorkingDirectory,
    /// No new privileges.
    NoNewPrivileges,
    /// Capabilities.
    Capabilities,
    /// Landlock.
    Landlock,
    /// A layer that is required and missing.
    Requirement,
    /// System call filter.
    Seccomp,
    /// The program itself.
    Exec,
    /// The whole set-up took too long or ended without a word.
    Silent,
}

impl Step {
    /// The stable name, as it stands in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Spec => "spec",
            Self::Descriptors => "descriptors",
            Self::Spawn => "spawn",
            Self::Wire => "wire",
            Self::Undumpable => "undumpable",
            Self::ControlGroup => "control-group",
            Self::Namespaces => "namespaces",
            Self::IdentityMap => "identity-map",
            Self::Loopback => "loopback",
            Self::Grant => "grant",
            Self::View => "view",
            Self::Mask => "mask",
            Self::Devices => "devices",
            Self::Processes => "processes",
            Self::Root => "root",
            Self::Fork => "fork",
            Self::Session => "session",
            Self::CloseDescriptors => "close-descriptors",
            Self::Limits => "limits",
            Self::Identity => "identity",
            Self::WorkingDirectory => "working-directory",
            Self::NoNewPrivileges => "no-new-privileges",
            Self::Capabilities => "capabilities",
            Self::Landlock => "landlock",
            Self::Requirement => "requirement",
            Self::Seccomp => "seccomp",
            Self::Exec => "exec",
            Self::Silent => "silent",
        }
    }

    /// Whether a machine that refuses namespaces fails here.
    pub(super) fn needs_namespaces(self) -> bool {
        matches!(
            self,
            Self::Namespaces
                | Self::IdentityMap
                | Self::Loopback
                | Self::View
                | Self::Processes
                | Self::Root
        )
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Namespaces
            | Self::IdentityMap
            | Self::Processes
            | Self::Root
            | Self::Loopback => {
                "this machine refuses namespaces: allow user namespaces (`stoplog doctor` says what \
                 refuses them), or let the policy say `degraded = \"allow\"` and lose what needs a \
                 mount view"
            }
            Self::Grant => "remove the grant from the policy, mark it optional, or create the path",
            Self::Landlock => {
                "enable Landlock in the kernel (Linux 5.13 or newer, `lsm=landlock,…`)"
            }
            Self::ControlGroup => "delegate a control group, or leave the limit to rlimits",
            Self::Exec => "check that the program exists inside the grants and may be executed",
            Self::WorkingDirectory => "grant the working directory",
            Self::Requirement => {
                "`stoplog doctor` says what this machine gives; `require` and `degraded` in a \
                 trusted policy say what a run may do without"
            }
            Self::Mask => "the name cannot be protected in this place; narrow the grant around it",
            Self::Identity => "only root can run a cell as another user",
            Self::Spec
            | Self::Descriptors
            | Self::Spawn
            | Self::Wire
            | Self::Undumpable
            | Self::View
            | Self::Devices
            | Self::Fork
            | Self::Session
            | Self::CloseDescriptors
            | Self::Limits
            | Self::NoNewPrivileges
            | Self::Capabilities
            | Self::Seccomp
            | Self::Silent => "run `stoplog doctor` to see what this machine gives",
        }
    }
}

/// The launch stopped at a step, and nothing runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupFailed {
    /// The step that failed.
    pub step: Step,
    /// The kernel's error number; 0 when the reason is not the kernel's.
    pub errno: i32,
    /// The path, name or reason.
    pub subject: String,
}

impl SetupFailed {
    /// A step refused by the kernel, or by an error that has no number.
    pub(super) fn new(step: Step, error: &io::Error, subject: impl Into<String>) -> Self {
        let mut subject = subject.into();
        if error.raw_os_error().is_none() {
            if !subject.is_empty() {
                subject.push_str(": ");
            }
            subject.push_str(&error.to_string());
        }
        Self { step, errno: error.raw_os_error().unwrap_or(0), subject }
    }

    /// A step refused by this program itself.
    pub(super) fn because(step: Step, reason: impl Into<String>) -> Self {
        Self { step, errno: 0, subject: reason.into() }
    }
}

impl fmt::Display for SetupFailed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "sandbox step `{}` failed", self.step.name())?;
        if !self.subject.is_empty() {
            write!(formatter, " (`{}`)", self.subject)?;
        }
        if self.errno != 0 {
            write!(formatter, ": {}", io::Error::from_raw_os_error(self.errno))?;
        }
        write!(formatter, "; {}", self.step.advice())
    }
}

impl std::error::Error for SetupFailed {}

/// Attaches the step to an error of the kernel.
pub(super) trait AtStep<T> {
    /// Names the step.
    fn at(self, step: Step) -> Result<T, SetupFailed>;
    /// Names the step and what it was about.
    fn about(self, step: Step, subject: impl FnOnce() -> String) -> Result<T, SetupFailed>;
}

impl<T, E: Into<io::Error>> AtStep<T> for Result<T, E> {
    fn at(self, step: Step) -> Result<T, SetupFailed> {
        self.map_err(|error| SetupFailed::new(step, &error.into(), ""))
    }

    fn about(self, step: Step, subject: impl FnOnce() -> String) -> Result<T, SetupFailed> {
        self.map_err(|error| SetupFailed::new(step, &error.into(), subject()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_step_the_reason_and_the_way_out() {
        let failed = SetupFailed::new(Step::Grant, &io::Error::from_raw_os_error(2), "/gone");
        let text = failed.to_string();
        assert!(text.contains("`grant` failed (`/gone`): No such file"), "{text}");
        assert!(text.ends_with("or create the path"), "{text}");
    }

    #[test]
    fn an_error_without_a_number_keeps_its_words() {
        let failed = SetupFailed::new(Step::Wire, &io::Error::other("cut short"), "spec");
        assert_eq!((failed.errno, failed.subject.as_str()), (0, "spec: cut short"));
    }
}
