//! A unit: one file with everything it extends, compiled. Rules of all its files are one set; its
//! settings are those of the file itself, then of what it extends. Units never share anything: the
//! strictest answer of all units wins.

use super::file::diagnostic::{Collector, Diagnostic};
use super::file::located::{Located, TokenText, Words};
use super::file::schema::{
    ArgumentRule, AssignmentRule, CommandRule, Decision, Document, HookEvent, NetworkRule,
    ToolRule, UnresolvedSetting,
};
use super::file::source::{Layer, SourceFile};
use super::paths::{PathMatcher, path_matchers};
use super::rules::arguments::{Condition, ToolMatcher, pointer};
use super::rules::assignments::AssignmentMatcher;
use super::rules::commands::{CommandIndex, CommandMatcher, ProgramPattern};
use super::rules::hosts::{HostMatcher, HostPattern};
use super::rules::tokens::Token;
use super::rules::{LazyRegex, NamePattern, PatternError, RuleMeta, search_regex};
use super::settings::Settings;
use std::ops::Range;
use std::sync::Arc;

/// A file that was read, with its document.
pub(super) type Loaded = (Arc<SourceFile>, Document);

/// A setting that answers where no rule does, with its place.
pub(super) type Default = Option<Arc<RuleMeta>>;

/// One file with everything it extends.
#[derive(Debug)]
pub(super) struct Unit {
    /// Whose file it is.
    pub layer: Layer,
    /// The files, what is extended first.
    pub files: Vec<Arc<SourceFile>>,
    /// Rules over paths.
    pub paths: Vec<PathMatcher>,
    /// `path.default`
    pub path_default: Default,
    /// Rules over commands, by program.
    pub commands: CommandIndex,
    /// `command.default`
    pub command_default: Default,
    /// `command.unresolved`, with its place.
    pub unresolved: Option<(Arc<RuleMeta>, UnresolvedSetting)>,
    /// Rules over assignments.
    pub assignments: Vec<AssignmentMatcher>,
    /// `command.assignment_default`
    pub assignment_default: Default,
    /// Rules over tools.
    pub tools: Vec<ToolMatcher>,
    /// `tool.default`
    pub tool_default: Default,
    /// Rules over hosts.
    pub hosts: Vec<HostMatcher>,
    /// `network.default`
    pub network_default: Default,
    /// Roles: name and tools, of every file.
    pub roles: Vec<(String, Vec<NamePattern>)>,
    /// The role of a run that names none.
    pub default_role: Option<String>,
    /// Hooks.
    pub hooks: Vec<Hook>,
    /// Everything that is no rule.
    pub settings: Settings,
    /// Settings that are held more strictly than they are written.
    pub notices: Vec<Diagnostic>,
}

/// A hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// Who says it.
    pub meta: Arc<RuleMeta>,
    /// When it runs.
    pub event: HookEvent,
    /// The tools; empty: every tool.
    pub tools: Vec<String>,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Time to answer, in milliseconds.
    pub timeout_ms: Option<u64>,
}

impl Hook {
    /// Whether the hook is for this tool.
    #[must_use]
    pub fn is_for(&self, tool: &str) -> bool {
        self.tools.is_empty() || self.tools.iter().any(|name| name == tool)
    }
}

