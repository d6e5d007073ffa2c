//! One pattern over paths, matched name by name. Compiling one costs less than a microsecond, which
//! matters because every start of the program, and every cell, compiles a few hundred; what it matches
//! is what `globset` with `literal_separator` matches, which a property test holds.
//!
//! The rules of a policy and the masks of a cell are matched by the same code, so that both walls mean
//! the same names.

use std::path::{Component, Path};
use std::sync::Arc;

/// Patterns that alternatives may expand to: `{a,b}` in six places is already 64.
const ALTERNATIVES_MAX: usize = 256;

/// A compiled pattern over absolute paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    parts: Vec<Part>,
    fold: bool,
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
        let mut texts = vec![String::new()];
        alternatives(text, &mut texts)?;
        texts.iter().map(|text| Self::parse_one(text)).collect()
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

    /// The first name, if it is plain; `None` if the pattern may begin with any name.
    #[must_use]
    pub fn first_name(&self) -> Option<&[u8]> {
        match self.parts.first() {
            Some(Part::Literal(name)) => Some(name),
            Some(Part::AnyDirectories | Part::Wild(_)) | None => None,
        }
    }

    /// The name behind a `**` at the front, if it is plain: one that every match holds.
    #[must_use]
    pub fn name_behind_any(&self) -> Option<&[u8]> {
        match self.parts.as_slice() {
            [Part::AnyDirectories, Part::Literal(name), ..] => Some(name),
            _ => None,
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
        may_fit && fits_parts(&self.parts, names, self.fold)
    }
}

/// A pattern with exceptions: what a rule refuses below some directory.
#[derive(Debug, Clone)]
pub struct Selection {
    patterns: Vec<PathPattern>,
    except: Arc<[PathPattern]>,
}

impl Selection {
    /// What `pattern` matches and none of `except` does. `directory/**` means the directory itself too,
    /// so that nothing new can be put into it; but not if there are exceptions, which may lie in it.
    ///
    /// # Errors
    /// What is wrong with the pattern.
    pub fn new(pattern: &str, except: Arc<[PathPattern]>) -> Result<Self, &'static str> {
        let mut patterns = PathPattern::parse(pattern)?;
        if !except.is_empty() {
            patterns = patterns.into_iter().map(PathPattern::strictly_below).collect();
        }
        Ok(Self { patterns, except })
    }

    /// Reads exceptions, for any number of selections.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub fn exceptions(texts: &[String]) -> Result<Arc<[PathPattern]>, &'static str> {
        let mut patterns = Vec::new();
        for text in texts {
            patterns.extend(PathPattern::parse(text)?.into_iter().map(PathPattern::strictly_below));
        }
        Ok(patterns.into())
    }

    /// Whether a path, given as names, is meant.
    #[must_use]
    pub fn fits(&self, names: &[&[u8]]) -> bool {
        self.patterns.iter().any(|pattern| pattern.fits(names))
            && !self.except.iter().any(|except| except.fits(names))
    }

    /// Levels at which a match can lie; `None` = any.
    #[must_use]
    pub fn depth(&self) -> Option<usize> {
        let depths = self.patterns.iter().map(PathPattern::depth).collect::<Option<Vec<_>>>()?;
        depths.into_iter().max()
    }

    /// Whether nothing but the last name decides; see [`PathPattern::is_last_name_alone`].
    #[must_use]
    pub fn is_last_name_alone(&self) -> bool {
        self.patterns.iter().all(PathPattern::is_last_name_alone)
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
    let each = |c: char| if special(c) { vec!['\\', c] } else { vec![c] };
    text.chars().flat_map(each).collect()
}

/// Greedy with one point of return: the last `**`. Each `**` that follows replaces it, so time is
/// bounded by the product of the lengths.
fn fits_parts(parts: &[Part], names: &[&[u8]], fold: bool) -> bool {
    let (mut part, mut name) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while let Some(current) = names.get(name) {
        match parts.get(part) {
            Some(Part::AnyDirectories) => {
                back = Some((part + 1, name));
                part += 1;
                continue;
            }
            Some(wanted) if wanted.fits(current, fold) => {
                part += 1;
                name += 1;
                continue;
            }
            Some(_) | None => {}
        }
        let Some((after, from)) = back else { return false };
        back = Some((after, from + 1));
        part = after;
        name = from + 1;
    }
    parts.iter().skip(part).all(|rest| *rest == Part::AnyDirectories)
}

impl Part {
    fn parse(text: &str) -> Result<Self, &'static str> {
        if text == "**" {
            return Ok(Self::AnyDirectories);
        }
        if !text.contains(['*', '?', '[', '\\']) {
            return Ok(Self::Literal(text.as_bytes().to_vec()));
        }
        let mut atoms = Vec::new();
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            atoms.extend(match character {
                '*' => vec![Atom::AnyMany],
                '?' => vec![Atom::AnyOne],
                '[' => vec![class(&mut characters)?],
                '\\' => bytes(characters.next().ok_or("`\\` stands at the end")?),
                other => bytes(other),
            });
        }
        Ok(Self::Wild(atoms))
    }

    fn fits(&self, name: &[u8], fold: bool) -> bool {
        match self {
            Self::AnyDirectories => true,
            Self::Literal(literal) if fold => literal.eq_ignore_ascii_case(name),
            Self::Literal(literal) => literal == name,
            Self::Wild(atoms) => fits_atoms(atoms, name, fold),
        }
    }
}

