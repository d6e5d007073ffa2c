//! `policy test|lint|fmt`: for the people who write policies.

use super::super::args::TestFormat;
use super::super::{CommandError, Context, Outcome, json};
use crate::base::exit::Exit;
use crate::base::ids::Id;
use crate::call::ToolCall;
use crate::call::effects::Effects;
use crate::call::effects_of::{Surroundings, effects};
use crate::call::request::{Request, ToolName};
use crate::call::shell::{EnvironmentNames, StandardInput};
use crate::policy::cases::{CaseFile, CaseResult, junit, run_cases, tap};
use crate::policy::{BoundPolicy, Diagnostic, Places};
use crate::run::policies::{by_name, load_sources};
use serde_json::json as value;
use std::path::{Path, PathBuf};

/// How files of policy cases are named.
const CASES_SUFFIX: &str = ".cases.toml";

/// `stoplog policy test`
pub(super) fn test(
    context: &Context,
    directory: &Path,
    policies: &[String],
    format: TestFormat,
) -> Outcome {
    let mut results = Vec::new();
    for path in case_files(directory)? {
        let file = CaseFile::read(&read(&path)?).map_err(|problem| {
            CommandError::new(Exit::Policy, format!("`{}`: {problem}", path.display()))
        })?;
        let named = if file.policy.is_empty() { policies } else { file.policy.as_slice() };
        let policy = bound(named)?;
        results
            .extend(run_cases(&policy, &file, &|tool, arguments| example_effects(tool, arguments)));
    }
    context.screen.out(report(&results, format).trim_end());
    let failed = results.iter().any(|result| result.failure.is_some());
    Ok(if failed { Exit::Fault } else { Exit::Done })
}

fn report(results: &[CaseResult], format: TestFormat) -> String {
    match format {
        TestFormat::Tap => tap(results),
        TestFormat::Junit => junit("policy", results),
    }
}

/// The files of a directory, sorted, so that reports can be compared.
fn case_files(directory: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let unreadable = |error: std::io::Error| {
        CommandError::new(Exit::Usage, format!("cannot read `{}`: {error}", directory.display()))
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.to_string_lossy().ends_with(CASES_SUFFIX) {
            found.push(path);
        }
    }
    found.sort();
    if found.is_empty() {
        let shown = directory.display();
        return Err(CommandError::new(Exit::Usage, format!("no *{CASES_SUFFIX} in `{shown}`")));
    }
    Ok(found)
}

/// Cases are written for the example places, so that they mean the same on every machine.
fn bound(named: &[String]) -> Result<BoundPolicy, CommandError> {
    let default = ["workspace".to_owned()];
    let named = if named.is_empty() { &default } else { named };
    let sources = named.iter().map(|name| by_name(name)).collect::<Result<Vec<_>, _>>()?;
    let set = load_sources(sources)?;
    set.bind(&Places::example()).map_err(|error| CommandError::new(Exit::Policy, error))
}

fn example_effects(tool: &str, arguments: &serde_json::Value) -> Result<Effects, String> {
    let all = ToolName::ALL.into_iter().collect();
    let raw_arguments = arguments.to_string();
    let request =
        Request::parse(tool, &raw_arguments, &all).map_err(|invalid| invalid.to_string())?;
    let call = ToolCall {
        id: Id::new(),
        provider_id: String::new(),
        origin: "test".to_owned(),
        request,
        raw_arguments,
    };
    let places = Places::example();
    let surroundings = Surroundings {
        workspace: &places.workspace,
        home: places.home.as_deref(),
        environment: &EnvironmentNames::Any,
        input: StandardInput::Empty,
    };
    Ok(effects(&call.request, &surroundings))
}

/// `stoplog policy lint`
pub(super) fn lint(context: &Context, files: &[String], as_json: bool) -> Outcome {
    let mut any = false;
    for name in files {
        let set = load_sources(vec![by_name(name)?])?;
        for finding in crate::policy::lint(&set) {
            any = true;
            let line = if as_json {
                json(&finding_object(&finding))?
            } else {
                finding.render(annotate_snippets::Level::WARNING, context.screen.colours_err())
            };
            context.screen.out(&line);
        }
    }
    Ok(if any { Exit::Fault } else { Exit::Done })
}

fn finding_object(finding: &Diagnostic) -> serde_json::Value {
    let (line, column) = finding.place();
    value!({
        "code": finding.code, "message": finding.message, "help": finding.help,
        "file": finding.file.name, "line": line, "column": column,
    })
}

/// `stoplog policy fmt`
pub(super) fn layout(context: &Context, files: &[PathBuf], write: bool, check: bool) -> Outcome {
    let mut exit = Exit::Done;
    for path in files {
        let text = read(path)?;
        let formatted = crate::policy::format(&text);
        let differs = formatted != text;
        if check {
            if differs {
                exit = Exit::Fault;
                context.screen.err(&format!("{}: not in the one layout", path.display()));
            }
        } else if write {
            if differs {
                replace(path, &formatted)?;
                context.screen.err(&format!("{}: written", path.display()));
            }
        } else {
            context.screen.out(formatted.trim_end());
        }
    }
    Ok(exit)
}

fn read(path: &Path) -> Result<String, CommandError> {
    std::fs::read_to_string(path).map_err(|error| {
        CommandError::new(Exit::Usage, format!("cannot read `{}`: {error}", path.display()))
    })
}

#[expect(clippy::disallowed_methods, reason = "rewrites a file that the user named for that")]
fn replace(path: &Path, text: &str) -> Result<(), CommandError> {
    std::fs::write(path, text).map_err(|error| {
        CommandError::new(Exit::Fault, format!("cannot write `{}`: {error}", path.display()))
    })
}
