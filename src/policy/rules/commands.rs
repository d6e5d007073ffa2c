//! Rules over commands, indexed by program, so that a decision looks only at the rules that may
//! concern it.
//!
//! A program is trusted by its base name only without a directory or in a system directory:
//! `./sed` is not the `sed` of an allow rule, but a deny rule for `sed` means every `sed`.

use super::tokens::{Token, check_flag, fit_tokens, has_flag};
use super::{Fit, PatternError, RuleMeta};
use crate::call::effects::{CommandUse, Word};
use crate::policy::file::schema::Decision;
use std::collections::HashMap;
use std::sync::Arc;

/// Directories whose programs may be named by their base name.
pub const SYSTEM_PROGRAM_DIRECTORIES: [&str; 6] =
    ["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"];

/// Which program a rule means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramPattern {
    /// This base name.
    Name(String),
    /// Every base name that begins so.
    Prefix(String),
    /// This path; may begin with `{workspace}`, `{home}` or `{tmp}`.
    Path(String),
    /// Every program.
    Any,
}

impl ProgramPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        if text == "*" {
            return Ok(Self::Any);
        }
        if text.contains(char::is_whitespace) {
            let message = format!("`{text}` holds a space: a program is one word");
            return Err(("space-in-token", message, Some("put the rest into `tokens`".into())));
        }
        if text.contains('/') {
            super::globs::check(text)?;
            if text.contains(['*', '?', '[']) {
                let message = "a program path is written out, without `*`, `?` or `[`".to_owned();
                return Err(("bad-pattern", message, None));
            }
            return Ok(Self::Path(text.to_owned()));
        }
        Ok(match super::NamePattern::new(text)? {
            super::NamePattern::Exact(name) => Self::Name(name),
            super::NamePattern::Prefix(name) => Self::Prefix(name),
        })
    }
}

/// A compiled rule over commands.
#[derive(Debug)]
pub struct CommandMatcher {
    /// Who says it.
    pub meta: Arc<RuleMeta>,
    /// The programs.
    pub programs: Vec<ProgramPattern>,
    /// The arguments; `None`: any.
    pub tokens: Option<Vec<Token>>,
    /// Options that must all be there, each with its spellings.
    pub flags: Vec<Vec<String>>,
    /// Arguments with which it is not meant.
    pub except: Vec<Vec<Token>>,
    /// Whether only commands are meant that may reach another machine.
    pub remote: bool,
    /// Whether an allow covers inline code.
    pub code: bool,
}

/// How a rule fits a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandFit {
    /// Not at all.
    No,
    /// An unknown word decides.
    Maybe,
    /// It does, but the command carries code that the rule does not cover.
    ButForCode,
    /// It does.
    Yes,
}

impl CommandMatcher {
    /// Compiles the flags of a rule.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub fn check_flags(flags: &[String]) -> Result<(), PatternError> {
        if flags.is_empty() {
            return Err(("empty-pattern", "the list of spellings is empty".into(), None));
        }
        flags.iter().try_for_each(|flag| check_flag(flag))
    }

    /// How the arguments fit; the program is already known to.
    #[must_use]
    pub fn fit(&self, command: &CommandUse) -> CommandFit {
        let loose = self.meta.decision > Decision::Allow;
        if self.remote && command.stays_here || self.is_excepted(command) {
            return CommandFit::No;
        }
        if !self.flags.iter().all(|flag| has_flag(flag, &command.arguments, loose)) {
            return CommandFit::No;
        }
        let fit = match &self.tokens {
            None => Fit::Yes,
            Some(tokens) if loose || self.flags.is_empty() => {
                fit_tokens(tokens, self.positional(command), loose)
            }
            Some(tokens) => fit_tokens(tokens, &self.without_flags(command), loose),
        };
        match fit {
            Fit::No => CommandFit::No,
            Fit::Maybe if loose => CommandFit::Maybe,
            Fit::Maybe => CommandFit::No,
            Fit::Yes if !loose && command.inline_code.is_some() && !self.code => {
                CommandFit::ButForCode
            }
            Fit::Yes => CommandFit::Yes,
        }
    }

    /// An exception is as exact as an allow.
    fn is_excepted(&self, command: &CommandUse) -> bool {
        command.inline_code.is_none()
            && self
                .except
                .iter()
                .any(|tokens| fit_tokens(tokens, &command.arguments, false) == Fit::Yes)
    }

    /// The arguments behind those options of well-known programs that change where the program
    /// works or how it prints, and nothing else.
    fn positional<'c>(&self, command: &'c CommandUse) -> &'c [Word] {
        let is_git =
            self.programs.iter().any(|program| *program == ProgramPattern::Name("git".into()));
        if !is_git || self.meta.decision > Decision::Allow {
            return &command.arguments;
        }
        let mut rest = command.arguments.as_slice();
        loop {
            rest = match rest {
                [Word::Known(option), _, tail @ ..] if option == "-C" => tail,
                [Word::Known(option), tail @ ..]
                    if matches!(
                        option.as_str(),
                        "--no-pager" | "-P" | "--no-optional-locks" | "--literal-pathspecs"
                    ) =>
                {
                    tail
                }
                _ => return rest,
            };
        }
    }

    fn without_flags(&self, command: &CommandUse) -> Vec<Word> {
        let is_named = |word: &&Word| {
            let named = |argument: &str| {
                self.flags
                    .iter()
                    .flatten()
                    .any(|flag| super::tokens::is_flag(flag, argument, false))
            };
            !word.known().is_some_and(named)
        };
        command.arguments.iter().filter(is_named).cloned().collect()
    }
}

