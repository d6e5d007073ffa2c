//! Why a run could not start: typed, with a text that says what to do, and the exit code it means.

use crate::audit::AuditError;
use crate::base::exit::Exit;
use crate::model::{ModelError, RecordingError};
use crate::policy::{BindError, Diagnostics};
use crate::sandbox::SetupFailed;
use crate::sandbox::probe::Unproven;
use crate::session::{ForkError, SessionError, StoreError};
use std::io::ErrorKind;
use std::path::PathBuf;

/// Why a run could not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Something that was asked for on the command line cannot be.
    #[error("{0}")]
    Usage(String),
    /// The workspace cannot be used.
    #[error("workspace `{}` {problem}", path.display())]
    Workspace {
        /// As given.
        path: PathBuf,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A file that was named cannot be read.
    #[error("cannot read `{}`: {source}; give a file that exists and that you may read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A policy is wrong; every error of every file.
    #[error("{0}")]
    Policy(Diagnostics),
    /// A policy file may not be trusted, or cannot be found.
    #[error("{0}")]
    PolicySource(String),
    /// A policy does not fit these places.
    #[error("the policy cannot be used here: {0}")]
    Bind(#[from] BindError),
    /// The model cannot be used.
    #[error("{0}")]
    Model(#[from] ModelError),
    /// The model's attempts cannot be recorded.
    #[error("{0}; give the name of a new file")]
    Recording(#[from] RecordingError),
    /// The session cannot be forked.
    #[error("{0}")]
    Fork(#[from] ForkError),
    /// The session cannot be used.
    #[error("{0}")]
    Session(#[from] SessionError),
    /// The state directory cannot be used.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// A resumed session would get more than it had.
    #[error("the session is not resumed: {0}")]
    Wider(String),
    /// The session cannot go on as it is.
    #[error("the session is blocked: {0}")]
    Blocked(String),
    /// The audit log cannot be used.
    #[error("{0}")]
    Audit(#[from] AuditError),
    /// The directory of the audit logs cannot be made.
    #[error("the directory of the audit logs, `{}`: {source}", path.display())]
    AuditDirectory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The cell cannot be made.
    #[error("the sandbox cannot be set up: {0}")]
    Sandbox(#[from] SetupFailed),
    /// A cell was made and does not hold.
    #[error("{0}; see `stoplog doctor --selftest`")]
    Unproven(#[from] Unproven),
    /// The command of `exec` cannot be started.
    #[error(
        "cannot run `{program}`: {problem}; check that it exists inside the grants and may be executed"
    )]
    Program {
        /// The program, escaped.
        program: String,
        /// What the system said.
        problem: std::io::Error,
    },
    /// The machine failed us.
    #[error("{0}")]
    Machine(#[from] std::io::Error),
}

impl RunError {
    /// The exit code.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage(_)
            | Self::Workspace { .. }
            | Self::Unreadable { .. }
            | Self::Recording(_) => Exit::Usage,
            Self::Policy(_) | Self::PolicySource(_) | Self::Bind(_) => Exit::Policy,
            // A model that cannot even be set up was described wrongly.
            Self::Model(_) => Exit::Usage,
            Self::Session(SessionError::DiskFull { .. }) => Exit::Record,
            Self::Session(_) => Exit::Session,
            Self::Store(_) => Exit::Usage,
            Self::Wider(_) | Self::Blocked(_) | Self::Fork(_) => Exit::Session,
            Self::Audit(_) | Self::AuditDirectory { .. } => Exit::Record,
            // As shells and `env` have it.
            Self::Program { problem, .. } if problem.kind() == ErrorKind::NotFound => {
                Exit::Command(127)
            }
            Self::Program { .. } => Exit::Command(126),
            Self::Sandbox(_) | Self::Unproven(_) => Exit::Sandbox,
            Self::Machine(_) => Exit::Fault,
        }
    }
}
