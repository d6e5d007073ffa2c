//! Tests that people write for their policies: cases in a file, an expected answer for each.
//!
//! ```toml
//! [[case]]
//! name = "push is asked about"
//! command = "git push origin main"
//! expect = "ask"
//! rule = "push"
//! ```

use crate::base::text::escape;
use crate::call::effects::Effects;
use crate::policy::bound::BoundPolicy;
use crate::policy::file::schema::Decision;
use crate::policy::judge::Query;
use serde::Deserialize;
use std::fmt::Write as _;

/// A file of cases.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseFile {
    /// Policies that the cases are for: built-in names or files. Empty: those of the caller.
    #[serde(default)]
    pub policy: Vec<String>,
    /// The cases.
    #[serde(default)]
    pub case: Vec<Case>,
}

/// One case: a command, or a tool with arguments.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What it shows. Default: the command or tool.
    #[serde(default)]
    pub name: Option<String>,
    /// A shell command, as a call of `bash`.
    #[serde(default)]
    pub command: Option<String>,
    /// A tool.
    #[serde(default)]
    pub tool: Option<String>,
    /// The tool's arguments.
    #[serde(default)]
    pub arguments: Option<toml::Value>,
    /// The role of the agent.
    #[serde(default)]
    pub role: Option<String>,
    /// The answer that is wanted.
    pub expect: Decision,
    /// A rule that must be among those that decided.
    #[serde(default)]
    pub rule: Option<String>,
}

impl CaseFile {
    /// Reads a file of cases.
    ///
    /// # Errors
    /// What is wrong with it, with line and column.
    pub fn read(text: &str) -> Result<Self, String> {
        let file: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        for (index, case) in file.case.iter().enumerate() {
            if case.command.is_some() == case.tool.is_some() {
                return Err(format!("case {}: give either `command` or `tool`", index + 1));
            }
        }
        Ok(file)
    }
}

impl Case {
    /// The tool and its arguments.
    #[must_use]
    pub fn call(&self) -> (String, serde_json::Value) {
        match (&self.command, &self.tool) {
            (Some(command), _) => ("bash".to_owned(), serde_json::json!({ "command": command })),
            (None, tool) => {
                let arguments = self.arguments.as_ref().and_then(|v| serde_json::to_value(v).ok());
                let empty = || serde_json::Value::Object(serde_json::Map::new());
                (tool.clone().unwrap_or_default(), arguments.unwrap_or_else(empty))
            }
        }
    }

    /// The name, or what is called.
    #[must_use]
    pub fn shown(&self) -> String {
        let text = self.name.as_ref().or(self.command.as_ref()).or(self.tool.as_ref());
        escape(text.map_or("", String::as_str))
    }
}

/// How a case went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseResult {
    /// What it shows.
    pub name: String,
    /// Why it failed; `None`: it did not.
    pub failure: Option<String>,
}

/// Runs the cases. `effects` says what a call would do; the caller has the analysis.
pub fn run_cases(
    policy: &BoundPolicy,
    file: &CaseFile,
    effects: &dyn Fn(&str, &serde_json::Value) -> Result<Effects, String>,
) -> Vec<CaseResult> {
    let run = |case: &Case| {
        let (tool, arguments) = case.call();
        let failure = match effects(&tool, &arguments) {
            Err(problem) => Some(problem),
            Ok(effects) => judged(policy, case, (&tool, &arguments, &effects)),
        };
        CaseResult { name: case.shown(), failure }
    };
    file.case.iter().map(run).collect()
}

fn judged(
    policy: &BoundPolicy,
    case: &Case,
    (tool, arguments, effects): (&str, &serde_json::Value, &Effects),
) -> Option<String> {
    let role = case.role.as_deref();
    let query = Query { tool, role, effects, real_paths: &[], arguments, headless: false };
    let judgement = policy.judge(&query);
    let has_rule = case
        .rule
        .as_ref()
        .is_none_or(|id| judgement.deciding().any(|finding| finding.rule.id == *id));
    if judgement.decision == case.expect && has_rule {
        return None;
    }
    let wanted = case.rule.as_ref().map_or(String::new(), |id| format!(" by `{}`", escape(id)));
    Some(format!("wanted {}{wanted}\n{}", case.expect, judgement.for_user()))
}

/// The results in the Test Anything Protocol.
#[must_use]
pub fn tap(results: &[CaseResult]) -> String {
    let mut text = format!("TAP version 14\n1..{}\n", results.len());
    for (index, result) in results.iter().enumerate() {
        let word = if result.failure.is_some() { "not ok" } else { "ok" };
        let name = result.name.replace('#', "\\#");
        writeln!(text, "{word} {} - {name}", index + 1).unwrap_or_default();
        for line in result.failure.iter().flat_map(|failure| failure.lines()) {
            writeln!(text, "# {line}").unwrap_or_default();
        }
    }
    text
}

/// The results as a JUnit suite.
#[must_use]
pub fn junit(suite: &str, results: &[CaseResult]) -> String {
    let failures = results.iter().filter(|result| result.failure.is_some()).count();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\">\n",
        xml(suite),
        results.len()
    );
    for result in results {
        let name = xml(&result.name);
        match &result.failure {
            None => writeln!(text, "  <testcase name=\"{name}\"/>").unwrap_or_default(),
            Some(failure) => {
                let failure = xml(failure);
                writeln!(
                    text,
                    "  <testcase name=\"{name}\"><failure>{failure}</failure></testcase>"
                )
                .unwrap_or_default();
            }
        }
    }
    text.push_str("</testsuite>\n");
    text
}

fn xml(text: &str) -> String {
    crate::base::text::escape_keeping_lines(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
