//! The parts of which rules are made, to be compared: one program, path, variable, tool or host with its
//! conditions. Two parts are the same if they are written the same.

use super::bound::BoundPolicy;
use super::file::schema::Decision;
use super::rules::RuleMeta;
use super::rules::arguments::Condition;
use super::rules::commands::ProgramPattern;
use super::rules::globs::{Shape, expand};
use super::rules::tokens::Token;
use super::unit::Unit;
use crate::base::paths::is_within;
use crate::call::effects::Access;
use std::sync::Arc;

/// What a part is about, as far as two different ones can be told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// Programs.
    Program(ProgramPattern),
    /// A kind of access to the paths of a pattern.
    Path(Access, String),
    /// Anything else.
    Other,
}

/// One part of a rule.
#[derive(Debug)]
pub(super) struct Atom<'u> {
    /// The rule.
    pub(super) meta: &'u Arc<RuleMeta>,
    place: Place,
    /// Everything that decides whether it fits, as text.
    written: String,
}

impl<'u> Atom<'u> {
    /// What the rule says.
    pub(super) fn decision(&self) -> Decision {
        self.meta.decision
    }

    /// Whether both fit exactly the same.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.written == other.written
    }

    /// Whether whatever this one fits is fitted by `other`.
    pub(super) fn is_within(&self, other: &Self, policy: &BoundPolicy) -> bool {
        let (Place::Path(access, path), Place::Path(others, around)) = (&self.place, &other.place)
        else {
            return self.is_same(other);
        };
        if self.is_same(other) {
            return true;
        }
        let has_exceptions = other.written.contains(EXCEPT);
        let (Some(path), Some(around)) =
            (expand(path, policy.places()), expand(around, policy.places()))
        else {
            return false;
        };
        let inside = match (&path, &around) {
            (Shape::Exact(path) | Shape::Tree(path), Shape::Tree(around)) => {
                is_within(path, around)
            }
            (Shape::Exact(path), Shape::Exact(same)) => path == same,
            (Shape::Glob(_), _) | (_, Shape::Glob(_)) | (Shape::Tree(_), Shape::Exact(_)) => false,
        };
        access == others && inside && !has_exceptions
    }

    /// Whether something could be fitted by both; `true` where it cannot be told.
    pub(super) fn may_meet(&self, other: &Self, policy: &BoundPolicy) -> bool {
        match (&self.place, &other.place) {
            (
                Place::Program(ProgramPattern::Name(left)),
                Place::Program(ProgramPattern::Name(right)),
            ) => left == right,
            (Place::Path(left, path), Place::Path(right, other)) => {
                left == right && paths_may_meet(path, other, policy)
            }
            (Place::Program(_) | Place::Path(..) | Place::Other, _) => true,
        }
    }

    /// The parts of a unit's rules over paths.
    pub(super) fn paths(unit: &'u Unit) -> Vec<Self> {
        let parts = unit.paths.iter().flat_map(|rule| {
            let each = rule
                .access
                .iter()
                .flat_map(|access| rule.patterns.iter().map(move |pattern| (*access, pattern)));
            each.map(|(access, pattern)| {
                let except = match rule.except.as_slice() {
                    [] => String::new(),
                    except => format!("{EXCEPT}{except:?}"),
                };
                Self {
                    meta: &rule.meta,
                    place: Place::Path(access, pattern.clone()),
                    written: format!("{access:?} {pattern:?}{except}"),
                }
            })
        });
        parts.collect()
    }

    /// The parts of a unit's rules over commands.
    pub(super) fn commands(unit: &'u Unit) -> Vec<Self> {
        let parts = unit.commands.rules.iter().flat_map(|rule| {
            let tokens = rule.tokens.as_ref().map(|tokens| tokens.iter().map(token).collect());
            let tokens: Option<Vec<String>> = tokens;
            let except: Vec<Vec<String>> =
                rule.except.iter().map(|tokens| tokens.iter().map(token).collect()).collect();
            let (flags, remote, code) = (&rule.flags, rule.remote, rule.code);
            let conditions = format!("{tokens:?} {flags:?}{EXCEPT}{except:?} {remote} {code}");
            rule.programs.iter().map(move |program| Self {
                meta: &rule.meta,
                place: Place::Program(program.clone()),
                written: format!("{program:?} {conditions}"),
            })
        });
        parts.collect()
    }

    /// The parts of a unit's rules over assignments.
    pub(super) fn assignments(unit: &'u Unit) -> Vec<Self> {
        let parts = unit.assignments.iter().flat_map(|rule| {
            let [value, except] =
                [&rule.value, &rule.except].map(|regex| regex.as_ref().map(|regex| regex.text()));
            rule.names.iter().map(move |name| {
                Self::other(&rule.meta, format!("{name:?} {value:?}{EXCEPT}{except:?}"))
            })
        });
        parts.collect()
    }

    /// The parts of a unit's rules over tools.
    pub(super) fn tools(unit: &'u Unit) -> Vec<Self> {
        let parts = unit.tools.iter().flat_map(|rule| {
            let conditions: Vec<String> = rule.conditions.iter().map(condition).collect();
            rule.tools
                .iter()
                .map(move |tool| Self::other(&rule.meta, format!("{tool:?} {conditions:?}")))
        });
        parts.collect()
    }

    /// The parts of a unit's rules over hosts.
    pub(super) fn hosts(unit: &'u Unit) -> Vec<Self> {
        let parts = unit.hosts.iter().flat_map(|rule| {
            rule.hosts.iter().map(move |host| {
                let written = format!("{host:?} {:?} {:?}", rule.ports, rule.methods);
                Self::other(&rule.meta, written)
            })
        });
        parts.collect()
    }

    const fn other(meta: &'u Arc<RuleMeta>, written: String) -> Self {
        Self { meta, place: Place::Other, written }
    }
}

/// Stands before the exceptions of a rule.
const EXCEPT: &str = " except ";

fn paths_may_meet(left: &str, right: &str, policy: &BoundPolicy) -> bool {
    let shapes = (expand(left, policy.places()), expand(right, policy.places()));
    match shapes {
        (
            Some(Shape::Exact(left) | Shape::Tree(left)),
            Some(Shape::Exact(right) | Shape::Tree(right)),
        ) => is_within(&left, &right) || is_within(&right, &left),
        // A pattern over a place that there is not means nothing.
        (None, _) | (_, None) => false,
        (Some(Shape::Glob(_)), Some(_)) | (Some(_), Some(Shape::Glob(_))) => true,
    }
}

fn token(token: &Token) -> String {
    match token {
        Token::Words(words) => format!("{words:?}"),
        Token::Any => "any".to_owned(),
        Token::Rest => "rest".to_owned(),
        Token::Regex { regex, unknown } => format!("regex {:?} {unknown}", regex.text()),
    }
}

fn condition((pointer, condition): &(String, Condition)) -> String {
    let condition = match condition {
        Condition::Equals(value) => format!("equals {value}"),
        Condition::Matches(regex) => format!("regex {:?}", regex.as_str()),
        Condition::Present(present) => format!("present {present}"),
    };
    format!("{pointer:?} {condition}")
}
