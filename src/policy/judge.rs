//! The decision about one call: a pure function of the bound policy and the call's effects.
//!
//! Every thing that the call would do is judged by itself. Within a unit the strictest matching rule
//! answers, else the unit's default; of all units the strictest answer counts; of all things the
//! strictest answer is the decision. No order of rules, files or words plays a part.

use super::bound::{BoundPolicy, RoleVerdict, silence};
use super::file::schema::{Decision, NetworkMode, unresolved_name};
use super::judgement::{Code, Finding, Judgement, SubjectKind};
use super::paths::PathIndex;
use super::rules::RuleMeta;
use super::rules::assignments::is_harmless;
use super::rules::commands::CommandFit;
use super::rules::path_names::PathNames;
use super::unit::Unit;
use crate::base::limits::{SHELL_BYTES_MAX, SHELL_DEPTH_MAX, SHELL_NODES_MAX, SHELL_WORDS_MAX};
use crate::call::effects::{
    Access, Assignment, CommandUse, Effects, HostUse, PathOrigin, PathUse, Span, Unresolved,
    UnresolvedReason,
};
use crate::call::request::ToolName;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

/// Findings that allow something and are kept: more than anybody reads, and few enough that the largest
/// script costs no more than its judging. Of those that refuse, all are kept.
const ALLOWED_KEPT_MAX: usize = 1_000;

/// A call to judge.
#[derive(Debug, Clone, Copy)]
pub struct Query<'q> {
    /// The tool's name.
    pub tool: &'q str,
    /// The role of the agent.
    pub role: Option<&'q str>,
    /// What the call would do.
    pub effects: &'q Effects,
    /// What paths of the effects really are, links followed: position in `effects.paths`, and path.
    pub real_paths: &'q [(usize, PathBuf)],
    /// The arguments.
    pub arguments: &'q serde_json::Value,
    /// Whether nobody can be asked. The decision does not depend on it; its words do.
    pub headless: bool,
}

/// What one unit says about one thing.
type Opinion = (Decision, Code, Arc<RuleMeta>);

impl BoundPolicy {
    /// Judges a call.
    #[must_use]
    pub fn judge(&self, query: &Query<'_>) -> Judgement {
        let mut bench = Bench::new(self);
        bench.role_and_tool(query);
        let effects = query.effects;
        let programs = RunFiles::new(effects);
        for command in &effects.commands {
            bench.command(command, &programs);
            for assignment in &command.assignments {
                bench.assignment(assignment, true);
            }
        }
        for assignment in &effects.assignments {
            bench.assignment(assignment, false);
        }
        // A script may name the same path ten thousand times.
        let mut seen: HashSet<(&OsStr, Access, bool)> = HashSet::new();
        let real = query
            .real_paths
            .iter()
            .filter_map(|(at, real)| Some((effects.paths.get(*at)?, real.as_path())));
        for (path_use, path) in
            effects.paths.iter().map(|path| (path, path.path.as_path())).chain(real)
        {
            let is_name = bench.is_name_alone(path_use, path);
            if seen.insert((path.as_os_str(), path_use.access, is_name)) {
                bench.path(path_use, path);
            }
        }
        effects.hosts.iter().for_each(|host| bench.host(host));
        effects.unresolved.iter().for_each(|part| bench.unresolved(part));
        bench.finish(query.headless)
    }
}

struct Bench<'b> {
    policy: &'b BoundPolicy,
    findings: Vec<Finding>,
    /// What tells the findings apart that are kept.
    known: HashSet<FindingKey>,
    allowed: usize,
    /// What paths may be used instead, for reading, writing and running.
    instead: [OnceCell<Option<String>>; 3],
}

/// Answer, cause, rule, kind and subject.
type FindingKey = (Decision, Code, SameRule, SubjectKind, Arc<str>);

/// A rule as findings tell it apart: by its name and its line.
struct SameRule(Arc<RuleMeta>);

impl SameRule {
    fn key(&self) -> (&str, usize) {
        (&self.0.id, self.0.line)
    }
}

