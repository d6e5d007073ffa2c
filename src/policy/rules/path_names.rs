//! The names of one path, taken apart once for all rules of all units. What a pattern makes of them is
//! not known here.

use crate::base::pattern::names;
use std::path::Path;

/// The names of an absolute path, as written and in lower case.
#[derive(Debug)]
pub struct PathNames<'p> {
    names: Vec<&'p [u8]>,
    /// All names in lower case, each behind a slash.
    lower: Vec<u8>,
    /// Where each name of `lower` ends.
    ends: Vec<usize>,
}

impl<'p> PathNames<'p> {
    /// Takes a path apart.
    #[must_use]
    pub fn new(path: &'p Path) -> Self {
        let names = names(path);
        let mut lower = Vec::with_capacity(path.as_os_str().len() + 1);
        let mut ends = Vec::with_capacity(names.len());
        for name in &names {
            add_name(&mut lower, name);
            ends.push(lower.len());
        }
        Self { names, lower, ends }
    }

    /// The names as they are written.
    #[must_use]
    pub fn as_written(&self) -> &[&'p [u8]] {
        &self.names
    }

    /// The first name, the first two and so on, in lower case, each name behind a slash.
    pub fn prefixes(&self) -> impl Iterator<Item = &[u8]> {
        self.ends.iter().filter_map(|end| self.lower.get(..*end))
    }

    /// Each name in lower case.
    pub fn folded(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).filter_map(|(start, end)| self.lower.get(start + 1..*end))
    }
}

/// Appends a slash and a name in lower case.
pub(super) fn add_name(prefix: &mut Vec<u8>, name: &[u8]) {
    prefix.push(b'/');
    prefix.extend(name.iter().map(u8::to_ascii_lowercase));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_and_names_are_those_of_the_path() {
        let path = PathNames::new(Path::new("/A/bC/d"));
        assert_eq!(path.as_written(), [b"A".as_slice(), b"bC", b"d"]);
        let prefixes: Vec<&[u8]> = path.prefixes().collect();
        assert_eq!(prefixes, [b"/a".as_slice(), b"/a/bc", b"/a/bc/d"]);
        let folded: Vec<&[u8]> = path.folded().collect();
        assert_eq!(folded, [b"a".as_slice(), b"bc", b"d"]);
        assert_eq!(PathNames::new(Path::new("/")).folded().count(), 0);
    }
}
