//! `audit log|query|show|verify`: what was decided, and whether the log still says it.

mod query;

use super::args::AuditCommand;
use super::screen::Tone;
use super::{CommandError, Context, Outcome, json};
use crate::audit::query::{Filter, Rows};
use crate::audit::read::Lines;
use crate::audit::record::Ruling;
use crate::audit::show::{LOG_HEADER, call_text, find_calls, log_line};
use crate::audit::verify::Status;
use crate::audit::{Anchors, Report, log_path, sessions, verify, verify_all};
use crate::base::exit::Exit;
use crate::base::text::escape;
use crate::run::setup::state_directory;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// `stoplog audit`
pub(super) fn audit(context: &Context, command: AuditCommand) -> Outcome {
    match command {
        AuditCommand::Log { session, decision, tool, rule, json } => {
            let ruling = decision.as_deref().map(ruling).transpose()?;
            let kinds = if ruling.is_some() || tool.is_some() || rule.is_some() {
                vec!["decision".to_owned()]
            } else {
                Vec::new()
            };
            let filter = Filter { kinds, ruling, rule, tool, ..Filter::default() };
            log(context, session.as_deref(), &filter, json)
        }
        AuditCommand::Query(args) => query::query(context, &args),
        AuditCommand::Show { call, session, json } => {
            show(context, &call, session.as_deref(), json)
        }
        AuditCommand::Verify { session: _, all: true, json } => verify_every(context, json),
        AuditCommand::Verify { session, all: false, json } => {
            let path = log_file(context, session.as_deref())?;
            let anchors = Anchors::beside(&path).map_err(unreadable)?;
            let report = verify(&path, &anchors).map_err(unreadable)?;
            tell(context, &[report], json)
        }
    }
}

fn ruling(word: &str) -> Result<Ruling, CommandError> {
    match word {
        "deny" | "denied" => Ok(Ruling::Denied),
        "pass" | "approved" => Ok(Ruling::Approved),
        other => Err(CommandError::new(
            Exit::Usage,
            format!("--decision is `pass` or `deny`, not `{}`", escape(other)),
        )),
    }
}

fn log(context: &Context, session: Option<&str>, filter: &Filter, as_json: bool) -> Outcome {
    let path = log_file(context, session)?;
    let lines = Lines::open(&path).map_err(unreadable)?;
    if !as_json {
        context.screen.out(&context.screen.paint_out(Tone::Strong, LOG_HEADER));
    }
    for row in Rows::new(lines, filter) {
        let row = row.map_err(unreadable)?;
        let line = if as_json {
            row.to_json_line().map_err(|error| CommandError::new(Exit::Fault, error))?
        } else {
            log_line(&row)
        };
        context.screen.out(&line);
    }
    Ok(Exit::Done)
}

fn show(context: &Context, call: &str, session: Option<&str>, as_json: bool) -> Outcome {
    let path = log_file(context, session)?;
    let lines = Lines::open(&path).map_err(unreadable)?;
    let call = match call.parse::<u64>() {
        Ok(sequence) if call.len() < 8 => call_at(&path, sequence)?,
        Ok(_) | Err(_) => call.to_owned(),
    };
    let found = find_calls(lines, &call).map_err(unreadable)?;
    if found.is_empty() {
        let shown = escape(&call);
        return Err(CommandError::new(
            Exit::Usage,
            format!("no call `{shown}` in `{}`; `stoplog audit log` lists them", path.display()),
        ));
    }
    for records in &found {
        if as_json {
            for row in &records.0 {
                let line = row.to_json_line();
                context.screen.out(&line.map_err(|error| CommandError::new(Exit::Fault, error))?);
            }
        } else {
            context.screen.out(call_text(records).trim_end());
        }
    }
    Ok(Exit::Done)
}

/// The call of the record with this number.
fn call_at(path: &Path, sequence: u64) -> Result<String, CommandError> {
    let filter = Filter::default();
    for row in Rows::new(Lines::open(path).map_err(unreadable)?, &filter) {
        let row = row.map_err(unreadable)?;
        if row.record.seq == sequence {
            let call = row.record.body.call().map(ToString::to_string);
            return call.ok_or_else(|| {
                let kind = row.record.body.kind();
                CommandError::new(
                    Exit::Usage,
                    format!("record {sequence} is a `{kind}` and of no call"),
                )
            });
        }
    }
    Err(CommandError::new(Exit::Usage, format!("there is no record {sequence}")))
}

fn verify_every(context: &Context, as_json: bool) -> Outcome {
    let reports = verify_all(&logs(context)?).map_err(unreadable)?;
    tell(context, &reports, as_json)
}

fn tell(context: &Context, reports: &[Report], as_json: bool) -> Outcome {
    let mut exit = Exit::Done;
    for report in reports {
        if report.status() == Status::Damaged || report.status() == Status::Gaps {
            exit = Exit::Record;
        }
        if as_json {
            context.screen.out(&json(&report.to_json())?);
        } else {
            context.screen.out(report.to_string().trim_end());
        }
    }
    Ok(exit)
}

/// The directory of the logs.
pub(super) fn logs(context: &Context) -> Result<PathBuf, CommandError> {
    let state = state_directory(context.state_directory.as_deref(), &context.environment)?;
    Ok(state.join("audit"))
}

/// A log by file, by session, or the newest one.
pub(super) fn log_file(context: &Context, wanted: Option<&str>) -> Result<PathBuf, CommandError> {
    if let Some(file) = wanted.filter(|wanted| wanted.contains('/') || wanted.ends_with(".jsonl")) {
        return Ok(PathBuf::from(file));
    }
    let directory = logs(context)?;
    let known = sessions(&directory).unwrap_or_default();
    let Some(wanted) = wanted else {
        let newest = known.last().map(|session| log_path(&directory, session));
        return newest.ok_or_else(|| {
            let shown = directory.display();
            CommandError::new(Exit::Usage, format!("there is no log in `{shown}` yet"))
        });
    };
    let fits = |id: &str| id.starts_with(wanted) || id.ends_with(wanted);
    let mut fitting = known.iter().filter(|session| fits(session.as_str()));
    match (fitting.next(), fitting.next()) {
        (Some(session), None) => Ok(log_path(&directory, session)),
        (None, _) => Err(CommandError::new(
            Exit::Usage,
            format!("no session `{}`; `stoplog session list` lists them", escape(wanted)),
        )),
        (Some(_), Some(_)) => Err(CommandError::new(
            Exit::Usage,
            format!("`{}` begins several sessions; give more of the id", escape(wanted)),
        )),
    }
}

pub(super) fn unreadable(error: impl Display) -> CommandError {
    CommandError::new(Exit::Record, error)
}
