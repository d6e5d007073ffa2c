//! Everything in a policy that is no rule: limits, environment, network mode, guardian, permission,
//! sandbox, audit. In a chain of `extends` the file itself has the last word; across units the
//! narrower value wins.

use super::file::schema::{
    CellLayer, Degraded, Document, IdentitySetting, LimitsSection, NetworkMode, Remember,
};
use super::rules::NamePattern;
use crate::call::shell::EnvironmentNames;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The settings of one unit, or of a whole set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Settings {
    /// `network.mode`
    pub network: Option<NetworkMode>,
    /// `[limits]`
    pub limits: Limits,
    /// `env.pass`
    pub env_pass: Option<Vec<String>>,
    /// `env.set`, with placeholders.
    pub env_set: BTreeMap<String, String>,
    /// `[guardian]`
    pub guardian: GuardianSettings,
    /// `[permission]`
    pub permission: PermissionSettings,
    /// `sandbox.require`
    pub require: BTreeSet<CellLayer>,
    /// `sandbox.degraded`
    pub degraded: Option<Degraded>,
    /// `sandbox.identity`
    pub identity: Option<IdentitySetting>,
    /// `[audit]`
    pub audit: AuditSettings,
}

/// `[limits]`; `None`: the program's own value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Wall time of one tool call, in milliseconds; of a background job, too.
    pub wall_ms: Option<u64>,
    /// Time between the request to end and the kill, in milliseconds.
    pub kill_grace_ms: Option<u64>,
    /// Processor time of one tool call, in seconds.
    pub cpu_seconds: Option<u64>,
    /// Memory of one tool call, in bytes.
    pub memory_bytes: Option<u64>,
    /// Processes and threads of one tool call.
    pub processes: Option<u64>,
    /// Largest file that may be written, in bytes.
    pub file_size_bytes: Option<u64>,
    /// Open files of one process.
    pub open_files: Option<u64>,
    /// Bytes on disk in the session's private temporary directory.
    pub tmp_bytes: Option<u64>,
    /// Bytes of a result that reach the model.
    pub output_bytes: Option<u64>,
    /// Bytes of a whole output that are kept on disk.
    pub spill_bytes: Option<u64>,
    /// Background jobs at the same time; 0: none may be started.
    pub jobs: Option<u64>,
    /// Model calls in one run.
    pub iterations: Option<u64>,
    /// Tool calls in one run.
    pub tool_calls: Option<u64>,
    /// Tokens, input and output, in one run.
    pub tokens: Option<u64>,
    /// What the model calls of one run may cost, in millionths of a dollar.
    pub cost_millionths: Option<u64>,
    /// Wall time of one run, in seconds.
    pub run_seconds: Option<u64>,
    /// Depth of agents that start agents.
    pub agent_depth: Option<u64>,
    /// Agents that work at the same time.
    pub agents: Option<u64>,
}

macro_rules! each_limit {
    ($left:expr, $right:expr, $combine:expr; $($field:ident),*) => {
        Limits { $($field: $combine($left.$field, $right.$field)),* }
    };
}

impl Limits {
    fn written(section: &LimitsSection) -> Self {
        let value = |located: &Option<super::file::located::Located<u64>>| {
            located.as_ref().map(|located| located.value)
        };
        Self {
            wall_ms: value(&section.wall_ms),
            kill_grace_ms: value(&section.kill_grace_ms),
            cpu_seconds: value(&section.cpu_seconds),
            memory_bytes: value(&section.memory_bytes),
            processes: value(&section.processes),
            file_size_bytes: value(&section.file_size_bytes),
            open_files: value(&section.open_files),
            tmp_bytes: value(&section.tmp_bytes),
            output_bytes: value(&section.output_bytes),
            spill_bytes: value(&section.spill_bytes),
            jobs: value(&section.jobs),
            iterations: value(&section.iterations),
            tool_calls: value(&section.tool_calls),
            tokens: value(&section.tokens),
            cost_millionths: section.cost_dollars.as_ref().map(|most| most.value.millionths()),
            run_seconds: value(&section.run_seconds),
            agent_depth: value(&section.agent_depth),
            agents: value(&section.agents),
        }
    }

