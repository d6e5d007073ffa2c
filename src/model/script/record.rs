//! Writes what a model answered as a line of a script, so that a run can be played again.

use crate::base::json::parse_strict;
use crate::model::error::ModelError;
use crate::model::message::{Answer, ModelToolCall};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The script line that gives this result again to a request of `agent`, without a line end. `None`
/// for what is not the model's doing: an interruption, or a script's own faults.
#[must_use]
pub fn script_line(agent: &str, result: &Result<Answer, ModelError>) -> Option<String> {
    let mut line = match result {
        Ok(answer) => answer_line(answer),
        Err(error) => error_line(error)?,
    };
    if agent != "main" {
        line.insert("agent".to_owned(), json!(agent));
    }
    let calls = result.as_ref().map(|answer| answer.tool_calls.as_slice()).unwrap_or_default();
    Some(with_calls(&Value::Object(line).to_string(), calls))
}

fn answer_line(answer: &Answer) -> Map<String, Value> {
    let mut line = Map::new();
    let thinking = answer.thinking_text();
    for (key, text) in [("thinking", &thinking), ("text", &answer.content)] {
        if !text.is_empty() {
            line.insert(key.to_owned(), json!(text));
        }
    }
    line.insert("finish".to_owned(), json!(answer.finish));
    line.insert("usage".to_owned(), json!(answer.usage));
    line
}

fn error_line(error: &ModelError) -> Option<Map<String, Value>> {
    let kind = |kind: &str, message: &str| json!({"error": {"kind": kind, "message": message}});
    let line = match error {
        ModelError::Connect { problem, .. } => kind("connect", problem),
        ModelError::Transport { problem, .. } => kind("transport", problem),
        ModelError::InvalidAnswer { problem } => kind("invalid_answer", problem),
        ModelError::TooLarge { .. } => kind("invalid_answer", &error.to_string()),
        ModelError::Idle(_) | ModelError::Stalled(_) => kind("idle", ""),
        ModelError::CutStream => json!({"cut": true}),
        ModelError::Empty => json!({}),
        ModelError::FinishedWithError(_) => json!({"finish": "error"}),
        ModelError::Status(status) => {
            let mut error = json!({"status": status.status, "message": status.message});
            if let (Some(delay), Some(error)) = (status.retry_after, error.as_object_mut()) {
                error.insert("retry_after".to_owned(), json!(delay.as_secs_f64().to_string()));
            }
            json!({ "error": error })
        }
        ModelError::Configuration(_)
        | ModelError::NoKey { .. }
        | ModelError::Script { .. }
        | ModelError::ScriptExhausted { .. }
        | ModelError::DelayTooLong { .. }
        | ModelError::GaveUp { .. }
        | ModelError::Aborted => return None,
    };
    if let Value::Object(line) = line { Some(line) } else { None }
}

/// Adds the calls to a line. Arguments stand as JSON where that keeps their bytes, else as a string.
fn with_calls(line: &str, calls: &[ModelToolCall]) -> String {
    if calls.is_empty() {
        return line.to_owned();
    }
    let calls: Vec<String> = calls
        .iter()
        .map(|call| {
            let (id, name) = (json!(call.id), json!(call.name));
            format!("{{\"id\":{id},\"name\":{name},\"arguments\":{}}}", arguments(&call.arguments))
        })
        .collect();
    let head = line.strip_suffix('}').unwrap_or(line);
    format!("{head},\"calls\":[{}]}}", calls.join(","))
}

fn arguments(raw: &str) -> String {
    let one_line = !raw.contains(['\n', '\r']);
    let is_object = parse_strict(raw.as_bytes()).is_ok_and(|value| value.is_object());
    match serde_json::from_str::<Box<RawValue>>(raw) {
        // The parser drops the white space around a value.
        Ok(value) if one_line && is_object && value.get() == raw => raw.to_owned(),
        Ok(_) | Err(_) => json!(raw).to_string(),
    }
}
