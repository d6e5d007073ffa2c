//! One pattern over paths, matched name by name. Compiling one costs less than a microsecond, which
//! matters because every start of the program, and every cell, compiles a few hundred; what it matches
//! is what `globset` with `literal_separator` matches, which a property test holds.
//!
//! The rules of a policy and the masks of a cell are matched by the same code, so that both walls mean
//! the same names.

mod fit;
mod parse;
mod selection;

pub use selection::Selection;

use std::path::{Component, Path};

/// A compiled pattern over absolute paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    parts: Vec<Part>,
    fold: bool,
}

/// The byte at one end of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Edge {
    /// At its front.
    First(u8),
    /// At its end.
    Last(u8),
}

/// One name of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// `**`
    AnyDirectories,
    /// A name without special characters.
    Literal(Vec<u8>),
    /// Any other name.
    Wild(Vec<Atom>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Atom {
    Byte(u8),
    AnyOne,
    AnyMany,
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl PathPattern {
    /// Reads a pattern, with alternatives as patterns of their own.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Vec<Self>, &'static str> {
        parse::alternatives(text)?.iter().map(|text| Self::parse_one(text)).collect()
    }

    fn parse_one(text: &str) -> Result<Self, &'static str> {
        let body = text.strip_prefix('/').unwrap_or(text);
        let names = body.split('/').filter(|name| !name.is_empty());
        let parts = names.map(Part::parse).collect::<Result<_, _>>()?;
        Ok(Self { parts, fold: false })
    }

    /// The pattern of exactly this path.
    #[must_use]
    pub fn exact(path: &Path) -> Self {
        let parts = names(path).into_iter().map(|name| Part::Literal(name.to_vec())).collect();
        Self { parts, fold: false }
    }

    /// Also everything below what it matches.
    #[must_use]
    pub fn with_below(mut self) -> Self {
        if self.parts.last() != Some(&Part::AnyDirectories) {
            self.parts.push(Part::AnyDirectories);
        }
        self
    }

    /// Without regard to the case of ASCII letters.
    #[must_use]
    pub fn folded(mut self) -> Self {
        self.fold = true;
        self
    }

    /// The plain names that every match begins with; none if it may begin with any name.
    pub fn first_names(&self) -> impl Iterator<Item = &[u8]> {
        self.parts.iter().map_while(|part| match part {
            Part::Literal(name) => Some(name.as_slice()),
            Part::AnyDirectories | Part::Wild(_) => None,
        })
    }

    /// The name behind a `**` at the front, if it is plain: one that every match holds.
    #[must_use]
    pub fn name_behind_any(&self) -> Option<&[u8]> {
        match self.parts.as_slice() {
            [Part::AnyDirectories, Part::Literal(name), ..] => Some(name),
            _ => None,
        }
    }

    /// For a `**` at the front with a name behind it that is not plain: a byte that every name it matches
    /// begins with, else one that every such name ends with.
    #[must_use]
    pub fn edge_behind_any(&self) -> Option<Edge> {
        let [Part::AnyDirectories, Part::Wild(atoms), ..] = self.parts.as_slice() else {
            return None;
        };
        match (atoms.first(), atoms.last()) {
            (Some(Atom::Byte(byte)), _) => Some(Edge::First(*byte)),
            (_, Some(Atom::Byte(byte))) => Some(Edge::Last(*byte)),
            (_, _) => None,
        }
    }

    /// For a `directory/**`: only what is below the directory, not the directory itself.
    #[must_use]
    pub fn strictly_below(mut self) -> Self {
        if self.parts.last() == Some(&Part::AnyDirectories) {
            self.parts.push(Part::Wild(vec![Atom::AnyMany]));
        }
        self
    }

    /// How many names a path that it matches has; `None` = any number, because of a `**`.
    #[must_use]
    pub fn depth(&self) -> Option<usize> {
        (!self.parts.contains(&Part::AnyDirectories)).then_some(self.parts.len())
    }

    /// Whether it asks for nothing but the last name, as `**/name` does: such a match stays one when a
    /// directory above it is renamed.
    #[must_use]
    pub fn is_last_name_alone(&self) -> bool {
        matches!(self.parts.as_slice(), [Part::AnyDirectories, last] if *last != Part::AnyDirectories)
    }

    /// Whether it matches a path given as names.
    #[must_use]
    pub fn fits(&self, names: &[&[u8]]) -> bool {
        // Most names of a walk are told apart by their last one.
        let may_fit = match (self.parts.last(), names.last()) {
            (Some(last), Some(name)) => last.fits(name, self.fold),
            (Some(_) | None, None) | (None, Some(_)) => true,
        };
        may_fit && fit::parts(&self.parts, names, self.fold)
    }
}

