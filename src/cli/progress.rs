//! Shows a run as it happens: one line a call, and for a refusal the rule and the reason; on a terminal
//! also what is going on now.

use super::args::Output;
use super::screen::{Screen, Tone};
use crate::agent::events::{Event, Listener};
use crate::audit::record::{Reason, Stage, StageVerdict};
use crate::base::ids::Id;
use crate::base::text::{escape, prefix};
use crate::chain::verdict::place;
use std::collections::BTreeMap;

/// Bytes of a call's arguments that fit on its line.
const CALL_BYTES_MAX: usize = 100;

/// A listener that shows events in the form that was asked for.
#[must_use]
pub(super) fn listener(screen: Screen, output: Output, without_content: bool) -> Listener {
    let mut shown = form(screen, output, without_content);
    Box::new(move |event| {
        if let Event::Init { cell, warnings, .. } = event {
            tell_lost(screen, &lost(cell));
            tell_warnings(screen, warnings);
        }
        shown(event);
    })
}

/// Guarantees that the cells of a run do not give, from its first event.
pub(super) fn lost(cell: &serde_json::Value) -> Vec<String> {
    let names = cell.get("lost").and_then(serde_json::Value::as_array);
    let names = names.into_iter().flatten().filter_map(serde_json::Value::as_str);
    names.map(str::to_owned).collect()
}

/// Says what cells do not give; in every form of output, since it must not be missed.
pub(super) fn tell_lost(screen: Screen, lost: &[String]) {
    if !lost.is_empty() {
        let names: Vec<String> = lost.iter().map(|name| escape(name)).collect();
        let text = format!("weaker here, not given: {} (see SECURITY.md)", names.join(", "));
        screen.err(&screen.paint(Tone::Weak, &text));
    }
}

/// Says what has to be known of the workspace. The sentences hold no raw text from outside.
pub(super) fn tell_warnings(screen: Screen, warnings: &[String]) {
    for warning in warnings {
        screen.err(&screen.paint(Tone::Weak, &format!("warning: {warning}")));
    }
}

fn form(screen: Screen, output: Output, without_content: bool) -> Listener {
    match output {
        Output::Text => {
            let mut lines = Lines {
                screen,
                calls: BTreeMap::new(),
                refusals: BTreeMap::new(),
                running: Vec::new(),
            };
            Box::new(move |event| {
                lines.show(event);
                lines.show_running();
            })
        }
        Output::StreamJson => {
            Box::new(move |event| {
                let line = if without_content {
                    serde_json::to_string(&event.without_content())
                } else {
                    serde_json::to_string(event)
                };
                // The types hold nothing that JSON cannot; an error would be a defect, told as such.
                screen.out(&line.unwrap_or_else(|error| {
                    format!("{{\"type\":\"fault\",\"error\":\"{error}\"}}")
                }));
            })
        }
        Output::Json => Box::new(|_event| {}),
    }
}

