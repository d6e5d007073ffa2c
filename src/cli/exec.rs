//! `exec`: one command in a policy's cell, without a model.

use super::args::ExecArgs;
use super::screen::Tone;
use super::{Context, Outcome, progress};
use crate::base::exit::Exit;
use crate::chain::verdict::for_person;
use crate::run::RunConfig;
use crate::run::exec::{ExecOutcome, Known, exec as run};

/// `stoplog exec`
pub(super) fn exec(context: &Context, args: ExecArgs) -> Outcome {
    let ExecArgs { place, show_cell, command } = args;
    let config = RunConfig {
        state_directory: context.state_directory.clone(),
        workspace: place.workspace,
        policies: place.policy,
        role: place.role,
        ..RunConfig::of(context.environment.clone())
    };
    let screen = context.screen;
    let tell = |known: &Known| {
        progress::tell_lost(screen, &known.lost);
        progress::tell_warnings(screen, &known.warnings);
        if show_cell {
            progress::tell_warnings(screen, known.unseen.as_slice());
        }
        known.notices.iter().for_each(|text| screen.err(&screen.paint(Tone::Weak, text)));
    };
    match run(&config, &command, &tell)? {
        ExecOutcome::Ran { exit, enforced } => {
            if show_cell {
                screen.err(&screen.paint(Tone::Dim, &format!("cell {enforced}")));
            }
            Ok(exit)
        }
        ExecOutcome::Denied(denied) => {
            let why = for_person(denied.stage, &denied.reason);
            screen.err(&format!("{} {why}", screen.paint(Tone::Bad, "denied:")));
            if let Some(subject) = &denied.reason.subject {
                screen.err(&format!("  refused: {subject}"));
            }
            if let Some(allowed) = &denied.reason.would_allow {
                screen.err(&format!("  allowed instead: {allowed}"));
            }
            Ok(Exit::Denied)
        }
    }
}
