//! What the cell of a run gets: grants, masks, network, limits and environment, as plain data. The
//! tools turn it into a sandbox spec; this file decides what the policy's path rules mean to a kernel.
//!
//! A unit with a path default of ask or deny restricts: only what all such units allow is granted. A
//! deny or ask inside a grant becomes a mask, because a program may open what no text names.

use super::bound::BoundPolicy;
use super::file::schema::{CellLayer, Decision, Degraded, IdentitySetting, NetworkMode};
use super::grants::Grants;
use super::masks::MaskFor;
use super::paths::{PathIndex, PathMatcher};
use super::rules::globs::{Shape, expand};
use super::rules::hosts::HostMatcher;
use super::settings::{EnvironmentRules, Limits};
use super::unit::Unit;
use crate::base::paths::{is_within, tidied};
use crate::call::effects::Access;
use serde::Serialize;
use std::collections::BTreeSet;
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

impl BoundPolicy {
    /// The plan of the cell.
    #[must_use]
    pub fn cell(&self) -> CellPlan {
        let mut grants = self.grants();
        let masks = self.masks(&mut grants);
        let settings = &self.settings;
        CellPlan {
            grants: grants.into_list(),
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
            restricting.reduce(|left, right| left.intersect(&right)).unwrap_or_else(|| {
                let grants = units.iter().map(|unit| self.unit_grants(unit));
                grants.reduce(Grants::joined).unwrap_or_default()
            })
        };
        let groups = self.groups().map(of_group);
        groups.reduce(|left, right| left.intersect(&right)).unwrap_or_default()
    }

    fn unit_grants(&self, unit: &Unit) -> Grants {
        let mut grants = Grants::default();
        if unit.path_default.as_ref().is_some_and(|default| default.decision == Decision::Allow) {
            grants.add(PlannedGrant {
                path: "/".into(),
                access: BTreeSet::from([Access::Read, Access::Write, Access::Execute]),
                optional: false,
                well_known: false,
            });
        }
        for matcher in unit.paths.iter().filter(|m| m.meta.decision == Decision::Allow) {
            for shape in self.shapes(matcher) {
                let (Shape::Exact(path) | Shape::Tree(path)) = shape else { continue };
                // The cell has its own /proc.
                if is_within(&path, Path::new("/proc")) {
                    continue;
                }
                grants.add(PlannedGrant {
                    path,
                    access: matcher.access.iter().copied().collect(),
                    optional: matcher.optional,
                    well_known: matcher.optional,
                });
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
        let mut masks = Vec::new();
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
                let planned = MaskFor { places: &self.places, matcher, kind };
                planned.add(&shape, grants, &mut masks);
            }
        }
        masks.sort_unstable();
        masks.dedup();
        masks
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

fn host_rules(unit: &Unit) -> (Vec<HostMatcher>, Option<Decision>) {
    (unit.hosts.clone(), unit.network_default.as_ref().map(|default| default.decision))
}
