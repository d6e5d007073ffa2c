//! A session for people and for other programs: Markdown, the common form of the state, the plan.

use crate::base::clock::rfc3339;
use crate::base::text::{escape, escape_keeping_lines};
use crate::session::facts::configuration::CurrentConfiguration;
use crate::session::facts::message::{Message, ToolCall};
use crate::session::plan::plan;
use crate::session::reduce::corruption::{Corruption, CorruptionCode};
use crate::session::reduce::reduce;
use crate::session::state::{Operation, SessionState};
use crate::session::view::in_call_order;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Takes secrets out of text before it is shown.
pub type Redact<'redact> = &'redact dyn Fn(&str) -> String;

/// The outcome of reducing `bytes` in the form that all readers of the format print, with the damage
/// itself for a message to the person.
///
/// # Errors
/// If the form cannot be written as JSON.
pub fn reduced_json(bytes: &[u8]) -> Result<(String, Option<Corruption>), serde_json::Error> {
    #[derive(Serialize)]
    struct Sound<'state> {
        ok: bool,
        state: &'state SessionState,
    }
    #[derive(Serialize)]
    struct Damaged {
        ok: bool,
        error: Place,
    }
    #[derive(Serialize)]
    struct Place {
        code: CorruptionCode,
        line: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        seq: Option<u64>,
    }
    match reduce(bytes) {
        Ok(state) => Ok((pretty(&Sound { ok: true, state: &state })?, None)),
        Err(corruption) => {
            let Corruption { code, line, seq, .. } = corruption;
            let damaged = Damaged { ok: false, error: Place { code, line, seq } };
            Ok((pretty(&damaged)?, Some(corruption)))
        }
    }
}

/// The state and what our extensions add, with every text passed through `redact`.
///
/// # Errors
/// If the state cannot be written as JSON.
pub fn show_json(state: &SessionState, redact: Redact<'_>) -> Result<String, serde_json::Error> {
    let mut shown = json!({
        "state": serde_json::to_value(state)?,
        "extensions": serde_json::to_value(&state.extension)?,
    });
    redact_texts(&mut shown, redact);
    pretty(&shown)
}

fn redact_texts(value: &mut Value, redact: Redact<'_>) {
    match value {
        Value::String(text) => *text = redact(text),
        Value::Array(items) => items.iter_mut().for_each(|item| redact_texts(item, redact)),
        Value::Object(map) => map.values_mut().for_each(|item| redact_texts(item, redact)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The next step of a session in the form of the format.
///
/// # Errors
/// If the form cannot be written as JSON.
pub fn plan_json(
    state: &SessionState,
    current: &CurrentConfiguration,
) -> Result<String, serde_json::Error> {
    pretty(&plan(state, current))
}

fn pretty(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, formatter))?;
    bytes.push(b'\n');
    String::from_utf8(bytes).map_err(serde::ser::Error::custom)
}

/// The whole conversation as Markdown. Every text passes through `redact`.
#[must_use]
pub fn markdown(state: &SessionState, redact: Redact<'_>) -> String {
    let header = &state.header;
    let mut out = String::new();
    put(&mut out, format_args!("# Session {}\n\n", header.id));
    put(&mut out, format_args!("- created: {}\n", rfc3339(header.created_at)));
    put(&mut out, format_args!("- workspace: {}\n", code(&redact(&header.cwd))));
    let model = format!("{}/{}", header.provider, header.model);
    put(&mut out, format_args!("- model: {}\n", code(&redact(&model))));
    let usage = &state.usage;
    put(&mut out, format_args!("- tokens: {} in, {} out\n", usage.input, usage.output));
    put(&mut out, format_args!("- status: {}\n", status(state)));
    for placed in in_call_order(&state.transcript) {
        put(&mut out, format_args!("\n"));
        let reasons = state.extension.thinking.iter();
        for item in reasons.filter(|item| item.assistant_entry_id == placed.entry_id) {
            put(&mut out, format_args!("### Thinking\n\n{}\n", fenced(&redact(&item.text))));
        }
        let injected = state.extension.injected.iter();
        let is_injected = injected.clone().any(|item| item.entry_id == placed.entry_id);
        put_message(&mut out, &placed.message, is_injected, redact);
    }
    out
}

fn put_message(out: &mut String, message: &Message, is_injected: bool, redact: Redact<'_>) {
    match message {
        Message::User(user) => {
            let who = if is_injected { "Host" } else { "User" };
            put(out, format_args!("## {who}\n\n{}\n", fenced(&redact(&user.content))));
        }
        Message::Assistant(answer) => {
            put(out, format_args!("## Assistant\n"));
            if let Some(text) = answer.content.as_deref().filter(|text| !text.is_empty()) {
                put(out, format_args!("\n{}\n", fenced(&redact(text))));
            }
            for call in &answer.tool_calls {
                put_call(out, call, redact);
            }
        }
        Message::Tool(tool) => {
            let id = code(&redact(&tool.tool_call_id));
            put(out, format_args!("### Result of {id}\n\n{}\n", fenced(&redact(&tool.content))));
        }
    }
}

fn put_call(out: &mut String, call: &ToolCall, redact: Redact<'_>) {
    let (name, id) = (code(&redact(&call.function.name)), code(&redact(&call.id)));
    let arguments = fenced(&redact(&call.function.arguments));
    put(out, format_args!("\n### Call {name}, {id}\n\n{arguments}\n"));
}

const fn status(state: &SessionState) -> &'static str {
    match &state.operation {
        Operation::Idle => "idle",
        Operation::Run(_) => "a run was cut off or is going on",
        Operation::Compaction(_) => "a compaction was cut off or is going on",
    }
}

/// Text in a fence that is longer than any in it, so that it can neither end the fence nor pose as a
/// heading; control characters that could act on a terminal are made visible.
fn fenced(text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("{fence}text\n{}\n{fence}", escape_keeping_lines(text).trim_end_matches('\n'))
}

fn code(text: &str) -> String {
    let fence = "`".repeat(longest_run(text) + 1);
    format!("{fence} {} {fence}", escape(text))
}

fn longest_run(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or(0)
}

/// Writing to a `String` cannot fail.
fn put(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    let written = out.write_fmt(arguments);
    debug_assert!(written.is_ok());
}
