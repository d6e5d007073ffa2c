//! What a valid policy probably does not mean: rules without effect, rules that are wider than they
//! look, and rules that no layer can hold. Nothing here changes an answer.

use crate::base::paths::is_within;
use crate::call::effects::Access;
use crate::call::request::ToolName;
use crate::policy::file::diagnostic::Diagnostic;
use crate::policy::file::schema::{Decision, Degraded, NetworkMode};
use crate::policy::file::source::SourceFile;
use crate::policy::load::PolicySet;
use crate::policy::paths::{PathMatcher, SYSTEM_SECRETS};
use crate::policy::rules::commands::{CommandMatcher, ProgramPattern};
use crate::policy::rules::globs::{Places, Shape, expand};
use crate::policy::rules::hosts::HostPattern;
use crate::policy::rules::tokens::Token;
use crate::policy::rules::{NamePattern, RuleMeta};
use crate::policy::unit::Unit;
use std::path::Path;
use std::sync::Arc;

/// Programs that run whatever they are told to: an allow without limits on the arguments allows
/// everything that the cell does.
const RUNS_ANYTHING: [&str; 34] = [
    "awk", "bash", "bun", "busybox", "csh", "dash", "deno", "docker", "emacs", "env", "expect",
    "fish", "gawk", "gdb", "ksh", "lua", "make", "node", "perl", "php", "podman", "pwsh", "python",
    "python3", "ruby", "sh", "ssh", "tclsh", "tmux", "vim", "watch", "xargs", "zsh", "find",
];

/// Everything that looks wrong in a valid set, in the order of the files.
#[must_use]
pub fn lint(set: &PolicySet) -> Vec<Diagnostic> {
    let mut linter = Linter { found: Vec::new() };
    for unit in set.units() {
        linter.commands(unit);
        linter.paths(unit);
        linter.network(unit);
        linter.tools(unit);
        linter.found.extend(unit.notices.clone());
    }
    let mut found = linter.found;
    found.sort_by(|left, right| {
        (&left.file.name, left.span.start, left.code).cmp(&(
            &right.file.name,
            right.span.start,
            right.code,
        ))
    });
    found.dedup();
    found
}

struct Linter {
    found: Vec<Diagnostic>,
}

impl Linter {
    fn warn(&mut self, rule: &RuleMeta, code: &'static str, message: String, help: &str) {
        if let Some(file) = &rule.file {
            self.found.push(Diagnostic {
                code,
                message,
                help: (!help.is_empty()).then(|| help.to_owned()),
                file: Arc::<SourceFile>::clone(file),
                span: rule.span.clone(),
            });
        }
    }

    fn commands(&mut self, unit: &Unit) {
        let rules = &unit.commands.rules;
        let default = unit.command_default.as_ref().map(|default| default.decision);
        for (index, rule) in rules.iter().enumerate() {
            let id = &rule.meta.id;
            if rule.meta.decision == Decision::Allow {
                self.broad_command(rule);
                if default == Some(Decision::Allow) {
                    let message =
                        format!("`{id}` has no effect: the default for commands is allow");
                    self.warn(&rule.meta, "no-effect", message, "");
                }
            }
            let stricter = |other: &&CommandMatcher| {
                other.meta.decision > rule.meta.decision && covers(other, rule)
            };
            if let Some(other) = rules.iter().find(stricter) {
                let message =
                    format!("`{id}` never decides: `{}` is stricter and covers it", other.meta.id);
                self.warn(&rule.meta, "shadowed", message, "remove one of the two");
            }
            let earlier = rules.get(..index).unwrap_or(&[]);
            let same = |other: &&CommandMatcher| {
                other.meta.decision == rule.meta.decision
                    && (covers(other, rule) || covers(rule, other))
            };
            if let Some(other) = earlier.iter().find(same) {
                let message =
                    format!("`{id}` and `{}` overlap with the same answer", other.meta.id);
                self.warn(&rule.meta, "overlap", message, "");
            }
        }
    }

    fn broad_command(&mut self, rule: &CommandMatcher) {
        let is_open =
            rule.tokens.as_ref().is_none_or(|tokens| matches!(tokens.as_slice(), [Token::Rest]));
        let id = &rule.meta.id;
        for program in &rule.programs {
            match program {
                ProgramPattern::Any => {
                    let message = format!("`{id}` allows every program");
                    self.warn(&rule.meta, "too-broad", message, "name the programs");
                }
                ProgramPattern::Name(name) if is_open && is_runner(name) => {
                    let message =
                        format!("`{id}` allows `{name}` with any arguments, which runs anything");
                    let help =
                        "limit the arguments with `tokens`; then only the cell holds the rest";
                    self.warn(&rule.meta, "too-broad", message, help);
                }
                ProgramPattern::Prefix(name) if is_open && is_runner(name) => {
                    let message = format!("`{id}` allows every program that begins with `{name}`");
                    self.warn(&rule.meta, "too-broad", message, "name the programs");
                }
                ProgramPattern::Name(_) | ProgramPattern::Prefix(_) | ProgramPattern::Path(_) => {}
            }
        }
    }

    fn paths(&mut self, unit: &Unit) {
        let places = Places::example();
        for rule in unit.paths.iter().filter(|rule| rule.meta.file.is_some()) {
            if rule.meta.decision == Decision::Allow {
                self.broad_path(rule, &places);
                self.shadowed_path(rule, unit, &places);
            } else if rule.access == [Access::Execute] {
                let message =
                    format!("`{}` cannot be held: a file that is read can be run", rule.meta.id);
                let help = "deny reading, or deny the program by a command rule";
                self.warn(&rule.meta, "not-enforceable", message, help);
            } else if unit.settings.degraded == Some(Degraded::Allow) {
                let message = format!("`{}` is lost where no mount view can be had", rule.meta.id);
                self.warn(
                    &rule.meta,
                    "not-enforceable",
                    message,
                    "`degraded = \"refuse\"` keeps it",
                );
            }
        }
    }

