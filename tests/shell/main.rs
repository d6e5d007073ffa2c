//! Black-box tests of the analysis of shell scripts: nothing that runs goes unseen, nothing ordinary
//! is held up, nothing takes long.

#[cfg(test)]
mod corpora;
#[cfg(test)]
mod differential;
#[cfg(test)]
mod effects;
#[cfg(test)]
mod known_input;
#[cfg(test)]
mod ordinary;
#[cfg(test)]
mod robustness;
#[cfg(test)]
mod spellings;
#[cfg(test)]
mod values;

use std::path::PathBuf;
use stoplog::call::effects::{CommandUse, Effects, UnresolvedReason};
use stoplog::call::shell::{ShellContext, analyse};

/// Analyses `script` in the directory `/w` with the home `/h`.
fn analysed(script: &str) -> Effects {
    let context = ShellContext {
        cwd: PathBuf::from("/w"),
        home: Some(PathBuf::from("/h")),
        ..ShellContext::default()
    };
    analyse(script, &context)
}

/// The programs as the shell would look them up.
fn programs(effects: &Effects) -> Vec<&str> {
    effects.commands.iter().map(|command| command.program.shown()).collect()
}

fn reasons(effects: &Effects) -> Vec<UnresolvedReason> {
    effects.unresolved.iter().map(|unresolved| unresolved.reason).collect()
}

/// A command as one line: wrappers, program and arguments, unknown ones as written.
fn line(command: &CommandUse) -> String {
    let mut words: Vec<&str> = command.via.iter().map(String::as_str).collect();
    if !words.is_empty() {
        words.push(":");
    }
    words.push(command.program.shown());
    words.extend(command.arguments.iter().map(|argument| argument.shown()));
    words.join(" ")
}
