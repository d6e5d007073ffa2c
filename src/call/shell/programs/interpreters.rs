//! Interpreters of other languages: code on the command line or on standard input is theirs, and not
//! read here. A script in a file is workspace code, which the cell holds.

use super::Invoked;
use crate::call::effects::{Access, PathOrigin, UnresolvedReason};
use crate::call::shell::meaning::fields::Field;
use crate::call::shell::meaning::walk::{Analysis, Input};

/// One interpreter: options that carry code, options that name a module, options that take a value.
struct Interpreter {
    names: &'static [&'static str],
    /// Short letters whose value is code.
    code: &'static str,
    /// Long options whose value is code, or which load some.
    long_code: &'static [&'static str],
    /// Short letters after which the rest are arguments of a module.
    module: &'static str,
    /// Short letters that take a value.
    values: &'static str,
    /// First operands that are code or take it.
    verbs: &'static [&'static str],
}

static INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        names: &["python", "pypy", "ipython", "micropython"],
        code: "c",
        long_code: &[],
        module: "m",
        values: "WXQ",
        verbs: &[],
    },
    Interpreter {
        names: &["perl"],
        code: "eEMm",
        long_code: &[],
        module: "",
        values: "FIi0lCDxVT",
        verbs: &[],
    },
    Interpreter {
        names: &["ruby", "jruby", "truffleruby"],
        code: "er",
        long_code: &[],
        module: "",
        values: "CEFIK",
        verbs: &[],
    },
    Interpreter {
        names: &["node", "nodejs", "bun", "deno", "tsx", "ts-node"],
        code: "eprc",
        long_code: &[
            "--eval",
            "--print",
            "--require",
            "--import",
            "--loader",
            "--experimental-loader",
            "--preload",
        ],
        module: "",
        values: "C",
        verbs: &["eval", "-"],
    },
    Interpreter {
        names: &["php"],
        code: "rBREFa",
        long_code: &["--run", "--process-begin", "--process-code", "--process-end"],
        module: "",
        values: "cdftz",
        verbs: &[],
    },
    Interpreter {
        names: &["lua", "luajit", "texlua"],
        code: "el",
        long_code: &[],
        module: "",
        values: "jO",
        verbs: &[],
    },
    Interpreter {
        names: &["Rscript", "R"],
        code: "e",
        long_code: &["--expression"],
        module: "",
        values: "f",
        verbs: &[],
    },
    Interpreter {
        names: &["julia"],
        code: "eEL",
        long_code: &["--eval", "--print", "--load"],
        module: "",
        values: "Jptg",
        verbs: &[],
    },
    Interpreter {
        names: &[
            "osascript",
            "groovy",
            "scala",
            "elixir",
            "ghc",
            "runghc",
            "guile",
            "racket",
            "octave",
            "gnuplot",
            "swipl",
            "erl",
            "sbcl",
            "clisp",
            "ecl",
            "raku",
            "perl6",
            "nim",
            "jshell",
            "clojure",
            "clj",
            "bb",
            "awk-run",
        ],
        code: "ecrg",
        long_code: &["--eval", "--execute", "--expr", "-eval", "-e", "--load", "-s"],
        module: "",
        values: "",
        verbs: &[],
    },
    Interpreter {
        names: &["tclsh", "wish"],
        code: "",
        long_code: &[],
        module: "",
        values: "",
        verbs: &[],
    },
];

fn find(name: &str) -> Option<&'static Interpreter> {
    INTERPRETERS.iter().find(|interpreter| interpreter.names.contains(&name))
}

pub(super) fn is_interpreter(name: &str) -> bool {
    find(name).is_some()
}

pub(super) fn run(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let Some(interpreter) = find(invoked.name) else { return };
    let mut index = 0;
    while let Some(field) = invoked.argument(index) {
        index += 1;
        let text = field.prefix();
        if verb(interpreter, text) {
            return analysis.inline_code(invoked.index, text);
        }
        if text == "-" {
            break;
        }
        if text.starts_with("--") && text.len() > 2 {
            let name = text.split('=').next().unwrap_or(text);
            if interpreter.long_code.iter().any(|option| option.starts_with(name)) {
                return analysis.inline_code(invoked.index, name);
            }
            if matches!(name, "--version" | "--help") {
                return;
            }
        } else if text.starts_with('-') && text.len() > 1 {
            match cluster(interpreter, text) {
                Cluster::Code(letter) => {
                    return analysis.inline_code(invoked.index, &format!("-{letter}"));
                }
                Cluster::Module => return,
                Cluster::Value => index += 1,
                Cluster::Flags => {}
            }
        } else {
            return script(analysis, invoked, field);
        }
    }
    // Nothing to run was named: the program comes from standard input.
    if !invoked.arguments.iter().any(|field| matches!(field.prefix(), "-V" | "-v" | "-h")) {
        standard_input(analysis, invoked);
    }
}

/// Code of a file is workspace code; of a pipe it is anybody's.
fn standard_input(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let span = invoked.call.span;
    match &invoked.call.input {
        Input::Text(text) if text.is_empty() => {}
        Input::Text(_) | Input::File => analysis.inline_code(invoked.index, "standard input"),
        Input::Names { .. } | Input::Stream => {
            analysis.inline_code(invoked.index, "standard input");
            analysis.unresolved(UnresolvedReason::ForeignCode, invoked.name, span);
        }
    }
}

fn verb(interpreter: &Interpreter, text: &str) -> bool {
    !text.is_empty() && text != "-" && interpreter.verbs.contains(&text)
        || interpreter.long_code.contains(&text) && !text.starts_with("--")
}

enum Cluster {
    Code(char),
    Module,
    Value,
    Flags,
}

fn cluster(interpreter: &Interpreter, text: &str) -> Cluster {
    let letters = text.get(1..).unwrap_or("");
    for (index, letter) in letters.char_indices() {
        let last = index + letter.len_utf8() == letters.len();
        if interpreter.code.contains(letter) {
            return Cluster::Code(letter);
        }
        if interpreter.module.contains(letter) {
            return Cluster::Module;
        }
        if interpreter.values.contains(letter) {
            return if last && !invoked_attached(letter) { Cluster::Value } else { Cluster::Flags };
        }
    }
    Cluster::Flags
}

/// Letters whose value stands in the same word or not at all.
fn invoked_attached(letter: char) -> bool {
    matches!(letter, 'i' | '0' | 'l' | 'F' | 'T' | 'V' | 'x' | 'D' | 'C')
}

fn script(analysis: &mut Analysis, invoked: &Invoked<'_>, field: &Field) {
    let stream = field.exact().is_some_and(super::shells::is_stream);
    let substituted = field.unknown && field.text.starts_with("<(");
    if stream || substituted {
        analysis.unresolved(UnresolvedReason::ForeignCode, &field.text, field.span);
        return analysis.inline_code(invoked.index, &field.text);
    }
    let origin = PathOrigin::ProgramArgument { program: invoked.name.to_owned() };
    if !matches!(invoked.name, "bun" | "deno") {
        analysis.path(field, Access::Execute, origin);
    }
}
