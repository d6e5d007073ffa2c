//! What is wrong with a session file, and where.

use serde::Serialize;
use std::fmt;

/// The kinds of damage; the names are part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CorruptionCode {
    /// Bytes that are not UTF-8.
    #[serde(rename = "INVALID_UTF8")]
    InvalidUtf8,
    /// No complete first line.
    MissingHeader,
    /// A first line that is not a header.
    InvalidHeader,
    /// A header of another version, or with an extension that is not known here.
    UnsupportedVersion,
    /// An empty line.
    BlankLine,
    /// A line that ends in a carriage return.
    CrlfNotAllowed,
    /// A line that is not one JSON value, or holds a repeated key or a lone surrogate.
    MalformedJson,
    /// An empty list of facts.
    EmptyTransaction,
    /// A fact of the wrong shape.
    InvalidFact,
    /// A sequence number that does not follow the one before.
    SeqMismatch,
    /// An identity that was used before.
    DuplicateId,
    /// A reference to something that is not there, or is something else.
    InvalidReference,
    /// A fact that cannot come at this point.
    InvalidTransition,
    /// Messages that no provider would accept in this order, or a fixed text that was changed.
    InvalidTranscript,
}

impl CorruptionCode {
    /// The name in the format.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidUtf8 => "INVALID_UTF8",
            Self::MissingHeader => "MISSING_HEADER",
            Self::InvalidHeader => "INVALID_HEADER",
            Self::UnsupportedVersion => "UNSUPPORTED_VERSION",
            Self::BlankLine => "BLANK_LINE",
            Self::CrlfNotAllowed => "CRLF_NOT_ALLOWED",
            Self::MalformedJson => "MALFORMED_JSON",
            Self::EmptyTransaction => "EMPTY_TRANSACTION",
            Self::InvalidFact => "INVALID_FACT",
            Self::SeqMismatch => "SEQ_MISMATCH",
            Self::DuplicateId => "DUPLICATE_ID",
            Self::InvalidReference => "INVALID_REFERENCE",
            Self::InvalidTransition => "INVALID_TRANSITION",
            Self::InvalidTranscript => "INVALID_TRANSCRIPT",
        }
    }
}

/// What is wrong with a session file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corruption {
    /// The kind.
    pub code: CorruptionCode,
    /// The line, from 1.
    pub line: u64,
    /// Where the line begins, in bytes from the start of the file.
    pub offset: u64,
    /// The fact, where one can be named.
    pub seq: Option<u64>,
    /// What exactly is wrong.
    pub message: String,
}

impl fmt::Display for Corruption {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, line, offset, seq, message } = self;
        write!(formatter, "{} in line {line} (byte {offset}", code.as_str())?;
        if let Some(seq) = seq {
            write!(formatter, ", fact {seq}")?;
        }
        write!(formatter, "): {message}")
    }
}

impl std::error::Error for Corruption {}

/// Damage found while one fact was applied; the line is added by the caller.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) code: CorruptionCode,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(code: CorruptionCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(crate) fn fact(message: impl Into<String>) -> Self {
        Self::new(CorruptionCode::InvalidFact, message)
    }

    pub(crate) fn reference(message: impl Into<String>) -> Self {
        Self::new(CorruptionCode::InvalidReference, message)
    }

    pub(crate) fn transition(message: impl Into<String>) -> Self {
        Self::new(CorruptionCode::InvalidTransition, message)
    }

    pub(crate) fn transcript(message: impl Into<String>) -> Self {
        Self::new(CorruptionCode::InvalidTranscript, message)
    }
}

/// `Ok` if `holds`, the fault otherwise.
pub(crate) fn require(holds: bool, fault: impl FnOnce() -> Fault) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(fault()) }
}