impl PartialEq for SameRule {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for SameRule {}

impl std::hash::Hash for SameRule {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl<'b> Bench<'b> {
    fn new(policy: &'b BoundPolicy) -> Self {
        Self {
            policy,
            findings: Vec::new(),
            known: HashSet::new(),
            allowed: 0,
            instead: Default::default(),
        }
    }
    /// What every set says about one thing. Units without a default for its kind only subtract:
    /// where a set has no other ones, `silent` answers too.
    fn ask(
        &self,
        (silent, has_default): (Option<&Opinion>, impl Fn(&Unit) -> bool),
        opinion: impl Fn(&Unit, &PathIndex) -> Vec<Opinion>,
    ) -> Vec<Opinion> {
        let mut all = Vec::new();
        let mut indexes = self.policy.indexes.iter();
        for units in &self.policy.set.groups {
            let mut answers = false;
            for (unit, index) in units.iter().zip(indexes.by_ref()) {
                all.extend(opinion(unit, index));
                answers |= has_default(unit);
            }
            if !answers {
                all.extend(silent.cloned());
            }
        }
        all
    }

    /// Keeps the strictest opinions about one thing. Its words are asked for only where something is
    /// kept.
    fn settle<'s>(
        &mut self,
        (kind, subject): (SubjectKind, impl FnOnce() -> Cow<'s, str>),
        mut opinions: Vec<Opinion>,
        would_allow: impl Fn(Code) -> Option<String>,
    ) {
        let Some(decision) = opinions.iter().map(|(decision, _, _)| *decision).max() else {
            return;
        };
        opinions.retain(|(other, _, _)| *other == decision);
        if decision == Decision::Allow {
            opinions.truncate(1);
            if self.allowed >= ALLOWED_KEPT_MAX {
                return;
            }
            self.allowed += 1;
        }
        let subject: Arc<str> = subject().into();
        for (decision, code, rule) in opinions {
            let subject = Arc::clone(&subject);
            let same = SameRule(Arc::clone(&rule));
            let key = (decision, code, same, kind, Arc::clone(&subject));
            if !self.known.insert(key) {
                continue;
            }
            let instead = if decision == Decision::Allow { None } else { would_allow(code) };
            self.findings.push(Finding {
                decision,
                code,
                rule,
                kind,
                subject,
                would_allow: instead,
            });
        }
    }

    fn role_and_tool(&mut self, query: &Query<'_>) {
        let tool = query.tool;
        if let RoleVerdict::Deny { reason } = self.policy.role_gate(query.role, tool) {
            let rule = RuleMeta::built_in("roles", Decision::Deny, &reason);
            let opinion = (Decision::Deny, Code::RoleWithoutTool, rule);
            self.settle((SubjectKind::Role, || tool.into()), vec![opinion], |_| None);
        }
        // A tool that is not our own has effects that nobody can tell.
        let is_own = ToolName::parse(tool).is_some();
        let silent = if is_own { Decision::Allow } else { Decision::Ask };
        let silent = (silent, Code::NoRule, silence(silent));
        let names_tool = |unit: &Unit| {
            let mut rules = unit.tools.iter();
            unit.tool_default.is_some()
                || rules.any(|rule| {
                    rule.meta.decision == Decision::Allow && rule.fits(tool, query.arguments)
                })
        };
        let mut opinions = self.ask((Some(&silent), names_tool), |unit, _| {
            let rules = unit.tools.iter().filter(|rule| rule.fits(tool, query.arguments));
            unit_opinion(rules.map(|rule| &rule.meta), unit.tool_default.as_ref())
        });
        if self.policy.permission().asks(tool) {
            let rule = RuleMeta::built_in(
                "permission.ask",
                Decision::Ask,
                "every call of this tool is asked about",
            );
            opinions.push((Decision::Ask, Code::AlwaysAsked, rule));
        }
        self.settle((SubjectKind::Tool, || tool.into()), opinions, |_| None);
    }