/// The names of an absolute path.
#[must_use]
pub fn names(path: &Path) -> Vec<&[u8]> {
    use std::os::unix::ffi::OsStrExt as _;
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.as_bytes()),
            Component::RootDir
            | Component::CurDir
            | Component::ParentDir
            | Component::Prefix(_) => None,
        })
        .collect()
}

/// `text` as a pattern that matches it alone.
#[must_use]
pub fn escape(text: &str) -> String {
    let special = |c: char| matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | ',');
    if !text.contains(special) {
        return text.to_owned();
    }
    let each = |c: char| if special(c) { vec!['\\', c] } else { vec![c] };
    text.chars().flat_map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fits(pattern: &str, path: &str) -> bool {
        let names = names(Path::new(path));
        PathPattern::parse(pattern).unwrap().iter().any(|pattern| pattern.fits(&names))
    }

    #[test]
    fn names_match_as_written() {
        for (pattern, path, expected) in [
            ("/a/*.rs", "/a/x.rs", true),
            ("/a/*.rs", "/a/b/x.rs", false),
            ("/a/?", "/a/ü", true),
            ("/a/[!b]", "/a/c", true),
            ("/a/[!b]", "/a/b", false),
            ("/a/[a-c]x", "/a/bx", true),
            ("/a/{b,c}/d", "/a/c/d", true),
            ("/a/\\*", "/a/*", true),
            ("/a/\\*", "/a/x", false),
            ("/**/a/**/b", "/x/a/y/a/z/b", true),
            ("/**/a/**/b", "/x/a/y/a/z/c", false),
            ("**/.env.*", "/w/.env.", true),
        ] {
            assert_eq!(fits(pattern, path), expected, "{pattern} {path}");
        }
        assert!(PathPattern::parse("/a/[b").is_err() && PathPattern::parse("/{a").is_err());
        let folded = PathPattern::parse("/w/.git").unwrap().remove(0).folded();
        assert!(folded.fits(&names(Path::new("/W/.GIT"))));
    }

    proptest! {
        #[test]
        fn what_matches_is_what_globset_matches(
            pattern in "(/(\\*\\*|[ab*?]{1,3}|\\[a-b\\]a?|\\{a,b\\}))(/(\\*\\*|[ab*?]{1,3})){0,3}",
            path in "(/[abc]{1,3}){1,5}"
        ) {
            prop_assume!(pattern.split('/').all(|name| name == "**" || !name.contains("**")));
            let build = |text: &str| {
                let mut builder = globset::GlobBuilder::new(text);
                builder.literal_separator(true).build().unwrap().compile_matcher()
            };
            // `directory/**` also means the directory, which globset has to be told.
            let mut expected = build(&pattern).is_match(&path);
            let mut stem = pattern.as_str();
            while let Some(shorter) = stem.strip_suffix("/**") {
                stem = shorter;
                expected |= !stem.is_empty() && build(stem).is_match(&path);
                expected |= stem.is_empty();
            }
            prop_assert_eq!(fits(&pattern, &path), expected);
        }
    }
}