/// All rules of one unit, found by program.
#[derive(Debug, Default)]
pub struct CommandIndex {
    /// The rules.
    pub rules: Vec<CommandMatcher>,
    by_name: HashMap<String, Vec<usize>>,
    others: Vec<usize>,
}

impl CommandIndex {
    /// Builds the index.
    #[must_use]
    pub fn new(rules: Vec<CommandMatcher>) -> Self {
        let mut index = Self { rules, ..Self::default() };
        for (at, rule) in index.rules.iter().enumerate() {
            let mut is_other = false;
            for program in &rule.programs {
                match program {
                    ProgramPattern::Name(name) => {
                        index.by_name.entry(name.clone()).or_default().push(at);
                    }
                    ProgramPattern::Prefix(_) | ProgramPattern::Path(_) | ProgramPattern::Any => {
                        is_other = true;
                    }
                }
            }
            if is_other {
                index.others.push(at);
            }
        }
        index
    }

    /// Whether some deny or ask rule names a program: then a command that cannot be told might be it.
    #[must_use]
    pub fn refuses_a_program(&self) -> bool {
        self.rules.iter().any(|rule| rule.meta.decision > Decision::Allow)
    }

    /// The rules that name exactly this program.
    pub fn naming(&self, program: &str) -> impl Iterator<Item = &CommandMatcher> {
        let named = self.by_name.get(program).map_or(&[][..], Vec::as_slice);
        named.iter().filter_map(|at| self.rules.get(*at))
    }

    /// The rules that mean the program of `command`, with how they fit.
    pub fn fits<'i>(
        &'i self,
        command: &'i CommandUse,
        expand: &'i dyn Fn(&str) -> Option<String>,
    ) -> impl Iterator<Item = (&'i CommandMatcher, CommandFit)> + 'i {
        let program = command.program.known().unwrap_or("");
        let base = program.rsplit('/').next().unwrap_or(program);
        let named = self.by_name.get(base).map_or(&[][..], Vec::as_slice);
        named
            .iter()
            .chain(&self.others)
            .filter_map(|at| self.rules.get(*at))
            .filter(move |rule| means_program(rule, program, base, expand))
            .map(move |rule| (rule, rule.fit(command)))
            .filter(|(_, fit)| *fit != CommandFit::No)
    }
}

fn means_program(
    rule: &CommandMatcher,
    program: &str,
    base: &str,
    expand: &dyn Fn(&str) -> Option<String>,
) -> bool {
    let loose = rule.meta.decision > Decision::Allow;
    let by_name = loose || is_trusted_place(program);
    rule.programs.iter().any(|pattern| match pattern {
        ProgramPattern::Name(name) => by_name && name == base,
        ProgramPattern::Prefix(prefix) => by_name && base.starts_with(prefix.as_str()),
        ProgramPattern::Path(path) => expand(path).is_some_and(|path| path == program),
        ProgramPattern::Any => true,
    })
}

/// Whether a program word means what its base name says: no directory, or a system directory.
#[must_use]
pub fn is_trusted_place(program: &str) -> bool {
    match program.rsplit_once('/') {
        None => true,
        Some((directory, _)) => SYSTEM_PROGRAM_DIRECTORIES.contains(&directory),
    }
}
