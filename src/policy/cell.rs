//! What the cell of a run gets: grants, masks, network, limits and environment, as plain data. The
//! tools turn it into a sandbox spec; this file decides what the policy's path rules mean to a kernel.
//!
//! A unit with a path default of ask or deny restricts: only what all such units allow is granted. A
//! deny or ask inside a grant becomes a mask, because a program may open what no text names.

use super::bound::BoundPolicy;
use super::file::schema::{CellLayer, Decision, Degraded, IdentitySetting, NetworkMode};
use super::paths::{PathIndex, PathMatcher};
use super::rules::globs::{Shape, expand};
use super::rules::hosts::HostMatcher;
use super::settings::{EnvironmentRules, Limits};
use super::unit::Unit;
use crate::base::paths::{is_within, is_within_tidied, tidied};
use crate::base::pattern::{PathPattern, escape};
use crate::call::effects::Access;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A path that exists in the cell.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PlannedGrant {
    /// The path; a directory is granted with all below it.
    pub path: PathBuf,
    /// What may be done there.
    pub access: BTreeSet<Access>,
    /// It is no error if it does not exist.
    pub optional: bool,
    /// It is a place that the program knows (system directories, named caches): no secret of a person
    /// lies there, so patterns over whole trees are not searched in it, which would cost every launch
    /// a second.
    pub well_known: bool,
}

/// Names inside a grant that are taken back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PlannedMask {
    /// Which names.
    pub pattern: PlannedPattern,
    /// Names among them that are left, as patterns relative to the same root.
    pub except: Vec<String>,
    /// What is taken back.
    pub kind: MaskPlanKind,
    /// The rule that says so.
    pub rule_id: String,
    /// Whether the rule asks: the mask is left out for a call of which the user approved the path.
    pub unless_approved: bool,
}

/// The names a mask covers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum PlannedPattern {
    /// One path and all below it.
    Exact(PathBuf),
    /// Paths below `root` whose remainder matches `pattern`.
    Glob {
        /// The directory that is searched.
        root: PathBuf,
        /// Pattern of the remainder; `*` stops at `/`.
        pattern: String,
    },
}

/// What a mask takes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum MaskPlanKind {
    /// Everything: the name looks absent or empty.
    Hide,
    /// Writing.
    ReadOnly,
}

/// What the cell of a run gets.
#[derive(Debug, Clone, Serialize)]
pub struct CellPlan {
    /// What exists, outer paths first.
    pub grants: Vec<PlannedGrant>,
    /// What is taken back.
    pub masks: Vec<PlannedMask>,
    /// The network.
    pub network: NetworkMode,
    /// What the proxy decides by, if there is one: rules of each layer with its default.
    #[serde(skip)]
    pub hosts: Vec<(Vec<HostMatcher>, Option<Decision>)>,
    /// Limits.
    pub limits: Limits,
    /// The environment.
    pub environment: EnvironmentRules,
    /// As whom tools run, if the policy says.
    pub identity: Option<IdentitySetting>,
    /// What to do without a mount view.
    pub degraded: Degraded,
    /// Layers without which a run does not start.
    pub require: BTreeSet<CellLayer>,
}

type Grants = BTreeMap<PathBuf, PlannedGrant>;

impl BoundPolicy {
    /// The plan of the cell.
    #[must_use]
    pub fn cell(&self) -> CellPlan {
        let mut grants = self.grants();
        let masks = self.masks(&mut grants);
        let settings = &self.settings;
        CellPlan {
            grants: grants.into_values().collect(),
            masks,
            network: settings.network.unwrap_or_default(),
            hosts: self.units().map(|unit| host_rules(unit)).collect(),
            limits: settings.limits,
            environment: self.environment(),
            identity: settings.identity,
            degraded: settings.degraded.unwrap_or_default(),
            require: settings.require.clone(),
        }
    }

    fn grants(&self) -> Grants {
        let restricts = |unit: &&Unit| {
            unit.path_default.as_ref().is_some_and(|default| default.decision > Decision::Allow)
        };
        let of_group = |units: Vec<(&Unit, &PathIndex)>| {
            let units: Vec<&Unit> = units.into_iter().map(|(unit, _)| unit).collect();
            let restricting =
                units.iter().copied().filter(restricts).map(|unit| self.unit_grants(unit));
            restricting.reduce(|left, right| intersect(&left, &right)).unwrap_or_else(|| {
                let grants = units.iter().map(|unit| self.unit_grants(unit));
                grants.fold(Grants::new(), |mut all, more| {
                    more.into_values().for_each(|grant| add(&mut all, grant));
                    all
                })
            })
        };
        let groups = self.groups().map(of_group);
        groups.reduce(|left, right| intersect(&left, &right)).unwrap_or_default()
    }

