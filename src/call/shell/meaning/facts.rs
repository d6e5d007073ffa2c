//! What a whole script says about its variables and functions, gathered before the walk.
//!
//! A variable's value is used only where it is certain: every assignment to it stands in the
//! straight line of the script and nothing (`eval`, `source`, a name reference) could assign it
//! behind our back. A variable that only ever receives numbers is safe in arithmetic, where bash
//! would run the substitutions inside a value.

use super::numeric::is_numeric_value;
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
}

/// The facts of one script.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) variables: BTreeMap<String, Assigned>,
    /// How often each function is defined.
    pub(crate) functions: BTreeMap<String, u32>,
    pub(crate) associative: BTreeSet<String>,
    /// Any variable may be changed by code that is not seen.
    pub(crate) poisoned: bool,
    pub(crate) changes_directory: bool,
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

impl Facts {
    pub(crate) fn gather(list: &List) -> Self {
        let mut facts = Self::default();
        facts.list(list, true);
        facts
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
        self.command(body, false);
    }

    fn assign(&mut self, name: &str, straight: bool, numeric: bool) {
        let straight = straight && !SPECIAL.contains(&name);
        let assigned = self.variables.entry(name.to_owned()).or_insert(Assigned {
            straight: 0,
            elsewhere: false,
            numeric: true,
        });
        assigned.straight += u32::from(straight);
        assigned.elsewhere |= !straight;
        assigned.numeric &= numeric;
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

    fn assignment(&mut self, assignment: &AssignmentNode, straight: bool) {
        if let Some(subscript) = &assignment.subscript {
            self.arithmetic(subscript);
        }
        match &assignment.value {
            AssignedValue::Scalar(word) => {
                self.word(word);
                let plain = assignment.subscript.is_none() && !assignment.append;
                let numeric = is_numeric_value(&word.pieces, &self.associative);
                self.assign(&assignment.name, straight && plain, numeric);
            }
            AssignedValue::Array(elements) => {
                let mut numeric = true;
                for (subscript, word) in elements {
                    subscript.iter().for_each(|subscript| self.arithmetic(subscript));
                    self.word(word);
                    numeric &= is_numeric_value(&word.pieces, &self.associative);
                }
                self.assign(&assignment.name, false, numeric);
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

    /// Builtins that assign variables named by their arguments.
    fn builtin(&mut self, words: &[WordNode], straight: bool) {
        let texts: Vec<Option<&str>> = words.iter().map(literal).collect();
        let mut rest = texts.as_slice();
        while let [Some("command" | "builtin" | "exec"), tail @ ..] = rest {
            rest = tail;
        }
        let skipped = texts.len() - rest.len();
        let [Some(name), arguments @ ..] = rest else {
            // If its name turns out to be that of a builtin that assigns, the walk says so.
            return;
        };
        match *name {
            "eval" | "source" | "." | "trap" => self.poisoned = true,
            "unset" => {
                // Behind it the name may be that of a program again.
                for name in arguments.iter().flatten() {
                    *self.functions.entry((*name).to_owned()).or_default() += 2;
                }
                self.named_by(arguments, false);
            }
            "read" | "mapfile" | "readarray" | "getopts" | "let" | "wait" => {
                self.assign("REPLY", false, false);
                self.assign("MAPFILE", false, false);
                self.named_by(arguments, *name == "let");
            }
            "printf"
                if arguments
                    .first()
                    .copied()
                    .flatten()
                    .is_none_or(|word| word.starts_with("-v")) =>
            {
                self.named_by(arguments, false);
            }
            "declare" | "typeset" | "local" | "export" | "readonly" => {
                self.declaration(name, words.get(skipped + 1..).unwrap_or_default(), straight);
            }
            "cd" | "pushd" | "popd" => self.changes_directory = true,
            _ => {}
        }
    }

    fn named_by(&mut self, arguments: &[Option<&str>], numeric: bool) {
        for argument in arguments {
            match argument {
                Some(word) => {
                    let name = word.trim_start_matches("-v").split(['[', '=', '+']).next();
                    self.assign(name.unwrap_or(word), false, numeric);
                }
                None => self.poisoned = true,
            }
        }
    }

    fn declaration(&mut self, builtin: &str, words: &[WordNode], straight: bool) {
        let mut plain = matches!(builtin, "export" | "readonly");
        for word in words {
            if let Some(assignment) = &word.assignment {
                self.assignment(assignment, straight && plain);
                continue;
            }
            match literal(word) {
                Some(option) if option.starts_with(['-', '+']) => {
                    plain &= matches!(option, "-x" | "-r" | "--");
                    self.poisoned |= option.contains('n') && builtin != "export";
                    if option.contains('A') {
                        self.associative.extend(declared_names(words));
                    }
                }
                // A declaration of a name gives it no value that code could stand in.
                Some(name) => self.assign(name, false, true),
                None => self.poisoned = true,
            }
        }
    }
}

fn declared_names(words: &[WordNode]) -> impl Iterator<Item = String> + '_ {
    words.iter().filter_map(|word| match &word.assignment {
        Some(assignment) => Some(assignment.name.clone()),
        None => literal(word).map(ToOwned::to_owned),
    })
}

/// The word's text, if nothing in it is expanded.
pub(crate) fn literal(word: &WordNode) -> Option<&str> {
    match word.pieces.as_slice() {
        [Piece::Text { text, .. }] => Some(text),
        _ => None,
    }
}
