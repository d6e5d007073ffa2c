//! What a whole script says about its variables and functions, gathered before the walk.
//!
//! A variable's value is used only where it is certain: every assignment to it stands in the
//! straight line of the script and nothing (`eval`, `source`, a name reference) could assign it
//! behind our back. A variable that only ever receives numbers is safe in arithmetic, where bash
//! would run the substitutions inside a value.

use super::forwarding::Forwarding;
use super::numeric::{NUMBER_PRINTERS, is_numeric_value};
use crate::call::shell::syntax::ast::{
    AssignedValue, AssignmentNode, Command, CommandKind, Form, List, Piece, Pieces, Pipeline,
    Simple, WordNode,
};
use std::collections::{BTreeMap, BTreeSet};

/// What is known about one variable that the script assigns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Assigned {
    /// Assignments in the straight line of the script.
    pub(crate) straight: u32,
    /// It is also assigned elsewhere, or in a form that is not followed.
    pub(crate) elsewhere: bool,
    /// Every assignment gives a number.
    pub(crate) numeric: bool,
    /// Every assignment gives `$!`, a process that this shell started.
    pub(crate) child: bool,
}

/// Where the first command stands whose code could change any variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Poisoned {
    /// What stands in front of this byte is certain, unless it runs again.
    Behind(usize),
    /// Nothing is certain.
    Always,
}

/// The facts of one script.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) variables: BTreeMap<String, Assigned>,
    /// How often each function is defined.
    pub(crate) functions: BTreeMap<String, u32>,
    pub(crate) associative: BTreeSet<String>,
    /// From where on any variable may be changed by code that is not seen.
    pub(crate) poisoned: Option<Poisoned>,
    /// Functions that run what they are given.
    pub(super) forwarding: Forwarding,
    /// Variables that `wait` gets as operands.
    pub(super) waited: Vec<String>,
    /// The script gives itself positional parameters.
    pub(crate) sets_positional: bool,
    /// A function stands in for a program whose output counts as a number.
    pub(crate) numbers_doubtful: bool,
    pub(crate) changes_directory: bool,
}

/// The parameter that a word is, in quotes or without.
pub(super) fn plain_parameter(pieces: &Pieces) -> Option<&str> {
    let is_quote = |piece: &&Piece| matches!(piece, Piece::Text { text, .. } if text.is_empty());
    let mut others = pieces.iter().filter(|piece| !is_quote(piece));
    match (others.next(), others.next()) {
        (Some(Piece::Parameter { parameter, .. }), None) if parameter.form == Form::Plain => {
            Some(&parameter.name)
        }
        _ => None,
    }
}

/// Whether a word is `$!` and nothing else: the process that was started last.
pub(crate) fn is_last_job(pieces: &Pieces) -> bool {
    plain_parameter(pieces) == Some("!")
}

/// Variables that bash itself sets, or whose assignment does more than store a value.
pub(super) const SPECIAL: [&str; 24] = [
    "BASHOPTS",
    "BASHPID",
    "BASH_ARGV0",
    "BASH_SUBSHELL",
    "COMP_WORDBREAKS",
    "DIRSTACK",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "EUID",
    "FUNCNAME",
    "GROUPS",
    "HISTCMD",
    "LINENO",
    "OLDPWD",
    "OPTARG",
    "OPTIND",
    "PPID",
    "PWD",
    "RANDOM",
    "REPLY",
    "SECONDS",
    "SHELLOPTS",
    "SRANDOM",
    "UID",
];

/// Whether bash gives a variable of this name a value although nobody assigns it.
pub(super) fn is_set_by_shell(name: &str) -> bool {
    const NAMES: [&str; 24] = [
        "_",
        "COLUMNS",
        "DIRSTACK",
        "EUID",
        "FUNCNAME",
        "GROUPS",
        "HOSTNAME",
        "HOSTTYPE",
        "IFS",
        "LINENO",
        "LINES",
        "MACHTYPE",
        "OPTERR",
        "OPTIND",
        "OSTYPE",
        "PATH",
        "PIPESTATUS",
        "PPID",
        "PWD",
        "SHELL",
        "SHELLOPTS",
        "SHLVL",
        "TERM",
        "UID",
    ];
    const FRONTS: [&str; 6] = ["BASH", "COMP_", "EPOCH", "HIST", "PS", "READLINE_"];
    NAMES.contains(&name) || FRONTS.iter().any(|front| name.starts_with(front))
}