    fn combine(self, other: Self, combine: fn(Option<u64>, Option<u64>) -> Option<u64>) -> Self {
        each_limit!(self, other, combine; wall_ms, kill_grace_ms, cpu_seconds, memory_bytes,
            processes, file_size_bytes, open_files, tmp_bytes, output_bytes, spill_bytes, jobs, iterations, tool_calls,
            tokens, cost_millionths, run_seconds, agent_depth, agents)
    }
}

/// `[guardian]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GuardianSettings {
    /// Whether a reviewing model is asked; `None`: not said.
    pub enabled: Option<bool>,
    /// The model, `provider/name`.
    pub model: Option<String>,
    /// Time to answer, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Tools that are reviewed; `None`: all that change something.
    pub tools: Option<Vec<String>>,
}

impl GuardianSettings {
    /// Whether calls of `tool` are reviewed. `is_read_only` says whether the tool changes nothing.
    #[must_use]
    pub fn reviews(&self, tool: &str, is_read_only: bool) -> bool {
        self.enabled == Some(true)
            && self
                .tools
                .as_ref()
                .map_or(!is_read_only, |tools| tools.iter().any(|name| name == tool || name == "*"))
    }
}

/// `[permission]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PermissionSettings {
    /// Tools of which every call is asked about.
    pub ask: Vec<String>,
    /// How long an answer may be remembered; `None`: the program's own value.
    pub remember: Option<Remember>,
    /// Time a person has to answer, in milliseconds.
    pub timeout_ms: Option<u64>,
}

impl PermissionSettings {
    /// Whether every call of `tool` is asked about.
    #[must_use]
    pub fn asks(&self, tool: &str) -> bool {
        self.ask.iter().any(|name| NamePattern::new(name).is_ok_and(|name| name.fits(tool)))
    }
}

/// `[audit]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AuditSettings {
    /// Regular expressions whose matches are replaced before anything is written.
    pub redact: Vec<String>,
    /// Whether checkpoints are signed; `None`: the program's own value.
    pub sign: Option<bool>,
    /// Records between two checkpoints.
    pub checkpoint_every: Option<u64>,
}

/// Variables that are passed on where no policy says which.
pub(super) const PASSED_BY_DEFAULT: [&str; 13] = [
    "COLORTERM",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_NAME",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "LOGNAME",
    "PATH",
    "TZ",
    "USER",
];

