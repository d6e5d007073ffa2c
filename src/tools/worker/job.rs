//! The job: everything one file tool may know, as plain data that crosses into the child.
//!
//! The supervisor fills it from the policy and the request; the worker adds nothing of its own.
//! Paths survive whatever bytes they hold.

use crate::base::digest::Digest;
use crate::base::limits;
use crate::call::request::{
    EditArguments, GlobArguments, GrepArguments, ListArguments, ReadArguments, Request,
    WriteArguments,
};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One file job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileJob {
    /// What relative paths are relative to; absolute and normalised.
    #[serde(with = "lossless")]
    pub workspace: PathBuf,
    /// What may be touched. Of several that hold a path, the deepest one counts.
    pub roots: Vec<Root>,
    /// What may not be touched inside the roots.
    pub protected: Vec<Protected>,
    /// What is asked for.
    pub request: FileRequest,
    /// For edit: the digest of the file's content when the model last saw it, if it did.
    pub known_content: Option<Digest>,
    /// Files that this session made: several names of one of these are no way out.
    pub created: Vec<FileIdentity>,
    /// The bounds.
    pub limits: JobLimits,
}

/// The arguments of a file tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum FileRequest {
    /// Replace exact text in a file.
    Edit(EditArguments),
    /// Find files by pattern.
    Glob(GlobArguments),
    /// Search file contents.
    Grep(GrepArguments),
    /// List a directory.
    List(ListArguments),
    /// Read a text file.
    Read(ReadArguments),
    /// Create or overwrite a file.
    Write(WriteArguments),
}

impl FileRequest {
    /// The file job of a request; `None` for a request that is not one.
    #[must_use]
    pub fn of(request: &Request) -> Option<Self> {
        match request.clone() {
            Request::Bash(_) | Request::JobKill(_) | Request::JobOutput(_) => None,
            Request::Edit(arguments) => Some(Self::Edit(arguments)),
            Request::Glob(arguments) => Some(Self::Glob(arguments)),
            Request::Grep(arguments) => Some(Self::Grep(arguments)),
            Request::List(arguments) => Some(Self::List(arguments)),
            Request::Read(arguments) => Some(Self::Read(arguments)),
            Request::Write(arguments) => Some(Self::Write(arguments)),
        }
    }
}

/// A directory, with everything below it, or a single file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Root {
    /// Absolute, normalised and free of links.
    #[serde(with = "lossless")]
    pub path: PathBuf,
    /// Whether files may be made and changed.
    pub writable: bool,
}

/// A part of a root that is closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Protected {
    /// Which paths, existing or not; everything below them is meant too.
    pub pattern: ProtectedPattern,
    /// What is refused.
    pub kind: ProtectedKind,
    /// The rule that says so, for the message.
    pub rule: String,
}

/// Which paths a protection covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ProtectedPattern {
    /// This path.
    Exact(#[serde(with = "lossless")] PathBuf),
    /// What matches one of some globs relative to a directory; `*` does not cross directories.
    Glob {
        /// The directory.
        #[serde(with = "lossless")]
        root: PathBuf,
        /// The globs.
        patterns: Vec<String>,
        /// Globs of the same form; what one of them matches is left.
        except: Vec<String>,
    },
}

/// What a protection refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProtectedKind {
    /// Reading and writing.
    Hide,
    /// Writing.
    ReadOnly,
}

/// Which file, whatever its name. The time of birth tells a file from a later one that got its
/// number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileIdentity {
    /// The file system.
    pub device: u64,
    /// The file's number in it.
    pub inode: u64,
    /// Nanoseconds from the Unix epoch to its making, where the file system keeps them.
    pub born_ns: Option<i64>,
}

/// The bounds of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobLimits {
    /// Lines of one page.
    pub page_lines: u64,
    /// Bytes of one page, and of the names or lines found.
    pub page_bytes: usize,
    /// Bytes passed over on the way to a page, or searched.
    pub scan_bytes: u64,
    /// Bytes of a file that is edited.
    pub edit_bytes: u64,
    /// Names or lines given.
    pub found: usize,
    /// Names looked at.
    pub entries: u64,
    /// Milliseconds before the job stops and says how far it came.
    pub time_ms: u64,
}