    fn broad_path(&mut self, rule: &PathMatcher, places: &Places) {
        for shape in rule.patterns.iter().filter_map(|pattern| expand(pattern, places)) {
            let Shape::Tree(root) = shape else { continue };
            let holds_home = places.home.as_ref().is_some_and(|home| is_within(home, &root));
            let writes_system = rule.access.contains(&Access::Write)
                && ["/etc", "/usr", "/var", "/dev", "/proc", "/sys"]
                    .iter()
                    .any(|d| root == Path::new(d));
            if holds_home || writes_system {
                let message = format!("`{}` grants `{}`", rule.meta.id, root.display());
                self.warn(
                    &rule.meta,
                    "too-broad",
                    message,
                    "grant the directories that are needed",
                );
            }
        }
    }

    fn shadowed_path(&mut self, rule: &PathMatcher, unit: &Unit, places: &Places) {
        let denies = unit.paths.iter().filter(|other| other.meta.decision == Decision::Deny);
        let secrets = SYSTEM_SECRETS.iter().map(|text| ("system-secrets", (*text).to_owned()));
        let written = denies
            .filter(|other| rule.access.iter().all(|access| other.access.contains(access)))
            .filter(|other| other.except.is_empty())
            .flat_map(|other| {
                other.patterns.iter().map(|text| (other.meta.id.as_str(), text.clone()))
            });
        let stricter: Vec<(&str, String)> = written.chain(secrets).collect();
        for shape in rule.patterns.iter().filter_map(|pattern| expand(pattern, places)) {
            let (Shape::Exact(path) | Shape::Tree(path)) = shape else { continue };
            let covering = stricter.iter().find(|(_, text)| match expand(text, places) {
                Some(Shape::Exact(root) | Shape::Tree(root)) => is_within(&path, &root),
                Some(Shape::Glob(_)) | None => false,
            });
            if let Some((id, _)) = covering {
                let message = format!("`{}` never decides: `{id}` denies it", path.display());
                self.warn(&rule.meta, "shadowed", message, "remove one of the two");
            }
        }
    }

    fn network(&mut self, unit: &Unit) {
        let mode = unit.settings.network.unwrap_or_default();
        for rule in &unit.hosts {
            let id = &rule.meta.id;
            let is_allow = rule.meta.decision == Decision::Allow;
            if is_allow && rule.hosts.contains(&HostPattern::Any) {
                let message = format!("`{id}` allows every host");
                self.warn(&rule.meta, "too-broad", message, "name the hosts");
            }
            match mode {
                NetworkMode::Off if is_allow => {
                    let message = format!("`{id}` opens nothing: the network is off");
                    self.warn(&rule.meta, "no-effect", message, "");
                }
                NetworkMode::Host if !is_allow => {
                    let message = format!("`{id}` cannot be held: the cell has the host's network");
                    self.warn(&rule.meta, "not-enforceable", message, "set `mode = \"off\"`");
                }
                NetworkMode::Off | NetworkMode::Host if !rule.methods.is_empty() => {
                    let message = format!("`{id}` names methods, which only the proxy sees");
                    self.warn(&rule.meta, "not-enforceable", message, "");
                }
                NetworkMode::Off | NetworkMode::Proxy | NetworkMode::Host => {}
            }
        }
    }

    fn tools(&mut self, unit: &Unit) {
        for hook in &unit.hooks {
            for tool in hook.tools.iter().filter(|tool| !is_tool(tool)) {
                let message = format!("`{}` waits for `{tool}`, which is no tool", hook.meta.id);
                self.warn(&hook.meta, "unknown-tool", message, &known_tools());
            }
        }
        for rule in &unit.tools {
            for name in &rule.tools {
                match name {
                    NamePattern::Exact(tool) if !is_tool(tool) => {
                        let message =
                            format!("`{}` names `{tool}`, which is no tool", rule.meta.id);
                        self.warn(&rule.meta, "unknown-tool", message, &known_tools());
                    }
                    NamePattern::Prefix(prefix)
                        if prefix.is_empty() && rule.meta.decision == Decision::Allow =>
                    {
                        let message = format!("`{}` allows every tool", rule.meta.id);
                        self.warn(&rule.meta, "too-broad", message, "name the tools");
                    }
                    NamePattern::Exact(_) | NamePattern::Prefix(_) => {}
                }
            }
        }
    }
}

fn is_tool(name: &str) -> bool {
    ToolName::parse(name).is_some() || name.starts_with("mcp__")
}

fn known_tools() -> String {
    let names: Vec<&str> = ToolName::ALL.iter().map(|tool| tool.as_str()).collect();
    format!("tools are {}, and `mcp__SERVER__TOOL`", names.join(", "))
}

pub(super) fn is_runner(name: &str) -> bool {
    RUNS_ANYTHING.contains(&name)
}

/// Whether everything that `inner` means is also meant by `outer`, as far as texts tell.
fn covers(outer: &CommandMatcher, inner: &CommandMatcher) -> bool {
    if Arc::ptr_eq(&outer.meta, &inner.meta) {
        return false;
    }
    let same_programs = inner.programs.iter().all(|program| {
        outer.programs.contains(program) || outer.programs.contains(&ProgramPattern::Any)
    });
    let all_arguments = outer.flags.is_empty()
        && outer.except.is_empty()
        && !outer.remote
        && outer.tokens.as_ref().is_none_or(|tokens| matches!(tokens.as_slice(), [Token::Rest]));
    same_programs && all_arguments
}
