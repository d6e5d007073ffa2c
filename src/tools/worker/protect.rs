//! Which paths are closed, by their real location and by what file they are.
//!
//! A path is closed if a pattern matches it or a directory above it, whether it exists or not. An
//! exact pattern also closes the file itself under any other name. A regular file may not take the
//! place of a directory that leads to a protected path.

use super::job::{FileIdentity, Protected, ProtectedKind, ProtectedPattern};
use super::reply::JobError;
use super::{node, shown};
use crate::base::pattern::{Selection, names};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// What is about to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// The compiled protections of a job.
#[derive(Debug)]
pub(super) struct Protections {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    matcher: Matcher,
    kind: ProtectedKind,
    rule: String,
}

#[derive(Debug)]
enum Matcher {
    Exact { path: PathBuf, identity: Option<FileIdentity> },
    Glob { root: PathBuf, literals: Vec<PathBuf>, selections: Vec<Selection> },
}

impl Protections {
    /// Compiles the protections. A pattern that cannot be compiled fails the job: closed.
    pub(super) fn new(protected: &[Protected]) -> Result<Self, JobError> {
        let entries = protected.iter().map(Entry::new).collect::<Result<_, _>>()?;
        Ok(Self { entries })
    }

    /// Whether a name would be closed to reading, for searches.
    pub(super) fn hides(&self, real: &Path) -> bool {
        self.entries
            .iter()
            .any(|entry| entry.kind == ProtectedKind::Hide && entry.matcher.covers(real))
    }

    /// Whether an opened file is closed to reading, whatever its name.
    pub(super) fn hides_file(&self, identity: FileIdentity) -> bool {
        self.entries
            .iter()
            .any(|entry| entry.kind == ProtectedKind::Hide && entry.matcher.is_file(Some(identity)))
    }

    /// Refuses `real` if it is closed for `access`. `identity` is that of the opened file.
    pub(super) fn check(
        &self,
        real: &Path,
        identity: Option<FileIdentity>,
        access: Access,
    ) -> Result<(), JobError> {
        self.check_passed(real, identity, access)?;
        let above = |entry: &&Entry| access == Access::Write && entry.matcher.lies_below(real);
        self.entries.iter().find(above).map_or(Ok(()), |entry| Err(entry.refusal(real, access)))
    }
}

impl Protections {
    /// Refuses a link or directory on the way to a place if it is closed itself.
    pub(super) fn check_passed(
        &self,
        real: &Path,
        identity: Option<FileIdentity>,
        access: Access,
    ) -> Result<(), JobError> {
        let closing = self.entries.iter().find(|entry| {
            entry.closes(access) && (entry.matcher.covers(real) || entry.matcher.is_file(identity))
        });
        closing.map_or(Ok(()), |entry| Err(entry.refusal(real, access)))
    }
}

impl Entry {
    fn closes(&self, access: Access) -> bool {
        access == Access::Write || self.kind == ProtectedKind::Hide
    }

    fn refusal(&self, real: &Path, access: Access) -> JobError {
        JobError::Protected {
            path: shown::path(real),
            rule: self.rule.clone(),
            write: access == Access::Write,
        }
    }

    fn new(protected: &Protected) -> Result<Self, JobError> {
        let matcher = match &protected.pattern {
            ProtectedPattern::Exact(path) => {
                Matcher::Exact { path: path.clone(), identity: identity_below(path) }
            }
            ProtectedPattern::Glob { root, patterns, except } => {
                let bad = |pattern: &str, problem| bad_pattern(pattern, &protected.rule, problem);
                let except = Selection::exceptions(except)
                    .map_err(|problem| bad(&except.join(", "), problem))?;
                let select = |pattern: &String| {
                    let selection = Selection::new(pattern, Arc::clone(&except));
                    selection.map_err(|problem| bad(pattern, problem))
                };
                Matcher::Glob {
                    root: root.clone(),
                    literals: patterns.iter().map(|text| root.join(literal_part(text))).collect(),
                    selections: patterns.iter().map(select).collect::<Result<_, _>>()?,
                }
            }
        };
        Ok(Self { matcher, kind: protected.kind, rule: protected.rule.clone() })
    }
}

fn bad_pattern(pattern: &str, rule: &str, problem: &str) -> JobError {
    JobError::BadPattern {
        pattern: crate::base::text::escape(pattern),
        problem: format!("protection rule `{rule}`: {problem}"),
    }
}

