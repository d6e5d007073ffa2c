//! A policy set with the places of one run filled in: ready to judge, and to say what the cell gets.

use super::file::schema::Decision;
use super::load::PolicySet;
use super::paths::{PathIndex, PathMatcher, standing_matchers};
use super::rules::RuleMeta;
use super::rules::globs::{Places, Shape, expand};
use super::settings::{
    AuditSettings, EnvironmentRules, GuardianSettings, Limits, PASSED_BY_DEFAULT,
    PermissionSettings, SET_BY_DEFAULT, Settings,
};
use super::unit::{Hook, Unit};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// Why a set cannot be bound.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// A place that patterns cannot spell.
    #[error("the {place} directory `{shown}` {problem}")]
    Place {
        /// Which place.
        place: &'static str,
        /// Its path, escaped.
        shown: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A hook that tools could rewrite.
    #[error(
        "hook `{hook}` runs `{path}`, where tools may write: what it judges could change it; put it \
         where no rule allows writing, outside the workspace"
    )]
    Hook {
        /// The hook.
        hook: String,
        /// The file that it runs, escaped.
        path: String,
    },
    /// A pattern of a rule that cannot be built for these places.
    #[error("rule `{rule}` cannot be used here: {problem}")]
    Rule {
        /// The rule.
        rule: String,
        /// What is wrong.
        problem: String,
    },
}

/// What the role gate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoleVerdict {
    /// The role has the tool, or the policy has no roles.
    Pass,
    /// The role does not have the tool.
    Deny {
        /// What to say, with the tools that the role has.
        reason: String,
    },
}

/// A policy set for one run.
#[derive(Debug)]
pub struct BoundPolicy {
    pub(super) set: PolicySet,
    pub(super) places: Places,
    pub(super) indexes: Vec<PathIndex>,
    pub(super) standing: Vec<PathMatcher>,
    pub(super) standing_index: PathIndex,
    /// What answers where no rule refuses and only a name is asked for.
    pub(super) names_alone: Arc<RuleMeta>,
    pub(super) settings: Settings,
    hooks: Vec<Hook>,
}

impl BoundPolicy {
    pub(super) fn new(set: PolicySet, places: &Places) -> Result<Self, BindError> {
        check_place("workspace", &places.workspace)?;
        check_place("temporary", &places.tmp)?;
        if let Some(home) = &places.home {
            check_place("home", home)?;
        }
        let build = |matchers: &[PathMatcher]| {
            PathIndex::new(matchers, places).map_err(|(owner, problem)| BindError::Rule {
                rule: matchers.get(owner).map(|m| m.meta.id.clone()).unwrap_or_default(),
                problem,
            })
        };
        let indexes = set.units().map(|unit| build(&unit.paths)).collect::<Result<_, _>>()?;
        let standing = standing_matchers(places);
        let standing_index = build(&standing)?;
        let settings = set
            .units()
            .map(|unit| unit.settings.clone())
            .reduce(Settings::narrowed_by)
            .unwrap_or_default();
        let hooks = hooks_of(set.units());
        let places = places.clone();
        let reason = "a name alone; what lies behind it is judged where it is read";
        let names_alone = RuleMeta::built_in("names-alone", Decision::Allow, reason);
        let bound =
            Self { set, places, indexes, standing, standing_index, names_alone, settings, hooks };
        super::hook_programs::check(&bound)?;
        Ok(bound)
    }

    /// The set.
    #[must_use]
    pub const fn set(&self) -> &PolicySet {
        &self.set
    }

    /// The places it was bound to.
    #[must_use]
    pub const fn places(&self) -> &Places {
        &self.places
    }

    pub(super) fn units(&self) -> impl Iterator<Item = &Arc<Unit>> {
        self.set.units()
    }

    /// Every set of units that was loaded together, each unit with its index over paths.
    pub(super) fn groups(&self) -> impl Iterator<Item = Vec<(&Unit, &PathIndex)>> {
        let mut indexes = self.indexes.iter();
        self.set
            .groups
            .iter()
            .map(move |units| units.iter().map(AsRef::as_ref).zip(indexes.by_ref()).collect())
    }

    /// A path in a rule with its placeholder filled in.
    pub(super) fn expand_path(&self, pattern: &str) -> Option<String> {
        match expand(pattern, &self.places)? {
            Shape::Exact(path) => path.to_str().map(str::to_owned),
            Shape::Tree(_) | Shape::Glob(_) => None,
        }
    }

    /// The hooks of every layer, most trusted first.
    #[must_use]
    pub fn hooks(&self) -> &[Hook] {
        &self.hooks
    }

    /// `[guardian]`
    #[must_use]
    pub const fn guardian(&self) -> &GuardianSettings {
        &self.settings.guardian
    }

    /// `[permission]`
    #[must_use]
    pub const fn permission(&self) -> &PermissionSettings {
        &self.settings.permission
    }

