//! From a rule that refuses inside what is granted to the masks of the view, and to grants that go.
//! Decides by texts alone: which names exist is looked up where a cell is made.

use super::cell::{MaskPlanKind, PlannedGrant, PlannedMask, PlannedPattern};
use super::file::schema::Decision;
use super::grants::Grants;
use super::paths::PathMatcher;
use super::rules::globs::{Places, Shape, expand};
use crate::base::paths::{is_within, is_within_tidied};
use crate::base::pattern::{PathPattern, escape};
use crate::call::effects::Access;
use std::cell::OnceCell;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// One rule that refuses.
pub(super) struct MaskFor<'m> {
    /// The places of the run.
    pub(super) places: &'m Places,
    /// The rule.
    pub(super) matcher: &'m PathMatcher,
    /// What it takes.
    pub(super) kind: MaskPlanKind,
}

impl MaskFor<'_> {
    /// Takes what one shape of the rule means out of the grants, or masks it inside of them.
    pub(super) fn add(&self, shape: &Shape, grants: &mut Grants, masks: &mut Vec<PlannedMask>) {
        match shape {
            Shape::Exact(path) | Shape::Tree(path) => {
                self.take_back(grants, path, |_| true);
                // The innermost grant says what is left to take.
                if grants.around(path).first().is_some_and(|grant| self.has_right(grant)) {
                    masks.push(self.mask(PlannedPattern::Exact(path.clone()), Vec::new()));
                }
            }
            Shape::Glob(glob) => self.add_glob(&names(glob), grants, masks),
        }
    }

    fn add_glob(&self, glob: &[Name<'_>], grants: &mut Grants, masks: &mut Vec<PlannedMask>) {
        let front = plain_front(glob);
        // A glob that begins anywhere means no grant as a whole.
        if !begins_anywhere(glob) {
            self.take_back(grants, &front, |grant| means(glob, grant));
        }
        for (root, pattern) in self.searches(glob, &front, grants) {
            if !pattern.is_empty() {
                let except = self.exceptions(&root);
                masks.push(self.mask(PlannedPattern::Glob { root, pattern }, except));
            } else if !self.is_excepted(&root) {
                // A glob without a pattern left means the root itself.
                masks.push(self.mask(PlannedPattern::Exact(root), Vec::new()));
            }
        }
    }

    /// Where names of a glob are searched for, and by which pattern. The system's directories and
    /// caches are large and nobody keeps secrets in them by accident: there only patterns that name
    /// their directory count, and no whole tree is walked.
    fn searches(&self, glob: &[Name<'_>], front: &Path, grants: &Grants) -> Vec<(PathBuf, String)> {
        let begins_anywhere = begins_anywhere(glob);
        let around = grants.around(front).into_iter().filter(|grant| grant.path != front);
        let searches: Vec<(PathBuf, String)> = around
            .chain(grants.inside(front))
            .filter(|grant| !(grant.well_known && begins_anywhere) && self.has_right(grant))
            .filter_map(|grant| {
                let search = search_below(&grant.path, left_below(glob, &grant.path)?);
                (!grant.well_known || !search.1.contains("**")).then_some(search)
            })
            .collect();
        // A root inside another one is searched with it.
        let outer = |root: &Path| {
            !searches.iter().any(|(other, _)| other != root && is_within_tidied(root, other))
        };
        searches.iter().filter(|(root, _)| outer(root)).cloned().collect()
    }

    /// Whether a grant gives the right that the mask takes.
    fn has_right(&self, grant: &PlannedGrant) -> bool {
        match self.kind {
            MaskPlanKind::Hide => true,
            MaskPlanKind::ReadOnly => grant.access.contains(&Access::Write),
        }
    }

    /// Whether an exception of the rule takes a path out of it.
    fn is_excepted(&self, path: &Path) -> bool {
        let excepts = |shape| match shape {
            Shape::Exact(except) => except == path,
            Shape::Tree(except) => is_within(path, &except),
            Shape::Glob(glob) => means(&names(&glob), path),
        };
        self.matcher.except.iter().filter_map(|text| expand(text, self.places)).any(excepts)
    }

    /// Removes from grants at or inside `path` the right that is refused, where `is_meant` says that the
    /// rule means them. An ask leaves them.
    fn take_back(&self, grants: &mut Grants, path: &Path, is_meant: impl Fn(&Path) -> bool) {
        if self.matcher.meta.decision == Decision::Ask {
            return;
        }
        let goes = |grant: &PlannedGrant| is_meant(&grant.path) && !self.is_excepted(&grant.path);
        match self.kind {
            MaskPlanKind::Hide => grants.remove_inside(path, goes),
            MaskPlanKind::ReadOnly => grants.take_inside(path, Access::Write, goes),
        }
    }

    fn exceptions(&self, root: &Path) -> Vec<String> {
        let shapes = self.matcher.except.iter().filter_map(|text| expand(text, self.places));
        shapes
            .filter_map(|shape| match shape {
                Shape::Exact(path) | Shape::Tree(path) => {
                    path.strip_prefix(root).ok()?.to_str().map(escape)
                }
                Shape::Glob(glob) => Some(joined(left_below(&names(&glob), root)?)),
            })
            .filter(|pattern| !pattern.is_empty())
            .collect()
    }

    fn mask(&self, pattern: PlannedPattern, except: Vec<String>) -> PlannedMask {
        PlannedMask {
            pattern,
            except,
            kind: self.kind,
            rule_id: self.matcher.meta.id.clone(),
            unless_approved: self.matcher.meta.decision == Decision::Ask,
        }
    }
}

/// One name of a glob. It is compiled when it is first compared, and compared with many grants.
struct Name<'g> {
    text: &'g str,
    compiled: OnceCell<Vec<PathPattern>>,
}