impl Default for JobLimits {
    fn default() -> Self {
        let fitting = limits::TOOL_RESULT_BYTES_MAX - limits::RESULT_NOTES_BYTES;
        Self {
            page_lines: limits::READ_LINES_MAX as u64,
            page_bytes: limits::READ_BYTES_MAX.min(fitting),
            scan_bytes: limits::READ_SCAN_BYTES_MAX,
            edit_bytes: limits::EDIT_BYTES_MAX,
            found: limits::FOUND_MAX,
            entries: limits::WALK_ENTRIES_MAX,
            time_ms: u64::try_from(limits::FILE_JOB_TIME_MAX.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// Paths as text where they are UTF-8, else as a list of bytes.
pub(super) mod lossless {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    use std::path::{Path, PathBuf};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Spelling {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub(in super::super) fn serialize<S: Serializer>(
        path: &Path,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let spelling = path.to_str().map_or_else(
            || Spelling::Bytes(path.as_os_str().as_bytes().to_vec()),
            |text| Spelling::Text(text.to_owned()),
        );
        spelling.serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<PathBuf, D::Error> {
        Ok(match Spelling::deserialize(deserializer)? {
            Spelling::Text(text) => PathBuf::from(text),
            Spelling::Bytes(bytes) => PathBuf::from(OsString::from_vec(bytes)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    #[test]
    fn a_job_survives_json_whatever_its_paths_hold() {
        let odd = PathBuf::from(OsStr::from_bytes(b"/w/\xff\n"));
        let exact = ProtectedPattern::Exact(odd.join("x"));
        let glob = ProtectedPattern::Glob {
            root: odd.clone(),
            patterns: vec!["**/*.key".to_owned()],
            except: vec!["public.key".to_owned()],
        };
        let protect = |pattern, kind| Protected { pattern, kind, rule: "r".to_owned() };
        let job = FileJob {
            workspace: odd.clone(),
            roots: vec![Root { path: odd, writable: true }],
            protected: vec![
                protect(exact, ProtectedKind::Hide),
                protect(glob, ProtectedKind::ReadOnly),
            ],
            request: FileRequest::Read(ReadArguments {
                path: "a".to_owned(),
                offset: None,
                limit: Some(3),
            }),
            known_content: Some(Digest::of(b"x")),
            created: vec![FileIdentity { device: 1, inode: 2, born_ns: Some(3) }],
            limits: JobLimits::default(),
        };
        let bytes = serde_json::to_vec(&job).unwrap();
        assert_eq!(serde_json::from_slice::<FileJob>(&bytes).unwrap(), job);
    }

    #[test]
    fn every_tool_that_touches_files_itself_is_a_file_job() {
        use crate::call::request::ToolName;
        for (tool, raw) in [
            ("bash", r#"{"command":"ls"}"#),
            ("edit", r#"{"path":"a","old":"b","new":"c"}"#),
            ("glob", r#"{"pattern":"*"}"#),
            ("grep", r#"{"pattern":"x"}"#),
            ("job_kill", r#"{"job":"job-1"}"#),
            ("job_output", r#"{"job":"job-1"}"#),
            ("list", "{}"),
            ("read", r#"{"path":"a"}"#),
            ("write", r#"{"path":"a","content":""}"#),
        ] {
            let enabled = ToolName::ALL.into_iter().collect();
            let request = Request::parse(tool, raw, &enabled).unwrap();
            let touches_none = ["bash", "job_kill", "job_output"].contains(&tool);
            assert_eq!(FileRequest::of(&request).is_none(), touches_none, "{tool}");
        }
    }

    #[test]
    fn a_page_with_its_notes_fits_a_tool_result() {
        let limits = JobLimits::default();
        assert!(limits.page_bytes <= limits::READ_BYTES_MAX);
        assert!(limits.page_bytes + limits::RESULT_NOTES_BYTES <= limits::TOOL_RESULT_BYTES_MAX);
    }
}