    /// `[audit]`
    #[must_use]
    pub const fn audit(&self) -> &AuditSettings {
        &self.settings.audit
    }

    /// `[limits]`
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.settings.limits
    }

    /// `[env]`, with placeholders filled in.
    #[must_use]
    pub fn environment(&self) -> EnvironmentRules {
        let filled = |text: &str| {
            let place = text.starts_with('{').then(|| self.expand_path(text)).flatten();
            place.unwrap_or_else(|| text.to_owned())
        };
        let default_pass = || PASSED_BY_DEFAULT.map(str::to_owned).to_vec();
        let defaults = SET_BY_DEFAULT.iter().map(|(name, text)| ((*name).to_owned(), filled(text)));
        let mut set: BTreeMap<String, String> = defaults.collect();
        let written = self.settings.env_set.iter();
        set.extend(written.map(|(name, text)| (name.clone(), filled(text))));
        EnvironmentRules {
            pass: self.settings.env_pass.clone().unwrap_or_else(default_pass),
            set,
            tmp: self.places.tmp.clone(),
        }
    }

    /// The names of every role that some layer defines.
    #[must_use]
    pub fn roles(&self) -> Vec<&str> {
        let roles = self.units().flat_map(|unit| &unit.roles);
        let mut names: Vec<&str> = roles.map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The role of a run that names none.
    #[must_use]
    pub fn default_role(&self) -> Option<&str> {
        self.units().find_map(|unit| unit.default_role.as_deref())
    }

    /// Whether `role` may use `tool`. Every layer that has roles must know the role and give it the
    /// tool; a run without a role, where no default names one, has none of them.
    #[must_use]
    pub fn role_gate(&self, role: Option<&str>, tool: &str) -> RoleVerdict {
        for unit in self.units().filter(|unit| !unit.roles.is_empty()) {
            let Some(role) = role.or_else(|| self.default_role()) else {
                let reason = "the policy has roles, and this run has none".to_owned();
                return RoleVerdict::Deny { reason };
            };
            let mut known = unit.roles.iter().filter(|(name, _)| name == role).peekable();
            if known.peek().is_none() {
                let reason = format!("there is no role `{}`", crate::base::text::escape(role));
                return RoleVerdict::Deny { reason };
            }
            if !known.all(|(_, tools)| tools.iter().any(|name| name.fits(tool))) {
                let role = crate::base::text::escape(role);
                let tool = crate::base::text::escape(tool);
                return RoleVerdict::Deny {
                    reason: format!("role `{role}` has no right to `{tool}`"),
                };
            }
        }
        RoleVerdict::Pass
    }

    /// Directories and files that some layer allows for reading, for messages.
    pub(super) fn allowed_patterns(&self, access: crate::call::effects::Access) -> Vec<String> {
        let mut patterns: Vec<String> = self
            .units()
            .flat_map(|unit| &unit.paths)
            .filter(|matcher| {
                matcher.meta.decision == Decision::Allow && matcher.access.contains(&access)
            })
            .filter(|matcher| matcher.meta.file.is_some() && !matcher.optional)
            .flat_map(|matcher| &matcher.patterns)
            .filter_map(|pattern| match expand(pattern, &self.places)? {
                Shape::Exact(path) | Shape::Tree(path) => path.to_str().map(str::to_owned),
                Shape::Glob(glob) => Some(glob),
            })
            .collect();
        patterns.sort_unstable();
        patterns.dedup();
        patterns
    }
}

fn hooks_of<'u>(units: impl Iterator<Item = &'u Arc<Unit>>) -> Vec<Hook> {
    let mut hooks: Vec<Hook> = Vec::new();
    for hook in units.flat_map(|unit| &unit.hooks) {
        if !hooks.contains(hook) {
            hooks.push(hook.clone());
        }
    }
    hooks
}

fn check_place(place: &'static str, path: &Path) -> Result<(), BindError> {
    let problem = if path.to_str().is_none() {
        "has a name that is not UTF-8, so no rule could spell it"
    } else if !path.is_absolute() {
        "is not absolute"
    } else if crate::base::paths::normalise(Path::new("/"), path) != path {
        "is not resolved"
    } else {
        return Ok(());
    };
    let shown = crate::base::text::escape(&path.to_string_lossy());
    Err(BindError::Place { place, shown, problem })
}

/// The rule that answers where no policy says anything.
pub(super) fn silence(decision: Decision) -> Arc<RuleMeta> {
    // A script asks for it once for each of its commands and paths.
    static RULES: LazyLock<[Arc<RuleMeta>; 3]> = LazyLock::new(|| {
        [Decision::Allow, Decision::Ask, Decision::Deny].map(|decision| {
            RuleMeta::built_in("no-rule", decision, "no policy says anything about it")
        })
    });
    let [allow, ask, deny] = &*RULES;
    Arc::clone(match decision {
        Decision::Allow => allow,
        Decision::Ask => ask,
        Decision::Deny => deny,
    })
}