fn bytes(character: char) -> Vec<Atom> {
    let mut buffer = [0; 4];
    character.encode_utf8(&mut buffer).bytes().map(Atom::Byte).collect()
}

/// Reads a class behind its `[`.
fn class(characters: &mut std::str::Chars<'_>) -> Result<Atom, &'static str> {
    let unclosed = "`[` has no `]`";
    let mut rest = characters.clone();
    let mut next = rest.next().ok_or(unclosed)?;
    let negated = matches!(next, '!' | '^');
    if negated {
        next = rest.next().ok_or(unclosed)?;
    }
    let mut ranges = Vec::new();
    let mut is_first = true;
    while is_first || next != ']' {
        is_first = false;
        let mut ahead = rest.clone();
        if ahead.next() == Some('-') && ahead.clone().next().is_some_and(|end| end != ']') {
            let end = ahead.next().ok_or(unclosed)?;
            if end < next {
                return Err("a range in `[]` runs backwards");
            }
            ranges.push((next, end));
            rest = ahead;
        } else {
            ranges.push((next, next));
        }
        next = rest.next().ok_or(unclosed)?;
    }
    *characters = rest;
    Ok(Atom::Class { negated, ranges })
}

/// The same way of matching inside one name, with `*` as the point of return.
fn fits_atoms(atoms: &[Atom], name: &[u8], fold: bool) -> bool {
    let (mut atom, mut at) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while at < name.len() {
        let rest = name.get(at..).unwrap_or(&[]);
        let taken = match atoms.get(atom) {
            Some(Atom::AnyMany) => {
                back = Some((atom + 1, at));
                atom += 1;
                continue;
            }
            Some(single) => single.takes(rest, fold),
            None => 0,
        };
        if taken > 0 {
            atom += 1;
            at += taken;
            continue;
        }
        let Some((after, from)) = back else { return false };
        back = Some((after, from + 1));
        atom = after;
        at = from + 1;
    }
    atoms.iter().skip(atom).all(|rest| *rest == Atom::AnyMany)
}

impl Atom {
    /// Bytes at the front of `rest` that it matches; 0: it does not.
    fn takes(&self, rest: &[u8], fold: bool) -> usize {
        let Some(first) = rest.first() else { return 0 };
        match self {
            Self::Byte(byte) if fold => usize::from(byte.eq_ignore_ascii_case(first)),
            Self::Byte(byte) => usize::from(byte == first),
            Self::AnyOne => character(rest).1,
            Self::Class { negated, ranges } => {
                let (found, length) = character(rest);
                let holds = |c: char| ranges.iter().any(|(low, high)| (*low..=*high).contains(&c));
                let is_in = found.is_some_and(|c| {
                    holds(c)
                        || (fold
                            && (holds(c.to_ascii_lowercase()) || holds(c.to_ascii_uppercase())))
                });
                if is_in != *negated { length } else { 0 }
            }
            Self::AnyMany => 0,
        }
    }
}

/// The character at the front and its length; a byte that is none counts as one.
fn character(rest: &[u8]) -> (Option<char>, usize) {
    let front = rest.get(..rest.len().min(4)).unwrap_or(rest);
    let valid = match std::str::from_utf8(front) {
        Ok(text) => text,
        Err(error) => {
            std::str::from_utf8(front.get(..error.valid_up_to()).unwrap_or(&[])).unwrap_or("")
        }
    };
    valid.chars().next().map_or((None, 1), |c| (Some(c), c.len_utf8()))
}

/// Appends `text` to each of `done`, once for each alternative of its braces.
fn alternatives(text: &str, done: &mut Vec<String>) -> Result<(), &'static str> {
    let mut rest = text;
    while let Some((before, inner)) = split_at_plain(rest, '{') {
        let (inner, after) = split_at_plain(inner, '}').ok_or("`{` has no `}`")?;
        if split_at_plain(inner, '{').is_some() {
            return Err("`{}` inside `{}`");
        }
        let mut choices = Vec::new();
        let mut left = inner;
        while let Some((choice, more)) = split_at_plain(left, ',') {
            choices.push(choice);
            left = more;
        }
        choices.push(left);
        if done.len().saturating_mul(choices.len()) > ALTERNATIVES_MAX {
            return Err("more than 256 alternatives");
        }
        *done = done
            .iter()
            .flat_map(|one| choices.iter().map(move |choice| format!("{one}{before}{choice}")))
            .collect();
        rest = after;
    }
    done.iter_mut().for_each(|one| one.push_str(rest));
    Ok(())
}

/// The text before and behind the first `wanted` that no backslash stands before.
fn split_at_plain(text: &str, wanted: char) -> Option<(&str, &str)> {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        if character == wanted && !escaped {
            return Some((text.get(..at)?, text.get(at + character.len_utf8()..)?));
        }
        escaped = character == '\\' && !escaped;
    }
    None
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