/// Variables that every cell has unless a policy sets them otherwise: no terminal, nobody to ask.
pub(super) const SET_BY_DEFAULT: [(&str, &str); 9] = [
    ("CI", "1"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("MANPAGER", "cat"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("TERM", "dumb"),
    ("TMPDIR", "{tmp}"),
];

/// The environment of tool processes, with placeholders filled in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct EnvironmentRules {
    /// Names that are passed on; a `*` at the end means any rest.
    pub pass: Vec<String>,
    /// Variables that are set.
    pub set: BTreeMap<String, String>,
    /// The private temporary directory inside the cell.
    pub tmp: PathBuf,
}

impl EnvironmentRules {
    /// Whether the caller's variable `name` is passed on. What changes which code a program loads
    /// never is, whatever a policy says.
    #[must_use]
    pub fn passes(&self, name: &str) -> bool {
        !is_code_variable(name)
            && self
                .pass
                .iter()
                .any(|known| NamePattern::new(known).is_ok_and(|known| known.fits(name)))
    }

    /// Every variable that a tool may find: passed on, set, or in every cell.
    #[must_use]
    pub fn names(&self) -> EnvironmentNames {
        let always = ["HOME", "LANG", "PATH", "TERM", "TMPDIR"].map(str::to_owned);
        let set = self.set.keys().cloned();
        EnvironmentNames::Only(self.pass.iter().cloned().chain(set).chain(always).collect())
    }
}

/// Variables that make a program load or run other code.
#[must_use]
pub fn is_code_variable(name: &str) -> bool {
    const NAMES: [&str; 18] = [
        "BASH_ENV",
        "BUN_OPTIONS",
        "ENV",
        "GCONV_PATH",
        "GIO_EXTRA_MODULES",
        "IFS",
        "JAVA_TOOL_OPTIONS",
        "NODE_OPTIONS",
        "PERL5DB",
        "PERL5LIB",
        "PERL5OPT",
        "PROMPT_COMMAND",
        "PS4",
        "PYTHONHOME",
        "PYTHONSTARTUP",
        "RUBYLIB",
        "RUBYOPT",
        "SHELLOPTS",
    ];
    name.starts_with("LD_")
        || name.starts_with("DYLD_")
        || name.starts_with("BASH_FUNC_")
        || name.starts_with("STOPLOG_")
        || NAMES.contains(&name)
}

impl Settings {
    /// The settings of a chain, what is extended first.
    pub(super) fn of_chain<'d>(documents: impl Iterator<Item = &'d Document>) -> Self {
        documents.map(Self::written).fold(Self::default(), Self::overridden_by)
    }

    fn written(document: &Document) -> Self {
        let texts = |list: &[super::file::located::Located<String>]| -> Vec<String> {
            list.iter().map(|text| text.value.clone()).collect()
        };
        let (guardian, permission) = (&document.guardian, &document.permission);
        Self {
            network: document.network.mode.as_ref().map(|mode| mode.value),
            limits: Limits::written(&document.limits),
            env_pass: document.env.pass.as_deref().map(texts),
            env_set: document.env.set.iter().map(|(k, v)| (k.clone(), v.value.clone())).collect(),
            guardian: GuardianSettings {
                enabled: guardian.enabled,
                model: guardian.model.clone(),
                timeout_ms: guardian.timeout_ms.as_ref().map(|timeout| timeout.value),
                tools: guardian.tools.as_deref().map(texts),
            },
            permission: PermissionSettings {
                ask: texts(&permission.ask),
                remember: permission.remember.as_ref().map(|remember| remember.value),
                timeout_ms: permission.timeout_ms.as_ref().map(|timeout| timeout.value),
            },
            require: document.sandbox.require.iter().map(|layer| layer.value).collect(),
            degraded: document.sandbox.degraded.as_ref().map(|degraded| degraded.value),
            identity: document.sandbox.identity.as_ref().map(|identity| identity.value),
            audit: AuditSettings {
                redact: texts(&document.audit.redact),
                sign: document.audit.sign.as_ref().map(|sign| sign.value),
                checkpoint_every: document.audit.checkpoint_every.as_ref().map(|every| every.value),
            },
        }
    }

    /// A file over what it extends: its own values first, lists that only add together.
    fn overridden_by(self, child: Self) -> Self {
        let mut env_set = self.env_set;
        env_set.extend(child.env_set);
        Self {
            network: child.network.or(self.network),
            limits: child.limits.combine(self.limits, Option::or),
            env_pass: match (self.env_pass, child.env_pass) {
                (Some(parent), Some(child)) => Some(joined(parent, child)),
                (parent, child) => child.or(parent),
            },
            env_set,
            guardian: GuardianSettings {
                enabled: child.guardian.enabled.or(self.guardian.enabled),
                model: child.guardian.model.or(self.guardian.model),
                timeout_ms: child.guardian.timeout_ms.or(self.guardian.timeout_ms),
                tools: child.guardian.tools.or(self.guardian.tools),
            },
            permission: PermissionSettings {
                ask: joined(self.permission.ask, child.permission.ask),
                remember: child.permission.remember.or(self.permission.remember),
                timeout_ms: child.permission.timeout_ms.or(self.permission.timeout_ms),
            },
            require: &self.require | &child.require,
            degraded: child.degraded.or(self.degraded),
            identity: child.identity.or(self.identity),
            audit: AuditSettings {
                redact: joined(self.audit.redact, child.audit.redact),
                sign: child.audit.sign.or(self.audit.sign),
                checkpoint_every: child.audit.checkpoint_every.or(self.audit.checkpoint_every),
            },
        }
    }

    /// Two units together: whatever both agree on. Units are given most trusted first.
    #[must_use]
    pub(super) fn narrowed_by(self, other: Self) -> Self {
        let mut env_set = other.env_set;
        env_set.extend(self.env_set);
        Self {
            network: least(self.network, other.network),
            limits: self.limits.combine(other.limits, least),
            env_pass: match (self.env_pass, other.env_pass) {
                (Some(left), Some(right)) => Some(common(&left, &right)),
                (left, right) => left.or(right),
            },
            env_set,
            guardian: GuardianSettings {
                enabled: most(self.guardian.enabled, other.guardian.enabled),
                model: self.guardian.model.or(other.guardian.model),
                timeout_ms: least(self.guardian.timeout_ms, other.guardian.timeout_ms),
                tools: match (self.guardian.tools, other.guardian.tools) {
                    (Some(left), Some(right)) => Some(joined(left, right)),
                    (left, right) => left.or(right),
                },
            },
            permission: PermissionSettings {
                ask: joined(self.permission.ask, other.permission.ask),
                remember: least(self.permission.remember, other.permission.remember),
                timeout_ms: least(self.permission.timeout_ms, other.permission.timeout_ms),
            },
            require: &self.require | &other.require,
            degraded: least(self.degraded, other.degraded),
            identity: self.identity.or(other.identity),
            audit: AuditSettings {
                redact: joined(self.audit.redact, other.audit.redact),
                sign: most(self.audit.sign, other.audit.sign),
                checkpoint_every: least(self.audit.checkpoint_every, other.audit.checkpoint_every),
            },
        }
    }
}

