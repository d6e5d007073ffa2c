//! Functions that run what they are given: `run() { echo "+ $*"; "$@"; }`.
//!
//! What such a function runs is not known where it is defined, and known where it is called. It is
//! judged there, as long as every call stands in the script. `shift` is followed where it stands in
//! the straight line of the body; any other change of the parameters leaves the word unknown.

use super::facts::literal;
use crate::call::shell::syntax::ast::{Command, CommandKind, Connector, Item, List, Simple};
use std::collections::BTreeMap;

/// Whether the command runs all parameters of its function, as a command.
pub(crate) fn runs_parameters(simple: &Simple) -> bool {
    simple.words.first().is_some_and(|word| &*word.text == "\"$@\"")
}

/// The functions of a script that run their parameters.
#[derive(Debug, Default)]
pub(super) struct Forwarding {
    /// How many parameters each puts away before.
    shifted: BTreeMap<String, usize>,
    /// Shells that are not seen may call them.
    pub(super) is_exported: bool,
}

impl Forwarding {
    /// Takes a definition. Bash itself calls the function that stands for commands that are not found.
    pub(super) fn define(&mut self, name: &str, body: &Command) {
        if let Some(shifted) = shifted(body).filter(|_| name != "command_not_found_handle") {
            self.shifted.insert(name.to_owned(), shifted);
        }
    }

    /// How many parameters a function puts away before it runs the others, if it runs them.
    pub(super) fn shifted(&self, name: &str) -> Option<usize> {
        self.shifted.get(name).copied().filter(|_| !self.is_exported)
    }
}

/// How many parameters a function puts away before it runs the others; `None` where it runs none, or
/// where what they are at that place is not followed.
fn shifted(body: &Command) -> Option<usize> {
    let mut reading = Reading::default();
    if let CommandKind::Group(list) = &body.kind {
        reading.straight(list);
    } else {
        reading.command(body);
    }
    (reading.runs && !reading.is_lost).then_some(reading.shifted)
}

#[derive(Debug, Default)]
struct Reading {
    runs: bool,
    shifted: usize,
    is_lost: bool,
}

impl Reading {
    /// The commands of the body itself, each of which runs once.
    fn straight(&mut self, list: &List) {
        for item in list {
            match shift_alone(item) {
                // What ran before it had other parameters.
                Some(_) if self.runs => self.is_lost = true,
                Some(count) => self.shifted += count,
                None => self.item(item),
            }
        }
    }

    fn list(&mut self, list: &List) {
        list.iter().for_each(|item| self.item(item));
    }

    fn item(&mut self, item: &Item) {
        let rest = item.rest.iter().map(|(_, pipeline): &(Connector, _)| pipeline);
        for pipeline in std::iter::once(&item.first).chain(rest) {
            pipeline.commands.iter().for_each(|command| self.command(command));
        }
    }

    fn command(&mut self, command: &Command) {
        match &command.kind {
            CommandKind::Simple(simple) => self.simple(simple),
            CommandKind::Subshell(list) | CommandKind::Group(list) => self.list(list),
            CommandKind::If { clauses, otherwise } => {
                for (condition, body) in clauses {
                    self.list(condition);
                    self.list(body);
                }
                self.list(otherwise);
            }
            CommandKind::While { condition, body } => {
                self.list(condition);
                self.list(body);
            }
            CommandKind::For { body, .. } | CommandKind::ForArithmetic { body, .. } => {
                self.list(body);
            }
            CommandKind::Case { arms, .. } => arms.iter().for_each(|arm| self.list(&arm.body)),
            CommandKind::Arithmetic(_) | CommandKind::Conditional(_) => {}
            // A function has parameters of its own.
            CommandKind::Function { .. } | CommandKind::Coprocess { .. } => self.is_lost = true,
        }
    }

    fn simple(&mut self, simple: &Simple) {
        self.runs |= runs_parameters(simple);
        let mut words = simple.words.iter().map(literal);
        self.is_lost |= words.any(|word| matches!(word, Some("shift" | "set")));
    }
}

/// `shift` or `shift 2` as an item of its own.
fn shift_alone(item: &Item) -> Option<usize> {
    let [command] = item.first.commands.as_slice() else { return None };
    let CommandKind::Simple(simple) = &command.kind else { return None };
    if item.background || !item.rest.is_empty() || !simple.assignments.is_empty() {
        return None;
    }
    match simple.words.as_slice() {
        [word] if literal(word) == Some("shift") => Some(1),
        [word, count] if literal(word) == Some("shift") => literal(count)?.parse().ok(),
        _ => None,
    }
}
