//! Wrappers whose arguments need more than the table: `env -S`, containers, architectures, and
//! programs that take a command in a form that is not taken apart.

use super::options::{Options, read};
use super::{Invoked, runner, shells};
use crate::call::effects::UnresolvedReason;
use crate::call::shell::meaning::fields::Field;
use crate::call::shell::meaning::walk::{Analysis, Input, Walked};

/// `env`: the table covers all but `-S`, whose value is split into further arguments.
pub(super) fn run(analysis: &mut Analysis, invoked: &Invoked<'_>) -> Walked {
    let Some(table) = super::runners::find("env") else { return Ok(()) };
    let given = read(invoked.arguments, &table.options, true);
    let split =
        given.given.iter().find(|given| matches!(given.name.as_str(), "-S" | "--split-string"));
    let Some(split) = split else { return runner::run(analysis, invoked) };
    let plain = split.value.as_ref().and_then(Field::exact).filter(|text| {
        text.chars()
            .all(|character| character.is_alphanumeric() || " _-./=:,+@%^".contains(character))
    });
    let Some(text) = plain else {
        analysis.unresolved(UnresolvedReason::Wrapper, "env -S", invoked.call.span);
        return Ok(());
    };
    let mut fields = vec![Field::known("env", invoked.call.span)];
    fields.extend(
        text.split(' ')
            .filter(|word| !word.is_empty())
            .map(|word| Field::known(word, invoked.call.span)),
    );
    fields.extend(given.operands.iter().filter_map(|index| invoked.arguments.get(*index).cloned()));
    let inner = invoked.inner(&fields);
    analysis.run(inner)
}

/// Options of `docker run`, `exec` and their kin that take a value.
const CONTAINER: Options = Options {
    short: "dtiPqa:c:e:h:l:m:p:u:v:w:",
    long: &[
        "add-host=",
        "cap-add=",
        "cap-drop=",
        "cpus=",
        "detach",
        "detach-keys=",
        "device=",
        "dns=",
        "entrypoint=",
        "env=",
        "env-file=",
        "gpus=",
        "hostname=",
        "index=",
        "interactive",
        "init",
        "ipc=",
        "label=",
        "memory=",
        "mount=",
        "name=",
        "net=",
        "network=",
        "no-healthcheck",
        "pid=",
        "platform=",
        "privileged",
        "publish=",
        "publish-all",
        "pull=",
        "quiet",
        "read-only",
        "restart=",
        "rm",
        "runtime=",
        "security-opt=",
        "shm-size=",
        "stop-signal=",
        "sysctl=",
        "tmpfs=",
        "tty",
        "ulimit=",
        "user=",
        "userns=",
        "volume=",
        "volumes-from=",
        "workdir=",
        "no-TTY",
        "no-deps",
        "service-ports",
        "build",
        "remove-orphans",
    ],
    single_dash: false,
};

/// `docker [compose] run|exec … IMAGE COMMAND`.
pub(super) fn container(analysis: &mut Analysis, invoked: &Invoked<'_>) -> Walked {
    let verb =
        invoked.arguments.iter().position(|field| matches!(field.exact(), Some("run" | "exec")));
    let Some(tail) = verb.and_then(|place| invoked.arguments.get(place + 1..)) else {
        return Ok(());
    };
    let given = read(tail, &CONTAINER, true);
    if given.given.iter().any(|option| !option.described) {
        analysis.unresolved(UnresolvedReason::Wrapper, invoked.name, invoked.call.span);
        return Ok(());
    }
    let command = given.operands.get(1).and_then(|index| tail.get(*index..)).unwrap_or_default();
    let entry = given.given.iter().find(|option| option.name == "--entrypoint");
    let mut fields: Vec<Field> =
        entry.and_then(|option| option.value.clone()).into_iter().collect();
    fields.extend_from_slice(command);
    if fields.is_empty() {
        return Ok(());
    }
    let inner = invoked.inner(&fields);
    analysis.remotely(true, |analysis| analysis.run(inner))
}