impl Facts {
    pub(crate) fn gather(list: &List) -> Self {
        let mut facts = Self::default();
        facts.list(list, true);
        // An unknown operand of `wait` could be an option that assigns, unless it is a number.
        let is_number = |name: &String| {
            super::numeric::NUMERIC_PARAMETERS.contains(&name.as_str())
                || facts.variables.get(name).is_some_and(|assigned| assigned.numeric)
        };
        if !facts.waited.iter().all(is_number) || facts.waits_unclearly() {
            facts.poisoned = Some(Poisoned::Always);
        }
        facts
    }

    pub(super) fn poison(&mut self, words: &[WordNode]) {
        let start = words.first().map_or(0, |word| word.span.start);
        self.poisoned.get_or_insert(Poisoned::Behind(start));
    }

    /// Whether `wait` gets a number that a function of the script could make up.
    fn waits_unclearly(&self) -> bool {
        self.numbers_doubtful && !self.waited.is_empty()
    }

    /// Whether the script assigns, defines and moves nothing, so that what is known stays so.
    pub(crate) fn is_inert(&self) -> bool {
        self.variables.is_empty()
            && self.functions.is_empty()
            && self.poisoned.is_none()
            && !self.changes_directory
    }

    /// For a function that runs what it is given, and whose calls are all seen: how many parameters
    /// it puts away before.
    pub(crate) fn forwards(&self, name: &str) -> Option<usize> {
        let is_seen = self.poisoned.is_none() && self.functions.get(name) == Some(&1);
        self.forwarding.shifted(name).filter(|_| is_seen)
    }

