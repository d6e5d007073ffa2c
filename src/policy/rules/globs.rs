//! Patterns over paths: placeholders, globs, and what of them a kernel can grant.
//!
//! `*` and `?` stay inside one name, `**` is any number of directories and stands alone between
//! slashes, `directory/**` also means the directory itself. Paths are absolute and resolved before
//! they come here.

use super::PatternError;
use super::path_names::{PathNames, add_name};
use crate::base::pattern::{Edge, PathPattern, escape};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// What placeholders stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// `{workspace}`
    pub workspace: PathBuf,
    /// `{home}`; patterns that need it mean nothing where there is none.
    pub home: Option<PathBuf>,
    /// `{tmp}`: the session's temporary directory as the cell sees it.
    pub tmp: PathBuf,
    /// Directories of stoplog itself (state, configuration): no tool may touch them, whatever a
    /// policy says.
    pub protected: Vec<PathBuf>,
}

impl Places {
    /// The places that examples in policy files are written for.
    #[must_use]
    pub fn example() -> Self {
        Self {
            workspace: "/home/user/project".into(),
            home: Some("/home/user".into()),
            tmp: "/tmp".into(),
            protected: Vec::new(),
        }
    }

    fn get(&self, name: &str) -> Option<Option<&Path>> {
        match name {
            "workspace" => Some(Some(&self.workspace)),
            "home" => Some(self.home.as_deref()),
            "tmp" => Some(Some(&self.tmp)),
            _ => None,
        }
    }
}

/// Names of the placeholders.
pub const PLACEHOLDERS: [&str; 3] = ["workspace", "home", "tmp"];

/// What a pattern means, with placeholders filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// One path.
    Exact(PathBuf),
    /// A directory and everything below it.
    Tree(PathBuf),
    /// Anything else, as a glob over absolute paths.
    Glob(String),
}

/// Checks a pattern by its text alone.
///
/// # Errors
/// What is wrong with it.
pub fn check(text: &str) -> Result<(), PatternError> {
    if text.is_empty() {
        return Err(("empty-pattern", "the pattern is empty".into(), None));
    }
    if text.contains('\0') {
        return Err(("bad-pattern", "the pattern holds a NUL byte".into(), None));
    }
    check_placeholders(text)?;
    if !(text.starts_with('/') || text.starts_with("**/") || starts_with_placeholder(text)) {
        let help = format!("write `{{workspace}}/{text}`, an absolute path, or `**/{text}`");
        return Err(("relative-pattern", "the pattern is not absolute".into(), Some(help)));
    }
    check_components(text)
}

