//! `git`: settings and options that run programs.

use super::options::{Options, read};
use super::{Invoked, shells};
use crate::call::effects::{Access, PathOrigin, UnresolvedReason};
use crate::call::shell::meaning::fields::Field;
use crate::call::shell::meaning::walk::{Analysis, Walked};

const GLOBAL: Options = Options {
    short: "vhC:c:pP",
    long: &[
        "version",
        "help",
        "exec-path?",
        "html-path",
        "man-path",
        "info-path",
        "paginate",
        "no-pager",
        "no-replace-objects",
        "bare",
        "git-dir=",
        "work-tree=",
        "namespace=",
        "config-env=",
        "literal-pathspecs",
        "glob-pathspecs",
        "noglob-pathspecs",
        "icase-pathspecs",
        "no-optional-locks",
        "no-lazy-fetch",
        "no-advice",
        "attr-source=",
        "list-cmds=",
        "super-prefix=",
    ],
    single_dash: false,
};

/// Sections all of whose settings can name a program, or be one.
const CODE_SECTIONS: [&str; 20] = [
    "alias",
    "pager",
    "difftool",
    "mergetool",
    "merge",
    "filter",
    "credential",
    "gpg",
    "sequence",
    "uploadpack",
    "sendemail",
    "browser",
    "web",
    "man",
    "instaweb",
    "guitool",
    "trailer",
    "interactive",
    "include",
    "includeif",
];
/// Single settings that name a program, or decide where git looks for one.
const CODE_SETTINGS: [&str; 18] = [
    "core.sshcommand",
    "core.fsmonitor",
    "core.pager",
    "core.editor",
    "core.hookspath",
    "core.askpass",
    "core.gitproxy",
    "core.alternaterefscommand",
    "core.attributesfile",
    "core.worktree",
    "diff.external",
    "ssh.variant",
    "protocol.allow",
    "init.templatedir",
    "receive.procreceiverefs",
    "core.virtualfilesystem",
    "core.excludesfile",
    "log.showsignature",
];
/// Last parts of a setting's name that name a program in any section.
const CODE_ENDINGS: [&str; 12] = [
    ".command",
    ".textconv",
    ".cmd",
    ".driver",
    ".clean",
    ".smudge",
    ".process",
    ".helper",
    ".program",
    ".uploadpack",
    ".receivepack",
    ".insteadof",
];

/// Whether a setting can make git run a program.
fn is_code_setting(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let section = key.split('.').next().unwrap_or("");
    let merge = section != "merge" || key.ends_with(".driver") || key == "merge.tool";
    (CODE_SECTIONS.contains(&section) && merge)
        || CODE_SETTINGS.contains(&key.as_str())
        || CODE_ENDINGS.iter().any(|ending| key.ends_with(ending))
        || (section == "submodule" && key.ends_with(".update"))
        || (section == "remote" && key.ends_with(".vcs"))
        || (section == "protocol" && key.ends_with(".allow"))
}

pub(super) fn run(analysis: &mut Analysis, invoked: &Invoked<'_>) -> Walked {
    let given = read(invoked.arguments, &GLOBAL, true);
    for option in &given.given {
        let Some(value) = &option.value else { continue };
        match option.name.as_str() {
            "-c" => setting(analysis, invoked, value)?,
            "--config-env" => analysis.inline_code(invoked.index, "--config-env"),
            "--exec-path" if !value.value.is_empty() => {
                analysis.inline_code(invoked.index, "--exec-path")
            }
            "-C" | "--git-dir" | "--work-tree" => {
                let origin = PathOrigin::ProgramArgument { program: "git".to_owned() };
                analysis.path(value, Access::Read, origin);
            }
            _ => {}
        }
    }
    let Some(place) = given.operands.first() else { return Ok(()) };
    let Some(verb) = invoked.argument(*place) else { return Ok(()) };
    let tail = invoked.arguments.get(place + 1..).unwrap_or_default();
    let Some(verb) = verb.exact() else { return Ok(()) };
    match verb {
        "config" => config(analysis, invoked, tail),
        "bisect" if tail.first().and_then(Field::exact) == Some("run") => {
            inner(analysis, invoked, tail.get(1..).unwrap_or_default())
        }
        "submodule" => submodule(analysis, invoked, tail),
        "filter-branch" => {
            analysis.inline_code(invoked.index, verb);
            Ok(())
        }
        "for-each-repo" | "sendemail" | "send-email" | "daemon" | "shell" | "upload-pack"
        | "remote-ext" => {
            analysis.inline_code(invoked.index, verb);
            Ok(())
        }
        _ => options(analysis, invoked, verb, tail),
    }
}

fn inner(analysis: &mut Analysis, invoked: &Invoked<'_>, fields: &[Field]) -> Walked {
    if fields.is_empty() { Ok(()) } else { analysis.run(invoked.inner(fields)) }
}

/// `-c name=value`.
fn setting(analysis: &mut Analysis, invoked: &Invoked<'_>, value: &Field) -> Walked {
    let Some((key, code)) = value.prefix().split_once('=') else {
        // `-c name` alone sets true, which runs nothing; a name that is not known could be any.
        if value.exact().is_none() {
            analysis.inline_code(invoked.index, "-c");
        }
        return Ok(());
    };
    if !is_code_setting(key) {
        return Ok(());
    }
    analysis.inline_code(invoked.index, &format!("-c {key}"));
    setting_code(analysis, invoked, value, key, code)
}