    fn command(&mut self, command: &CommandUse, programs: &RunFiles<'_>) {
        let resolved = programs.in_place(command);
        let command_in_place = resolved.as_ref().unwrap_or(command);
        let expand = |pattern: &str| self.policy.expand_path(pattern);
        let silent = (Decision::Ask, Code::NoRule, silence(Decision::Ask));
        let opinions = self.ask((Some(&silent), has_command_default), |unit, _| {
            command_opinions(unit, command_in_place, &expand)
        });
        let policy = self.policy;
        self.settle((SubjectKind::Command, || shown_command(command).into()), opinions, |code| {
            command_instead(policy, command, code)
        });
    }

    fn assignment(&mut self, assignment: &Assignment, is_in_front: bool) {
        let opinions = self.ask((None, has_command_default), |unit, _| {
            let rules = unit.assignments.iter().filter(|rule| rule.fits(assignment));
            let default = unit.assignment_default.as_ref().or(unit.command_default.as_ref());
            let default = default.filter(|_| is_in_front && !is_harmless(&assignment.name));
            unit_opinion(rules.map(|rule| &rule.meta), default)
        });
        let shown = || format!("{}={}", assignment.name, assignment.value.shown()).into();
        self.settle((SubjectKind::Assignment, shown), opinions, |_| {
            Some("Run the command without this variable".to_owned())
        });
    }

    fn path(&mut self, path_use: &PathUse, path: &Path) {
        let access = path_use.access;
        let names = PathNames::new(path);
        let standing = self.policy.standing_index.fits(&self.policy.standing, &names, access);
        let mut standing = unit_opinion(standing.iter().map(|matcher| &matcher.meta), None);
        if standing.is_empty() && self.is_name_alone(path_use, path) {
            standing = unit_opinion(std::iter::once(&self.policy.names_alone), None);
        }
        // A device is in every cell: where no rule refuses it, no default does. Nor for a name.
        let is_settled = !standing.is_empty();
        let silent = (Decision::Deny, Code::NoRule, silence(Decision::Deny));
        let silent = (!is_settled).then_some(&silent);
        let mut opinions =
            self.ask((silent, |unit: &Unit| unit.path_default.is_some()), |unit, index| {
                let rules = index.fits(&unit.paths, &names, access);
                let default = unit.path_default.as_ref().filter(|_| !is_settled);
                unit_opinion(rules.iter().map(|matcher| &matcher.meta), default)
            });
        opinions.extend(standing);
        let policy = self.policy;
        let instead = std::mem::take(&mut self.instead);
        self.settle((path_kind(access), || path.to_string_lossy()), opinions, |code| {
            if code == Code::RuleMatched {
                return None;
            }
            let [read, write, execute] = &instead;
            let known = match access {
                Access::Read => read,
                Access::Write => write,
                Access::Execute => execute,
            };
            known.get_or_init(|| path_instead(policy, access)).clone()
        });
        self.instead = instead;
    }

    /// Whether no more than names is asked for: what a link is to say, or what lies at the two places
    /// whose names every view shows, the root and the home.
    fn is_name_alone(&self, path_use: &PathUse, path: &Path) -> bool {
        match path_use.origin {
            PathOrigin::LinkText => true,
            PathOrigin::Listing { .. } => {
                let is_top =
                    path == Path::new("/") || self.policy.places.home.as_deref() == Some(path);
                is_top && path_use.access == Access::Read && !path_use.is_pattern
            }
            PathOrigin::ToolArgument
            | PathOrigin::Redirection
            | PathOrigin::ProgramArgument { .. } => false,
        }
    }

