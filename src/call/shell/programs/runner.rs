//! Applies the table of programs that run others to one command.

use super::options::{Read, read};
use super::runners::{Code, Inner, Runner, find};
use super::{Invoked, shells};
use crate::call::effects::{Assignment, UnresolvedReason};
use crate::call::shell::meaning::fields::Field;
use crate::call::shell::meaning::walk::{Analysis, Call, Walked};

pub(super) fn run(analysis: &mut Analysis, invoked: &Invoked<'_>) -> Walked {
    let Some(runner) = find(invoked.name) else { return super::special::run(analysis, invoked) };
    let wraps = runner.inner != Inner::None;
    let read = read(invoked.arguments, &runner.options, wraps);
    code_options(analysis, invoked, runner, &read)?;
    match runner.inner {
        Inner::None => super::special::run(analysis, invoked),
        Inner::Words(skip) => words(analysis, invoked, runner, &read, skip),
        Inner::Shell(skip) => joined(analysis, invoked, runner, &read, skip),
        Inner::After(words) => after(analysis, invoked, &read, words),
        Inner::Dashes => dashes(analysis, invoked, runner),
        Inner::Unclear if invoked.arguments.is_empty() => Ok(()),
        Inner::Unclear => unclear(analysis, invoked),
    }
}

/// Judges the options whose values are code.
pub(super) fn code_options(
    analysis: &mut Analysis,
    invoked: &Invoked<'_>,
    runner: &Runner,
    read: &Read,
) -> Walked {
    for given in &read.given {
        let kind = runner.code.iter().find(|(name, _)| *name == given.name);
        if let (Some((name, kind)), Some(value)) = (kind, &given.value) {
            code(analysis, invoked, name, *kind, value)?;
        }
    }
    Ok(())
}

/// Judges one piece of code that an option gives.
pub(super) fn code(
    analysis: &mut Analysis,
    invoked: &Invoked<'_>,
    option: &str,
    kind: Code,
    value: &Field,
) -> Walked {
    let Some(text) = value.exact() else {
        analysis.inline_code(invoked.index, option);
        analysis.unresolved(UnresolvedReason::CodeWord, &value.text, value.span);
        return Ok(());
    };
    match kind {
        Code::Foreign => analysis.inline_code(invoked.index, option),
        Code::Program => {
            let inner = invoked.inner(&[Field::known(text, value.span)]);
            return analysis.run(inner);
        }
        Code::Shell => return shells::code(analysis, invoked, text, value.span),
        Code::Commas => {
            let words = text.split(',').map(|word| Field::known(word, value.span));
            let inner = invoked.inner(&words.collect::<Vec<_>>());
            return analysis.run(inner);
        }
        Code::ExecPrefix => {
            if let Some(command) = text.strip_prefix("exec=") {
                return shells::code(analysis, invoked, command, value.span);
            }
        }
        Code::PipePrefix => {
            if let Some(command) = text.strip_prefix(['|', '!']) {
                return shells::code(analysis, invoked, command, value.span);
            }
        }
    }
    Ok(())
}

pub(super) fn unclear(analysis: &mut Analysis, invoked: &Invoked<'_>) -> Walked {
    let text = invoked.arguments.iter().map(|field| &*field.text).collect::<Vec<_>>().join(" ");
    analysis.unresolved(
        UnresolvedReason::Wrapper,
        &format!("{} {text}", invoked.name),
        invoked.call.span,
    );
    Ok(())
}

/// The words from an operand on.
fn rest<'call>(invoked: &Invoked<'call>, read: &Read, skip: usize) -> &'call [Field] {
    read.operands.get(skip).and_then(|index| invoked.arguments.get(*index..)).unwrap_or_default()
}

fn words(
    analysis: &mut Analysis,
    invoked: &Invoked<'_>,
    runner: &Runner,
    read: &Read,
    skip: usize,
) -> Walked {
    if read
        .given
        .iter()
        .any(|given| matches!(given.name.as_str(), "-v" | "-V") && invoked.name == "command")
    {
        return Ok(());
    }
    // Only what stands before the inner command must be clear.
    let mut fields = rest(invoked, read, skip);
    let before = invoked.arguments.len() - fields.len();
    let head = invoked.arguments.get(..before).unwrap_or_default();
    let doubtful = read.given.iter().any(|given| !given.described)
        || head.iter().any(|field| field.unknown && (field.many || field.value.is_empty()));
    if doubtful {
        return unclear(analysis, invoked);
    }
    if invoked.name == "flock"
        && fields
            .first()
            .and_then(Field::exact)
            .is_some_and(|word| matches!(word, "-c" | "--command"))
    {
        return match fields.get(1) {
            Some(value) => code(analysis, invoked, "-c", Code::Shell, value),
            None => Ok(()),
        };
    }
    let assignments =
        if runner.assignments { leading_assignments(&mut fields) } else { Vec::new() };
    if fields.is_empty() {
        return without_command(analysis, invoked, &read.given);
    }
    let inner = Call {
        assignments,
        lookup: super::builtins::lookup_behind(invoked),
        ..invoked.inner(fields)
    };
    analysis.remotely(runner.remote, |analysis| analysis.run(inner))
}