struct Lines {
    screen: Screen,
    calls: BTreeMap<Id, String>,
    refusals: BTreeMap<Id, (&'static str, Reason)>,
    /// Approved calls without a result, in order.
    running: Vec<Id>,
}

impl Lines {
    fn show(&mut self, event: &Event) {
        match event {
            Event::Init { session, model, workspace, cell, notices, .. } => {
                let cell = cell.get("summary").and_then(serde_json::Value::as_str).unwrap_or("");
                let line =
                    format!("session {session}  model {model}\nworkspace {workspace}\ncell {cell}");
                self.screen.err(&self.screen.paint(Tone::Dim, &line));
                for notice in notices {
                    self.screen.err(&self.screen.paint(Tone::Weak, notice));
                }
            }
            Event::Resumed { in_flight } => {
                for sentence in in_flight {
                    self.screen.err(&self.screen.paint(Tone::Weak, &escape(sentence)));
                }
            }
            Event::ToolCall { call, tool, arguments } => {
                self.calls.insert(call.clone(), call_line(tool, arguments));
            }
            Event::Decision { call, stage, verdict: StageVerdict::Deny, reasons } => {
                if let Some(reason) = reasons.first() {
                    self.refusals.insert(call.clone(), (stage, reason.clone()));
                }
            }
            // The last stage was reached and does not refuse: the call runs.
            Event::Decision { call, stage, verdict, .. }
                if *stage == Stage::Permission.as_str() && *verdict != StageVerdict::NotReached =>
            {
                self.running.push(call.clone());
            }
            Event::Result(_) => self.running.clear(),
            Event::Thinking { .. } => self.screen.passing("thinking…"),
            Event::ToolResult { call, status, duration_ms, content, .. } => {
                self.running.retain(|running| running != call);
                self.show_result(call, status, content, *duration_ms);
            }
            Event::AssistantMessage { content, calls } if *calls > 0 && !content.is_empty() => {
                self.screen.err(
                    &self
                        .screen
                        .paint(Tone::Dim, &crate::base::text::escape_keeping_lines(content)),
                );
            }
            Event::Retry { attempt, code: _, cause, delay_ms } => {
                let text =
                    format!("model attempt {attempt} failed: {cause}; next in {delay_ms} ms");
                self.screen.err(&self.screen.paint(Tone::Weak, &text));
            }
            Event::Repair { code: _, detail } => {
                self.screen
                    .err(&self.screen.paint(Tone::Dim, &format!("conversation mended: {detail}")));
            }
            Event::JobEnded { job, outcome, duration_ms, .. } => {
                let text = format!("background {job}: {outcome}  {duration_ms} ms");
                self.screen.err(&self.screen.paint(Tone::Dim, &text));
            }
            Event::AgentsFile { bytes, status } => {
                let text = format!("AGENTS.md: {status}, {bytes} bytes, read as data");
                self.screen.err(&self.screen.paint(Tone::Dim, &text));
            }
            Event::UserMessage { .. }
            | Event::TextDelta { .. }
            | Event::AssistantMessage { .. }
            | Event::Decision { .. }
            | Event::Background { .. }
            | Event::Usage { .. }
            | Event::Compaction { .. } => {}
        }
    }

    /// The first call that runs, and how many more do.
    fn show_running(&self) {
        let Some(line) = self.running.first().and_then(|call| self.calls.get(call)) else { return };
        let more = self.running.len().saturating_sub(1);
        let more = if more == 0 { String::new() } else { format!("(and {more} more) ") };
        self.screen.passing(&format!("… {more}{line}"));
    }

    fn show_result(&mut self, call: &Id, status: &str, content: &str, duration_ms: u64) {
        let line = self.calls.remove(call).unwrap_or_default();
        if let Some((stage, reason)) = self.refusals.remove(call) {
            self.screen.err(&format!("{} {line}", self.screen.paint(Tone::Bad, "✗")));
            self.screen.err(&self.screen.paint(Tone::Bad, &refusal(stage, &reason)));
            return;
        }
        let (mark, tone) = if status == "ok" { ("●", Tone::Good) } else { ("○", Tone::Weak) };
        let ending =
            if status == "ok" { String::new() } else { format!("  {}", first_line(content)) };
        let time = self.screen.paint(Tone::Dim, &format!("{duration_ms} ms"));
        self.screen.err(&format!("{} {line}  {time}{ending}", self.screen.paint(tone, mark)));
    }
}

/// The two lines under a refused call.
fn refusal(stage: &str, reason: &Reason) -> String {
    let rule = reason.rule.as_ref().map_or(String::new(), |rule| format!(" · rule {rule}"));
    let place = place(reason).map_or(String::new(), |place| format!(" ({place})"));
    format!("    denied by {stage} · {}{rule}{place}\n    {}", reason.code, reason.sentence)
}

/// `tool` and the argument that says most, on one line, escaped.
pub(super) fn call_line(tool: &str, arguments: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
    let main = ["command", "path", "pattern"].iter().find_map(|key| value.get(key)?.as_str());
    let shown = escape(main.unwrap_or(arguments));
    let cut = prefix(&shown, CALL_BYTES_MAX);
    let dots = if cut.len() < shown.len() { "…" } else { "" };
    format!("{tool} {cut}{dots}")
}

fn first_line(content: &str) -> String {
    escape(prefix(content.lines().next().unwrap_or(""), CALL_BYTES_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_one_escaped_line() {
        let line = call_line("bash", "{\"command\":\"ls\\n\\u001b[2J\"}");
        assert_eq!(line, r"bash ls\n\u{1b}[2J");
        assert!(call_line("bash", &"x".repeat(1_000)).len() < 120);
    }
}