fn starts_with_placeholder(text: &str) -> bool {
    PLACEHOLDERS.iter().any(|name| {
        text.strip_prefix('{')
            .and_then(|rest| rest.strip_prefix(name))
            .and_then(|rest| rest.strip_prefix('}'))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

fn check_placeholders(text: &str) -> Result<(), PatternError> {
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let is_at_front = before.is_empty() && rest.len() == text.len();
        let Some((name, tail)) = after.split_once('}') else {
            return Err(("bad-pattern", "`{` has no `}`".into(), None));
        };
        if !name.contains(',') && !PLACEHOLDERS.contains(&name) {
            let near = super::super::file::diagnostic::did_you_mean(name, PLACEHOLDERS);
            let help = near.map_or_else(
                || "known are `{workspace}`, `{home}` and `{tmp}`".to_owned(),
                |near| format!("did you mean `{{{near}}}`?"),
            );
            return Err((
                "unknown-placeholder",
                format!("unknown placeholder `{{{name}}}`"),
                Some(help),
            ));
        }
        if PLACEHOLDERS.contains(&name) && !is_at_front {
            let message = format!("`{{{name}}}` is absolute and stands only at the front");
            return Err(("never-matches", message, None));
        }
        rest = tail;
    }
    Ok(())
}

fn check_components(text: &str) -> Result<(), PatternError> {
    let body = text.strip_prefix('/').unwrap_or(text);
    if body.is_empty() {
        return Ok(());
    }
    for component in body.split('/') {
        let problem = match component {
            "" => "holds an empty name (`//` or a `/` at the end)",
            "." | ".." => "holds `.` or `..`",
            name if name != "**" && name.contains("**") => {
                let help = "`**` stands alone between slashes".to_owned();
                return Err((
                    "bad-pattern",
                    format!("`{name}` mixes `**` with other text"),
                    Some(help),
                ));
            }
            _ => continue,
        };
        let message = format!("the pattern {problem}; resolved paths never look like that");
        let help = "write `directory` for the directory or `directory/**` for all below it";
        return Err(("never-matches", message, Some(help.to_owned())));
    }
    // Plain names are what they say; most patterns hold nothing else.
    let plain = text.strip_prefix("**/").unwrap_or(text);
    let plain = plain.strip_suffix("/**").unwrap_or(plain);
    if !plain.contains(['*', '?', '[', '\\', ',']) {
        return Ok(());
    }
    PathPattern::parse(&strip_placeholders(text))
        .map(drop)
        .map_err(|problem| ("bad-pattern", format!("not a usable pattern: {problem}"), None))
}

fn strip_placeholders(text: &str) -> String {
    if !text.starts_with('{') {
        return text.to_owned();
    }
    PLACEHOLDERS
        .iter()
        .fold(text.to_owned(), |text, name| text.replace(&format!("{{{name}}}"), "/x"))
}

/// The pattern with its placeholder filled in, which stands at the front or nowhere; `None` if it needs
/// a place that does not exist, or one whose name is not UTF-8.
#[must_use]
pub fn expand(text: &str, places: &Places) -> Option<Shape> {
    let braced = text.strip_prefix('{').and_then(|text| text.split_once('}'));
    let known = braced.and_then(|(name, rest)| Some((places.get(name)?, rest)));
    let (place, rest) = match known {
        Some((place, rest)) => (place?.to_str()?, rest),
        None => ("", text),
    };
    let stem = rest.strip_suffix("/**");
    if stem.unwrap_or(rest).contains(['*', '?', '[', ']', '\\', ',']) {
        return Some(Shape::Glob(escape(place) + rest));
    }
    let path = [place, stem.unwrap_or(rest)].concat();
    Some(match stem {
        None => Shape::Exact(path.into()),
        Some(_) if path.is_empty() => Shape::Tree("/".into()),
        Some(_) => Shape::Tree(path.into()),
    })
}

impl Shape {
    fn patterns(&self) -> Result<Vec<PathPattern>, &'static str> {
        match self {
            Self::Exact(path) => Ok(vec![PathPattern::exact(path)]),
            Self::Tree(path) => Ok(vec![PathPattern::exact(path).with_below()]),
            Self::Glob(glob) => PathPattern::parse(glob),
        }
    }
}

/// One pattern of an index.
#[derive(Debug)]
pub struct GlobEntry {
    /// Index of the rule that it belongs to.
    pub owner: usize,
    /// Its shape.
    pub shape: Shape,
    /// Whether the rule denies or asks: then what lies below a match is meant too, and letters match
    /// in either case, because some file systems do not tell them apart.
    pub is_refusal: bool,
    /// Whether it takes paths out of the rule.
    pub is_exception: bool,
}

/// Plain names at the front of a pattern by which it is found: a workspace is three deep or so, and most
/// patterns name something in it or in the home directory.
const PREFIX_NAMES: usize = 5;

/// Paths are looked up in lower case; what is found is then compared as its rule wants it.
fn folded(edge: Edge) -> Edge {
    match edge {
        Edge::First(byte) => Edge::First(byte.to_ascii_lowercase()),
        Edge::Last(byte) => Edge::Last(byte.to_ascii_lowercase()),
    }
}

/// A set of bytes.
#[derive(Debug, Default)]
struct ByteSet([u64; 4]);

impl ByteSet {
    fn insert(&mut self, byte: u8) {
        if let Some(word) = self.0.get_mut(usize::from(byte / 64)) {
            *word |= 1 << (byte % 64);
        }
    }

    fn contains(&self, byte: u8) -> bool {
        self.0.get(usize::from(byte / 64)).is_some_and(|word| word >> (byte % 64) & 1 == 1)
    }
}

/// Many patterns that are matched at once; each belongs to an owner. A path is compared only with
/// the patterns that share a plain name with it: all of their first ones, or the one behind a `**`.
#[derive(Debug, Default)]
pub struct GlobIndex {
    patterns: Vec<(PathPattern, usize, bool)>,
    /// By the names at the front, in lower case, each behind a slash.
    by_prefix: HashMap<Vec<u8>, Vec<usize>>,
    by_any: HashMap<Vec<u8>, Vec<usize>>,
    /// Which first bytes the names of `by_any` have: most names need no further look.
    first_bytes: ByteSet,
    /// Those with a `**` at the front and a name of which one end is known behind it.
    by_edge: HashMap<Edge, Vec<usize>>,
    edges: [ByteSet; 2],
    others: Vec<usize>,
}

impl GlobIndex {
    /// Builds the index.
    ///
    /// # Errors
    /// The owner whose pattern could not be built, with the reason.
    pub fn new(entries: &[GlobEntry]) -> Result<Self, (usize, String)> {
        let mut index = Self::default();
        for entry in entries {
            let patterns =
                entry.shape.patterns().map_err(|problem| (entry.owner, problem.to_owned()))?;
            for mut pattern in patterns {
                if entry.is_refusal && !entry.is_exception {
                    pattern = pattern.with_below().folded();
                }
                index.add(pattern, entry.owner, entry.is_exception);
            }
        }
        Ok(index)
    }

    fn add(&mut self, pattern: PathPattern, owner: usize, is_exception: bool) {
        let at = self.patterns.len();
        let mut prefix = Vec::new();
        pattern.first_names().take(PREFIX_NAMES).for_each(|name| add_name(&mut prefix, name));
        if !prefix.is_empty() {
            self.by_prefix.entry(prefix).or_default().push(at);
        } else if let Some(name) = pattern.name_behind_any() {
            let name = name.to_ascii_lowercase();
            name.first().iter().for_each(|first| self.first_bytes.insert(**first));
            self.by_any.entry(name).or_default().push(at);
        } else if let Some(edge) = pattern.edge_behind_any().map(folded) {
            let [first, last] = &mut self.edges;
            match edge {
                Edge::First(byte) => first.insert(byte),
                Edge::Last(byte) => last.insert(byte),
            }
            self.by_edge.entry(edge).or_default().push(at);
        } else {
            self.others.push(at);
        }
        self.patterns.push((pattern, owner, is_exception));
    }

    /// The owners whose patterns match a path and whose exceptions do not, each once.
    #[must_use]
    pub fn owners_of(&self, path: &PathNames<'_>) -> Vec<usize> {
        let (mut hits, mut exceptions) = (Vec::new(), Vec::new());
        let mut compare = |candidates: &[usize]| {
            for (pattern, owner, is_exception) in
                candidates.iter().filter_map(|at| self.patterns.get(*at))
            {
                if pattern.fits(path.as_written()) {
                    if *is_exception { exceptions.push(*owner) } else { hits.push(*owner) }
                }
            }
        };
        compare(&self.others);
        for prefix in path.prefixes().take(PREFIX_NAMES) {
            compare(self.by_prefix.get(prefix).map_or(&[], Vec::as_slice));
        }
        for name in path.folded() {
            if name.first().is_some_and(|first| self.first_bytes.contains(*first)) {
                compare(self.by_any.get(name).map_or(&[], Vec::as_slice));
            }
            let [first, last] = &self.edges;
            let edges = [
                name.first().filter(|byte| first.contains(**byte)).map(|byte| Edge::First(*byte)),
                name.last().filter(|byte| last.contains(**byte)).map(|byte| Edge::Last(*byte)),
            ];
            for edge in edges.into_iter().flatten() {
                compare(self.by_edge.get(&edge).map_or(&[], Vec::as_slice));
            }
        }
        hits.sort_unstable();
        hits.dedup();
        hits.retain(|owner| !exceptions.contains(owner));
        hits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        check(pattern).unwrap();
        let shape = expand(pattern, &Places::example()).unwrap();
        let entry = GlobEntry { owner: 0, shape, is_refusal: false, is_exception: false };
        !GlobIndex::new(&[entry]).unwrap().owners_of(&PathNames::new(Path::new(path))).is_empty()
    }

    #[test]
    fn globs_mean_what_the_reference_says() {
        for (pattern, path, expected) in [
            ("/a/**", "/a", true),
            ("/a/**", "/a/b/c", true),
            ("/a/**", "/ab", false),
            ("/a/*", "/a/b/c", false),
            ("/a/*", "/a/b", true),
            ("/**", "/", true),
            ("/**", "/x", true),
            ("**/.env", "/w/x/.env", true),
            ("**/.env", "/.env", true),
            ("**/.env", "/w/x.env", false),
            ("**/.git/hooks/**", "/w/.git/hooks", true),
            ("**/.git/hooks/**", "/w/.git/hooks/pre-commit", true),
            ("{workspace}/**", "/home/user/project", true),
            ("{workspace}/**", "/home/user/project2", false),
            ("{home}/.{ssh,aws}/**", "/home/user/.aws/config", true),
            ("{home}/.{ssh,aws}/**", "/home/user/.ssh", true),
            ("/a/[bc]", "/a/b", true),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn a_name_that_is_not_plain_is_found_by_either_end() {
        for (pattern, path, expected) in [
            ("**/.env.*", "/w/.env.local", true),
            ("**/*.kdbx", "/w/a/B.KDBX", false),
            ("**/*.kdbx", "/w/a/b.kdbx", true),
            ("**/*.kdbx", "/w/a.kdbx/b", false),
            ("**/*.kdbx/**", "/w/a.kdbx/b", true),
            ("**/service-account*.json", "/w/service-account-1.json", true),
            ("**/*_x*", "/w/a_xb", true),
            ("**/[ab]c?", "/w/bcd", true),
            ("**/?b", "/w/üb", true),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
        // A refusal means every case.
        let shape = expand("**/*.KdbX", &Places::example()).unwrap();
        let entry = GlobEntry { owner: 0, shape, is_refusal: true, is_exception: false };
        let index = GlobIndex::new(&[entry]).unwrap();
        let names = |path: &'static str| PathNames::new(Path::new(path));
        assert_eq!(index.owners_of(&names("/w/a.kDBx")), [0]);
        assert!(index.owners_of(&names("/w/a.kdb")).is_empty());
    }

    #[test]
    fn patterns_that_cannot_be_meant_are_refused() {
        for (pattern, code) in [
            ("", "empty-pattern"),
            ("src/**", "relative-pattern"),
            ("{workspce}/**", "unknown-placeholder"),
            ("{workspace}x/**", "relative-pattern"),
            ("/a/**b", "bad-pattern"),
            ("/a/../b", "never-matches"),
            ("/a//b", "never-matches"),
            ("/a/", "never-matches"),
            ("/a/[", "bad-pattern"),
            ("/a/{b", "bad-pattern"),
        ] {
            assert_eq!(check(pattern).unwrap_err().0, code, "{pattern}");
        }
    }

    #[test]
    fn a_place_with_glob_characters_is_taken_literally() {
        let places = Places { workspace: "/w/[a]*{b}".into(), ..Places::example() };
        let shape = expand("{workspace}/**", &places).unwrap();
        assert_eq!(shape, Shape::Tree("/w/[a]*{b}".into()));
        let entry = GlobEntry { owner: 3, shape, is_refusal: false, is_exception: false };
        let index = GlobIndex::new(&[entry]).unwrap();
        let owners = |path: &str| index.owners_of(&PathNames::new(Path::new(path)));
        assert_eq!(owners("/w/[a]*{b}/x"), [3]);
        assert!(owners("/w/ab/x").is_empty());
    }
}
