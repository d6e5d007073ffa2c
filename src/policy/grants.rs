//! What is granted, by path: which grants lie around a path and which inside it. Knows no rule and no
//! unit; paths are compared by their bytes, so they must be tidied.

use super::cell::PlannedGrant;
use crate::call::effects::Access;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Granted paths, each once. Kept by their text with a slash behind it: then everything below a
/// directory begins with the directory's own text, and lies right behind it. Each start of the program
/// asks some hundred times, so neither question reads them all.
#[derive(Debug, Default)]
pub(super) struct Grants(BTreeMap<Vec<u8>, PlannedGrant>);

fn key(path: &Path) -> Vec<u8> {
    let text = path.as_os_str().as_bytes();
    let mut key = Vec::with_capacity(text.len() + 1);
    key.extend_from_slice(text);
    if text != b"/" {
        key.push(b'/');
    }
    key
}

/// The texts of a path and of every directory around it, the path first.
fn around(key: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = key.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/');
    slashes.filter_map(|(at, _)| key.get(..=at))
}

impl Grants {
    /// Adds a grant; one of the same path gets the rights of both.
    pub(super) fn add(&mut self, grant: PlannedGrant) {
        self.0
            .entry(key(&grant.path))
            .and_modify(|known| {
                known.access.extend(&grant.access);
                known.optional &= grant.optional;
                known.well_known &= grant.well_known;
            })
            .or_insert(grant);
    }

    /// Everything of both.
    pub(super) fn joined(mut self, other: Self) -> Self {
        other.0.into_values().for_each(|grant| self.add(grant));
        self
    }

    /// Every grant.
    pub(super) fn iter(&self) -> impl Iterator<Item = &PlannedGrant> {
        self.0.values()
    }

    /// Every grant, outer paths first.
    pub(super) fn into_list(self) -> Vec<PlannedGrant> {
        let mut list: Vec<PlannedGrant> = self.0.into_values().collect();
        list.sort_by(|left, right| left.path.cmp(&right.path));
        list
    }

    /// The grants that `path` is or lies in, the innermost first.
    pub(super) fn around(&self, path: &Path) -> Vec<&PlannedGrant> {
        around(&key(path)).filter_map(|key| self.0.get(key)).collect()
    }

    /// The grants that are `path` or lie in it.
    pub(super) fn inside(&self, path: &Path) -> impl Iterator<Item = &PlannedGrant> {
        let key = key(path);
        let from = self.0.range(key.clone()..);
        from.take_while(move |(inner, _)| inner.starts_with(&key)).map(|(_, grant)| grant)
    }

    /// Removes the grants that are `path` or lie in it, where `goes` says so.
    pub(super) fn remove_inside(&mut self, path: &Path, goes: impl Fn(&PlannedGrant) -> bool) {
        let gone: Vec<Vec<u8>> =
            self.inside(path).filter(|grant| goes(grant)).map(|grant| key(&grant.path)).collect();
        gone.iter().for_each(|key| drop(self.0.remove(key)));
    }

    /// Takes a right from the grants that are `path` or lie in it, where `goes` says so.
    pub(super) fn take_inside(
        &mut self,
        path: &Path,
        right: Access,
        goes: impl Fn(&PlannedGrant) -> bool,
    ) {
        let key = key(path);
        let from = self.0.range_mut(key.clone()..);
        for (_, grant) in from.take_while(|(inner, _)| inner.starts_with(&key)) {
            if goes(grant) {
                grant.access.remove(&right);
            }
        }
    }

    /// What both grant: the deeper path of each nested pair, with the rights that both give there.
    pub(super) fn intersect(&self, other: &Self) -> Self {
        let mut both = Self::default();
        for path in self.iter().chain(other.iter()).map(|grant| &grant.path) {
            let (Some(here), Some(there)) = (self.rights_at(path), other.rights_at(path)) else {
                continue;
            };
            let grant = PlannedGrant {
                path: path.clone(),
                access: &here.access & &there.access,
                optional: here.optional || there.optional,
                well_known: here.well_known && there.well_known,
            };
            if !grant.access.is_empty() {
                both.0.insert(key(path), grant);
            }
        }
        both
    }

    /// The rights at a path: those of every grant that the path lies in. Only a grant of the path itself
    /// can say that it must exist.
    fn rights_at(&self, path: &Path) -> Option<PlannedGrant> {
        let around = self.around(path);
        let inner = around.first()?;
        Some(PlannedGrant {
            path: path.to_path_buf(),
            access: around.iter().fold(BTreeSet::new(), |all, grant| &all | &grant.access),
            optional: inner.path != path || inner.optional,
            well_known: around.iter().all(|grant| grant.well_known),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn grants(paths: &[&str]) -> Grants {
        let mut grants = Grants::default();
        for path in paths {
            grants.add(PlannedGrant {
                path: path.into(),
                access: BTreeSet::from([Access::Read, Access::Write]),
                optional: false,
                well_known: false,
            });
        }
        grants
    }

    fn paths<'g>(grants: impl IntoIterator<Item = &'g PlannedGrant>) -> Vec<&'g Path> {
        grants.into_iter().map(|grant| grant.path.as_path()).collect()
    }

    #[test]
    fn around_and_inside_go_by_whole_names() {
        let grants = grants(&["/", "/a", "/a-b", "/a/b", "/a/b/c", "/ab"]);
        let expect = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        for (path, around, inside) in [
            ("/", vec!["/"], vec!["/", "/a-b", "/a", "/a/b", "/a/b/c", "/ab"]),
            ("/a", vec!["/a", "/"], vec!["/a", "/a/b", "/a/b/c"]),
            ("/a/b/x", vec!["/a/b", "/a", "/"], vec![]),
            ("/x", vec!["/"], vec![]),
        ] {
            let path = Path::new(path);
            assert_eq!(paths(grants.around(path)), expect(&around), "around {path:?}");
            assert_eq!(paths(grants.inside(path)), expect(&inside), "inside {path:?}");
        }
    }

    #[test]
    fn what_goes_is_inside_and_nothing_beside_it() {
        let mut grants = grants(&["/", "/a", "/a/b", "/a/keep", "/ab"]);
        grants.take_inside(Path::new("/a"), Access::Write, |grant| grant.path != Path::new("/a/b"));
        let writable = grants.iter().filter(|grant| grant.access.contains(&Access::Write));
        assert_eq!(paths(writable), ["/", "/a/b", "/ab"].map(Path::new));
        grants.remove_inside(Path::new("/a"), |grant| !grant.path.ends_with("keep"));
        assert_eq!(paths(&grants.into_list()), ["/", "/a/keep", "/ab"].map(Path::new));
    }
}
