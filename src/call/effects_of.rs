//! The effects of a request: a total function, so that a new tool does not compile before it is
//! decided here what the tool touches.

use super::effects::{Access, Effects, PathOrigin, PathUse, Span};
use super::request::{BashArguments, GlobArguments, Request};
use super::shell::{EnvironmentNames, ShellContext, StandardInput, analyse};
use crate::base::paths::normalise;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where a request would run.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'s> {
    /// Its directory.
    pub workspace: &'s Path,
    /// The value of `HOME` in the cell.
    pub home: Option<&'s Path>,
    /// Which variables there may be besides.
    pub environment: &'s EnvironmentNames,
    /// What a command reads.
    pub input: StandardInput,
}

/// What `request` would do if it ran there.
#[must_use]
pub fn effects(request: &Request, surroundings: &Surroundings<'_>) -> Effects {
    let workspace = surroundings.workspace;
    match request {
        Request::Bash(arguments) => bash(arguments, surroundings),
        Request::Read(arguments) => one(workspace, &arguments.path, &[Access::Read], false),
        Request::Write(arguments) => one(workspace, &arguments.path, &[Access::Write], false),
        Request::Edit(arguments) => {
            one(workspace, &arguments.path, &[Access::Read, Access::Write], false)
        }
        Request::List(arguments) => {
            let deep = arguments.depth.is_some_and(|depth| depth > 1);
            one(workspace, arguments.path.as_deref().unwrap_or("."), &[Access::Read], deep)
        }
        Request::Grep(arguments) => {
            one(workspace, arguments.path.as_deref().unwrap_or("."), &[Access::Read], true)
        }
        Request::Glob(arguments) => glob(arguments, workspace),
        // What a job does was judged when it was started; these look at it, or end it.
        Request::JobKill(_) | Request::JobOutput(_) => Effects::default(),
    }
}

fn bash(arguments: &BashArguments, surroundings: &Surroundings<'_>) -> Effects {
    let cwd = arguments.cwd.as_deref().unwrap_or(".");
    let context = ShellContext {
        cwd: normalise(surroundings.workspace, Path::new(cwd)),
        home: surroundings.home.map(Path::to_path_buf),
        variables: BTreeMap::new(),
        environment: surroundings.environment.clone(),
        input: surroundings.input,
    };
    analyse(&arguments.command, &context)
}

/// The directories of a pattern that are literal belong to the place where it is matched.
fn glob(arguments: &GlobArguments, workspace: &Path) -> Effects {
    let base = PathBuf::from(arguments.path.as_deref().unwrap_or("."));
    let pattern = arguments.pattern.as_str();
    let literal = pattern.find(['*', '?', '[', '{', '\\']).map_or(pattern.len(), |index| index);
    let directory = pattern
        .get(..literal)
        .and_then(|head| head.rfind('/').and_then(|slash| head.get(..=slash)))
        .unwrap_or("");
    one(workspace, &base.join(directory).to_string_lossy(), &[Access::Read], true)
}

fn one(workspace: &Path, path: &str, accesses: &[Access], is_pattern: bool) -> Effects {
    let path = normalise(workspace, Path::new(path));
    let paths = accesses.iter().map(|access| PathUse {
        path: path.clone(),
        access: *access,
        origin: PathOrigin::ToolArgument,
        is_pattern,
        span: Span::default(),
    });
    Effects { paths: paths.collect(), ..Effects::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    static PLACE: std::sync::LazyLock<Surroundings<'static>> =
        std::sync::LazyLock::new(|| Surroundings {
            workspace: Path::new("/w"),
            home: Some(Path::new("/h")),
            environment: &EnvironmentNames::Any,
            input: StandardInput::Empty,
        });
    use crate::call::request::ToolName;

    fn paths(tool: &str, raw: &str) -> Vec<(String, Access, bool)> {
        let request = Request::parse(tool, raw, &ToolName::ALL.into_iter().collect()).unwrap();
        let effects = effects(&request, &PLACE);
        assert!(effects.unresolved.is_empty());
        effects
            .paths
            .into_iter()
            .map(|path| (path.path.display().to_string(), path.access, path.is_pattern))
            .collect()
    }

    #[test]
    fn every_file_tool_names_the_place_it_touches() {
        let (read, write) = (Access::Read, Access::Write);
        for (tool, raw, expected) in [
            ("read", r#"{"path":"../o/./s"}"#, vec![("/o/s", read, false)]),
            ("write", r#"{"path":"/w//a","content":""}"#, vec![("/w/a", write, false)]),
            (
                "edit",
                r#"{"path":"a","old":"x","new":"y"}"#,
                vec![("/w/a", read, false), ("/w/a", write, false)],
            ),
            ("list", r#"{}"#, vec![("/w", read, false)]),
            ("list", r#"{"path":"src","depth":3}"#, vec![("/w/src", read, true)]),
            ("grep", r#"{"pattern":"a"}"#, vec![("/w", read, true)]),
            ("glob", r#"{"pattern":"**/*.rs"}"#, vec![("/w", read, true)]),
            ("glob", r#"{"pattern":"../o/*"}"#, vec![("/o", read, true)]),
            ("glob", r#"{"pattern":"/etc/*"}"#, vec![("/etc", read, true)]),
            ("glob", r#"{"pattern":"a/b.c","path":"/x"}"#, vec![("/x/a", read, true)]),
        ] {
            let expected: Vec<_> =
                expected.into_iter().map(|(path, a, p)| (path.to_owned(), a, p)).collect();
            assert_eq!(paths(tool, raw), expected, "{tool} {raw}");
        }
    }

    #[test]
    fn a_script_starts_in_its_own_directory() {
        let raw = r#"{"command":"echo x > f; cat ~/s","cwd":"sub"}"#;
        let request = Request::parse("bash", raw, &ToolName::ALL.into_iter().collect()).unwrap();
        let effects = effects(&request, &PLACE);
        let paths: Vec<_> =
            effects.paths.iter().map(|path| path.path.display().to_string()).collect();
        assert_eq!(paths, ["/w/sub/f", "/h/s"]);
    }
}