/// The smaller of what was said; nothing said is no opinion.
fn least<T: Ord>(left: Option<T>, right: Option<T>) -> Option<T> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.min(right)),
        (left, right) => left.or(right),
    }
}

fn most<T: Ord>(left: Option<T>, right: Option<T>) -> Option<T> {
    left.max(right)
}

fn joined(mut left: Vec<String>, right: Vec<String>) -> Vec<String> {
    left.extend(right);
    left.sort_unstable();
    left.dedup();
    left
}

/// Names that both lists mean; of two patterns the narrower one.
fn common(left: &[String], right: &[String]) -> Vec<String> {
    let covers = |wide: &str, narrow: &str| {
        wide == narrow || wide.strip_suffix('*').is_some_and(|prefix| narrow.starts_with(prefix))
    };
    let kept = |from: &[String], other: &[String]| -> Vec<String> {
        from.iter().filter(|name| other.iter().any(|wide| covers(wide, name))).cloned().collect()
    };
    joined(kept(left, right), kept(right, left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_units_keep_what_both_agree_on() {
        let strict = Settings {
            network: Some(NetworkMode::Off),
            limits: Limits { wall_ms: Some(10), ..Limits::default() },
            env_pass: Some(vec!["LC_*".into(), "PATH".into()]),
            degraded: Some(Degraded::Refuse),
            ..Settings::default()
        };
        let loose = Settings {
            network: Some(NetworkMode::Host),
            limits: Limits { wall_ms: Some(20), tokens: Some(5), ..Limits::default() },
            env_pass: Some(vec!["LC_ALL".into(), "PATH".into(), "HOME".into()]),
            degraded: Some(Degraded::Allow),
            ..Settings::default()
        };
        for narrowed in [strict.clone().narrowed_by(loose.clone()), loose.narrowed_by(strict)] {
            assert_eq!(narrowed.network, Some(NetworkMode::Off));
            assert_eq!((narrowed.limits.wall_ms, narrowed.limits.tokens), (Some(10), Some(5)));
            assert_eq!(narrowed.env_pass, Some(vec!["LC_ALL".into(), "PATH".into()]));
            assert_eq!(narrowed.degraded, Some(Degraded::Refuse));
        }
    }

    #[test]
    fn variables_that_load_code_are_never_passed_on() {
        let rules = EnvironmentRules { pass: vec!["*".into()], ..EnvironmentRules::default() };
        assert!(rules.passes("EDITOR"));
        for name in ["LD_PRELOAD", "BASH_ENV", "NODE_OPTIONS", "BASH_FUNC_ls%%", "PERL5OPT"] {
            assert!(!rules.passes(name), "{name}");
        }
    }
}
