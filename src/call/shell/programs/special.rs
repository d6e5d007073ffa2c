//! Programs whose operands are neither a command nor only paths: each needs a look of its own.

use super::options::read;
use super::runner::{code, ssh_settings, unclear, without_command};
use super::runners::{Code, find};
use super::{Invoked, environment, scripts, shells};
use crate::call::shell::meaning::fields::Field;
use crate::call::shell::meaning::walk::{Analysis, Input, Walked};

pub(super) fn run(analysis: &mut Analysis, invoked: &Invoked<'_>) -> Walked {
    let exact = |index: usize| invoked.argument(index).and_then(Field::exact);
    match invoked.name {
        "docker" | "podman" | "nerdctl" => environment::container(analysis, invoked),
        "sed" | "gsed" => scripts::sed(analysis, invoked),
        "ip" if exact(0) == Some("netns") && exact(1) == Some("exec") => {
            let command = invoked.arguments.get(3..).unwrap_or_default();
            if command.is_empty() { Ok(()) } else { analysis.run(invoked.inner(command)) }
        }
        "setarch" | "linux32" | "linux64" | "i386" | "x86_64" => {
            environment::architecture(analysis, invoked)
        }
        "entr" => environment::entr(analysis, invoked),
        "cmake" if exact(0) == Some("-E") => match exact(1) {
            Some("env" | "time" | "chdir") | None => unclear(analysis, invoked),
            Some(_) => Ok(()),
        },
        "zip" => zip(analysis, invoked),
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => super::awk::awk(analysis, invoked),
        "vim" | "vi" | "nvim" | "ex" | "view" | "vimdiff" | "less" | "more" | "ed" => {
            editor(analysis, invoked)
        }
        "su" if !invoked.arguments.iter().any(is_command_of_su) => {
            without_command(analysis, invoked, &[])
        }
        "scp" | "sftp" => {
            let Some(runner) = find(invoked.name) else { return Ok(()) };
            let read = read(invoked.arguments, &runner.options, false);
            ssh_settings(analysis, invoked, &read)
        }
        _ => {
            foreign(analysis, invoked);
            Ok(())
        }
    }
}

/// Programs with a language of their own, in which commands may be named.
fn foreign(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    match invoked.name {
        "at" | "batch" | "crontab" | "tmux" | "screen" | "expect" | "socat" => {
            environment::opaque_runner(analysis, invoked);
        }
        "make" | "gmake" => environment::make(analysis, invoked),
        // `!` of `dc` and `syscmd` of `m4` run commands.
        "dc" | "m4" if invoked.call.input != Input::none() => {
            analysis.inline_code(invoked.index, "standard input");
        }
        "rustc" => {
            let linker = |field: &Field| field.value.contains("linker=");
            if invoked.arguments.iter().any(linker) {
                analysis.inline_code(invoked.index, "-C linker");
            }
        }
        "sqlite3" | "sqlite" => database(analysis, invoked),
        _ => {}
    }
}

/// `+COMMAND` and `-c COMMAND`, and what an editor of lines reads.
fn editor(analysis: &mut Analysis, invoked: &Invoked<'_>) -> Walked {
    let mut is_command = false;
    for field in invoked.arguments {
        let plus = field.value.strip_prefix('+').filter(|command| !command.is_empty());
        if let Some(command) = plus {
            analysis.inline_code(invoked.index, &field.value);
            editor_command(analysis, invoked, field, command)?;
        } else if std::mem::take(&mut is_command) {
            editor_command(analysis, invoked, field, &field.value)?;
        } else {
            is_command = matches!(field.exact(), Some("-c" | "--cmd"));
        }
    }
    if matches!(invoked.name, "ex" | "ed") && invoked.call.input != Input::none() {
        analysis.inline_code(invoked.index, "standard input");
        if let Input::Text(text) = &invoked.call.input {
            let span = invoked.call.span;
            for line in text.lines() {
                editor_command(analysis, invoked, &Field::known(line, span), line)?;
            }
        }
    }
    Ok(())
}

/// `:!COMMAND`, `:r !COMMAND` and `:%!COMMAND` hand the rest of the line to a shell.
fn editor_command(
    analysis: &mut Analysis,
    invoked: &Invoked<'_>,
    field: &Field,
    command: &str,
) -> Walked {
    let (head, rest) = command.split_once('!').unwrap_or((command, ""));
    let reads = head.trim_start_matches([':', ' ']).trim_end();
    let runs = matches!(reads, "r" | "read" | "w" | "write")
        || reads.chars().all(|place| place.is_ascii_digit() || "%$.,;'+-".contains(place));
    if runs && !rest.is_empty() {
        return shells::code(analysis, invoked, rest, field.span);
    }
    Ok(())
}

/// `-TT COMMAND`, at the end of a cluster too.
fn zip(analysis: &mut Analysis, invoked: &Invoked<'_>) -> Walked {
    let is_test = |field: &Field| {
        let text = field.prefix();
        text.starts_with('-') && !text.starts_with("--") && text.len() > 3 && text.ends_with("TT")
    };
    let place = invoked.arguments.iter().position(is_test);
    match place.and_then(|place| invoked.argument(place + 1)) {
        Some(value) => code(analysis, invoked, "-TT", Code::Shell, value),
        None => Ok(()),
    }
}

/// Dot commands and extensions.
fn database(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let runs = |field: &Field| {
        field.exact().is_none_or(|text| {
            text.trim_start().starts_with('.') || text.contains("load_extension")
        })
    };
    if invoked.arguments.iter().skip(1).any(runs) || !matches!(invoked.call.input, Input::Text(_)) {
        analysis.inline_code(invoked.index, "dot command");
    }
}

/// `-c COMMAND`, `--command=COMMAND` and the like.
fn is_command_of_su(field: &Field) -> bool {
    let text = field.prefix();
    text.starts_with("--command") || text.starts_with("--session") || text.starts_with("-c")
}