impl Matcher {
    /// Whether the pattern matches `real` or a directory above it.
    fn covers(&self, real: &Path) -> bool {
        match self {
            Self::Exact { path, identity: _ } => real.starts_with(path),
            Self::Glob { root, selections, literals: _ } => {
                let Ok(relative) = real.strip_prefix(root) else { return false };
                let names = names(relative);
                let mut parts = (1..=names.len()).filter_map(|count| names.get(..count));
                parts.any(|part| selections.iter().any(|selection| selection.fits(part)))
            }
        }
    }

    fn is_file(&self, other: Option<FileIdentity>) -> bool {
        match self {
            Self::Exact { identity, path: _ } => identity.is_some() && *identity == other,
            Self::Glob { .. } => false,
        }
    }

    /// Whether `real` is a directory above every path that is meant.
    fn lies_below(&self, real: &Path) -> bool {
        match self {
            Self::Exact { path, identity: _ } => path.starts_with(real),
            Self::Glob { root, literals, selections: _ } => {
                let leads_to = |literal: &PathBuf| literal.starts_with(real);
                real.starts_with(root) && real != root && literals.iter().any(leads_to)
            }
        }
    }
}

/// Which file stands at a protected path. A link there that leads to a directory above itself would
/// close everything; it leads to nothing.
fn identity_below(path: &Path) -> Option<FileIdentity> {
    let identity = node::identity_of(path)?;
    let above = path.ancestors().skip(1).filter_map(node::identity_of);
    (!above.into_iter().any(|other| other == identity)).then_some(identity)
}

/// The components before the first that holds a wildcard.
fn literal_part(pattern: &str) -> PathBuf {
    Path::new(pattern)
        .components()
        .take_while(|component| match component {
            Component::Normal(name) => {
                !name.to_string_lossy().contains(['*', '?', '[', '{', '\\', '!'])
            }
            Component::Prefix(_)
            | Component::RootDir
            | Component::CurDir
            | Component::ParentDir => false,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protections(pattern: ProtectedPattern, kind: ProtectedKind) -> Protections {
        let rule = "rule".to_owned();
        Protections::new(&[Protected { pattern, kind, rule }]).unwrap()
    }

    fn glob(pattern: &str) -> ProtectedPattern {
        let except = Vec::new();
        let patterns = vec![pattern.to_owned()];
        ProtectedPattern::Glob { root: PathBuf::from("/w"), patterns, except }
    }

    #[test]
    fn an_exception_leaves_what_it_names() {
        let pattern = ProtectedPattern::Glob {
            root: PathBuf::from("/w"),
            patterns: vec!["**/.env*".to_owned()],
            except: vec!["**/.env.example".to_owned()],
        };
        let protections = protections(pattern, ProtectedKind::Hide);
        assert!(protections.hides(Path::new("/w/a/.env.local")));
        assert!(!protections.hides(Path::new("/w/a/.env.example")));
    }

    #[test]
    fn what_is_closed_and_what_is_not() {
        let exact = || ProtectedPattern::Exact(PathBuf::from("/w/.git/config"));
        for (pattern, path, read, write) in [
            (exact(), "/w/.git/config", true, true),
            (exact(), "/w/.git/config/x", true, true),
            (exact(), "/w/.git/config2", false, false),
            (exact(), "/w/.git/description", false, false),
            (exact(), "/w/.git", false, true),
            (glob("**/.env"), "/w/.env", true, true),
            (glob("**/.env"), "/w/a/b/.env", true, true),
            (glob("**/.env"), "/w/a/.env/x", true, true),
            (glob("**/.env"), "/w/a/.envrc", false, false),
            (glob("**/.env"), "/v/.env", false, false),
            (glob("*.key"), "/w/a.key", true, true),
            (glob("*.key"), "/w/b/a.key", false, false),
            (glob(".git/hooks/**"), "/w/.git/hooks/pre-commit", true, true),
            (glob(".git/hooks/**"), "/w/.git", false, true),
        ] {
            let hide = protections(pattern.clone(), ProtectedKind::Hide);
            let read_only = protections(pattern, ProtectedKind::ReadOnly);
            let closed =
                |set: &Protections, access| set.check(Path::new(path), None, access).is_err();
            assert_eq!(closed(&hide, Access::Read), read, "read {path}");
            assert_eq!(closed(&hide, Access::Write), write, "write {path}");
            assert!(!closed(&read_only, Access::Read), "read-only {path}");
            assert_eq!(closed(&read_only, Access::Write), write, "write read-only {path}");
            assert_eq!(hide.hides(Path::new(path)), read, "hide {path}");
        }
    }

    #[test]
    fn a_pattern_that_cannot_be_compiled_fails_the_job() {
        let rule = "r".to_owned();
        let bad = Protected { pattern: glob("a[b"), kind: ProtectedKind::Hide, rule };
        assert!(matches!(Protections::new(&[bad]), Err(JobError::BadPattern { .. })));
    }
}
