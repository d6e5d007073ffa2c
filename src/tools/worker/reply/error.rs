//! Why a file job was not done: an answer to the model, which says what is wrong and what to do next.

use super::{FileKind, Stopped};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A line of the file that is like the text that was looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NearLine {
    /// Its number.
    pub line: u64,
    /// Its text with spaces and tabs made visible.
    pub text: String,
}

/// Which edit of how many, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditNumber {
    /// From 1.
    pub number: usize,
    /// Edits in the call.
    pub of: usize,
}

impl fmt::Display for EditNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.of == 1 {
            formatter.write_str("the edit")
        } else {
            write!(formatter, "edit {} of {}", self.number, self.of)
        }
    }
}

/// Why a file job was not done. The texts are for the model; paths in them are escaped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum JobError {
    /// The path, or a link on the way, leads out of every root.
    #[error("`{path}` is outside what this run may use{}; use a path below one of: {roots}", leads(via.as_deref()))]
    Outside {
        /// As asked for.
        path: String,
        /// Where a link led, if it was one.
        via: Option<String>,
        /// The roots, as a list.
        roots: String,
    },
    /// Nothing is there.
    #[error("`{path}` does not exist; look for its name with `glob` or `list`")]
    NotFound {
        /// The path.
        path: String,
    },
    /// A file stands where the path needs a directory.
    #[error("`{path}` is not a directory; check the path with `list`")]
    NotDirectory {
        /// The file.
        path: String,
    },
    /// The tool works on regular files only.
    #[error("`{path}` is {kind}, not a regular file; {}", instead(*kind))]
    NotRegularFile {
        /// The path.
        path: String,
        /// What it is.
        kind: FileKind,
    },
    /// Links lead to links without end.
    #[error("`{path}` leads through too many symbolic links; use the path of the file itself")]
    TooManyLinks {
        /// The path.
        path: String,
    },
    /// Not text.
    #[error("`{path}` is not text ({bytes} bytes{}); inspect it with `bash`, for example `file` or `xxd | head`", encoding.as_ref().map(|name| format!(", it looks like {name}")).unwrap_or_default())]
    Binary {
        /// The path.
        path: String,
        /// Its size.
        bytes: u64,
        /// Another encoding that it seems to be in.
        encoding: Option<String>,
    },
    /// A rule closes the path.
    #[error("`{path}` is protected by rule `{rule}`; do not try another way, go on without {}", if *write { "changing it" } else { "it" })]
    Protected {
        /// The path, with every link followed.
        path: String,
        /// The rule.
        rule: String,
        /// Whether it was to be written.
        write: bool,
    },
    /// The root is not writable.
    #[error("`{path}` is in a place that is read-only in this run; write below one of: {roots}")]
    ReadOnly {
        /// The path, with every link followed.
        path: String,
        /// The writable roots.
        roots: String,
    },
    /// The file has other names, perhaps outside.
    #[error(
        "`{path}` has {links} names (hard links), so others may share its content, and it is not changed; make it a file of its own first: `cp -p FILE FILE.new && mv FILE.new FILE`"
    )]
    HardLinked {
        /// The path.
        path: String,
        /// Its names.
        links: u64,
    },
    /// More than the tool handles.
    #[error(
        "`{path}` has {bytes} bytes, more than the {limit} that can be edited; use `bash`, for example `sed -i`"
    )]
    TooLarge {
        /// The path.
        path: String,
        /// Its size.
        bytes: u64,
        /// The bound.
        limit: u64,
    },
    /// The page asked for does not exist.
    #[error("offset {offset} is past the end of `{path}`, which has {lines} lines; use an offset of at most {}", (*lines).max(1))]
    OffsetPastEnd {
        /// The path.
        path: String,
        /// As asked for.
        offset: u64,
        /// Lines of the file.
        lines: u64,
    },
    /// The page lies too far inside a large file.
    #[error(
        "line {offset} of `{path}` was not reached within {stopped} ({lines} lines passed); use `bash`, for example `sed -n` or `tail -c`"
    )]
    NotReached {
        /// The path.
        path: String,
        /// As asked for.
        offset: u64,
        /// Lines passed.
        lines: u64,
        /// The limit.
        stopped: Stopped,
    },
    /// The text to replace is not in the file.
    #[error(
        "{edit} was not made: `old` occurs 0 times in `{path}`. It must be the exact bytes of the file, white space included (`·` is a space, `→` a tab). {}. Nothing was changed; read the file and send the exact text",
        near(wanted, nearest)
    )]
    NoMatch {
        /// The path.
        path: String,
        /// Which edit.
        edit: EditNumber,
        /// The line of `old` that the nearest lines are compared with.
        wanted: String,
        /// Lines that are like it.
        nearest: Vec<NearLine>,
    },
    /// The text to replace occurs more than once.
    #[error("{edit} was not made: `old` occurs {count} times in `{path}`, at lines {}; it must occur once. Nothing was changed; add neighbouring lines to `old` until it is unique", numbers(lines, *count))]
    Ambiguous {
        /// The path.
        path: String,
        /// Which edit.
        edit: EditNumber,
        /// How often.
        count: u64,
        /// Where, at most the first ten.
        lines: Vec<u64>,
    },
    /// Two edits claim the same bytes.
    #[error(
        "edits {first} and {second} overlap in `{path}`; nothing was changed; send them as one edit"
    )]
    Overlap {
        /// The path.
        path: String,
        /// The earlier one in the file, from 1.
        first: usize,
        /// The later one.
        second: usize,
    },
    /// An edit changes nothing.
    #[error(
        "{edit} changes nothing: `old` and `new` are equal; nothing was written; send only edits that change something"
    )]
    NoOp {
        /// Which edit.
        edit: EditNumber,
    },
    /// An edit has nothing to look for.
    #[error("{edit} has an empty `old`; give the text to replace, or use `write` for a new file")]
    EmptyTarget {
        /// Which edit.
        edit: EditNumber,
    },
    /// The content is not what the model last saw.
    #[error(
        "`{path}` has changed since it was last read; nothing was changed; read it again, then edit"
    )]
    Stale {
        /// The path.
        path: String,
    },
    /// Something was swapped while the job ran.
    #[error(
        "`{path}` was changed by another process during the call; look at it again, then retry"
    )]
    Changed {
        /// The path.
        path: String,
    },
    /// The arguments make no sense together.
    #[error("{problem}")]
    BadArguments {
        /// What is wrong and what is wanted.
        problem: String,
    },
    /// A glob or regular expression that cannot be used.
    #[error("the pattern `{pattern}` cannot be used: {problem}")]
    BadPattern {
        /// The pattern, escaped.
        pattern: String,
        /// What is wrong.
        problem: String,
    },
    /// The operating system refused.
    #[error("cannot {action} `{path}`: {problem}")]
    Io {
        /// What was tried, as a verb.
        action: String,
        /// The path.
        path: String,
        /// The system's words.
        problem: String,
    },
}

fn leads(via: Option<&str>) -> String {
    via.map(|target| format!(" (a link leads to `{target}`)")).unwrap_or_default()
}

const fn instead(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Directory => "use `list` for a directory",
        FileKind::Regular
        | FileKind::Symlink
        | FileKind::Fifo
        | FileKind::Socket
        | FileKind::Device
        | FileKind::Other => "only regular files can be used",
    }
}

fn near(wanted: &str, nearest: &[NearLine]) -> String {
    if nearest.is_empty() {
        return "No line of the file is like it".to_owned();
    }
    let lines: Vec<String> =
        nearest.iter().map(|near| format!("\n  line {}: {}", near.line, near.text)).collect();
    format!("Looked for:\n  {wanted}\nNearest:{}\n", lines.concat())
}

fn numbers(lines: &[u64], count: u64) -> String {
    let shown = lines.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    if (lines.len() as u64) < count { format!("{shown}, …") } else { shown }
}
