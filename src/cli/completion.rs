//! What a shell offers when the user presses the completion key. The script that `completions` prints
//! asks the program itself, so that what is offered is what there is now: rules of the policies that are
//! in force here, sessions, built-in policies. A question that cannot be answered offers nothing.

use super::args::Cli;
use super::{CommandError, Outcome};
use crate::audit::sessions;
use crate::base::exit::Exit;
use crate::base::text::{escape, prefix};
use crate::policy::{BUILT_IN_NAMES, PolicySet, RuleMeta, built_in_source, rules_of};
use crate::run::environment::Environment;
use crate::run::policies::{load, load_sources};
use crate::run::setup::state_directory;
use clap::CommandFactory as _;
use clap_complete::CompleteEnv;
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::Shells;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::process::ExitCode;
use std::sync::Arc;

/// Set by the shell's script when it asks.
const VARIABLE: &str = "STOPLOG_COMPLETE";
/// Name of the program as the script calls it.
const PROGRAM: &str = "stoplog";
/// Bytes of a rule's reason that are shown beside its name.
const HELP_BYTES_MAX: usize = 80;

/// Answers a shell that asks; `None` if none does.
pub(super) fn answer(environment: &Environment) -> Option<ExitCode> {
    environment.get(VARIABLE)?;
    let here = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(Cli::command).var(VARIABLE).bin(PROGRAM);
    match asked.try_complete(std::env::args_os(), here.as_deref()) {
        Ok(_) => Some(ExitCode::SUCCESS),
        Err(error) => {
            drop(error.print());
            Some(Exit::Usage.into())
        }
    }
}

/// `stoplog completions`
pub(super) fn script(context: &super::Context, shell: clap_complete::Shell) -> Outcome {
    let shells = Shells::builtins();
    let Some(shell) = shells.completer(&shell.to_string()) else {
        return Err(CommandError::new(Exit::Usage, "there is no completion for this shell"));
    };
    let mut script = Vec::new();
    shell
        .write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)
        .map_err(|error| CommandError::new(Exit::Fault, error))?;
    context.screen.out(String::from_utf8_lossy(&script).trim_end());
    Ok(Exit::Done)
}

/// Rules of the policies that a run here would have, and of every built-in policy.
pub(super) fn rules() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let here = std::env::current_dir().ok();
        let in_force = load(&[], here.as_deref(), &Environment::of_process());
        let built_in =
            load_sources(BUILT_IN_NAMES.into_iter().filter_map(built_in_source).collect());
        let sets: Vec<PolicySet> = [in_force, built_in].into_iter().flatten().collect();
        let all: BTreeMap<String, Arc<RuleMeta>> =
            sets.iter().flat_map(rules_of).map(|rule| (rule.id.clone(), rule)).collect();
        all.into_iter().map(|(id, rule)| candidate(&id, &rule.reason)).collect()
    })
}

/// Sessions that have a log, the newest first.
pub(super) fn session_ids() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let state = state_directory(None, &Environment::of_process());
        let known = state.ok().and_then(|state| sessions(&state.join("audit")).ok());
        let known = known.unwrap_or_default();
        known.iter().rev().map(|id| CompletionCandidate::new(id.as_str())).collect()
    })
}

/// Built-in policies, and files.
pub(super) fn policies() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let typed = current.to_string_lossy();
        let named = BUILT_IN_NAMES.into_iter().filter(|name| name.starts_with(typed.as_ref()));
        let named = named.map(|name| candidate(name, "built in"));
        named.chain(PathCompleter::file().complete(current)).collect()
    })
}

fn candidate(value: &str, help: &str) -> CompletionCandidate {
    let help = escape(prefix(help, HELP_BYTES_MAX));
    CompletionCandidate::new(value).help(Some(help.into()))
}