    fn host(&mut self, host: &HostUse) {
        let silent = match self.policy.settings.network.unwrap_or_default() {
            NetworkMode::Off => {
                let reason = "the cell has no network";
                let rule = RuleMeta::built_in("network.mode", Decision::Deny, reason);
                (Decision::Deny, Code::NetworkOff, rule)
            }
            NetworkMode::Proxy => (Decision::Deny, Code::NoRule, silence(Decision::Deny)),
            NetworkMode::Host => (Decision::Allow, Code::NoRule, silence(Decision::Allow)),
        };
        let opinions =
            self.ask((Some(&silent), |unit: &Unit| unit.network_default.is_some()), |unit, _| {
                let rules = unit.hosts.iter().filter(|rule| rule.fits(host));
                unit_opinion(rules.map(|rule| &rule.meta), unit.network_default.as_ref())
            });
        let shown = || match host.port {
            Some(port) => format!("{}:{port}", host.host).into(),
            None => host.host.as_str().into(),
        };
        self.settle((SubjectKind::Host, shown), opinions, |_| None);
    }

    fn unresolved(&mut self, part: &Unresolved) {
        let silent = (Decision::Ask, Code::Unresolved, silence(Decision::Ask));
        let answers = |unit: &Unit| unit.unresolved.is_some() || unit.command_default.is_some();
        let opinions = self.ask((Some(&silent), answers), |unit, _| {
            unresolved_opinion(unit, part.reason).into_iter().collect()
        });
        let shown = || format!("{}: {}", unresolved_name(part.reason), part.text).into();
        self.settle((SubjectKind::Unresolved, shown), opinions, |_| {
            Some(if part.reason == UnresolvedReason::TooLarge {
                too_large_instead()
            } else {
                "Write the command with words that are known before it runs".to_owned()
            })
        });
        if let Some(directory) = known_directory(part) {
            self.half_known_path(&directory);
        }
    }

    /// A path of which only the beginning is known is refused if everything below that is, whether
    /// it is read or written.
    fn half_known_path(&mut self, directory: &Path) {
        let mut both = [Access::Read, Access::Write].map(|access| {
            let mut alone = Bench::new(self.policy);
            let origin = PathOrigin::Redirection;
            let (path, span) = (directory.to_path_buf(), Span::default());
            alone.path(&PathUse { path, access, origin, is_pattern: true, span }, directory);
            alone.findings
        });
        let strictest =
            |findings: &Vec<Finding>| findings.iter().map(|finding| finding.decision).max();
        both.sort_by_key(strictest);
        let [milder, _] = both;
        self.findings.extend(milder.into_iter().filter(|found| found.decision > Decision::Allow));
    }