    fn unit_grants(&self, unit: &Unit) -> Grants {
        let mut grants = Grants::new();
        if unit.path_default.as_ref().is_some_and(|default| default.decision == Decision::Allow) {
            add(
                &mut grants,
                PlannedGrant {
                    path: "/".into(),
                    access: BTreeSet::from([Access::Read, Access::Write, Access::Execute]),
                    optional: false,
                    well_known: false,
                },
            );
        }
        for matcher in unit.paths.iter().filter(|m| m.meta.decision == Decision::Allow) {
            for shape in self.shapes(matcher) {
                let (Shape::Exact(path) | Shape::Tree(path)) = shape else { continue };
                // The cell has its own /proc.
                if is_within(&path, Path::new("/proc")) {
                    continue;
                }
                add(
                    &mut grants,
                    PlannedGrant {
                        path,
                        access: matcher.access.iter().copied().collect(),
                        optional: matcher.optional,
                        well_known: matcher.optional,
                    },
                );
            }
        }
        grants
    }

    fn shapes(&self, matcher: &PathMatcher) -> Vec<Shape> {
        let written = matcher.patterns.iter().filter_map(|pattern| expand(pattern, &self.places));
        written.chain(matcher.places.iter().cloned()).map(tidied_shape).collect()
    }

    /// Masks for what is refused inside grants; a grant that lies inside what is refused goes.
    fn masks(&self, grants: &mut Grants) -> Vec<PlannedMask> {
        let units = self.units().flat_map(|unit| &unit.paths);
        let mut masks = BTreeSet::new();
        for matcher in self.standing.iter().chain(units) {
            let kind = match matcher.meta.decision {
                Decision::Allow => continue,
                Decision::Ask | Decision::Deny if matcher.access.contains(&Access::Read) => {
                    MaskPlanKind::Hide
                }
                Decision::Ask | Decision::Deny if matcher.access.contains(&Access::Write) => {
                    MaskPlanKind::ReadOnly
                }
                Decision::Ask | Decision::Deny => continue,
            };
            for shape in self.shapes(matcher) {
                let planned = MaskFor { policy: self, matcher, kind };
                planned.add(&shape, grants, &mut masks);
            }
        }
        masks.into_iter().collect()
    }
}

struct MaskFor<'m> {
    policy: &'m BoundPolicy,
    matcher: &'m PathMatcher,
    kind: MaskPlanKind,
}