/// `setarch [ARCH] [options] COMMAND`.
pub(super) fn architecture(analysis: &mut Analysis, invoked: &Invoked<'_>) -> Walked {
    let options = Options {
        short: "BFILRSTXZhvn",
        long: &[
            "32bit",
            "fdpic-funcptrs",
            "short-inode",
            "addr-compat-layout",
            "addr-no-randomize",
            "whole-seconds",
            "sticky-timeouts",
            "read-implies-exec",
            "mmap-page-zero",
            "3gb",
            "4gb",
            "uname-2.6",
            "verbose",
            "list",
            "show?",
        ],
        single_dash: false,
    };
    let mut fields = invoked.arguments;
    let named = |field: &Field| {
        field.exact().is_some_and(|word| {
            matches!(
                word,
                "x86_64"
                    | "i386"
                    | "i486"
                    | "i586"
                    | "i686"
                    | "linux32"
                    | "linux64"
                    | "aarch64"
                    | "arm"
                    | "armv7l"
                    | "riscv64"
                    | "ppc64le"
                    | "s390x"
            )
        })
    };
    if fields.first().is_some_and(named) && invoked.name == "setarch" {
        fields = fields.get(1..).unwrap_or_default();
    }
    let given = read(fields, &options, true);
    let command = given.operands.first().and_then(|index| fields.get(*index..)).unwrap_or_default();
    if given.given.iter().any(|option| !option.described) {
        analysis.unresolved(UnresolvedReason::Wrapper, invoked.name, invoked.call.span);
    }
    if command.is_empty() {
        return Ok(());
    }
    analysis.run(invoked.inner(command))
}

/// `entr [options] COMMAND …`, where `/_` stands for a file; with `-s` the one operand is a script.
pub(super) fn entr(analysis: &mut Analysis, invoked: &Invoked<'_>) -> Walked {
    let options = Options { short: "acdnprsxz", long: &[], single_dash: false };
    let given = read(invoked.arguments, &options, true);
    let fields = given.operands.first().and_then(|index| invoked.arguments.get(*index..));
    let command: Vec<Field> = fields
        .unwrap_or_default()
        .iter()
        .map(|field| {
            if field.value.contains("/_") {
                Field::unknown("/_", field.span)
            } else {
                field.clone()
            }
        })
        .collect();
    let Some(first) = command.first() else { return Ok(()) };
    if given.given.iter().any(|option| option.name == "-s") {
        return runner::code(analysis, invoked, "-s", super::runners::Code::Shell, first);
    }
    analysis.run(invoked.inner(&command))
}

/// Programs that take commands in a form that is not taken apart here.
pub(super) fn opaque_runner(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let exact = |index: usize| invoked.argument(index).and_then(Field::exact);
    let harmless = match invoked.name {
        "crontab" => matches!(exact(0), Some("-l" | "-r")),
        "tmux" => matches!(
            exact(0),
            Some(
                "ls" | "list-sessions"
                    | "kill-session"
                    | "kill-server"
                    | "-V"
                    | "attach"
                    | "a"
                    | "has-session"
                    | "capture-pane"
                    | "show-environment"
                    | "list-windows"
                    | "list-panes"
                    | "display-message"
            )
        ),
        "screen" => matches!(exact(0), Some("-ls" | "-list" | "-r" | "-v")),
        "at" | "batch" => matches!(exact(0), Some("-l" | "-r" | "-d")),
        "socat" => !invoked.arguments.iter().any(|field| {
            let text = field.value.to_ascii_uppercase();
            field.exact().is_none()
                || ["EXEC:", "SYSTEM:", "SHELL:"].iter().any(|word| text.contains(word))
        }),
        _ => false,
    };
    if !harmless {
        analysis.inline_code(invoked.index, exact(0).unwrap_or("command"));
        analysis.unresolved(UnresolvedReason::Wrapper, invoked.name, invoked.call.span);
    }
}

/// A makefile from a stream, or a setting of the shell that runs its recipes.
pub(super) fn make(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let mut words = invoked.arguments.iter().map(|field| field.value.as_str()).peekable();
    while let Some(word) = words.next() {
        let next = words.peek().copied().unwrap_or("");
        let file = match word {
            "-f" | "--file" | "--makefile" => next,
            _ => ["--file=", "--makefile=", "-f"]
                .iter()
                .find_map(|option| word.strip_prefix(option))
                .unwrap_or(""),
        };
        if file == "-" || shells::is_stream(file) && file != "/dev/null" {
            analysis.inline_code(invoked.index, "-f -");
            if invoked.call.input != Input::none() {
                analysis.unresolved(UnresolvedReason::ForeignCode, "make -f -", invoked.call.span);
            }
        }
        if ["SHELL=", ".SHELLFLAGS=", "MAKEFLAGS=", "MAKEFILES="]
            .iter()
            .any(|name| word.starts_with(name))
        {
            analysis.inline_code(invoked.index, word);
        }
    }
}
