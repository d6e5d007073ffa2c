//! What one set of policies may allow that another one does not, as far as their rules tell: for a
//! session that is gone on with, whose policy may only get narrower.
//!
//! INVARIANT: where nothing is found, the given set answers every call at least as strictly as the
//! earlier one. The comparison is of rules as they are written, so it is on the safe side: two rules that
//! mean the same in different words count as different.
//!
//! Every unit of the earlier set needs a unit of the given set that is at least as strict. That one
//! holds if it has every refusal of the earlier one (or would refuse the same by default), a default
//! no weaker, and allows against that default only what the earlier one had allowed.

use super::bound::BoundPolicy;
use super::file::schema::{Decision, UNRESOLVED_REASONS};
use super::judge::unresolved_decision;
use super::rules::RuleMeta;
use super::settings::{PASSED_BY_DEFAULT, Settings};
use super::shape::Atom;
use super::unit::Unit;
use crate::base::limits::{KILL_GRACE, TOOL_TIME_MAX};
use crate::call::effects::UnresolvedReason;
use std::sync::Arc;
use std::time::Duration;

/// Everything that `given` may allow and `earlier` does not, each as a sentence; empty if `given` is at
/// most as wide. Both must be bound to the same places.
#[must_use]
pub fn differences(given: &BoundPolicy, earlier: &BoundPolicy) -> Vec<String> {
    if given.set().is_at_most(earlier.set()) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for had in earlier.units() {
        let wider = given.units().map(|unit| of_unit(&Pair { unit, had, policy: given }));
        found.extend(wider.min_by_key(Vec::len).unwrap_or_default());
    }
    found.extend(silences(given, earlier));
    found.extend(of_settings(&given.settings, &earlier.settings));
    for hook in earlier.hooks() {
        let same = |other: &&super::Hook| {
            (&other.event, &other.tools, &other.argv) == (&hook.event, &hook.tools, &hook.argv)
        };
        if !given.hooks().iter().any(|other| same(&other)) {
            found.push(format!("hook {} is missing", named(&hook.meta)));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Two units that are compared.
struct Pair<'p> {
    unit: &'p Unit,
    had: &'p Unit,
    policy: &'p BoundPolicy,
}

/// A unit's rules of one kind, and its answer where none of them fits.
struct Side<'u> {
    atoms: Vec<Atom<'u>>,
    default: Option<&'u Arc<RuleMeta>>,
}

impl Side<'_> {
    fn default_decision(&self) -> Option<Decision> {
        self.default.map(|meta| meta.decision)
    }
}

/// The setting that holds the default of a kind of rules, and what takes that kind out of a unit.
type Kind = (&'static str, fn(&Unit) -> Side<'_>);

const KINDS: [Kind; 5] = [
    ("path.default", |unit| Side { atoms: Atom::paths(unit), default: unit.path_default.as_ref() }),
    ("command.default", |unit| Side {
        atoms: Atom::commands(unit),
        default: unit.command_default.as_ref(),
    }),
    ("command.assignment_default", |unit| Side {
        atoms: Atom::assignments(unit),
        default: unit.assignment_default.as_ref().or(unit.command_default.as_ref()),
    }),
    ("tool.default", |unit| Side { atoms: Atom::tools(unit), default: unit.tool_default.as_ref() }),
    ("network.default", |unit| Side {
        atoms: Atom::hosts(unit),
        default: unit.network_default.as_ref(),
    }),
];

fn of_unit(pair: &Pair<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for (setting, side) in KINDS {
        let (given, had) = (side(pair.unit), side(pair.had));
        found.extend(missing_refusals(&given, &had, pair.policy));
        found.extend(against_default(setting, &given, &had, pair.policy));
    }
    found.extend(unresolved(pair));
    found.extend(roles(pair));
    found
}

/// Refusals that the given unit has not, unless it would refuse the same anyway.
fn missing_refusals(given: &Side<'_>, had: &Side<'_>, policy: &BoundPolicy) -> Vec<String> {
    let refusals = had.atoms.iter().filter(|atom| atom.decision() > Decision::Allow);
    let missing = refusals.filter(|refusal| {
        let decision = refusal.decision();
        let has =
            given.atoms.iter().any(|atom| atom.decision() >= decision && atom.is_same(refusal));
        let refuses_anyway = given.default_decision() >= Some(decision)
            && given
                .atoms
                .iter()
                .all(|atom| atom.decision() >= decision || !atom.may_meet(refusal, policy));
        !has && !refuses_anyway
    });
    let told = |refusal: &Atom<'_>| {
        format!("{} says {} and is missing", named(refusal.meta), refusal.decision())
    };
    missing.map(told).collect()
}