/// Programs that start a shell where no command is given; it reads what they read.
pub(super) fn without_command(
    analysis: &mut Analysis,
    invoked: &Invoked<'_>,
    given: &[super::options::Given],
) -> Walked {
    let wants_shell = |name: &str| matches!(name, "-s" | "-i" | "--shell" | "--login");
    let starts_shell = match invoked.name {
        "sudo" | "doas" => given.iter().any(|option| wants_shell(&option.name)),
        "unshare" | "nsenter" | "chroot" | "fakeroot" | "newgrp" | "runuser" | "su" => true,
        _ => false,
    };
    if !starts_shell {
        return Ok(());
    }
    shells::standard_input(analysis, invoked)
}

/// Takes the `NAME=value` words at the front.
pub(super) fn leading_assignments(fields: &mut &[Field]) -> Vec<Assignment> {
    let mut assignments = Vec::new();
    while let Some((first, rest)) = fields.split_first() {
        let Some(assignment) = assignment(first) else { break };
        assignments.push(assignment);
        *fields = rest;
    }
    assignments
}

/// `NAME=value` as a word; the value may be unknown.
pub(super) fn assignment(field: &Field) -> Option<Assignment> {
    let (name, _) = field.prefix().split_once('=').filter(|(name, _)| !name.is_empty())?;
    let offset = name.len() + 1;
    let value = Field {
        value: field.value.get(offset..).unwrap_or("").to_owned(),
        pattern: field.pattern.map(|pattern| pattern.saturating_sub(offset)),
        text: field.text.get(offset..).unwrap_or(&field.text).into(),
        ..field.clone()
    };
    Some(Assignment { name: name.to_owned(), value: value.word(), span: field.span })
}

fn joined(
    analysis: &mut Analysis,
    invoked: &Invoked<'_>,
    runner: &Runner,
    read: &Read,
    skip: usize,
) -> Walked {
    let exec = read.given.iter().any(|given| matches!(given.name.as_str(), "-x" | "--exec"));
    if invoked.name == "watch" && exec {
        return words(analysis, invoked, runner, read, skip);
    }
    if read.given.iter().any(|given| !given.described) {
        return unclear(analysis, invoked);
    }
    if invoked.name == "ssh" {
        ssh_settings(analysis, invoked, read)?;
    }
    let fields = rest(invoked, read, skip);
    if fields.is_empty() {
        return Ok(());
    }
    let texts: Option<Vec<&str>> = fields.iter().map(Field::exact).collect();
    let Some(texts) = texts else {
        analysis.unresolved(UnresolvedReason::CodeWord, invoked.name, invoked.call.span);
        return Ok(());
    };
    let separator = if invoked.name == "hyperfine" { "\n" } else { " " };
    let script = texts.join(separator);
    let span = invoked.call.span;
    analysis.remotely(runner.remote, |analysis| shells::code(analysis, invoked, &script, span))
}

/// `-o Name=value` of ssh and its kin: some settings are commands.
pub(super) fn ssh_settings(analysis: &mut Analysis, invoked: &Invoked<'_>, read: &Read) -> Walked {
    for given in read.given.iter().filter(|given| given.name == "-o") {
        let Some(value) = &given.value else { continue };
        let setting = value.value.trim_start().to_ascii_lowercase();
        let runs = [
            "proxycommand",
            "localcommand",
            "knownhostscommand",
            "remotecommand",
            "proxyusefdpass",
            "pkcs11provider",
            "securitykeyprovider",
            "xauthlocation",
            "include",
            "match",
        ]
        .iter()
        .any(|name| setting.starts_with(name));
        if value.exact().is_none() {
            analysis.unresolved(UnresolvedReason::CodeWord, &value.text, value.span);
        }
        if runs {
            analysis.inline_code(invoked.index, "-o");
            let command = value.value.split_once(['=', ' ']).map_or("", |(_, command)| command);
            shells::code(analysis, invoked, command, value.span)?;
        }
    }
    Ok(())
}

/// `uv run …`: the inner command stands behind a word of the program.
fn after(analysis: &mut Analysis, invoked: &Invoked<'_>, read: &Read, words: &[&str]) -> Walked {
    let fields = rest(invoked, read, 0);
    let Some((first, tail)) = fields.split_first() else { return Ok(()) };
    if !first.exact().is_some_and(|word| words.contains(&word)) {
        return Ok(());
    }
    let Some(runner) = find(invoked.name) else { return Ok(()) };
    let inner = super::options::read(tail, &runner.options, true);
    let command = inner.operands.first().and_then(|index| tail.get(*index..)).unwrap_or_default();
    code_options(analysis, invoked, runner, &inner)?;
    if inner.given.iter().any(|given| !given.described) {
        return unclear(analysis, invoked);
    }
    if command.is_empty() {
        return Ok(());
    }
    analysis.run(invoked.inner(command))
}

fn dashes(analysis: &mut Analysis, invoked: &Invoked<'_>, runner: &Runner) -> Walked {
    let place = invoked.arguments.iter().position(|field| field.exact() == Some("--"));
    let Some(command) = place.and_then(|place| invoked.arguments.get(place + 1..)) else {
        return Ok(());
    };
    if command.is_empty() {
        return Ok(());
    }
    let inner = invoked.inner(command);
    analysis.remotely(runner.remote, |analysis| analysis.run(inner))
}