    fn finish(mut self, headless: bool) -> Judgement {
        // Strictest first; the rest of the key makes the order independent of files and rules.
        self.findings.sort_by(|left, right| {
            let by_thing = right
                .decision
                .cmp(&left.decision)
                .then_with(|| (left.kind, &left.subject).cmp(&(right.kind, &right.subject)));
            by_thing
                .then_with(|| left.rule.id.cmp(&right.rule.id))
                .then_with(|| left.place().cmp(&right.place()))
        });
        let decision =
            self.findings.iter().map(|finding| finding.decision).max().unwrap_or(Decision::Ask);
        Judgement { decision, findings: self.findings, headless }
    }
}

/// The strictest rules of a unit, else its default.
fn unit_opinion<'r>(
    rules: impl Iterator<Item = &'r Arc<RuleMeta>>,
    default: Option<&Arc<RuleMeta>>,
) -> Vec<Opinion> {
    let mut opinions: Vec<Opinion> =
        rules.map(|rule| (rule.decision, Code::RuleMatched, Arc::clone(rule))).collect();
    if opinions.is_empty() {
        opinions
            .extend(default.map(|rule| (rule.decision, Code::DefaultAnswered, Arc::clone(rule))));
    }
    let strictest = opinions.iter().map(|(decision, _, _)| *decision).max();
    opinions.retain(|(decision, _, _)| Some(*decision) == strictest);
    opinions
}

fn command_opinions(
    unit: &Unit,
    command: &CommandUse,
    expand: &dyn Fn(&str) -> Option<String>,
) -> Vec<Opinion> {
    let mut opinions: Vec<Opinion> = Vec::new();
    let (mut has_answer, mut carries_code) = (false, false);
    for (rule, fit) in unit.commands.fits(command, expand) {
        let meta = Arc::clone(&rule.meta);
        match fit {
            CommandFit::No => {}
            CommandFit::ButForCode => carries_code = true,
            CommandFit::Maybe => {
                let unknown = unresolved_opinion(unit, UnresolvedReason::CodeWord);
                let decision = unknown.map_or(Decision::Ask, |(decision, _, _)| decision);
                opinions.push((decision.min(meta.decision), Code::UnknownWord, meta));
            }
            CommandFit::Yes => {
                has_answer = true;
                opinions.push((meta.decision, Code::RuleMatched, meta));
            }
        }
    }
    if !has_answer && let Some(default) = &unit.command_default {
        let code = if carries_code { Code::InlineCode } else { Code::DefaultAnswered };
        opinions.push((default.decision, code, Arc::clone(default)));
    }
    let strictest = opinions.iter().map(|(decision, _, _)| *decision).max();
    opinions.retain(|(decision, _, _)| Some(*decision) == strictest);
    opinions
}

const fn has_command_default(unit: &Unit) -> bool {
    unit.command_default.is_some()
}

/// What a unit says about a part whose effect cannot be told. A unit that neither has a default for
/// commands nor refuses one has no opinion.
fn unresolved_opinion(unit: &Unit, reason: UnresolvedReason) -> Option<Opinion> {
    if let Some((meta, setting)) = &unit.unresolved {
        let decision = setting.by_reason.get(&reason).copied().unwrap_or(meta.decision);
        return Some((decision, Code::Unresolved, Arc::clone(meta)));
    }
    let default = unit.command_default.as_ref();
    let refuses = unit.commands.refuses_a_program();
    match default {
        Some(default) if default.decision == Decision::Allow && !refuses => {
            Some((Decision::Allow, Code::HeldByCell, Arc::clone(default)))
        }
        Some(_) => Some((Decision::Ask, Code::Unresolved, unset_unresolved())),
        None if refuses && may_be_a_program(reason) => {
            Some((Decision::Ask, Code::Unresolved, unset_unresolved()))
        }
        None => None,
    }
}

/// The decision of [`unresolved_opinion`] alone.
pub(super) fn unresolved_decision(unit: &Unit, reason: UnresolvedReason) -> Option<Decision> {
    unresolved_opinion(unit, reason).map(|(decision, _, _)| decision)
}

fn unset_unresolved() -> Arc<RuleMeta> {
    static UNSET: LazyLock<Arc<RuleMeta>> = LazyLock::new(|| {
        RuleMeta::built_in("command.unresolved", Decision::Ask, "its effect cannot be told")
    });
    Arc::clone(&UNSET)
}

fn too_large_instead() -> String {
    let (kib, commands, words) = (SHELL_BYTES_MAX / 1_024, SHELL_NODES_MAX, SHELL_WORDS_MAX);
    format!(
        "Make several calls of it, or put it into a file of the workspace and run that: a script may have \
         {kib} KiB, {SHELL_DEPTH_MAX} levels, {commands} commands and constructs and {words} words"
    )
}

/// The directory in which a path lies of which only the beginning is known.
fn known_directory(part: &Unresolved) -> Option<PathBuf> {
    let is_path =
        matches!(part.reason, UnresolvedReason::RedirectionTarget | UnresolvedReason::PathWord);
    let text = part.text.strip_prefix(['"', '\'']).unwrap_or(&part.text);
    if !is_path || !text.starts_with('/') {
        return None;
    }
    let known = text.split(['$', '`', '*', '?', '[', '{', '"', '\'', '\\', '~']).next()?;
    let (directory, _) = known.rsplit_once('/')?;
    let directory = Path::new(if directory.is_empty() { "/" } else { directory });
    Some(crate::base::paths::normalise(Path::new("/"), directory))
}

/// Whether what cannot be told might be a program that a rule names.
const fn may_be_a_program(reason: UnresolvedReason) -> bool {
    match reason {
        UnresolvedReason::Syntax
        | UnresolvedReason::TooLarge
        | UnresolvedReason::ProgramWord
        | UnresolvedReason::CodeWord
        | UnresolvedReason::ShellState
        | UnresolvedReason::Wrapper
        | UnresolvedReason::ForeignCode
        | UnresolvedReason::InsertedWord
        | UnresolvedReason::Refused => true,
        UnresolvedReason::RedirectionTarget | UnresolvedReason::PathWord => false,
    }
}

const fn path_kind(access: Access) -> SubjectKind {
    match access {
        Access::Read => SubjectKind::Read,
        Access::Write => SubjectKind::Write,
        Access::Execute => SubjectKind::Execute,
    }
}

/// The files that a script runs, by the last name of their paths, in the order of the script.
struct RunFiles<'e>(HashMap<&'e str, Vec<&'e PathUse>>);

impl<'e> RunFiles<'e> {
    fn new(effects: &'e Effects) -> Self {
        let mut by_name: HashMap<&str, Vec<&PathUse>> = HashMap::new();
        for path in effects.paths.iter().filter(|path| path.access == Access::Execute) {
            if let Some(name) = path.path.file_name().and_then(OsStr::to_str) {
                by_name.entry(name).or_default().push(path);
            }
        }
        by_name.values_mut().for_each(|paths| paths.sort_by_key(|path| path.span.start));
        Self(by_name)
    }