/// A weaker default, and what is allowed against the default that the earlier unit had.
fn against_default(
    setting: &str,
    given: &Side<'_>,
    had: &Side<'_>,
    policy: &BoundPolicy,
) -> Vec<String> {
    let Some(default) = had.default_decision().filter(|default| *default > Decision::Allow) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if given.default_decision() < Some(default) {
        let now = given.default_decision().map_or("not set", Decision::as_str);
        found.push(format!("`{setting}` is {now}; it was {default}"));
    }
    let weaker = given.atoms.iter().filter(|atom| atom.decision() < default);
    let wider = weaker.filter(|atom| !had.atoms.iter().any(|known| atom.is_within(known, policy)));
    found.extend(wider.map(|atom| {
        format!("{} says {}; the rest was {default}", named(atom.meta), atom.decision())
    }));
    found
}

fn unresolved(pair: &Pair<'_>) -> Vec<String> {
    let weaker = UNRESOLVED_REASONS.into_iter().filter_map(|(name, reason)| {
        let mut had = unresolved_decision(pair.had, reason);
        if reason == UnresolvedReason::CodeWord && !pair.had.commands.rules.is_empty() {
            // A rule that may or may not mean a command asks, where nothing else is said.
            had = had.or(Some(Decision::Ask));
        }
        let now = unresolved_decision(pair.unit, reason);
        let had = had.filter(|had| *had > Decision::Allow && now < Some(*had))?;
        let now = now.map_or("not set", Decision::as_str);
        Some(format!("`command.unresolved` for `{name}` is {now}; it was {had}"))
    });
    weaker.collect()
}

fn roles(pair: &Pair<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, tools) in &pair.had.roles {
        let now = pair.unit.roles.iter().find(|(role, _)| role == name);
        let has_less = now.is_some_and(|(_, now)| now.iter().all(|tool| tools.contains(tool)));
        if !has_less {
            found.push(format!("role `{name}` has other tools, or is missing"));
        }
    }
    let known = |name: &str| pair.had.roles.iter().any(|(role, _)| role == name);
    let more =
        pair.unit.roles.iter().filter(|(role, _)| !pair.had.roles.is_empty() && !known(role));
    found.extend(more.map(|(role, _)| format!("role `{role}` is new")));
    if pair.had.default_role.is_some() && pair.unit.default_role != pair.had.default_role {
        found.push("`roles.default` is another one".to_owned());
    }
    found
}

/// Where no unit of a set has a default for commands or paths, what no rule names is refused. A set
/// in which one has is wider.
fn silences(given: &BoundPolicy, earlier: &BoundPolicy) -> Vec<String> {
    let silent = |policy: &BoundPolicy, side: fn(&Unit) -> Side<'_>| {
        policy.groups().any(|units| units.iter().all(|(unit, _)| side(unit).default.is_none()))
    };
    let strict = [("path.default", Decision::Deny), ("command.default", Decision::Ask)];
    let kinds = KINDS.into_iter().filter_map(|(setting, side)| {
        let (_, decision) = strict.into_iter().find(|(name, _)| *name == setting)?;
        let refuses = |unit: &Arc<Unit>| {
            let side = side(unit);
            side.default_decision() >= Some(decision)
                && side.atoms.iter().all(|atom| atom.decision() >= decision)
        };
        let is_held = silent(given, side) || given.units().any(refuses);
        (silent(earlier, side) && !is_held)
            .then(|| format!("`{setting}` is set; it was not, so that the rest was {decision}"))
    });
    kinds.collect()
}

/// Settings that the earlier set would still narrow.
fn of_settings(given: &Settings, earlier: &Settings) -> Vec<String> {
    let (given, earlier) = (effective(given), effective(earlier));
    let both = given.clone().narrowed_by(earlier);
    let changed = [
        ("network.mode", given.network != both.network),
        ("[limits]", given.limits != both.limits),
        ("env.pass", given.env_pass != both.env_pass),
        ("[guardian]", given.guardian != both.guardian),
        ("[permission]", given.permission != both.permission),
        ("sandbox.require", given.require != both.require),
        ("sandbox.degraded", given.degraded != both.degraded),
        ("sandbox.identity", given.identity != both.identity),
        ("[audit]", given.audit != both.audit),
    ];
    let told = |name: &str| format!("`{name}` is wider, or is not what it was");
    changed.into_iter().filter(|(_, is_wider)| *is_wider).map(|(name, _)| told(name)).collect()
}

/// Settings with the program's own values where nothing is said and that is no bound at all.
fn effective(settings: &Settings) -> Settings {
    let milliseconds = |duration: Duration| u64::try_from(duration.as_millis()).ok();
    let mut settings = settings.clone();
    settings.network.get_or_insert_default();
    settings.degraded.get_or_insert_default();
    settings.env_pass.get_or_insert_with(|| PASSED_BY_DEFAULT.map(str::to_owned).to_vec()).sort();
    let limits = &mut settings.limits;
    limits.wall_ms = limits.wall_ms.or(milliseconds(TOOL_TIME_MAX));
    limits.kill_grace_ms = limits.kill_grace_ms.or(milliseconds(KILL_GRACE));
    settings
}

fn named(meta: &RuleMeta) -> String {
    match meta.file_name() {
        Some(file) => format!("`{}` ({}:{})", meta.id, crate::base::text::escape(file), meta.line),
        None => format!("`{}`", meta.id),
    }
}
