//! Exit codes: the one place where an outcome becomes a number that scripts rely on.

/// How the process ends. The numbers are documented in `--help`, README and DESIGN and never change
/// their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, nothing denied.
    Done,
    /// A fault of ours or of the machine.
    Fault,
    /// The command line is wrong.
    Usage,
    /// Done, but some calls were denied.
    Denied,
    /// The iteration limit was reached. The same number says "ask" for `policy explain`.
    IterationLimit,
    /// The model could not be reached or answered with an error.
    Model,
    /// The answer was cut off or empty.
    TruncatedOrEmpty,
    /// A budget is spent.
    Budget,
    /// The agent went in circles.
    Loop,
    /// A sandbox guarantee is not met.
    Sandbox,
    /// A policy is invalid.
    Policy,
    /// The audit log or the journal cannot be written, or is not intact.
    Record,
    /// The session is locked, blocked or corrupt.
    Session,
    /// Ended by SIGINT.
    Interrupted,
    /// Ended by SIGTERM.
    Terminated,
    /// The exit code of a command that `exec` ran.
    Command(u8),
}

impl Exit {
    /// The number.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Fault => 1,
            Self::Usage => 2,
            Self::Denied => 10,
            Self::IterationLimit => 11,
            Self::Model => 12,
            Self::TruncatedOrEmpty => 13,
            Self::Budget => 14,
            Self::Loop => 15,
            Self::Sandbox => 20,
            Self::Policy => 21,
            Self::Record => 22,
            Self::Session => 23,
            Self::Interrupted => 130,
            Self::Terminated => 143,
            Self::Command(code) => code,
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
