//! The system-call filter: which calls a confined program may make, and with which arguments.
//!
//! [`build`] is pure: a [`FilterSpec`] (what the other layers already hold) gives one classic-BPF
//! program. `table` is the reviewed list, one reason a row; `rules` says what a row means under a
//! spec; `program` lays the verdicts out as a search tree over call numbers. A call that the table
//! does not name answers ENOSYS, so a newer kernel gives a confined program nothing new; a call that
//! is refused answers EPERM. A verdict that needs no arguments is one the kernel can compute ahead
//! and caches, so the common calls cost nothing. The filter knows no policy and opens nothing.

mod program;
mod rules;
mod table;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

pub use program::{Filter, FilterTooLarge, Instruction};

/// What runs under the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramKind {
    /// A program of the caller's choice: it is started by `execve` after the filter is in place.
    Foreign,
    /// The file worker of this binary: it starts no program and opens no socket, and needs
    /// `openat2`, whose arguments lie in memory that a filter cannot see.
    FileJob,
}

/// A layer that is really in force for the cell. The filter refuses by itself what an absent layer
/// would have stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// Only granted paths exist, read-only grants are read-only mounts.
    MountView,
    /// Process numbers of the cell are its own.
    PidNamespace,
    /// System V objects and message queues of the cell are its own.
    IpcNamespace,
    /// The cell has an empty network of its own; only its loopback is up.
    NetworkNamespace,
    /// Landlock scope for abstract Unix sockets.
    AbstractSocketScope,
    /// Landlock scope for signals.
    SignalScope,
    /// A process outside the filter answers calls that change modes, owners and times by path.
    MetadataAttendant,
}

impl Layer {
    /// Every layer, in the order of the declaration.
    pub const ALL: [Self; 7] = [
        Self::MountView,
        Self::PidNamespace,
        Self::IpcNamespace,
        Self::NetworkNamespace,
        Self::AbstractSocketScope,
        Self::SignalScope,
        Self::MetadataAttendant,
    ];
}

/// What a filter is built from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterSpec {
    /// What runs under it.
    pub program: ProgramKind,
    /// Whether the cell may use the network of the host.
    pub host_network: bool,
    /// The layers in force.
    pub layers: BTreeSet<Layer>,
}

impl FilterSpec {
    fn has(&self, layer: Layer) -> bool {
        self.layers.contains(&layer)
    }

    /// Whether no Unix socket of the host can be reached, by path or by abstract name.
    fn unix_sockets_are_own(&self) -> bool {
        let abstract_names =
            self.has(Layer::NetworkNamespace) || self.has(Layer::AbstractSocketScope);
        self.has(Layer::MountView) && abstract_names
    }

    /// Whether a signal by process number stays inside the cell.
    fn signals_are_own(&self) -> bool {
        self.has(Layer::PidNamespace) || self.has(Layer::SignalScope)
    }

    /// Whether an internet socket is granted, or reaches nothing but the cell's own loopback.
    fn internet_sockets_are_granted(&self) -> bool {
        self.host_network || self.has(Layer::NetworkNamespace)
    }
}

/// The filter for `spec`.
///
/// # Errors
/// When the table has grown beyond what one program can hold.
pub fn build(spec: &FilterSpec) -> Result<Filter, FilterTooLarge> {
    let verdicts = table::rows()
        .flat_map(|row| row.calls.iter().map(move |call| (call.number, row.rule)))
        .map(|(number, rule)| (number, rules::verdict(rule, spec)))
        .collect();
    program::compile(&verdicts)
}

/// How a call fares under a spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Treatment {
    /// It runs, whatever its arguments.
    Allowed,
    /// Its arguments decide.
    ByArguments,
    /// The attendant answers it.
    Attended,
    /// It fails with EPERM.
    Refused,
    /// It fails with EOPNOTSUPP.
    NotSupported,
    /// It fails with ENOSYS, as every call that is not listed.
    Absent,
}

/// One line of [`listing`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// The name of the call.
    pub call: &'static str,
    /// Its number on this architecture.
    pub number: u32,
    /// How it fares.
    pub treatment: Treatment,
    /// Why.
    pub reason: &'static str,
}

/// Every call of the table with its treatment under `spec` and the reason, for people.
#[must_use]
pub fn listing(spec: &FilterSpec) -> Vec<Listed> {
    let listed = |row: &'static table::Row| {
        let treatment = rules::verdict(row.rule, spec).treatment();
        row.calls.iter().map(move |call| Listed {
            call: call.name.strip_prefix("SYS_").unwrap_or(call.name),
            number: call.number,
            treatment,
            reason: row.reason,
        })
    };
    table::rows().flat_map(listed).collect()
}
