//! The closed set of tools and the strict form of their arguments.
//!
//! An unknown tool, an unknown or repeated key and a wrong type are errors that tell the model what
//! to send instead; nothing is guessed. The JSON Schema in the request to the model comes from the
//! same structs. What a tool does is the business of `tools`.

use crate::base::json::parse_strict;
use crate::base::limits::{ARGUMENTS_BYTES_MAX, JOB_WAIT_MS_MAX};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A tool that exists. The order is the order in which definitions go into a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolName {
    /// Run a shell command.
    Bash,
    /// Replace exact text in a file.
    Edit,
    /// Find files by pattern.
    Glob,
    /// Search file contents.
    Grep,
    /// End a background job.
    JobKill,
    /// Read the output of a background job.
    JobOutput,
    /// List a directory.
    List,
    /// Read a text file.
    Read,
    /// Create or overwrite a file.
    Write,
}

impl ToolName {
    /// Every tool, sorted by name.
    pub const ALL: [Self; 9] = [
        Self::Bash,
        Self::Edit,
        Self::Glob,
        Self::Grep,
        Self::JobKill,
        Self::JobOutput,
        Self::List,
        Self::Read,
        Self::Write,
    ];

    /// The name in requests, policies and records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Edit => "edit",
            Self::Glob => "glob",
            Self::Grep => "grep",
            Self::JobKill => "job_kill",
            Self::JobOutput => "job_output",
            Self::List => "list",
            Self::Read => "read",
            Self::Write => "write",
        }
    }

    /// The tool of exactly this name: no trimming, no case folding.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.as_str() == name)
    }

    /// Whether calls of this tool change nothing, so that several may run at the same time.
    #[must_use]
    pub const fn is_read_only(self) -> bool {
        match self {
            Self::Glob | Self::Grep | Self::JobOutput | Self::List | Self::Read => true,
            Self::Bash | Self::Edit | Self::JobKill | Self::Write => false,
        }
    }
}

impl std::fmt::Display for ToolName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Arguments of `read`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadArguments {
    /// File to read, absolute or relative to the workspace.
    pub path: String,
    /// First line of the page, counted from 1. Default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub offset: Option<u64>,
    /// Most lines of the page. Default and maximum 2000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2000))]
    pub limit: Option<u64>,
}

/// Arguments of `write`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteArguments {
    /// File to create or overwrite, absolute or relative to the workspace. Missing parent
    /// directories are made.
    pub path: String,
    /// The whole new content.
    pub content: String,
}

/// One replacement of `edit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replacement {
    /// Exact text that occurs once in the file as it is now.
    pub old: String,
    /// Text to put in its place, taken literally.
    pub new: String,
}

/// Arguments of `edit`: either `edits`, or `old` and `new` for a single replacement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditArguments {
    /// File to change, absolute or relative to the workspace.
    pub path: String,
    /// Replacements, all checked against the original file before one write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub edits: Option<Vec<Replacement>>,
    /// With `new`: a single replacement instead of `edits`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// With `old`: the text to put in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
}

impl EditArguments {
    /// The replacements, whichever form was used.
    ///
    /// # Errors
    /// A sentence for the model if both forms, none, or an empty list was given.
    pub fn replacements(&self) -> Result<Vec<Replacement>, String> {
        match (&self.edits, &self.old, &self.new) {
            (Some(edits), None, None) if !edits.is_empty() => Ok(edits.clone()),
            (None, Some(old), Some(new)) => {
                Ok(vec![Replacement { old: old.clone(), new: new.clone() }])
            }
            (Some(_) | None, _, _) => Err(
                "give either `edits` (a list of {old, new}, at least one) or both `old` and `new`"
                    .to_owned(),
            ),
        }
    }
}

/// Arguments of `list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListArguments {
    /// Directory to list. Default: the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Levels below the directory. Default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10))]
    pub depth: Option<u64>,
    /// Also list what git ignores and hidden names. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<bool>,
}

/// Arguments of `glob`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GlobArguments {
    /// Pattern over paths relative to `path`: `**` crosses directories, `*` does not.
    pub pattern: String,
    /// Directory to search. Default: the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Also match what git ignores and hidden names. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<bool>,
}

/// Arguments of `grep`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrepArguments {
    /// Regular expression (Rust syntax), matched line by line.
    pub pattern: String,
    /// File or directory to search. Default: the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Only files whose name matches this glob or, if it holds a `/`, whose path below `path` does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include: Option<String>,
    /// Match without regard to case. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_case: Option<bool>,
    /// Also search what git ignores and hidden names. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<bool>,
}

/// Arguments of `bash`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BashArguments {
    /// Script for one bash process; it has no input and no terminal.
    pub command: String,
    /// Directory to start in. Default: the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Time limit in milliseconds. Default and maximum: the policy's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
    /// Do not wait for it: it goes on as a background job, whose name is returned. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<bool>,
}