/// Judges the value of a setting that can be a command.
fn setting_code(
    analysis: &mut Analysis,
    invoked: &Invoked<'_>,
    field: &Field,
    key: &str,
    code: &str,
) -> Walked {
    if field.exact().is_none() {
        analysis.unresolved(UnresolvedReason::CodeWord, &field.text, field.span);
        return Ok(());
    }
    let alias = key.to_ascii_lowercase().starts_with("alias.");
    let command = match code.strip_prefix('!') {
        Some(command) => command,
        // Another git command, or a truth value.
        None if alias || matches!(code, "true" | "false" | "") => return Ok(()),
        None => code,
    };
    shells::code(analysis, invoked, command, field.span)
}

/// `git config … name value`.
fn config(analysis: &mut Analysis, invoked: &Invoked<'_>, tail: &[Field]) -> Walked {
    let reads = tail.iter().filter_map(Field::exact).any(|word| {
        matches!(
            word,
            "--get"
                | "--get-all"
                | "--get-regexp"
                | "--list"
                | "-l"
                | "get"
                | "list"
                | "--unset"
                | "--unset-all"
                | "unset"
        )
    });
    let words: Vec<&Field> = tail.iter().filter(|field| !field.prefix().starts_with('-')).collect();
    let words = match words.split_first() {
        Some((first, rest)) if first.exact() == Some("set") => rest,
        Some(_) | None => words.as_slice(),
    };
    if reads {
        return Ok(());
    }
    let Some((key, rest)) = words.split_first() else { return Ok(()) };
    let Some(name) = key.exact() else {
        analysis.inline_code(invoked.index, "config");
        return Ok(());
    };
    match rest.first() {
        Some(value) if is_code_setting(name) => {
            analysis.inline_code(invoked.index, &format!("config {name}"));
            setting_code(analysis, invoked, value, name, &value.value)
        }
        Some(_) | None => Ok(()),
    }
}

fn submodule(analysis: &mut Analysis, invoked: &Invoked<'_>, tail: &[Field]) -> Walked {
    let Some(place) = tail.iter().position(|field| field.exact() == Some("foreach")) else {
        return Ok(());
    };
    let words: Option<Vec<&str>> = tail
        .iter()
        .skip(place + 1)
        .map(Field::exact)
        .filter(|word| !word.is_some_and(|word| matches!(word, "--recursive" | "--quiet" | "-q")))
        .collect();
    match words {
        Some(words) => shells::code(analysis, invoked, &words.join(" "), invoked.call.span),
        None => {
            analysis.unresolved(
                UnresolvedReason::CodeWord,
                "git submodule foreach",
                invoked.call.span,
            );
            Ok(())
        }
    }
}

/// Options of subcommands that name a program.
fn code_option(verb: &str, name: &str) -> bool {
    let long = |full: &str| name.len() > 4 && full.starts_with(name);
    match verb {
        "grep" => name.starts_with("-O") || long("--open-files-in-pager"),
        "rebase" => name == "-x" || long("--exec"),
        "clone" | "fetch" | "pull" | "ls-remote" | "fetch-pack" | "remote" => {
            name == "-u" && verb == "clone"
                || long("--upload-pack")
                || long("--exec")
                || name == "-c"
                || long("--config")
                || long("--template")
        }
        "push" | "send-pack" => long("--receive-pack") || long("--exec"),
        "archive" => long("--exec") || long("--remote"),
        "difftool" | "mergetool" => name == "-x" || long("--extcmd"),
        "init" => long("--template"),
        "filter-repo" => name.ends_with("-callback"),
        _ => false,
    }
}

fn options(analysis: &mut Analysis, invoked: &Invoked<'_>, verb: &str, tail: &[Field]) -> Walked {
    for (index, field) in tail.iter().enumerate() {
        let text = field.prefix();
        if text == "--" {
            break;
        }
        if text.starts_with("ext::") || text.contains("://") && text.starts_with("ext") {
            analysis.inline_code(invoked.index, "ext::");
            continue;
        }
        let name = text.split('=').next().unwrap_or(text);
        let short = name.get(..2).unwrap_or(name);
        let known = if name.starts_with("--") { name } else { short };
        if !text.starts_with('-') || !(code_option(verb, known) || code_option(verb, name)) {
            continue;
        }
        analysis.inline_code(invoked.index, known);
        let attached = if name.starts_with("--") {
            text.split_once('=').map(|(_, value)| value)
        } else {
            text.get(2..).filter(|value| !value.is_empty())
        };
        let value = match attached {
            Some(value) => Some(value),
            None => tail.get(index + 1).and_then(Field::exact),
        };
        match value {
            Some(value)
                if field.exact().is_some()
                    && !known.starts_with("-c")
                    && !known.starts_with("--conf")
                    && !known.starts_with("--templ") =>
            {
                shells::code(analysis, invoked, value, field.span)?;
            }
            Some(_) | None => {}
        }
    }
    Ok(())
}
