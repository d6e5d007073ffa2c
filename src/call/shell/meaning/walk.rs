//! The walk over a script: every command, in the order in which it stands, becomes effects.

use super::facts::{Facts, Poisoned};
use super::fields::Field;
use super::state::{Directories, Expansion, Shell, Value};
use crate::base::limits::SHELL_DEPTH_MAX;
use crate::base::text::prefix;
use crate::call::effects::{Assignment, Effects, Span, Unresolved, UnresolvedReason};
use crate::call::shell::programs;
use crate::call::shell::syntax::ast::{
    Command, CommandKind, Connector, Item, List, Pipeline, WordNode,
};
use crate::call::shell::syntax::{Budget, Origin, TooLarge, parse, refused_at};
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::rc::Rc;

pub(crate) type Walked = Result<(), TooLarge>;

/// Bytes of a part that is shown with an `Unresolved`.
const UNRESOLVED_TEXT_BYTES_MAX: usize = 200;

/// What a command reads as its standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// Text that stands in the script, or that one of its commands certainly prints.
    Text(Rc<str>),
    /// Names of files, one a line, as `find` and its like print them.
    Names {
        /// All of them lie in or below the directory of the shell.
        below_here: bool,
    },
    /// A file that a redirection names.
    File,
    /// A pipe, or text that is not known.
    Stream,
}

impl Input {
    /// Nothing: the end of the file at once.
    pub(crate) fn none() -> Self {
        Self::Text(Rc::from(""))
    }
}

/// Where the shell looks for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// Functions, then builtins, then files.
    Shell,
    /// Builtins, then files (`command`, `builtin`).
    Builtin,
    /// Files only: run by a program.
    Program,
}

/// A command about to run: its words, and how it came to be run.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) fields: Vec<Field>,
    pub(crate) assignments: Vec<Assignment>,
    /// Wrappers between the shell and this command.
    pub(crate) via: Vec<String>,
    pub(crate) span: Span,
    pub(crate) input: Input,
    pub(crate) lookup: Lookup,
}

/// One analysis.
#[derive(Debug)]
pub(crate) struct Analysis {
    pub(crate) budget: Budget,
    pub(crate) effects: Effects,
    pub(crate) shell: Shell,
    pub(crate) via: Vec<String>,
    pub(crate) depth: usize,
    /// Aliases could be expanded in what follows.
    pub(crate) aliases_possible: bool,
    /// What a command reads that is given no input of its own.
    pub(crate) inherited: Input,
    /// What is judged runs elsewhere: paths and hosts are not ours.
    pub(super) remote: bool,
    extended_patterns: bool,
    /// Files that came from other machines in this script.
    pub(crate) fetched: HashSet<PathBuf>,
}

impl Analysis {
    pub(crate) fn new(directories: Directories, inherited: BTreeMap<String, Value>) -> Self {
        Self {
            budget: Budget::new(),
            effects: Effects::default(),
            shell: Shell::new(directories, inherited, Expansion::new()),
            via: Vec::new(),
            depth: 0,
            aliases_possible: false,
            inherited: Input::none(),
            remote: false,
            extended_patterns: false,
            fetched: HashSet::new(),
        }
    }

    /// What was found.
    pub(crate) fn finish(mut self) -> Effects {
        // A value that decided what runs may have been another one behind our back.
        if self.shell.beliefs.shaken.get() && self.shell.beliefs.relied_on.get() {
            let reason = UnresolvedReason::ProgramWord;
            self.unresolved(reason, "a variable that may have changed", Span::default());
        }
        self.effects
    }

    pub(crate) fn unresolved(&mut self, reason: UnresolvedReason, text: &str, span: Span) {
        let text = prefix(text, UNRESOLVED_TEXT_BYTES_MAX).to_owned();
        let unresolved = Unresolved { reason, text, span };
        if self.effects.unresolved.last() != Some(&unresolved) {
            self.effects.unresolved.push(unresolved);
        }
    }