impl BashArguments {
    /// Whether it becomes a background job.
    #[must_use]
    pub fn is_background(&self) -> bool {
        self.background == Some(true)
    }
}

/// Arguments of `job_output`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobOutputArguments {
    /// Name of the job, as `bash` returned it.
    pub job: String,
    /// First byte of its output to return, counted from 0. Default: where the last `job_output` of it
    /// stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Milliseconds to wait for output, or the job's end, if there is none yet. Default 0, maximum
    /// 60000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 60000))]
    pub wait_ms: Option<u64>,
}

/// Arguments of `job_kill`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobKillArguments {
    /// Name of the job, as `bash` returned it.
    pub job: String,
}

/// What the model asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Run a shell command.
    Bash(BashArguments),
    /// Replace exact text in a file.
    Edit(EditArguments),
    /// Find files by pattern.
    Glob(GlobArguments),
    /// Search file contents.
    Grep(GrepArguments),
    /// End a background job.
    JobKill(JobKillArguments),
    /// Read the output of a background job.
    JobOutput(JobOutputArguments),
    /// List a directory.
    List(ListArguments),
    /// Read a text file.
    Read(ReadArguments),
    /// Create or overwrite a file.
    Write(WriteArguments),
}

/// Why a request is no call at all. The texts are for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCall {
    /// Not a tool of this run.
    #[error("tool `{name}` is not available; available: {available}")]
    UnknownTool {
        /// As the model wrote it, escaped.
        name: String,
        /// The enabled tools.
        available: String,
    },
    /// The arguments are not of the tool's form.
    #[error("invalid arguments for `{tool}`: {problem}")]
    InvalidArguments {
        /// The tool.
        tool: ToolName,
        /// What is wrong and what is wanted.
        problem: String,
    },
}

impl Request {
    /// Reads the model's words. `enabled` is the set whose schemas were in the request to the model;
    /// nothing else is ever dispatched.
    ///
    /// # Errors
    /// [`InvalidCall`]; the call is then answered with that text and nothing is decided or run.
    pub fn parse(
        name: &str,
        raw_arguments: &str,
        enabled: &BTreeSet<ToolName>,
    ) -> Result<Self, InvalidCall> {
        let known = ToolName::parse(name).filter(|tool| enabled.contains(tool));
        let tool = known.ok_or_else(|| InvalidCall::UnknownTool {
            name: crate::base::text::escape(crate::base::text::prefix(name, 100)),
            available: enabled.iter().map(|tool| tool.as_str()).collect::<Vec<_>>().join(", "),
        })?;
        read_arguments(tool, raw_arguments)
            .map_err(|problem| InvalidCall::InvalidArguments { tool, problem })
    }

    /// The tool.
    #[must_use]
    pub const fn tool(&self) -> ToolName {
        match self {
            Self::Bash(_) => ToolName::Bash,
            Self::Edit(_) => ToolName::Edit,
            Self::Glob(_) => ToolName::Glob,
            Self::Grep(_) => ToolName::Grep,
            Self::JobKill(_) => ToolName::JobKill,
            Self::JobOutput(_) => ToolName::JobOutput,
            Self::List(_) => ToolName::List,
            Self::Read(_) => ToolName::Read,
            Self::Write(_) => ToolName::Write,
        }
    }
}

fn read_arguments(tool: ToolName, raw: &str) -> Result<Request, String> {
    if raw.len() > ARGUMENTS_BYTES_MAX {
        return Err(format!("{} bytes of arguments; at most {ARGUMENTS_BYTES_MAX}", raw.len()));
    }
    let value = parse_strict(raw.as_bytes()).map_err(|error| format!("not valid JSON: {error}"))?;
    if !value.is_object() {
        return Err("the arguments must be one JSON object".to_owned());
    }
    let request = match tool {
        ToolName::Bash => serde_json::from_value(value).map(Request::Bash),
        ToolName::Edit => serde_json::from_value(value).map(Request::Edit),
        ToolName::Glob => serde_json::from_value(value).map(Request::Glob),
        ToolName::Grep => serde_json::from_value(value).map(Request::Grep),
        ToolName::JobKill => serde_json::from_value(value).map(Request::JobKill),
        ToolName::JobOutput => serde_json::from_value(value).map(Request::JobOutput),
        ToolName::List => serde_json::from_value(value).map(Request::List),
        ToolName::Read => serde_json::from_value(value).map(Request::Read),
        ToolName::Write => serde_json::from_value(value).map(Request::Write),
    };
    let request = request.map_err(|error| error.to_string())?;
    check_values(&request).map(|()| request)
}

