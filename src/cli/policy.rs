//! `policy …`: the tools of the people who write and review policies. All of them call the evaluator
//! of the live chain.

mod author;
mod explain;
mod learn;
mod replay;

use super::args::PolicyCommand;
use super::{CommandError, Context, Outcome, json};
use crate::base::exit::Exit;
use crate::policy::{BUILT_IN_NAMES, Diagnostic, Layer, PolicySource, built_in};
use crate::run::RunError;
use crate::run::policies::{by_name, load_sources};
use serde_json::json as value;

/// `stoplog policy`
pub(super) fn policy(context: &Context, command: PolicyCommand) -> Outcome {
    match command {
        PolicyCommand::Check { files, json } => check(context, &files, json),
        PolicyCommand::Explain(args) => explain::explain(context, args),
        PolicyCommand::Test { directory, policy, format } => {
            author::test(context, &directory, &policy, format)
        }
        PolicyCommand::Lint { files, json } => author::lint(context, &files, json),
        PolicyCommand::Fmt { files, write, check } => author::layout(context, &files, write, check),
        PolicyCommand::Replay(args) => replay::replay(context, &args),
        PolicyCommand::Learn(args) => learn::learn(context, &args),
        PolicyCommand::Schema => {
            context.screen.out(&json(&crate::policy::json_schema())?);
            Ok(Exit::Done)
        }
        PolicyCommand::Show { name } => show(context, name.as_deref()),
    }
}

/// Each file alone: a file must hold by itself, whatever it is used with.
fn check(context: &Context, files: &[String], as_json: bool) -> Outcome {
    let mut exit = Exit::Done;
    for name in files {
        let loaded = by_name(name).and_then(|source| {
            // A start leaves the examples of built-in files out; whoever checks one wants them run.
            let as_file = PolicySource { layer: Layer::Explicit, ..source.clone() };
            load_sources(vec![as_file])?;
            load_sources(vec![source])
        });
        match loaded {
            Ok(set) if as_json => {
                let notices = set.not_in_force();
                let notices: Vec<String> = notices.iter().map(Diagnostic::line).collect();
                let line = value!({
                    "policy": name, "ok": true, "digest": set.digest(), "not_in_force": notices,
                });
                context.screen.out(&json(&line)?);
            }
            Ok(set) => {
                for notice in set.not_in_force() {
                    let colours = context.screen.colours_err();
                    context.screen.err(&notice.render(annotate_snippets::Level::WARNING, colours));
                }
                context.screen.out(&format!("{name}: ok, {}", set.digest()));
            }
            Err(error) => {
                exit = error.exit();
                tell_wrong(context, name, &error, as_json)?;
            }
        }
    }
    Ok(exit)
}

fn tell_wrong(
    context: &Context,
    name: &str,
    error: &RunError,
    as_json: bool,
) -> Result<(), CommandError> {
    if as_json {
        let line = value!({"policy": name, "ok": false, "errors": error.to_string()});
        context.screen.out(&json(&line)?);
        return Ok(());
    }
    let text = if let RunError::Policy(diagnostics) = error {
        diagnostics.render(context.screen.colours_err())
    } else {
        error.to_string()
    };
    context.screen.err(text.trim_end());
    Ok(())
}

fn show(context: &Context, name: Option<&str>) -> Outcome {
    match name {
        None => context.screen.out(&BUILT_IN_NAMES.join("\n")),
        Some(name) => {
            let text = built_in(name).ok_or_else(|| {
                let shown = crate::base::text::escape(name);
                let names = BUILT_IN_NAMES.join(", ");
                CommandError::new(
                    Exit::Usage,
                    format!("no built-in policy `{shown}`; there are {names}"),
                )
            })?;
            context.screen.out(text.trim_end());
        }
    }
    Ok(Exit::Done)
}
