//! `session …`: the conversations that are kept, and the journal's own tools.

use super::args::{ExportFormat, SessionCommand};
use super::{CommandError, Context, Outcome, json};
use crate::audit::Redactor;
use crate::base::clock::{Clock, rfc3339};
use crate::base::exit::Exit;
use crate::base::text::{escape, prefix};
use crate::run::setup::state_directory;
use crate::session::{
    CurrentConfiguration, PruneRule, SessionDirectory, SessionState, SessionStatus, SessionSummary,
    Store, html, markdown, plan_json, reduce, reduced_json, show_json,
};
use serde_json::json as value;
use std::fmt::Display;
use std::path::Path;

/// Bytes of a session's first message in the list.
const FIRST_MESSAGE_BYTES: usize = 60;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// `stoplog session`
pub(super) fn session(context: &Context, command: SessionCommand) -> Outcome {
    match command {
        SessionCommand::List { json } => list(context, json),
        SessionCommand::Show { session, json } => show(context, session.as_deref(), json),
        SessionCommand::Export { session, format } => export(context, session.as_deref(), format),
        SessionCommand::Fork { session } => fork(context, session.as_deref()),
        SessionCommand::Reduce { file, json } => reduce_file(context, &file, json),
        SessionCommand::Plan { session, config, json } => plan(context, &session, &config, json),
        SessionCommand::Prune { older_than, yes } => prune(context, older_than, yes),
    }
}

fn store(context: &Context) -> Result<Store, CommandError> {
    let state = state_directory(context.state_directory.as_deref(), &context.environment)?;
    Store::open(&state, &[]).map_err(|error| CommandError::new(Exit::Usage, error))
}

fn list(context: &Context, as_json: bool) -> Outcome {
    for summary in store(context)?.list().map_err(session_error)? {
        let line = if as_json { json_line(&summary)? } else { text_line(&summary) };
        context.screen.out(&line);
    }
    Ok(Exit::Done)
}

fn status_word(summary: &SessionSummary) -> &'static str {
    match (&summary.status, summary.in_use) {
        (SessionStatus::Corrupt(_), _) => "corrupt",
        (SessionStatus::Unreadable(_), _) => "unreadable",
        (SessionStatus::Idle | SessionStatus::Unfinished, true) => "in use",
        (SessionStatus::Idle, false) => "idle",
        (SessionStatus::Unfinished, false) => "interrupted",
    }
}

fn text_line(summary: &SessionSummary) -> String {
    let id = summary.directory.id();
    let status = status_word(summary);
    let Some(content) = &summary.content else { return format!("{id}  {status}") };
    let first = escape(content.first_message.as_deref().unwrap_or(""));
    let created = rfc3339(content.header.created_at);
    let (messages, cwd) = (content.messages, escape(&content.header.cwd));
    let first = prefix(&first, FIRST_MESSAGE_BYTES);
    format!("{id}  {created}  {status:<11}  {messages:>4} messages  {cwd}  {first}")
}

fn json_line(summary: &SessionSummary) -> Result<String, CommandError> {
    let content = summary.content.as_ref();
    json(&value!({
        "session": summary.directory.id(),
        "status": status_word(summary).replace(' ', "_"),
        "workspace": content.map(|content| &content.header.cwd),
        "provider": content.map(|content| &content.header.provider),
        "model": content.map(|content| &content.header.model),
        "created": content.map(|content| rfc3339(content.header.created_at)),
        "messages": content.map(|content| content.messages),
        "first_message": content.map(|content| &content.first_message),
    }))
}

