//! What well-known programs and builtins do with their arguments.
//!
//! Tables (`runners`, `paths`) are data; the other files are the few programs whose arguments are a
//! language of their own. A command that no file here knows is judged by its name alone.

mod awk;
mod builtins;
mod directories;
mod environment;
mod find;
mod git;
mod hosts;
mod interpreters;
mod loopback;
mod options;
mod parallel;
mod paths;
mod runner;
mod runners;
mod scripts;
mod shells;
mod special;
mod variables;

use crate::call::shell::meaning::fields::Field;
use crate::call::shell::meaning::walk::{Analysis, Call, Lookup, Walked};
pub(crate) use builtins::{has_own_meaning, is_harmless_setting};

/// Looks at the arguments of a command that was recorded as number `index`.
pub(crate) fn run(analysis: &mut Analysis, call: &Call, index: usize) -> Walked {
    let Some((program, arguments)) = call.fields.split_first() else { return Ok(()) };
    let invoked = Invoked { call, index, name: base_name(&program.value), arguments };
    if call.lookup != Lookup::Program && builtins::run(analysis, &invoked)? {
        return Ok(());
    }
    match invoked.name {
        name if shells::is_shell(name) => shells::run(analysis, &invoked)?,
        "find" | "gfind" => find::run(analysis, &invoked)?,
        "xargs" | "gxargs" => find::xargs(analysis, &invoked)?,
        "parallel" | "sem" => parallel::run(analysis, &invoked)?,
        "env" => environment::run(analysis, &invoked)?,
        "git" => git::run(analysis, &invoked)?,
        name if interpreters::is_interpreter(name) => interpreters::run(analysis, &invoked),
        _ => runner::run(analysis, &invoked)?,
    }
    paths::run(analysis, &invoked);
    hosts::run(analysis, &invoked);
    loopback::run(analysis, &invoked);
    Ok(())
}

/// A command whose program is known.
#[derive(Debug)]
struct Invoked<'call> {
    call: &'call Call,
    /// Its number among the recorded commands.
    index: usize,
    /// The program without its directory and version.
    name: &'call str,
    arguments: &'call [Field],
}

impl Invoked<'_> {
    /// The wrappers around what this command runs.
    fn via(&self) -> Vec<String> {
        let mut via = self.call.via.clone();
        via.push(self.name.to_owned());
        via
    }

    /// The command that this one runs, from its words.
    fn inner(&self, fields: &[Field]) -> Call {
        Call {
            fields: fields.to_vec(),
            assignments: Vec::new(),
            via: self.via(),
            span: self.call.span,
            input: self.call.input.clone(),
            lookup: Lookup::Program,
        }
    }

    fn argument(&self, index: usize) -> Option<&Field> {
        self.arguments.get(index)
    }
}

/// The name by which a program is known: without directory, and with one name for the dynamic loader
/// and for the versions of an interpreter.
fn base_name(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or(program);
    if name.starts_with("ld-linux") || name.starts_with("ld-musl") || name == "ld64.so.2" {
        return "ld.so";
    }
    let bare =
        name.trim_end_matches(|character: char| character.is_ascii_digit() || character == '.');
    let bare = bare.strip_suffix('-').unwrap_or(bare);
    if interpreters::is_interpreter(bare) { bare } else { name }
}