/// Compiles the files of a unit; what is wrong goes into `collector`.
pub(super) fn compile(layer: Layer, files: &[Loaded], collector: &mut Collector) -> Unit {
    let mut compiler = Compiler { collector };
    let mut commands = Vec::new();
    let mut unit = Unit {
        layer,
        files: files.iter().map(|(file, _)| Arc::clone(file)).collect(),
        paths: path_matchers(files, compiler.collector),
        path_default: setting(files, "path.default", |d| d.path.default.as_ref()),
        commands: CommandIndex::default(),
        command_default: setting(files, "command.default", |d| d.command.default.as_ref()),
        unresolved: unresolved(files),
        assignments: Vec::new(),
        assignment_default: setting(files, "command.assignment_default", |d| {
            d.command.assignment_default.as_ref()
        }),
        tools: Vec::new(),
        tool_default: setting(files, "tool.default", |d| d.tool.default.as_ref()),
        hosts: Vec::new(),
        network_default: setting(files, "network.default", |d| d.network.default.as_ref()),
        roles: Vec::new(),
        default_role: files
            .iter()
            .rev()
            .find_map(|(_, d)| d.roles.default.clone())
            .map(|r| r.value),
        hooks: Vec::new(),
        settings: Settings::of_chain(files.iter().map(|(_, document)| document)),
        notices: super::in_force::notices(files),
    };
    for (file, document) in files {
        let mut compiler = compiler.of(file);
        commands.extend(document.command.rule.iter().filter_map(|rule| compiler.command(rule)));
        unit.assignments.extend(
            document.command.assignment.iter().filter_map(|rule| compiler.assignment(rule)),
        );
        unit.tools.extend(document.tool.rule.iter().filter_map(|rule| compiler.tool(rule)));
        unit.hosts.extend(document.network.rule.iter().filter_map(|rule| compiler.host(rule)));
        unit.hooks.extend(document.hooks.rule.iter().map(|rule| compiler.hook(rule)));
        for (name, role) in &document.roles.roles {
            let tools = role.tools.iter().filter_map(|tool| compiler.name(tool)).collect();
            unit.roles.push((name.clone(), tools));
        }
        compiler.settings(document);
    }
    unit.commands = CommandIndex::new(commands);
    complete(&mut unit);
    unit
}

/// A unit that allows something of a kind and sets no default for it is a list of what is allowed:
/// the rest is refused or asked about. A unit that allows nothing only subtracts, and has no opinion
/// on what it does not name.
fn complete(unit: &mut Unit) {
    let allows = |meta: &Arc<RuleMeta>| meta.decision == Decision::Allow;
    let rest = |id: &str, decision| {
        let reason = "not in the list of what is allowed, and no default is set";
        Some(RuleMeta::built_in(id, decision, reason))
    };
    if unit.path_default.is_none() && unit.paths.iter().any(|rule| allows(&rule.meta)) {
        unit.path_default = rest("path.default", Decision::Deny);
    }
    if unit.command_default.is_none() && unit.commands.rules.iter().any(|rule| allows(&rule.meta)) {
        unit.command_default = rest("command.default", Decision::Ask);
    }
    if unit.network_default.is_none() && unit.hosts.iter().any(|rule| allows(&rule.meta)) {
        unit.network_default = rest("network.default", Decision::Deny);
    }
}

/// The nearest file that sets a default, as a rule of its own name.
fn setting(
    files: &[Loaded],
    id: &str,
    get: impl Fn(&Document) -> Option<&Located<Decision>>,
) -> Default {
    files.iter().rev().find_map(|(file, document)| {
        let located = get(document)?;
        let id = Located { value: id.to_owned(), span: located.span.clone() };
        let reason = "no rule names it, so the default answers";
        Some(RuleMeta::new(file, &id, located.value, reason))
    })
}

fn unresolved(files: &[Loaded]) -> Option<(Arc<RuleMeta>, UnresolvedSetting)> {
    files.iter().rev().find_map(|(file, document)| {
        let located = document.command.unresolved.as_ref()?;
        let id = Located { value: "command.unresolved".to_owned(), span: located.span.clone() };
        let decision = located.value.default.unwrap_or(Decision::Ask);
        Some((
            RuleMeta::new(file, &id, decision, "its effect cannot be told"),
            located.value.clone(),
        ))
    })
}

struct Compiler<'c> {
    collector: &'c mut Collector,
}

impl Compiler<'_> {
    fn of<'f>(&'f mut self, file: &'f Arc<SourceFile>) -> FileCompiler<'f> {
        FileCompiler { collector: self.collector, file }
    }
}

/// Compiles the rules of one file.
struct FileCompiler<'c> {
    collector: &'c mut Collector,
    file: &'c Arc<SourceFile>,
}