    fn list(&mut self, list: &List, straight: bool) {
        for item in list {
            let straight = straight && !item.background;
            self.pipeline(&item.first, straight);
            for (_, pipeline) in &item.rest {
                self.pipeline(pipeline, false);
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, straight: bool) {
        let straight = straight && pipeline.commands.len() == 1;
        for command in &pipeline.commands {
            self.command(command, straight);
        }
    }

    fn command(&mut self, command: &Command, straight: bool) {
        for redirect in &command.redirects {
            if let Some(name) = &redirect.variable {
                self.assign(name, false, true);
            }
            match &redirect.target {
                crate::call::shell::syntax::ast::RedirectTarget::Word(word) => self.word(word),
                crate::call::shell::syntax::ast::RedirectTarget::HereDocument(document) => {
                    if let Some(document) = document.get() {
                        self.pieces(&document.body);
                    }
                }
            }
        }
        match &command.kind {
            CommandKind::Simple(simple) => self.simple(simple, straight),
            CommandKind::Group(list) => self.list(list, straight),
            CommandKind::Subshell(list) => self.list(list, false),
            CommandKind::If { clauses, otherwise } => {
                for (condition, body) in clauses {
                    self.list(condition, false);
                    self.list(body, false);
                }
                self.list(otherwise, false);
            }
            CommandKind::While { condition, body } => {
                self.list(condition, false);
                self.list(body, false);
            }
            CommandKind::For { name, words, body } => self.word_loop(name, words.as_deref(), body),
            CommandKind::ForArithmetic { expressions, body } => {
                expressions.iter().for_each(|expression| self.arithmetic(expression));
                self.list(body, false);
            }
            CommandKind::Case { word, arms } => {
                self.word(word);
                for arm in arms {
                    arm.patterns.iter().for_each(|pattern| self.word(pattern));
                    self.list(&arm.body, false);
                }
            }
            CommandKind::Arithmetic(expression) => self.arithmetic(expression),
            CommandKind::Conditional(operands) => {
                operands.iter().for_each(|operand| self.word(&operand.word));
                self.assign("BASH_REMATCH", false, false);
            }
            CommandKind::Function { name, body } => self.function(&name.text, body),
            CommandKind::Coprocess { name, body } => {
                let name = name.as_deref().unwrap_or("COPROC");
                self.assign(name, false, true);
                self.assign(&format!("{name}_PID"), false, true);
                self.command(body, false);
            }
        }
    }

    fn word_loop(&mut self, name: &str, words: Option<&[WordNode]>, body: &List) {
        let numeric = words.is_some_and(|words| {
            words.iter().all(|word| is_numeric_value(&word.pieces, &self.associative))
        });
        self.assign(name, false, numeric);
        words.unwrap_or_default().iter().for_each(|word| self.word(word));
        self.list(body, false);
    }

    fn function(&mut self, name: &str, body: &Command) {
        *self.functions.entry(name.to_owned()).or_default() += 1;
        self.numbers_doubtful |= NUMBER_PRINTERS.contains(&name);
        self.forwarding.define(name, body);
        self.command(body, false);
    }

    pub(super) fn assign(&mut self, name: &str, straight: bool, numeric: bool) {
        self.assign_value(name, straight, (numeric, false));
    }

    fn assign_value(&mut self, name: &str, straight: bool, (numeric, child): (bool, bool)) {
        let straight = straight && !SPECIAL.contains(&name);
        let assigned = self.variables.entry(name.to_owned()).or_insert(Assigned {
            straight: 0,
            elsewhere: false,
            numeric: true,
            child: true,
        });
        assigned.straight += u32::from(straight);
        assigned.elsewhere |= !straight;
        assigned.numeric &= numeric;
        assigned.child &= child;
    }

    fn simple(&mut self, simple: &Simple, straight: bool) {
        let alone = simple.words.is_empty();
        for assignment in &simple.assignments {
            // In front of a command it holds for that command only, and inside a function that is
            // called so.
            self.assignment(assignment, straight && alone);
        }
        simple.words.iter().for_each(|word| self.word(word));
        self.builtin(&simple.words, straight);
    }

    pub(super) fn assignment(&mut self, assignment: &AssignmentNode, straight: bool) {
        if let Some(subscript) = &assignment.subscript {
            self.arithmetic(subscript);
        }
        match &assignment.value {
            AssignedValue::Scalar(word) => {
                self.word(word);
                let plain = assignment.subscript.is_none() && !assignment.append;
                let numeric = is_numeric_value(&word.pieces, &self.associative);
                let child = is_last_job(&word.pieces) && !assignment.append;
                self.assign_value(&assignment.name, straight && plain, (numeric, child));
            }
            AssignedValue::Array(elements) => {
                let mut numeric = true;
                let child = elements.iter().all(|(_, word)| is_last_job(&word.pieces));
                for (subscript, word) in elements {
                    subscript.iter().for_each(|subscript| self.arithmetic(subscript));
                    self.word(word);
                    numeric &= is_numeric_value(&word.pieces, &self.associative);
                }
                self.assign_value(&assignment.name, false, (numeric, child));
            }
        }
    }

    fn word(&mut self, word: &WordNode) {
        self.pieces(&word.pieces);
    }

    fn pieces(&mut self, pieces: &Pieces) {
        for piece in pieces {
            match piece {
                Piece::Text { .. } => {}
                Piece::Parameter { parameter, .. } => {
                    if let Some(subscript) = &parameter.subscript {
                        self.arithmetic(subscript);
                    }
                    match parameter.form {
                        Form::AssignDefault => self.assign(&parameter.name, false, false),
                        Form::Substring => self.arithmetic(&parameter.operand),
                        Form::Plain
                        | Form::Length
                        | Form::Indirect
                        | Form::Names
                        | Form::Default
                        | Form::Operand
                        | Form::Transform(_) => {}
                    }
                    self.pieces(&parameter.operand);
                }
                Piece::Command { body, .. } | Piece::Process { body } => self.list(body, false),
                Piece::Arithmetic { expression, .. } => self.arithmetic(expression),
                Piece::Opaque { inside } => self.pieces(inside),
            }
        }
    }

    /// Every name in an expression that assigns something counts as assigned a number.
    fn arithmetic(&mut self, expression: &Pieces) {
        let assigns = expression.iter().any(|piece| {
            matches!(piece, Piece::Text { text, .. }
                if text.contains('=') || text.contains("++") || text.contains("--"))
        });
        if assigns {
            for piece in expression {
                if let Piece::Text { text, .. } = piece {
                    super::numeric::names(text).for_each(|name| self.assign(name, false, true));
                }
            }
        }
        self.pieces(expression);
    }
}

/// The word's text, if nothing in it is expanded.
pub(crate) fn literal(word: &WordNode) -> Option<&str> {
    match word.pieces.as_slice() {
        [Piece::Text { text, .. }] => Some(text),
        _ => None,
    }
}
