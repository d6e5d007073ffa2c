//! `audit query`: one question to the logs of many sessions.

use super::super::args::QueryArgs;
use super::super::screen::Tone;
use super::super::{CommandError, Context, Outcome};
use super::{log_file, logs, ruling, unreadable};
use crate::audit::query::{Filter, Row, Rows, parse_time};
use crate::audit::read::Lines;
use crate::audit::record::Stage;
use crate::audit::show::{LOG_HEADER, log_line};
use crate::audit::{log_path, sessions};
use crate::base::exit::Exit;
use crate::base::ids::Id;
use crate::base::text::escape;
use std::path::PathBuf;

/// `stoplog audit query`
pub(super) fn query(context: &Context, args: &QueryArgs) -> Outcome {
    let filter = filter(args)?;
    let mut table = Table { context, json: args.json, session: None };
    for path in files(context, args)? {
        for row in Rows::new(Lines::open(&path).map_err(unreadable)?, &filter) {
            let row = row.map_err(|error| unreadable(format!("`{}`: {error}", path.display())))?;
            table.show(&row)?;
        }
    }
    Ok(Exit::Done)
}

fn files(context: &Context, args: &QueryArgs) -> Result<Vec<PathBuf>, CommandError> {
    if !args.logs.is_empty() {
        return args.logs.iter().map(|wanted| log_file(context, Some(wanted))).collect();
    }
    let directory = logs(context)?;
    // Where nothing was logged yet, nothing is found.
    let known = sessions(&directory).unwrap_or_default();
    Ok(known.iter().map(|session| log_path(&directory, session)).collect())
}

fn filter(args: &QueryArgs) -> Result<Filter, CommandError> {
    let stage = |wanted: &str| Stage::ALL.into_iter().find(|stage| stage.as_str() == wanted);
    Ok(Filter {
        kinds: args.kind.clone(),
        ruling: args.decision.as_deref().map(ruling).transpose()?,
        stage: args.stage.as_deref().and_then(stage),
        code: args.code.clone(),
        rule: args.rule.clone(),
        tool: args.tool.clone(),
        program: args.program.clone(),
        path: args.path.as_deref().map(glob).transpose()?,
        host: args.host.clone(),
        role: args.role.clone(),
        user: args.user.clone(),
        since_ms: args.since.as_deref().map(time).transpose()?,
        until_ms: args.until.as_deref().map(time).transpose()?,
        ..Filter::default()
    })
}

/// A `*` stays within one name, as in policies.
fn glob(text: &str) -> Result<globset::GlobMatcher, CommandError> {
    let built = globset::GlobBuilder::new(text).literal_separator(true).build();
    built.map(|glob| glob.compile_matcher()).map_err(|error| {
        CommandError::new(Exit::Usage, format!("--path `{}`: {}", escape(text), error.kind()))
    })
}

fn time(text: &str) -> Result<u64, CommandError> {
    parse_time(text).ok_or_else(|| {
        let shown = escape(text);
        let message =
            format!("`{shown}` is no time: give 2026-01-31T12:00:00Z, or 2026-01-31 for its start");
        CommandError::new(Exit::Usage, message)
    })
}

/// The rows, below the session that they are of.
struct Table<'c> {
    context: &'c Context,
    json: bool,
    session: Option<Id>,
}

impl Table<'_> {
    fn show(&mut self, row: &Row) -> Result<(), CommandError> {
        let screen = self.context.screen;
        if self.json {
            let line = row.to_json_line();
            screen.out(&line.map_err(|error| CommandError::new(Exit::Fault, error))?);
            return Ok(());
        }
        let session = row.run.as_ref().map(|run| &run.session);
        if session != self.session.as_ref() {
            let name = session.map_or("?", Id::as_str);
            screen.out(&screen.paint_out(Tone::Strong, &format!("session {name}")));
            screen.out(&screen.paint_out(Tone::Strong, LOG_HEADER));
            self.session = session.cloned();
        }
        screen.out(&log_line(row));
        Ok(())
    }
}