    /// Whether what is judged runs on another machine or in a container.
    pub(crate) const fn remote(&self) -> bool {
        self.remote
    }

    /// Judges something that runs on another machine or in a container.
    pub(crate) fn remotely(
        &mut self,
        remote: bool,
        inner: impl FnOnce(&mut Self) -> Walked,
    ) -> Walked {
        let before = self.remote;
        self.remote |= remote;
        let result = inner(self);
        self.remote = before;
        result
    }

    /// Takes text that is read again.
    pub(crate) fn take_text(&mut self, bytes: usize) -> Walked {
        self.budget.rescan(bytes).map_err(|_fault| TooLarge)
    }

    /// Goes one level deeper for the time of `inner`.
    pub(crate) fn deeper(&mut self, inner: impl FnOnce(&mut Self) -> Walked) -> Walked {
        if self.depth >= SHELL_DEPTH_MAX {
            return Err(TooLarge);
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Reads and walks a script in the current shell process. `fresh` = the process is new, so that
    /// the script's facts are all there is; else (`eval`) nothing is certain about variables.
    pub(crate) fn script(&mut self, text: &str, origin: Origin, fresh: bool) -> Walked {
        let script = parse(text, origin, self.depth, &mut self.budget, self.extended_patterns)?;
        let mut facts = Facts::gather(&script.list);
        // Code of this shell that changes nothing leaves all that is known as it is.
        let keeps = !fresh && facts.is_inert();
        if !fresh || facts.poisoned.is_some() && !matches!(origin, Origin::Offset(_)) {
            facts.poisoned = Some(Poisoned::Always);
        }
        let extended = self.extended_patterns;
        self.extended_patterns |= text.contains("extglob");
        self.aliases_possible |= text.contains("expand_aliases") || text.contains("posix");
        let facts = if keeps { Rc::clone(&self.shell.facts) } else { Rc::new(facts) };
        let before = std::mem::replace(&mut self.shell.facts, facts);
        self.list(&script.list)?;
        self.extended_patterns = extended;
        if !fresh {
            self.shell.facts = before;
        }
        if let Some(position) = script.error {
            let rest = text.get(position..).unwrap_or("");
            let shown = if rest.is_empty() { text } else { rest };
            let span = match origin {
                Origin::Offset(offset) => {
                    Span { start: offset + position, end: offset + text.len() }
                }
                Origin::Fixed(span) => span,
            };
            // Of what the program's own shell reads; an inner one may be another shell.
            let refused = matches!(origin, Origin::Offset(_)).then(|| refused_at(text)).flatten();
            match refused {
                Some(at) => {
                    self.unresolved(UnresolvedReason::Refused, shown, span);
                    self.meant(text.get(..at).unwrap_or(""), origin)?;
                }
                None => self.unresolved(UnresolvedReason::Syntax, shown, span),
            }
        }
        Ok(())
    }

    /// Judges what stands before the error of a line that runs nothing: it is what was meant, and what
    /// will be sent again.
    fn meant(&mut self, head: &str, origin: Origin) -> Walked {
        let script = parse(head, origin, self.depth, &mut self.budget, self.extended_patterns)?;
        self.shell.facts = Rc::new(Facts::gather(&script.list));
        self.list(&script.list)
    }

    /// Walks the script of a new shell process.
    pub(crate) fn child_script(
        &mut self,
        text: &str,
        span: Span,
        via: Vec<String>,
        call: &Call,
    ) -> Walked {
        self.take_text(text.len())?;
        let mut inherited = self.shell.for_child();
        for assignment in &call.assignments {
            inherited.insert(assignment.name.clone(), Value::Unknown);
        }
        let expansion = self.shell.expansion.clone();
        let mut child = Shell::new(self.shell.directories.clone(), inherited, expansion);
        child.beliefs = Rc::clone(&self.shell.beliefs);
        let shell = std::mem::replace(&mut self.shell, child);
        let outer = std::mem::replace(&mut self.via, via);
        let input = std::mem::replace(&mut self.inherited, call.input.clone());
        let result = self.deeper(|analysis| analysis.script(text, Origin::Fixed(span), true));
        self.shell = shell;
        self.via = outer;
        self.inherited = input;
        result
    }

    fn list(&mut self, list: &List) -> Walked {
        for item in list {
            self.item(item)?;
        }
        Ok(())
    }

    /// Walks something that runs in a process of its own: what it does to the shell is lost.
    fn subshell(&mut self, inner: impl FnOnce(&mut Self) -> Walked) -> Walked {
        let directories = self.shell.directories.clone();
        let defined = self.shell.defined.mark();
        let result = self.deeper(inner);
        self.shell.directories = directories;
        self.shell.defined.forget(defined);
        result
    }

    /// Walks a list that may run, or run again later.
    pub(crate) fn sometimes(&mut self, list: &List) -> Walked {
        let before = self.shell.directories.clone();
        let defined = self.shell.defined.mark();
        self.deeper(|analysis| analysis.list(list))?;
        self.shell.defined.forget(defined);
        self.join(&before);
        Ok(())
    }

    fn join(&mut self, before: &Directories) {
        if self.shell.facts.changes_directory && *before != self.shell.directories {
            let now = std::mem::replace(&mut self.shell.directories, Directories::unknown());
            self.shell.directories = now.or(before);
        }
    }

    fn item(&mut self, item: &Item) -> Walked {
        if item.background {
            return self.subshell(|analysis| analysis.and_or(item));
        }
        if !self.shell.facts.changes_directory {
            return self.and_or(item);
        }
        let before = self.shell.directories.clone();
        self.and_or(item)?;
        if !self.shell.stops_on_error && !ends_in_exit(item) {
            self.join(&before);
        }
        Ok(())
    }

    fn and_or(&mut self, item: &Item) -> Walked {
        if item.rest.is_empty() {
            return self.pipeline(&item.first);
        }
        let before = self.shell.directories.clone();
        self.pipeline(&item.first)?;
        let defined = self.shell.defined.mark();
        for (connector, pipeline) in &item.rest {
            match connector {
                Connector::And => self.pipeline(pipeline)?,
                Connector::Or => {
                    let succeeded = self.shell.directories.clone();
                    self.join(&before);
                    self.pipeline(pipeline)?;
                    if leaves(pipeline) {
                        self.shell.directories = succeeded;
                    } else {
                        self.join(&succeeded);
                    }
                }
            }
        }
        self.shell.defined.forget(defined);
        Ok(())
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Walked {
        if let [command] = pipeline.commands.as_slice() {
            let inherited = self.inherited.clone();
            return self.command(command, inherited);
        }
        let mut input = self.inherited.clone();
        for command in &pipeline.commands {
            let prints = self.printed_by(command, &input);
            let reads = std::mem::replace(&mut input, prints);
            self.subshell(|analysis| analysis.command(command, reads))?;
        }
        Ok(())
    }

    fn command(&mut self, command: &Command, input: Input) -> Walked {
        self.shell.position = command.span.start;
        let input = self.input(&command.redirects).unwrap_or(input);
        if let CommandKind::Simple(simple) = &command.kind {
            return self.simple(simple, command, input);
        }
        let outer = std::mem::replace(&mut self.inherited, input);
        self.compound(command)?;
        self.inherited = outer;
        self.redirects(&command.redirects)
    }

    fn compound(&mut self, command: &Command) -> Walked {
        match &command.kind {
            CommandKind::Simple(_) => {}
            CommandKind::Group(list) => self.deeper(|analysis| analysis.list(list))?,
            CommandKind::Subshell(list) => self.subshell(|analysis| analysis.list(list))?,
            CommandKind::If { clauses, otherwise } => self.if_clauses(clauses, otherwise)?,
            CommandKind::While { condition, body } => self.looped(&[condition, body])?,
            CommandKind::For { name: _, words, body } => {
                for word in words.iter().flatten() {
                    self.inside(word)?;
                }
                self.looped(&[body])?;
            }
            CommandKind::ForArithmetic { expressions, body } => {
                // They are evaluated again behind each turn.
                let outer = std::mem::replace(&mut self.shell.in_function, true);
                for expression in expressions {
                    self.arithmetic(expression, command.span)?;
                }
                self.shell.in_function = outer;
                self.looped(&[body])?;
            }
            CommandKind::Case { word, arms } => {
                self.inside(word)?;
                for arm in arms {
                    for pattern in &arm.patterns {
                        self.inside(pattern)?;
                    }
                    self.sometimes(&arm.body)?;
                }
            }
            CommandKind::Arithmetic(expression) => self.arithmetic(expression, command.span)?,
            CommandKind::Conditional(operands) => self.conditional(operands)?,
            CommandKind::Function { name, body } => self.function(name, body)?,
            CommandKind::Coprocess { name: _, body } => {
                self.subshell(|analysis| analysis.command(body, Input::Stream))?;
            }
        }
        Ok(())
    }

    fn if_clauses(&mut self, clauses: &[(List, List)], otherwise: &List) -> Walked {
        for (condition, body) in clauses {
            self.deeper(|analysis| analysis.list(condition))?;
            self.sometimes(body)?;
        }
        self.sometimes(otherwise)
    }

    /// A loop whose body moves may start its next turn anywhere.
    fn looped(&mut self, lists: &[&List]) -> Walked {
        let before = self.shell.directories.clone();
        let defined = self.shell.defined.mark();
        let outer = std::mem::replace(&mut self.shell.in_function, true);
        for list in lists {
            self.deeper(|analysis| analysis.list(list))?;
        }
        self.shell.in_function = outer;
        self.shell.defined.forget(defined);
        if self.shell.facts.changes_directory && self.shell.directories != before {
            self.shell.directories = Directories::unknown();
        }
        Ok(())
    }

    /// A function's body is judged where it is defined; a call of it then runs nothing new.
    fn function(&mut self, name: &WordNode, body: &Command) -> Walked {
        if programs::has_own_meaning(&name.text) {
            self.unresolved(UnresolvedReason::ShellState, &name.text, name.span);
        }
        let directories = self.shell.directories.clone();
        if self.shell.facts.changes_directory {
            self.shell.directories = Directories::unknown();
        }
        let outer = std::mem::replace(&mut self.shell.in_function, true);
        // A function may call itself and those that are defined later.
        let defined = self.shell.defined.mark();
        self.shell.defined.insert(&name.text);
        let around = self.shell.function.replace(Rc::from(&*name.text));
        self.deeper(|analysis| analysis.command(body, Input::Stream))?;
        self.shell.function = around;
        self.shell.defined.forget(defined);
        self.shell.in_function = outer;
        self.shell.directories = directories;
        let once = self.shell.facts.functions.get(&*name.text) == Some(&1);
        if once {
            self.shell.defined.insert(&name.text);
        }
        Ok(())
    }
}

/// `… || exit`: what follows runs only if what stands before succeeded.
fn ends_in_exit(item: &Item) -> bool {
    matches!(item.rest.last(), Some((Connector::Or, pipeline)) if leaves(pipeline))
}

fn leaves(pipeline: &Pipeline) -> bool {
    let [command] = pipeline.commands.as_slice() else { return false };
    match &command.kind {
        CommandKind::Simple(simple) => simple
            .words
            .first()
            .and_then(super::facts::literal)
            .is_some_and(|word| matches!(word, "exit" | "return" | "continue" | "break")),
        CommandKind::Group(list) => {
            list.last().is_some_and(|item| item.rest.is_empty() && leaves(&item.first))
        }
        CommandKind::Subshell(_)
        | CommandKind::If { .. }
        | CommandKind::While { .. }
        | CommandKind::For { .. }
        | CommandKind::ForArithmetic { .. }
        | CommandKind::Case { .. }
        | CommandKind::Arithmetic(_)
        | CommandKind::Conditional(_)
        | CommandKind::Function { .. }
        | CommandKind::Coprocess { .. } => false,
    }
}
