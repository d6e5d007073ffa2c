//! Records in words, for a person. Every text from the log passes `Untrusted`, so nothing in it
//! reaches a terminal unescaped.
//!
//! [`stages_text`] is the one place that words the verdicts of the chain; `policy explain` uses it
//! too, so that the explanation and the record cannot differ.

mod log;

pub use log::{LOG_HEADER, log_line, subject};

use crate::audit::query::{Filter, Row, Rows, Unreadable};
use crate::audit::read::Lines;
use crate::audit::record::{
    Body, Decision, Outcome, Reason, Rejected, Resolved, Ruling, Stage, StageRecord, StageVerdict,
    Stages,
};
use crate::base::text::{Untrusted, escape, prefix};
use std::io::BufRead;

/// Bytes of one value that are shown; the log holds the rest.
const VALUE_BYTES_SHOWN: usize = 2_000;

/// Digits of a call's identifier, from its end, that are enough to ask for it.
const CALL_DIGITS_MIN: usize = 4;

/// Everything that a log holds about one call, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRecords(pub Vec<Row>);

/// Finds the records of the call whose identifier is, or ends in, `wanted`. Several calls may match;
/// each is given.
///
/// # Errors
/// [`Unreadable`] for the first line that is no record.
pub fn find_calls<R: BufRead>(
    lines: Lines<R>,
    wanted: &str,
) -> Result<Vec<CallRecords>, Unreadable> {
    let filter = Filter::default();
    let mut found: Vec<CallRecords> = Vec::new();
    for row in Rows::new(lines, &filter) {
        let row = row?;
        let Some(call) = row.record.body.call().cloned() else { continue };
        let is_wanted = call.as_str() == wanted
            || (wanted.len() >= CALL_DIGITS_MIN && call.as_str().ends_with(wanted));
        if !is_wanted {
            continue;
        }
        let same = |records: &&mut CallRecords| {
            records.0.first().and_then(|first| first.record.body.call()) == Some(&call)
        };
        match found.iter_mut().find(same) {
            Some(records) => records.0.push(row),
            None => found.push(CallRecords(vec![row])),
        }
    }
    Ok(found)
}

/// One call in words: who asked for what, what it would do, what each stage said, what became of it.
#[must_use]
pub fn call_text(call: &CallRecords) -> String {
    let mut text = String::new();
    for row in &call.0 {
        let record = &row.record;
        let place = format!("record {}, {}", record.seq, Untrusted::new(record.time.as_str()));
        match &record.body {
            Body::Decision(decision) => {
                push(&mut text, &format!("call {}  ({place})", decision.call));
                push(&mut text, decision_text(decision).trim_end());
            }
            Body::Rejected(rejected) => {
                push(&mut text, &format!("call {}  ({place})", rejected.call));
                push(&mut text, &rejected_text(rejected));
            }
            Body::Outcome(outcome) => {
                push(&mut text, &format!("outcome     {}  ({place})", outcome.exit));
                push(&mut text, &outcome_text(outcome));
            }
            body @ (Body::Session(_)
            | Body::Started(_)
            | Body::Grant(_)
            | Body::Network(_)
            | Body::Hook(_)
            | Body::Guardian(_)
            | Body::Agent(_)
            | Body::Retry(_)
            | Body::Repair(_)
            | Body::Checkpoint(_)
            | Body::Recovered(_)
            | Body::End(_)) => {
                let kind = body.kind();
                push(&mut text, &format!("{kind:<11} {}  ({place})", log::summary(body)));
            }
        }
    }
    text
}

fn push(text: &mut String, lines: &str) {
    if !lines.is_empty() {
        text.push_str(lines);
        text.push('\n');
    }
}

fn decision_text(decision: &Decision) -> String {
    let mut text = String::new();
    let Decision { tool, origin, role, .. } = decision;
    push(&mut text, &format!("tool        {tool}, asked for by {origin} as {role}"));
    if let Some(arguments) = decision.arguments.as_object() {
        for (key, value) in arguments {
            push(&mut text, &format!("  {} = {}", escape(key), shown(&value.to_string())));
        }
    }
    push(&mut text, resolved_text(&decision.resolved).trim_end());
    push(&mut text, stages_text(&decision.stages).trim_end());
    if !decision.lost.is_empty() {
        let lost: Vec<String> = decision.lost.iter().map(|name| escape(name)).collect();
        push(&mut text, &format!("not given   {}", lost.join(", ")));
    }
    if decision.redacted > 0 || decision.cut > 0 {
        let Decision { redacted, cut, .. } = decision;
        push(&mut text, &format!("not shown   {redacted} texts redacted, {cut} cut for length"));
    }
    text
}

fn shown(value: &str) -> String {
    let start = prefix(value, VALUE_BYTES_SHOWN);
    let rest = value.len() - start.len();
    if rest == 0 { escape(start) } else { format!("{} … ({rest} more bytes)", escape(start)) }
}

