//! A run as it happens before a person: the answer as it arrives on standard output, one line a call
//! and the diff of an edit on standard error. Scripts and logs are told by `progress` alone.

use super::args::Output;
use super::screen::Screen;
use super::{diff, progress};
use crate::agent::events::{Event, Listener};
use crate::base::ids::Id;
use crate::base::text::escape_keeping_lines;
use std::collections::BTreeMap;

/// What becomes of the text of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answers {
    /// It is shown here, as it arrives.
    Shown,
    /// Somebody else prints it when it is whole.
    Left,
}

/// Whether the first event, the session and its cell, is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// It is new to the person.
    Shown,
    /// An earlier turn has shown it.
    Known,
}

/// A listener for one run.
pub(super) fn listener(screen: Screen, answers: Answers, opening: Opening) -> Listener {
    let mut turn = Turn {
        screen,
        answers,
        opening,
        lines: progress::listener(screen, Output::Text, false),
        edits: BTreeMap::new(),
        streamed: false,
        mid_line: false,
    };
    Box::new(move |event| turn.show(event))
}

struct Turn {
    screen: Screen,
    answers: Answers,
    opening: Opening,
    lines: Listener,
    /// Arguments of edits that have no result yet.
    edits: BTreeMap<Id, String>,
    /// Whether text of the current answer was shown as it arrived.
    streamed: bool,
    mid_line: bool,
}

impl Turn {
    fn show(&mut self, event: &Event) {
        match event {
            Event::TextDelta { content } if self.answers == Answers::Shown => {
                self.streamed = true;
                self.say(content);
            }
            Event::AssistantMessage { content, .. } if self.answers == Answers::Shown => {
                if !std::mem::take(&mut self.streamed) {
                    self.say(content);
                }
                self.end_line();
            }
            Event::Init { .. } if self.opening == Opening::Known => {}
            Event::ToolCall { call, tool, arguments } => {
                if tool == "edit" {
                    self.edits.insert(call.clone(), arguments.clone());
                }
                (self.lines)(event);
            }
            Event::JobEnded { .. } => {
                self.end_line();
                (self.lines)(event);
            }
            Event::ToolResult { call, status, .. } => {
                self.end_line();
                (self.lines)(event);
                let arguments = self.edits.remove(call).filter(|_| *status == "ok");
                self.show_diff(arguments.as_deref());
            }
            Event::Retry { .. } | Event::Repair { .. } | Event::Result(_) => {
                self.end_line();
                self.streamed = false;
                (self.lines)(event);
            }
            Event::Init { .. }
            | Event::UserMessage { .. }
            | Event::AgentsFile { .. }
            | Event::TextDelta { .. }
            | Event::AssistantMessage { .. }
            | Event::Thinking { .. }
            | Event::Decision { .. }
            | Event::Resumed { .. }
            | Event::Background { .. }
            | Event::Usage { .. }
            | Event::Compaction { .. } => (self.lines)(event),
        }
    }

    fn say(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.screen.piece(&escape_keeping_lines(text));
        self.mid_line = !text.ends_with('\n');
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.mid_line) {
            self.screen.piece("\n");
        }
    }

    fn show_diff(&self, arguments: Option<&str>) {
        for (tone, line) in arguments.map(diff::of_edit).unwrap_or_default() {
            self.screen.err(&self.screen.paint(tone, &format!("    {line}")));
        }
    }
}
