//! Which directory an agent may work in: it must exist, and it must not be so wide that a grant of it
//! would be no confinement.

use super::environment::Environment;
use super::error::RunError;
use std::path::{Path, PathBuf};

/// Directories that are never a workspace: a grant of one would be a grant of the system.
const TOO_WIDE: [&str; 16] = [
    "/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/opt", "/proc", "/root", "/run",
    "/sbin", "/sys", "/tmp", "/usr", "/var",
];

/// The workspace, resolved: what is given, or the current directory.
///
/// # Errors
/// [`RunError::Workspace`] with what to do.
pub fn resolve(given: Option<&Path>, environment: &Environment) -> Result<PathBuf, RunError> {
    let path = given.unwrap_or(Path::new("."));
    let refuse =
        |problem: &str| RunError::Workspace { path: path.to_owned(), problem: problem.to_owned() };
    let resolved = match std::fs::canonicalize(path) {
        Ok(resolved) => resolved,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(refuse("does not exist; make it, or give another with --workspace"));
        }
        Err(error) => return Err(refuse(&format!("cannot be used: {error}"))),
    };
    if !resolved.is_dir() {
        return Err(refuse("is not a directory; give one with --workspace"));
    }
    if resolved.to_str().is_none() {
        return Err(refuse("has a name that is not UTF-8, so no rule could spell it; rename it"));
    }
    let home = environment.home().and_then(|home| std::fs::canonicalize(home).ok());
    let is_home = home.as_ref().is_some_and(|home| home.starts_with(&resolved));
    if is_home || TOO_WIDE.iter().any(|wide| resolved == Path::new(wide)) {
        return Err(refuse(
            "is too wide: it is, or holds, the home directory or the system; give a project's \
             directory with --workspace",
        ));
    }
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_and_missing_directories_are_refused_with_advice() {
        let home = tempfile::tempdir().unwrap();
        let project = home.path().join("project");
        std::fs::create_dir(&project).unwrap();
        std::fs::File::create(home.path().join("file")).unwrap();
        let environment = Environment::of([("HOME".into(), home.path().into())]);
        let check = |path: &Path| resolve(Some(path), &environment);
        for (path, told) in [
            (Path::new("/"), "too wide"),
            (Path::new("/usr/../etc"), "too wide"),
            (home.path(), "too wide"),
            (home.path().parent().unwrap(), "too wide"),
            (&home.path().join("absent"), "--workspace"),
            (&home.path().join("file"), "not a directory"),
        ] {
            let error = check(path).unwrap_err().to_string();
            assert!(error.contains(told), "{}: {error}", path.display());
        }
        let resolved = check(&project).unwrap();
        assert_eq!(resolved, std::fs::canonicalize(&project).unwrap());
    }
}