impl FileCompiler<'_> {
    fn error(&mut self, span: &Range<usize>, (code, message, help): PatternError) {
        self.collector.error(self.file, span, (code, message), help);
    }

    fn accept<T>(&mut self, span: &Range<usize>, result: Result<T, PatternError>) -> Option<T> {
        result.map_err(|error| self.error(span, error)).ok()
    }

    fn meta(&self, id: &Located<String>, decision: Decision, reason: &str) -> Arc<RuleMeta> {
        RuleMeta::new(self.file, id, decision, reason)
    }

    /// Each word of a list through `read`; an empty list is an error.
    fn each<T>(
        &mut self,
        words: &Located<Words>,
        read: impl Fn(&str) -> Result<T, PatternError>,
    ) -> Option<Vec<T>> {
        if words.value.0.is_empty() {
            let message = "the list is empty, so the rule can never match".to_owned();
            self.error(&words.span, ("never-matches", message, None));
        }
        let results: Result<Vec<T>, PatternError> =
            words.value.0.iter().map(|word| read(word)).collect();
        self.accept(&words.span, results)
    }

    fn name(&mut self, name: &Located<String>) -> Option<NamePattern> {
        let pattern = NamePattern::new(&name.value);
        self.accept(&name.span, pattern)
    }

    /// All tokens of a list, or none where one is refused.
    fn tokens(&mut self, tokens: &[Located<TokenText>]) -> Option<Vec<Token>> {
        let is_built_in = self.file.layer == Layer::BuiltIn;
        let compile = |token: &Located<TokenText>| Token::new(&token.value, is_built_in);
        let compiled: Vec<_> =
            tokens.iter().map(|token| self.accept(&token.span, compile(token))).collect();
        compiled.into_iter().collect()
    }

    /// What a refusal does not mean.
    fn exceptions(&mut self, rule: &CommandRule) -> Option<Vec<Vec<Token>>> {
        if let Some(first) = rule.except.first()
            && rule.decision.value == Decision::Allow
        {
            let message = "an allow has no exceptions: it names what it allows".to_owned();
            self.error(&first.span, ("never-matches", message, Some("write a deny rule".into())));
        }
        rule.except.iter().map(|tokens| self.tokens(&tokens.value)).collect()
    }

    fn command(&mut self, rule: &CommandRule) -> Option<CommandMatcher> {
        let programs = self.each(&rule.program, ProgramPattern::new);
        let tokens = rule.tokens.as_ref().map(|tokens| self.tokens(tokens));
        let except = self.exceptions(rule);
        let mut flags = Vec::new();
        for flag in &rule.flags {
            let checked = CommandMatcher::check_flags(&flag.value.0);
            self.accept(&flag.span, checked);
            flags.push(flag.value.0.clone());
        }
        let tokens = match tokens {
            Some(None) => return None,
            Some(tokens) => tokens,
            None => None,
        };
        let meta = self.meta(&rule.id, rule.decision.value, &rule.reason.value);
        let (programs, except) = (programs?, except?);
        let (remote, code) = (rule.remote, rule.code);
        Some(CommandMatcher { meta, programs, tokens, flags, except, remote, code })
    }

    /// An expression, if there is one; that of a built-in policy is compiled when it is needed.
    fn expression(&mut self, text: Option<&Located<String>>) -> Option<Option<LazyRegex>> {
        match text {
            None => Some(None),
            Some(text) if self.file.layer == Layer::BuiltIn => {
                Some(Some(LazyRegex::trusted(&text.value)))
            }
            Some(text) => self.accept(&text.span, LazyRegex::checked(&text.value)).map(Some),
        }
    }

    fn assignment(&mut self, rule: &AssignmentRule) -> Option<AssignmentMatcher> {
        let names = self.each(&rule.name, NamePattern::new)?;
        let value = self.expression(rule.value.as_ref())?;
        let except = self.expression(rule.except.as_ref())?;
        let meta = self.meta(&rule.id, rule.decision.value, &rule.reason.value);
        Some(AssignmentMatcher { meta, names, value, except })
    }

    fn tool(&mut self, rule: &ToolRule) -> Option<ToolMatcher> {
        let tools = self.each(&rule.tool, NamePattern::new)?;
        let mut conditions = Vec::new();
        for argument in &rule.arguments {
            conditions.extend(self.conditions(argument)?);
        }
        let meta = self.meta(&rule.id, rule.decision.value, &rule.reason.value);
        Some(ToolMatcher { meta, tools, conditions })
    }

    fn conditions(&mut self, rule: &ArgumentRule) -> Option<Vec<(String, Condition)>> {
        let mut conditions = Vec::new();
        if let Some(value) = &rule.equals {
            conditions.push(Condition::Equals(serde_json::to_value(value).ok()?));
        }
        if let Some(regex) = &rule.regex {
            conditions
                .push(Condition::Matches(self.accept(&regex.span, search_regex(&regex.value))?));
        }
        let has_value = !conditions.is_empty();
        match rule.present {
            Some(false) if has_value => {
                let message =
                    "an absent argument has no value, so the rule can never match".to_owned();
                self.error(&rule.key.span, ("never-matches", message, None));
            }
            None if !has_value => {
                let message = "the condition says nothing".to_owned();
                let help = "give `equals`, `regex` or `present`".to_owned();
                self.error(&rule.key.span, ("empty-pattern", message, Some(help)));
            }
            Some(present) => conditions.push(Condition::Present(present)),
            None => {}
        }
        let pointer = pointer(&rule.key.value);
        Some(conditions.into_iter().map(|condition| (pointer.clone(), condition)).collect())
    }

    fn host(&mut self, rule: &NetworkRule) -> Option<HostMatcher> {
        let hosts = self.each(&rule.host, HostPattern::new)?;
        if rule.ports.contains(&0) {
            let message = "port 0 does not exist, so the rule can never match".to_owned();
            self.error(&rule.host.span, ("never-matches", message, None));
        }
        let meta = self.meta(&rule.id, rule.decision.value, &rule.reason.value);
        let methods = rule.methods.iter().map(|method| method.to_ascii_uppercase()).collect();
        Some(HostMatcher { meta, hosts, ports: rule.ports.clone(), methods })
    }

    fn hook(&mut self, rule: &super::file::schema::HookRule) -> Hook {
        let tools = self.hook_tools(rule);
        if rule.argv.first().is_none_or(|program| program.value.is_empty()) {
            let message = "the hook names no program".to_owned();
            self.error(&rule.id.span, ("empty-pattern", message, None));
        }
        let is_any = tools.iter().any(|tool| tool == "*");
        Hook {
            meta: self.meta(&rule.id, Decision::Deny, &rule.reason.value),
            event: rule.event,
            tools: if is_any { Vec::new() } else { tools },
            argv: rule.argv.iter().map(|word| word.value.clone()).collect(),
            timeout_ms: rule.timeout_ms.as_ref().map(|timeout| timeout.value),
        }
    }

    fn hook_tools(&mut self, rule: &super::file::schema::HookRule) -> Vec<String> {
        match (&rule.tools, rule.event.is_of_a_call()) {
            (Some(tools), true) => self.each(tools, hook_tool).unwrap_or_default(),
            (None, false) => Vec::new(),
            (None, true) => {
                let help = "add `tools`: a list of names, or \"*\"".to_owned();
                let message = "the hook does not say for which tools it is".to_owned();
                self.error(&rule.id.span, ("empty-pattern", message, Some(help)));
                Vec::new()
            }
            (Some(tools), false) => {
                let message = format!("a hook of `{}` is for no tool", rule.event.as_str());
                let help = "leave `tools` out".to_owned();
                self.error(&tools.span, ("bad-pattern", message, Some(help)));
                Vec::new()
            }
        }
    }

    fn settings(&mut self, document: &Document) {
        for redact in &document.audit.redact {
            self.accept(&redact.span, search_regex(&redact.value));
        }
        for name in document.env.pass.iter().flatten() {
            self.name(name);
        }
        for tool in &document.permission.ask {
            self.name(tool);
        }
    }
}

/// A hook's tool is an exact name, or `*` alone.
fn hook_tool(text: &str) -> Result<String, PatternError> {
    match text {
        "*" => Ok(text.to_owned()),
        other if other.contains(['*', ',', '|', ' ']) => {
            let message = format!("`{other}` is not the name of one tool");
            Err(("bad-pattern", message, Some("write a list of exact names, or \"*\"".into())))
        }
        other => NamePattern::new(other).map(|_| other.to_owned()),
    }
}
