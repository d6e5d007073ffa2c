//! The reply: what a file job found or did, or why it did not, as plain data.
//!
//! How a success is laid out for the model is the business of `tools::render`; an error is a sentence
//! already.

mod error;

pub use error::{EditNumber, JobError, NearLine};

use super::job::{FileIdentity, lossless};
use crate::base::digest::Digest;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// What a file job answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobReply {
    /// It was done.
    Done(Done),
    /// It was not; nothing was changed.
    Failed(JobError),
}

impl JobReply {
    /// Reads what [`super::serve`] wrote.
    ///
    /// # Errors
    /// If the bytes are not one reply, or too many.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > crate::base::limits::JOB_REPLY_BYTES_MAX {
            return Err(format!("a reply of {} bytes is too large", bytes.len()));
        }
        serde_json::from_slice(bytes).map_err(|error| format!("malformed reply: {error}"))
    }
}

/// A success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Done {
    /// Of read.
    Read(Page),
    /// Of write.
    Written(Written),
    /// Of edit.
    Edited(Edited),
    /// Of list and glob.
    Found(Found),
    /// Of grep.
    Matched(Matched),
}

/// A page of a text file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// The file, with every link followed.
    #[serde(with = "lossless")]
    pub path: PathBuf,
    /// The lines, with their line ends; a byte order mark at the start of the file left out.
    pub text: String,
    /// Number of the first line, from 1.
    pub first_line: u64,
    /// Lines in `text`.
    pub lines: u64,
    /// The `offset` of the next page, if the file goes on.
    pub next_offset: Option<u64>,
    /// Lines of the file, if it was read to its end.
    pub total_lines: Option<u64>,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Digest of the whole content, unless the file is too large to be edited.
    pub digest: Option<Digest>,
    /// Bytes of the page that are not UTF-8.
    pub replaced_bytes: u64,
    /// Length in bytes of the page's only line, if that alone is too long for a page and was cut.
    pub cut_line_bytes: Option<u64>,
    /// Whether the file starts with a UTF-8 byte order mark.
    pub byte_order_mark: bool,
    /// Whether a line of the page ends with CR LF.
    pub crlf: bool,
}

/// A file that was created or overwritten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The file, with every link followed.
    #[serde(with = "lossless")]
    pub path: PathBuf,
    /// Bytes of the new content.
    pub bytes: u64,
    /// Bytes of the content that it replaced; `None` = the file is new.
    pub replaced_bytes: Option<u64>,
    /// Digest of the new content.
    pub digest: Digest,
    /// Which file it is now.
    pub identity: FileIdentity,
}

/// A file in which text was replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edited {
    /// The file as it is now; `replaced_bytes` is its former size.
    pub file: Written,
    /// Line of the former content where each replacement began, in the order of the edits.
    pub lines: Vec<u64>,
    /// Whether line feeds of an edit were taken as the CR LF that the file uses there.
    pub crlf_adapted: bool,
}

/// Names that were found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Found {
    /// The names, sorted, relative to the directory, escaped; a directory ends with `/`, a link
    /// names its target, another kind is named.
    pub names: Vec<String>,
    /// How the search went.
    pub coverage: Coverage,
}

/// Lines that were found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Matched {
    /// The lines, by file and number.
    pub lines: Vec<MatchedLine>,
    /// Files that hold at least one.
    pub files: u64,
    /// Files passed over because they are binary.
    pub binary: u64,
    /// Files passed over because a line is too long to be searched.
    pub long_lines: u64,
    /// How the search went.
    pub coverage: Coverage,
}

/// One line that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchedLine {
    /// The file, relative to the directory searched, escaped.
    pub file: String,
    /// The line's number.
    pub line: u64,
    /// Its text around the match, without its end.
    pub text: String,
    /// Bytes of the line that are left out of `text`.
    pub omitted_bytes: u64,
}

/// What a search left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Coverage {
    /// Found, but not given for lack of room.
    pub omitted: u64,
    /// Names passed over because they are hidden or ignored, what is below them not counted.
    pub skipped: u64,
    /// Names passed over because a rule protects them.
    pub protected: u64,
    /// Files or directories that could not be opened.
    pub unreadable: u64,
    /// Directories not entered because they lie too deep.
    pub too_deep: u64,
    /// Why the search ended before everything was looked at.
    pub stopped: Option<Stopped>,
}

/// Why a job ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// Its time was up.
    Time,
    /// It had looked at as many names as it may.
    Entries,
    /// It had read as many bytes as it may.
    Bytes,
}

impl fmt::Display for Stopped {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Time => "its time limit",
            Self::Entries => "its limit of names",
            Self::Bytes => "its limit of bytes",
        })
    }
}

/// What kind of thing a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A device.
    Device,
    /// Something else.
    Other,
}

impl fmt::Display for FileKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Regular => "a regular file",
            Self::Directory => "a directory",
            Self::Symlink => "a symbolic link",
            Self::Fifo => "a named pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
            Self::Other => "of an unknown kind",
        })
    }
}