impl MaskFor<'_> {
    fn add(&self, shape: &Shape, grants: &mut Grants, masks: &mut BTreeSet<PlannedMask>) {
        match shape {
            Shape::Exact(path) | Shape::Tree(path) => {
                self.take_back(grants, |grant| is_within_tidied(grant, path));
                if self.takes_from(grants, |grant| is_within_tidied(path, grant)) {
                    masks.insert(self.mask(PlannedPattern::Exact(path.clone()), Vec::new()));
                }
            }
            Shape::Glob(glob) => {
                let parts = parts(glob);
                // A glob that begins anywhere means no grant as a whole.
                if parts.first() != Some(&"**") {
                    self.take_back(grants, |grant| {
                        meets(&parts, grant).is_some_and(<[_]>::is_empty)
                    });
                }
                for (root, pattern) in self.searches(&parts, grants) {
                    // A glob without a pattern left means the root itself.
                    if pattern.is_empty() && self.is_excepted(&root) {
                        continue;
                    }
                    if pattern.is_empty() {
                        masks.insert(self.mask(PlannedPattern::Exact(root), Vec::new()));
                        continue;
                    }
                    let except = self.exceptions(&root);
                    masks.insert(self.mask(PlannedPattern::Glob { root, pattern }, except));
                }
            }
        }
    }

    /// Where names of a glob are searched for, and by which pattern. The system's directories and
    /// caches are large and nobody keeps secrets in them by accident: there only patterns that name
    /// their directory count, and no whole tree is walked.
    fn searches(&self, parts: &[&str], grants: &Grants) -> Vec<(PathBuf, String)> {
        let begins_anywhere = parts.first() == Some(&"**");
        let searches: Vec<(PathBuf, String)> = grants
            .values()
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

    /// Whether the innermost grant around a path gives the right that the mask takes.
    fn takes_from(&self, grants: &Grants, holds: impl Fn(&Path) -> bool) -> bool {
        let around = grants.values().filter(|grant| holds(&grant.path));
        let inner = around.max_by_key(|grant| grant.path.components().count());
        inner.is_some_and(|grant| self.has_right(grant))
    }

    /// Whether an exception of the rule takes a path out of it.
    fn is_excepted(&self, path: &Path) -> bool {
        let places = &self.policy.places;
        self.matcher.except.iter().filter_map(|text| expand(text, places)).any(
            |shape| match shape {
                Shape::Exact(except) => except == path,
                Shape::Tree(except) => is_within(path, &except),
                Shape::Glob(glob) => meets(&parts(&glob), path).is_some_and(<[_]>::is_empty),
            },
        )
    }

    /// Removes from grants at or inside what is refused the right that is refused. An ask leaves them.
    fn take_back(&self, grants: &mut Grants, is_inside: impl Fn(&Path) -> bool) {
        if self.matcher.meta.decision == Decision::Ask || !grants.keys().any(|p| is_inside(p)) {
            return;
        }
        match self.kind {
            MaskPlanKind::Hide => {
                grants.retain(|path, _| !is_inside(path) || self.is_excepted(path));
            }
            MaskPlanKind::ReadOnly => {
                let inside = grants.iter_mut();
                for (_, grant) in
                    inside.filter(|(path, _)| is_inside(path) && !self.is_excepted(path))
                {
                    grant.access.remove(&Access::Write);
                }
            }
        }
    }

    fn exceptions(&self, root: &Path) -> Vec<String> {
        let shapes =
            self.matcher.except.iter().filter_map(|text| expand(text, &self.policy.places));
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

/// A place may have been given with a slash too many.
fn tidied_shape(shape: Shape) -> Shape {
    match shape {
        Shape::Exact(path) => Shape::Exact(tidied(path)),
        Shape::Tree(path) => Shape::Tree(tidied(path)),
        Shape::Glob(glob) => Shape::Glob(glob),
    }
}

/// The names of an absolute glob.
fn parts(glob: &str) -> Vec<&str> {
    glob.split('/').filter(|part| !part.is_empty()).collect()
}

/// What of a glob is left below `grant`; nothing: the glob means the grant or what it lies in. `None`:
/// it does not reach into the grant. Called for every rule with every grant, at each start of the
/// program.
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

fn add(grants: &mut Grants, grant: PlannedGrant) {
    grants
        .entry(grant.path.clone())
        .and_modify(|known| {
            known.access.extend(&grant.access);
            known.optional &= grant.optional;
            known.well_known &= grant.well_known;
        })
        .or_insert(grant);
}

/// What both lists grant: the deeper path of each nested pair, with the rights that both give there.
fn intersect(left: &Grants, right: &Grants) -> Grants {
    let mut both = Grants::new();
    for path in left.keys().chain(right.keys()) {
        let (Some(here), Some(there)) = (rights_at(left, path), rights_at(right, path)) else {
            continue;
        };
        let grant = PlannedGrant {
            path: path.clone(),
            access: &here.access & &there.access,
            optional: here.optional || there.optional,
            well_known: here.well_known && there.well_known,
        };
        if !grant.access.is_empty() {
            both.insert(path.clone(), grant);
        }
    }
    both
}

/// The rights that a list gives at a path: those of every grant that the path lies in. Only a grant of
/// the path itself can say that it must exist.
fn rights_at(grants: &Grants, path: &Path) -> Option<PlannedGrant> {
    let mut rights: Option<PlannedGrant> = None;
    for grant in grants.values().filter(|grant| is_within_tidied(path, &grant.path)) {
        let so_far = rights.get_or_insert_with(|| PlannedGrant {
            path: path.to_path_buf(),
            access: BTreeSet::new(),
            optional: grants.get(path).is_none_or(|exact| exact.optional),
            well_known: grant.well_known,
        });
        so_far.access.extend(&grant.access);
        so_far.well_known &= grant.well_known;
    }
    rights
}

fn host_rules(unit: &Unit) -> (Vec<HostMatcher>, Option<Decision>) {
    (unit.hosts.clone(), unit.network_default.as_ref().map(|default| default.decision))
}