/// The session that is named, or the newest one.
fn find(context: &Context, wanted: Option<&str>) -> Result<SessionDirectory, CommandError> {
    let store = store(context)?;
    match wanted {
        Some(wanted) => store.find(wanted).map_err(session_error),
        None => store.directories().map_err(session_error)?.into_iter().next().ok_or_else(|| {
            CommandError::new(Exit::Usage, "there is no session yet; `stoplog run` makes one")
        }),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CommandError> {
    std::fs::read(path).map_err(|error| {
        CommandError::new(Exit::Usage, format!("cannot read `{}`: {error}", path.display()))
    })
}

fn state(context: &Context, wanted: Option<&str>) -> Result<SessionState, CommandError> {
    let directory = find(context, wanted)?;
    reduce(&read(&directory.journal())?).map_err(|corruption| {
        let journal = directory.journal();
        CommandError::new(Exit::Session, format!("`{}`: {corruption}", journal.display()))
    })
}

fn show(context: &Context, wanted: Option<&str>, as_json: bool) -> Outcome {
    let state = state(context, wanted)?;
    let redactor = Redactor::new(&[]);
    let redact = |text: &str| redactor.clean(text).unwrap_or_else(|| text.to_owned());
    let text = if as_json {
        show_json(&state, &redact).map_err(|error| CommandError::new(Exit::Fault, error))?
    } else {
        crate::base::text::escape_keeping_lines(&markdown(&state, &redact))
    };
    context.screen.out(text.trim_end());
    Ok(Exit::Done)
}

fn export(context: &Context, wanted: Option<&str>, format: ExportFormat) -> Outcome {
    let state = state(context, wanted)?;
    let redactor = Redactor::new(&[]);
    let redact = |text: &str| redactor.clean(text).unwrap_or_else(|| text.to_owned());
    let document = match format {
        ExportFormat::Markdown => markdown(&state, &redact),
        ExportFormat::Html => html(&state, &redact),
    };
    context.screen.out(document.trim_end());
    Ok(Exit::Done)
}

fn fork(context: &Context, wanted: Option<&str>) -> Outcome {
    let directory = find(context, wanted)?;
    let state = state_directory(context.state_directory.as_deref(), &context.environment)?;
    let id = crate::run::fork::fork(&state, &store(context)?, &directory)?;
    context.screen.out(id.as_str());
    let from = directory.id().short();
    context
        .screen
        .err(&format!("a copy of {from}; stoplog resume {} 'TASK' goes on with it", id.short()));
    Ok(Exit::Done)
}

fn reduce_file(context: &Context, file: &Path, as_json: bool) -> Outcome {
    let bytes = read(file)?;
    let (text, corruption) =
        reduced_json(&bytes).map_err(|error| CommandError::new(Exit::Fault, error))?;
    if as_json {
        context.screen.out(text.trim_end());
    } else {
        match &corruption {
            Some(corruption) => context.screen.out(&format!("{}: {corruption}", file.display())),
            None => context.screen.out(&format!("{}: sound", file.display())),
        }
    }
    Ok(if corruption.is_some() { Exit::Session } else { Exit::Done })
}

fn plan(context: &Context, journal: &Path, config: &Path, as_json: bool) -> Outcome {
    let state = reduce(&read(journal)?)
        .map_err(|corruption| CommandError::new(Exit::Session, corruption))?;
    let current: CurrentConfiguration =
        serde_json::from_slice(&read(config)?).map_err(|error| {
            CommandError::new(Exit::Usage, format!("`{}`: {error}", config.display()))
        })?;
    if as_json {
        let text = plan_json(&state, &current);
        context.screen.out(text.map_err(|error| CommandError::new(Exit::Fault, error))?.trim_end());
    } else {
        for sentence in crate::session::what_was_in_flight(&state) {
            context.screen.out(&sentence);
        }
        context.screen.out(&format!("next: {}", crate::session::plan(&state, &current).explain()));
    }
    Ok(Exit::Done)
}

fn prune(context: &Context, older_than_days: u64, really: bool) -> Outcome {
    let store = store(context)?;
    let age = older_than_days.saturating_mul(DAY_MS);
    let created_before = Clock::System.now_ms().saturating_sub(age);
    let old = |summary: &SessionSummary| {
        let content = summary.content.as_ref();
        content.is_some_and(|content| content.header.created_at < created_before)
    };
    if really {
        let rule = PruneRule { keep_newest: 0, created_before };
        for id in store.prune(rule).map_err(session_error)? {
            context.screen.out(&format!("removed {id}"));
        }
        return Ok(Exit::Done);
    }
    for summary in store.list().map_err(session_error)?.iter().filter(|summary| old(summary)) {
        context.screen.out(&format!("would remove {}", text_line(summary)));
    }
    context.screen.err("nothing was removed; add --yes to do it (audit logs always stay)");
    Ok(Exit::Done)
}

fn session_error(error: impl Display) -> CommandError {
    CommandError::new(Exit::Session, error)
}