/// What a call would do, one line an effect.
#[must_use]
pub fn resolved_text(resolved: &Resolved) -> String {
    let mut text = String::new();
    for program in &resolved.programs {
        let mut line = format!("  runs      {}", program.program);
        for argument in &program.arguments {
            push_word(&mut line, argument);
        }
        if !program.via.is_empty() {
            let via: Vec<_> = program.via.iter().map(ToString::to_string).collect();
            line.push_str(&format!("   (through {})", via.join(", ")));
        }
        if !program.known {
            line.push_str("   (not all of it is known)");
        }
        push(&mut text, &shown_line(&line));
    }
    for path in &resolved.paths {
        let below = if path.is_pattern { " and names in it" } else { "" };
        let access = Untrusted::new(path.access.as_str()).to_string();
        let mut line = format!("  {access:<9} {}{below}", path.path);
        if let Some(real) = &path.real {
            line.push_str(&format!("   (really {real})"));
        }
        push(&mut text, &line);
    }
    for host in &resolved.hosts {
        let port = host.port.map_or_else(String::new, |port| format!(":{port}"));
        push(&mut text, &format!("  reaches   {}{port}", host.host));
    }
    for part in &resolved.unresolved {
        push(&mut text, &format!("  unknown   {} ({})", part.text, part.reason));
    }
    text
}

/// A word that could be read as two is shown in quotation marks.
fn push_word(line: &mut String, word: &Untrusted) {
    let raw = word.raw();
    if raw.is_empty() || raw.contains(char::is_whitespace) || raw.contains('"') {
        line.push_str(&format!(" {word:?}"));
    } else {
        line.push_str(&format!(" {word}"));
    }
}

/// Cuts a line that is escaped already.
fn shown_line(line: &str) -> String {
    let start = prefix(line, VALUE_BYTES_SHOWN);
    if start.len() == line.len() { line.to_owned() } else { format!("{start} …") }
}

/// What the chain said: the ruling, then the six stages in order with the reasons of each. The words
/// of `audit show` and of `policy explain`.
#[must_use]
pub fn stages_text(stages: &Stages) -> String {
    let mut text = String::new();
    let ruling = match (stages.ruling(), stages.denial()) {
        (Ruling::Denied, Some((stage, _))) => format!("denied by {}", stage.as_str()),
        (Ruling::Denied, None) => "denied".to_owned(),
        (Ruling::Approved, _) => "approved".to_owned(),
    };
    push(&mut text, &format!("decision    {ruling}"));
    for (index, (stage, record)) in stages.in_order().into_iter().enumerate() {
        push(&mut text, &stage_line(index + 1, stage, record));
        for reason in &record.reasons {
            push(&mut text, reason_text(reason).trim_end());
        }
    }
    text
}

fn stage_line(number: usize, stage: Stage, record: &StageRecord) -> String {
    let mut line = format!("  {number} {:<11}{}", stage.as_str(), record.verdict.as_str());
    match record.verdict {
        StageVerdict::Pass | StageVerdict::Require | StageVerdict::Deny => {
            let micros = record.duration_us;
            line.push_str(&format!("  ({}.{:03} ms)", micros / 1_000, micros % 1_000));
        }
        StageVerdict::Skipped | StageVerdict::NotReached => {}
    }
    line
}

fn reason_text(reason: &Reason) -> String {
    const INDENT: &str = "               ";
    let Reason { code, rule, file, line, sentence, subject, would_allow } = reason;
    let mut text = String::new();
    push(&mut text, &format!("{INDENT}{code}: {sentence}"));
    if let Some(rule) = rule {
        let line = line.map_or_else(String::new, |line| format!(":{line}"));
        let file = file.as_ref().map_or_else(String::new, |file| format!(", {file}{line}"));
        push(&mut text, &format!("{INDENT}rule {rule}{file}"));
    }
    if let Some(subject) = subject {
        push(&mut text, &format!("{INDENT}about {}", shown(subject.raw())));
    }
    if let Some(would_allow) = would_allow {
        push(&mut text, &format!("{INDENT}allowed instead: {would_allow}"));
    }
    text
}

fn rejected_text(rejected: &Rejected) -> String {
    let Rejected { tool, origin, because, told, arguments, .. } = rejected;
    format!(
        "tool        {tool}, asked for by {origin}\nrejected    {}: {told}\n  arguments {}",
        because.as_str(),
        shown(arguments.raw())
    )
}

fn outcome_text(outcome: &Outcome) -> String {
    let mut text = String::new();
    let Outcome { stdout_bytes, stderr_bytes, duration_ms, .. } = outcome;
    let cut = if outcome.truncated { ", cut for the model" } else { "" };
    push(
        &mut text,
        &format!("  output    {stdout_bytes} + {stderr_bytes} bytes{cut}, after {duration_ms} ms"),
    );
    for file in &outcome.files_written {
        push(&mut text, &format!("  wrote     {file}"));
    }
    for limit in &outcome.limits_hit {
        push(&mut text, &format!("  limit     {limit}"));
    }
    text.trim_end().to_owned()
}