    /// The command with the path that the analysis found in the place of a relative program word.
    fn in_place(&self, command: &CommandUse) -> Option<CommandUse> {
        let word = command.program.known()?;
        if word.starts_with('/') || !word.contains('/') {
            return None;
        }
        let paths = self.0.get(word.rsplit('/').next()?)?;
        let first = paths.partition_point(|path| path.span.start < command.span.start);
        let within = |path: &&&PathUse| path.span.end <= command.span.end;
        let path = paths.get(first..)?.iter().find(within)?;
        let program = crate::call::effects::Word::Known(path.path.to_str()?.to_owned());
        Some(CommandUse { program, ..command.clone() })
    }
}

/// The command as one line, wrappers in front.
fn shown_command(command: &CommandUse) -> String {
    let words = std::iter::once(&command.program).chain(&command.arguments);
    let mut shown = String::new();
    for word in words {
        if !shown.is_empty() {
            shown.push(' ');
        }
        shown.push_str(word.shown());
        if shown.len() > 400 {
            break;
        }
    }
    shown
}

fn command_instead(policy: &BoundPolicy, command: &CommandUse, code: Code) -> Option<String> {
    match code {
        Code::InlineCode => {
            Some("Put the code into a file of the workspace and run that".to_owned())
        }
        Code::UnknownWord => Some("Write the words out instead of expanding them".to_owned()),
        Code::DefaultAnswered | Code::NoRule => {
            let program = command.program.known()?;
            let same: Vec<&str> = policy
                .units()
                .flat_map(|unit| unit.commands.naming(program))
                .filter(|rule| rule.meta.decision == Decision::Allow)
                .map(|rule| rule.meta.id.as_str())
                .collect();
            (!same.is_empty()).then(|| format!("Rules that allow `{program}`: {}", same.join(", ")))
        }
        Code::RuleMatched
        | Code::Unresolved
        | Code::HeldByCell
        | Code::NetworkOff
        | Code::RoleWithoutTool
        | Code::AlwaysAsked => None,
    }
}

fn path_instead(policy: &BoundPolicy, access: Access) -> Option<String> {
    let allowed = policy.allowed_patterns(access);
    let listed: Vec<&str> = allowed.iter().take(6).map(String::as_str).collect();
    let verb = match access {
        Access::Read => "Reading",
        Access::Write => "Writing",
        Access::Execute => "Running files",
    };
    (!listed.is_empty()).then(|| format!("{verb} is allowed in: {}", listed.join(", ")))
}