/// What a JSON type cannot say: empty paths, NUL bytes, impossible combinations.
fn check_values(request: &Request) -> Result<(), String> {
    match request {
        Request::Bash(BashArguments { command, cwd, timeout_ms, background: _ }) => {
            without_nul("command", command)?;
            if timeout_ms == &Some(0) {
                return Err("`timeout_ms` must be at least 1".to_owned());
            }
            cwd.as_deref().map_or(Ok(()), |cwd| path_value("cwd", cwd))
        }
        Request::Edit(arguments) => {
            path_value("path", &arguments.path)?;
            arguments.replacements().map(|_| ())
        }
        Request::Glob(GlobArguments { pattern, path, all: _ }) => {
            path_value("pattern", pattern)?;
            optional_path(path.as_deref())
        }
        Request::Grep(arguments) => optional_path(arguments.path.as_deref()),
        Request::JobKill(JobKillArguments { job }) => job_name(job),
        Request::JobOutput(JobOutputArguments { job, offset: _, wait_ms }) => {
            if wait_ms.is_some_and(|wait| wait > JOB_WAIT_MS_MAX) {
                return Err(format!("`wait_ms` must be at most {JOB_WAIT_MS_MAX}"));
            }
            job_name(job)
        }
        Request::List(arguments) => optional_path(arguments.path.as_deref()),
        Request::Read(ReadArguments { path, offset, limit }) => {
            if offset == &Some(0) || limit == &Some(0) {
                return Err("`offset` and `limit` count from 1".to_owned());
            }
            path_value("path", path)
        }
        Request::Write(arguments) => path_value("path", &arguments.path),
    }
}

fn optional_path(path: Option<&str>) -> Result<(), String> {
    path.map_or(Ok(()), |path| path_value("path", path))
}

fn path_value(key: &str, value: &str) -> Result<(), String> {
    if value.is_empty() {
        return Err(format!("`{key}` is empty; give a path"));
    }
    without_nul(key, value)
}

fn job_name(job: &str) -> Result<(), String> {
    if job.is_empty() {
        return Err("`job` is empty; give the name that `bash` returned".to_owned());
    }
    Ok(())
}

fn without_nul(key: &str, value: &str) -> Result<(), String> {
    if value.contains('\0') { Err(format!("`{key}` holds a NUL byte")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str, raw: &str) -> Result<Request, InvalidCall> {
        Request::parse(name, raw, &ToolName::ALL.into_iter().collect())
    }

    #[test]
    fn only_enabled_tools_of_the_exact_name_exist() {
        let enabled = BTreeSet::from([ToolName::Write]);
        for name in ["read", "BASH", "write ", "", "bash\u{1b}[2J"] {
            let error = Request::parse(name, "{}", &enabled).unwrap_err();
            assert!(matches!(error, InvalidCall::UnknownTool { .. }), "{name}");
            assert!(!error.to_string().contains('\u{1b}'));
        }
        assert!(Request::parse("write", r#"{"path":"a","content":""}"#, &enabled).is_ok());
    }

    #[test]
    fn malformed_arguments_are_told_to_the_model() {
        for (tool, raw, told) in [
            ("read", r#"{"path": "a"#, "EOF"),
            ("read", "", "EOF"),
            ("read", "[]", "JSON object"),
            ("read", "null", "JSON object"),
            ("read", r#"{"path":"a"}{"path":"b"}"#, "trailing"),
            ("read", r#"{"path":"a","path":"b"}"#, "duplicate key `path`"),
            ("read", r#"{"file_path":"a"}"#, "unknown field `file_path`"),
            ("read", r#"{"path":""}"#, "empty"),
            ("read", r#"{"path":"a\u0000"}"#, "NUL"),
            ("read", r#"{"path":"a","offset":0}"#, "count from 1"),
            ("bash", r#"{"command":1}"#, "invalid type"),
            ("bash", r#"{"command":"a","sandbox":false}"#, "unknown field `sandbox`"),
            ("bash", r#"{"command":"a","background":"yes"}"#, "invalid type"),
            ("job_output", r#"{}"#, "missing field `job`"),
            ("job_output", r#"{"job":""}"#, "empty"),
            ("job_output", r#"{"job":"job-1","offset":-1}"#, "invalid value"),
            ("job_output", r#"{"job":"job-1","wait_ms":60001}"#, "at most 60000"),
            ("job_kill", r#"{"job":"job-1","signal":9}"#, "unknown field `signal`"),
            ("edit", r#"{"path":"a"}"#, "either `edits`"),
            ("edit", r#"{"path":"a","edits":[]}"#, "either `edits`"),
            ("edit", r#"{"path":"a","edits":[{"old":"a","new":"b"}],"old":"c"}"#, "either"),
        ] {
            let error = parse(tool, raw).unwrap_err().to_string();
            assert!(error.contains(told), "{tool} {raw}: {error}");
        }
    }

    #[test]
    fn both_forms_of_edit_give_the_same_replacements() {
        let single = parse("edit", r#"{"path":"a","old":"x","new":"y"}"#).unwrap();
        let list = parse("edit", r#"{"path":"a","edits":[{"old":"x","new":"y"}]}"#).unwrap();
        let (Request::Edit(single), Request::Edit(list)) = (single, list) else { panic!("edit") };
        assert_eq!(single.replacements(), list.replacements());
    }
}
