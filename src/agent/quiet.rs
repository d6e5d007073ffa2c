//! Events for whoever may not see content: what happened, to which call, how large it was and under which
//! rule, without a word that the user, the model, a tool, a file or a server wrote.
//!
//! In place of a text stand its size, and its digest where the records have the same one. A digest tells
//! nothing about a text but to somebody who can guess it whole. A field is left out unless it is named
//! here, so that a new one is not shown by mistake.

use super::events::{Denial, Event, RunResult};
use crate::audit::record::Reason;
use crate::base::digest::Digest;
use crate::call::request::ToolName;
use serde_json::{Map, Value, json};

/// What stands for a tool that does not exist: its name is the model's own words.
const UNKNOWN_TOOL: &str = "(unknown)";

impl Event {
    /// The event as one object without content.
    #[must_use]
    pub fn without_content(&self) -> Value {
        match self {
            // The run's configuration and its dangers, which are no content.
            Self::Init { .. } => serde_json::to_value(self).unwrap_or_default(),
            // The sentences name tools as the model wrote them.
            Self::Resumed { in_flight } => {
                json!({"type": "resumed", "in_flight": in_flight.len()})
            }
            Self::UserMessage { content } => object("user_message", [sized("content", content)]),
            Self::AgentsFile { bytes, status } => {
                json!({"type": "agents_file", "bytes": bytes, "status": status})
            }
            // A piece may be so short that its digest would say what it is.
            Self::TextDelta { content } => {
                json!({"type": "text_delta", "content_bytes": content.len()})
            }
            Self::Thinking { content } => {
                json!({"type": "thinking", "content_bytes": content.len()})
            }
            Self::AssistantMessage { content, calls } => {
                object("assistant_message", [sized("content", content), json!({ "calls": calls })])
            }
            Self::ToolCall { call, tool, arguments } => object(
                "tool_call",
                [json!({"call": call, "tool": known(tool)}), sized("arguments", arguments)],
            ),
            Self::Decision { call, stage, verdict, reasons } => {
                let reasons: Vec<Value> = reasons.iter().map(place_of).collect();
                json!({"type": "decision", "call": call, "stage": stage, "verdict": verdict,
                    "reasons": reasons})
            }
            Self::ToolResult { call, tool, status, content, duration_ms } => object(
                "tool_result",
                [
                    json!({"call": call, "tool": known(tool), "status": status}),
                    json!({ "duration_ms": duration_ms }),
                    sized("content", content),
                ],
            ),
            Self::Retry { attempt, code, cause: _, delay_ms } => {
                json!({"type": "retry", "attempt": attempt, "code": code, "delay_ms": delay_ms})
            }
            Self::Repair { code, detail: _ } => json!({"type": "repair", "code": code}),
            Self::JobEnded { call, job, outcome, output_bytes, duration_ms } => {
                json!({"type": "job_ended", "call": call, "job": job, "outcome": outcome,
                    "output_bytes": output_bytes, "duration_ms": duration_ms})
            }
            Self::Background { results } => json!({"type": "background", "results": results}),
            Self::Usage { usage, turn, cost_dollars } => {
                let cost = cost_dollars.map(|cost| json!({ "cost_dollars": cost }));
                let usage = json!({"usage": usage, "turn": turn});
                object("usage", [Some(usage), cost].into_iter().flatten())
            }
            Self::Compaction { replaced } => json!({"type": "compaction", "replaced": replaced}),
            Self::Result(result) => object("result", [result.without_content()]),
        }
    }
}

impl RunResult {
    /// The result as one object without content.
    #[must_use]
    pub fn without_content(&self) -> Value {
        let Self {
            status,
            finish_reason,
            answer,
            error,
            usage,
            cost_dollars,
            turns,
            session,
            denials,
            exit_code,
        } = self;
        let denials: Vec<Value> = denials.iter().map(Denial::without_content).collect();
        let mut parts = vec![
            json!({"status": status, "finish_reason": finish_reason, "usage": usage, "turns": turns,
                "session": session, "denials": denials, "exit_code": exit_code}),
            sized("answer", answer),
        ];
        // What went wrong may be in a server's words; the finish reason says of what kind it was.
        parts.extend(error.as_ref().map(|error| sized("error", error)));
        parts.extend(cost_dollars.map(|cost| json!({ "cost_dollars": cost })));
        merged(parts)
    }
}

impl Denial {
    fn without_content(&self) -> Value {
        let Self { call, tool, stage, code, rule, place, reason: _ } = self;
        json!({"call": call, "tool": known(tool), "stage": stage, "code": code, "rule": rule,
            "place": place})
    }
}

/// A reason's code and the place of its rule. Its sentence may be a hook's or a model's, and its subject is
/// a command or a path.
fn place_of(reason: &Reason) -> Value {
    let Reason { code, rule, file, line, sentence: _, subject: _, would_allow: _ } = reason;
    let mut shown = Map::new();
    shown.insert("code".to_owned(), json!(code));
    shown.extend(rule.as_ref().map(|rule| ("rule".to_owned(), json!(rule))));
    shown.extend(file.as_ref().map(|file| ("file".to_owned(), json!(file))));
    shown.extend(line.map(|line| ("line".to_owned(), json!(line))));
    Value::Object(shown)
}

fn known(tool: &str) -> &'static str {
    ToolName::parse(tool).map_or(UNKNOWN_TOOL, ToolName::as_str)
}

/// The size and the digest of a text.
fn sized(key: &str, text: &str) -> Value {
    let digest = Digest::of(text.as_bytes()).to_string();
    Value::Object(Map::from_iter([
        (format!("{key}_bytes"), text.len().into()),
        (format!("{key}_digest"), digest.into()),
    ]))
}

fn object(kind: &str, parts: impl IntoIterator<Item = Value>) -> Value {
    merged(std::iter::once(json!({ "type": kind })).chain(parts))
}

fn merged(parts: impl IntoIterator<Item = Value>) -> Value {
    let mut all = Map::new();
    for part in parts {
        if let Value::Object(part) = part {
            all.extend(part);
        }
    }
    Value::Object(all)
}
