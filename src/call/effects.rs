//! What a request would do, as far as its text tells: programs, paths, hosts, and what it cannot
//! tell. The firewall judges this value; the cell does not depend on it being complete.

use serde::Serialize;
use std::path::PathBuf;

/// A byte range of the script that was analysed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// One word of a command after quote removal and expansion, as far as they are statically known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// The exact value that the program receives.
    Known(String),
    /// Depends on something only the running shell knows.
    Unknown {
        /// The word as written.
        text: String,
        /// The part before the first unknown piece, unquoted: enough for a rule that needs only the
        /// beginning of a word.
        prefix: String,
    },
}

impl Word {
    /// The value, if it is known.
    #[must_use]
    pub fn known(&self) -> Option<&str> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown { .. } => None,
        }
    }

    /// The value, or the word as written: for messages only.
    #[must_use]
    pub fn shown(&self) -> &str {
        match self {
            Self::Known(value) => value,
            Self::Unknown { text, .. } => text,
        }
    }
}

/// A variable assignment in front of a command, or one that stands alone or behind `export`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// Its value.
    pub value: Word,
    /// Where it stands.
    pub span: Span,
}

/// One program (or builtin) that would run, wrappers included: `timeout 5 rm x` is two of these,
/// `timeout` and `rm`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandUse {
    /// The program as the shell would look it up.
    pub program: Word,
    /// Its arguments, without the program.
    pub arguments: Vec<Word>,
    /// Assignments in front of it.
    pub assignments: Vec<Assignment>,
    /// The wrappers around it, outermost first: `["sudo", "env"]`.
    pub via: Vec<String>,
    /// The option or operand that hands the program code to run which this analysis did not take
    /// apart (`-c` of python, `--compress-program` of sort): an allow rule for the program does not
    /// cover it.
    pub inline_code: Option<String>,
    /// Whether it uses the network, and certainly reaches no machine but this one.
    pub stays_here: bool,
    /// Where it stands in the script.
    pub span: Span,
}

/// What is done to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Its content, or the names in a directory.
    Read,
    /// Content, names, mode, owner or existence.
    Write,
    /// It is run as a program.
    Execute,
}

/// How a path came to be in the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathOrigin {
    /// An argument of a file tool.
    ToolArgument,
    /// A redirection of the shell.
    Redirection,
    /// An argument of a program whose arguments are known to be paths.
    ProgramArgument {
        /// The program.
        program: String,
    },
    /// An argument of a program that never goes down into a directory: of one it gets the names at most.
    Listing {
        /// The program.
        program: String,
    },
    /// What a symbolic link is to say. Nothing there is touched; whoever goes through the link later is
    /// judged by where it leads.
    LinkText,
}

/// One path that the request would touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathUse {
    /// Absolute and lexically normalised; links are not followed here.
    pub path: PathBuf,
    /// What would be done.
    pub access: Access,
    /// Where it came from.
    pub origin: PathOrigin,
    /// Whether the last components are a shell pattern, so that `path` is the directory in which
    /// names are matched and everything below it is meant.
    pub is_pattern: bool,
    /// Where it stands in the script, if it came from one.
    pub span: Span,
}

/// One host that the request names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostUse {
    /// Name or address, lower-case, without brackets or user part.
    pub host: String,
    /// The port, if one is named or follows from the scheme.
    pub port: Option<u16>,
    /// Where it stands.
    pub span: Span,
}

/// Why a part of a script could not be told. The kebab-case spelling is stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnresolvedReason {
    /// The script is not in the grammar that is understood.
    Syntax,
    /// Larger, deeper or richer than the bounds.
    TooLarge,
    /// The program's name depends on an expansion.
    ProgramWord,
    /// A word that decides what runs depends on an expansion.
    CodeWord,
    /// The target of a redirection depends on an expansion.
    RedirectionTarget,
    /// A path argument depends on an expansion.
    PathWord,
    /// A builtin or definition that changes the meaning of what follows.
    ShellState,
    /// A program that runs another in a way that is not understood.
    Wrapper,
    /// Code in another language, or a script read from a stream.
    ForeignCode,
    /// Names of files are put into the text of a script.
    InsertedWord,
    /// The shell itself refuses the text, so that nothing of it runs.
    Refused,
}

/// A part of the request whose effect cannot be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unresolved {
    /// Why.
    pub reason: UnresolvedReason,
    /// The part as written, at most 200 bytes.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

/// A call of a function that the script defines. What its body runs is among the commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FunctionCall {
    /// The function.
    pub name: String,
    /// Where it stands.
    pub span: Span,
}

/// Everything that a request would do, as far as its text tells.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Effects {
    /// Programs, in the order in which they stand.
    pub commands: Vec<CommandUse>,
    /// Calls of functions that the script itself defines: no programs, judged through their bodies.
    pub function_calls: Vec<FunctionCall>,
    /// Assignments that belong to no command (`X=1` alone, `export X=1`).
    pub assignments: Vec<Assignment>,
    /// Paths.
    pub paths: Vec<PathUse>,
    /// Hosts.
    pub hosts: Vec<HostUse>,
    /// What cannot be told. Empty = everything above is complete as far as the shell is concerned.
    pub unresolved: Vec<Unresolved>,
}

impl Effects {
    /// Effects of which only one thing is known: that they cannot be told.
    #[must_use]
    pub fn opaque(reason: UnresolvedReason, text: &str, span: Span) -> Self {
        let text = crate::base::text::prefix(text, 200).to_owned();
        Self { unresolved: vec![Unresolved { reason, text, span }], ..Self::default() }
    }
}