impl Name<'_> {
    fn is_any_directories(&self) -> bool {
        self.text == "**"
    }

    fn is_plain(&self) -> bool {
        !self.text.contains(['*', '?', '[', '{', '\\'])
    }

    /// Whether a name of a path is what this one, alternatives included, says.
    fn fits(&self, name: &[u8]) -> bool {
        if self.is_plain() {
            return self.text.as_bytes() == name;
        }
        let compile = || PathPattern::parse(self.text).unwrap_or_default();
        self.compiled.get_or_init(compile).iter().any(|pattern| pattern.fits(&[name]))
    }
}

/// The names of an absolute glob.
fn names(glob: &str) -> Vec<Name<'_>> {
    let texts = glob.split('/').filter(|text| !text.is_empty());
    texts.map(|text| Name { text, compiled: OnceCell::new() }).collect()
}

fn begins_anywhere(glob: &[Name<'_>]) -> bool {
    glob.first().is_some_and(Name::is_any_directories)
}

/// The directory that every match of a glob is or lies in: the plain names that it begins with. A
/// grant that the glob reaches into is around it or inside it.
fn plain_front(glob: &[Name<'_>]) -> PathBuf {
    below(Path::new("/"), glob.iter().take_while(|name| name.is_plain()))
}

fn below<'n>(directory: &Path, names: impl Iterator<Item = &'n Name<'n>>) -> PathBuf {
    let mut path = directory.to_path_buf();
    names.for_each(|name| path.push(name.text));
    path
}

/// What of a glob is left below `grant`; nothing: the glob means the grant or what it lies in. `None`:
/// it does not reach into the grant.
fn left_below<'p, 'g>(glob: &'p [Name<'g>], grant: &Path) -> Option<&'p [Name<'g>]> {
    let mut left = glob;
    // Grants are tidied, so that the text holds the names and nothing else.
    let names = grant.as_os_str().as_bytes().split(|byte| *byte == b'/');
    for name in names.filter(|name| !name.is_empty()) {
        match left.split_first() {
            None => return Some(left),
            Some((first, _)) if first.is_any_directories() => return Some(left),
            Some((first, rest)) if first.fits(name) => left = rest,
            Some(_) => return None,
        }
    }
    Some(left)
}

/// Whether a glob means a path as a whole, or what the path lies in.
fn means(glob: &[Name<'_>], path: &Path) -> bool {
    left_below(glob, path).is_some_and(<[_]>::is_empty)
}

/// Where what is left of a glob below `grant` is searched for, and by which pattern: the plain names
/// that it begins with lead to the root.
fn search_below(grant: &Path, left: &[Name<'_>]) -> (PathBuf, String) {
    let plain = left.iter().take_while(|name| name.is_plain()).count();
    let (names, pattern) = left.split_at(plain);
    (below(grant, names.iter()), joined(pattern))
}

fn joined(names: &[Name<'_>]) -> String {
    names.iter().map(|name| name.text).collect::<Vec<_>>().join("/")
}
