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
            Shape::Glob(glob) => self.add_glob(&parts(glob), grants, masks),
        }
    }

    fn add_glob(&self, parts: &[&str], grants: &mut Grants, masks: &mut Vec<PlannedMask>) {
        // A glob that begins anywhere means no grant as a whole.
        if parts.first() != Some(&"**") {
            self.take_back(grants, &plain_front(parts), |grant| {
                meets(parts, grant).is_some_and(<[_]>::is_empty)
            });
        }
        for (root, pattern) in self.searches(parts, grants) {
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
    fn searches(&self, parts: &[&str], grants: &Grants) -> Vec<(PathBuf, String)> {
        let begins_anywhere = parts.first() == Some(&"**");
        let front = plain_front(parts);
        let around = grants.around(front.parent().unwrap_or(&front));
        // From the root on, everything is inside.
        let around = around.into_iter().filter(|grant| grant.path != front);
        let searches: Vec<(PathBuf, String)> = around
            .chain(grants.inside(&front))
            .filter(|grant| self.has_right(grant) && !(grant.well_known && begins_anywhere))
            .filter_map(|grant| {
                let search = search_below(&grant.path, meets(parts, &grant.path)?);
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
            Shape::Glob(glob) => meets(&parts(&glob), path).is_some_and(<[_]>::is_empty),
        };
        self.matcher.except.iter().filter_map(|text| expand(text, self.places)).any(excepts)
    }

    /// Removes from grants at or inside `path` the right that is refused, where `means` says that the
    /// rule means them. An ask leaves them.
    fn take_back(&self, grants: &mut Grants, path: &Path, means: impl Fn(&Path) -> bool) {
        if self.matcher.meta.decision == Decision::Ask {
            return;
        }
        let goes = |grant: &PlannedGrant| means(&grant.path) && !self.is_excepted(&grant.path);
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
                Shape::Glob(glob) => Some(meets(&parts(&glob), root)?.join("/")),
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

/// The names of an absolute glob.
fn parts(glob: &str) -> Vec<&str> {
    glob.split('/').filter(|part| !part.is_empty()).collect()
}

/// The directory that every match of a glob is or lies in: the plain names that it begins with. A
/// grant that the glob reaches into is around it or inside it.
fn plain_front(parts: &[&str]) -> PathBuf {
    let plain = parts.iter().take_while(|part| !is_special(part));
    plain.fold(PathBuf::from("/"), |front, name| front.join(name))
}

/// What of a glob is left below `grant`; nothing: the glob means the grant or what it lies in. `None`:
/// it does not reach into the grant.
fn meets<'p, 'g>(parts: &'p [&'g str], grant: &Path) -> Option<&'p [&'g str]> {
    let mut left = parts;
    // Grants are tidied, so that the text holds the names and nothing else.
    let names = grant.as_os_str().as_bytes().split(|byte| *byte == b'/');
    for name in names.filter(|name| !name.is_empty()) {
        match left.split_first() {
            None => return Some(left),
            Some((&"**", _)) => return Some(left),
            Some((part, rest)) if has_name(part, name) => left = rest,
            Some(_) => return None,
        }
    }
    Some(left)
}

/// Where what is left of a glob below `grant` is searched for, and by which pattern: the plain names
/// that it begins with lead to the root.
fn search_below(grant: &Path, left: &[&str]) -> (PathBuf, String) {
    let plain = left.iter().take_while(|part| !is_special(part)).count();
    let (names, pattern) = left.split_at(plain);
    (names.iter().fold(grant.to_path_buf(), |root, name| root.join(name)), pattern.join("/"))
}

fn is_special(part: &str) -> bool {
    part.contains(['*', '?', '[', '{', '\\'])
}

/// Whether one name is what one part of a pattern, alternatives included, says.
fn has_name(part: &str, name: &[u8]) -> bool {
    if !is_special(part) {
        return part.as_bytes() == name;
    }
    PathPattern::parse(part).is_ok_and(|patterns| patterns.iter().any(|p| p.fits(&[name])))
}
