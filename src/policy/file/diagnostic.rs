//! Errors in policy files: what, where, and what was probably meant. A load gives all of them at
//! once; this file holds their form and how they are shown.

use super::source::SourceFile;
use crate::base::text::escape;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Errors of one load that are kept; a file with more is broken as a whole.
pub const DIAGNOSTICS_MAX: usize = 100;

/// One error or warning in a policy file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable kebab-case code.
    pub code: &'static str,
    /// What is wrong, in a sentence.
    pub message: String,
    /// What to do about it, if something can be said.
    pub help: Option<String>,
    /// The file.
    pub file: Arc<SourceFile>,
    /// The bytes that are wrong.
    pub span: Range<usize>,
}

impl Diagnostic {
    /// Line and column of its first byte, both counted from 1.
    #[must_use]
    pub fn place(&self) -> (usize, usize) {
        self.file.place(self.span.start)
    }

    /// The finding in one line.
    #[must_use]
    pub fn line(&self) -> String {
        let (line, _) = self.place();
        format!("{}:{line}: {} [{}]", escape(&self.file.name), self.message, self.code)
    }

    /// The error with the line of the file and a caret under the place.
    #[must_use]
    pub fn render(&self, level: Level<'_>, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let (window, line) = self.window();
        let text = self.file.text.get(window.clone()).unwrap_or("");
        let start = self.span.start.saturating_sub(window.start).min(text.len());
        let end = self.span.end.saturating_sub(window.start).clamp(start, text.len());
        let snippet = Snippet::source(text)
            .line_start(line)
            .path(escape(&self.file.name))
            .annotation(AnnotationKind::Primary.span(start..end));
        let mut report = vec![level.primary_title(&self.message).id(self.code).element(snippet)];
        if let Some(help) = &self.help {
            report.push(Group::with_title(Level::HELP.secondary_title(help)));
        }
        renderer.render(&report)
    }

    /// The whole lines around the span, and the number of the first: rendering must not depend on
    /// the size of the file.
    fn window(&self) -> (Range<usize>, usize) {
        let text = &self.file.text;
        let (line, _) = self.place();
        let before = crate::base::text::prefix(text, self.span.start);
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let after = text.get(self.span.end.max(start)..).unwrap_or("");
        let end = after.find('\n').map_or(text.len(), |at| text.len() - after.len() + at);
        (start..end.min(start + 4_096).max(start), line)
    }
}

/// Everything that is wrong with a set of policy files.
#[derive(Debug, Clone, Default)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// All of them, each with its line and caret, and a closing count.
    #[must_use]
    pub fn render(&self, color: bool) -> String {
        let mut text = String::new();
        for diagnostic in &self.0 {
            text.push_str(&diagnostic.render(Level::ERROR, color));
            text.push_str("\n\n");
        }
        let count = self.0.len();
        let plural = if count == 1 { "" } else { "s" };
        text.push_str(&format!("{count} error{plural}; no policy was loaded"));
        text
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

/// Collects the errors of one load.
#[derive(Debug, Default)]
pub struct Collector {
    /// What was found so far.
    pub found: Vec<Diagnostic>,
}

impl Collector {
    /// Adds an error.
    pub fn error(
        &mut self,
        file: &Arc<SourceFile>,
        span: &Range<usize>,
        (code, message): (&'static str, String),
        help: Option<String>,
    ) {
        if self.found.len() < DIAGNOSTICS_MAX {
            let (file, span) = (Arc::clone(file), span.clone());
            self.found.push(Diagnostic { code, message, help, file, span });
        }
    }
}

/// The candidate that `word` was probably meant to be.
#[must_use]
pub fn did_you_mean<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let limit = (word.chars().count() / 2).clamp(1, 3);
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edits (insert, delete, replace) between two words; `-` and `_` count as the same.
fn distance(left: &str, right: &str) -> usize {
    let fold = |text: &str| -> Vec<char> {
        text.chars().map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect()
    };
    let (left, right) = (fold(left), fold(right));
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, from) in left.iter().enumerate() {
        let mut next = vec![index + 1];
        for ((to, above_left), above) in right.iter().zip(&row).zip(row.iter().skip(1)) {
            let replaced = above_left + usize::from(from != to);
            let inserted = next.last().copied().unwrap_or(0) + 1;
            next.push(replaced.min(above + 1).min(inserted));
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_suggested_and_far_ones_are_not() {
        assert_eq!(did_you_mean("raed", ["read", "write"]), Some("read"));
        assert_eq!(did_you_mean("not-match", ["match", "not_match"]), Some("not_match"));
        assert_eq!(did_you_mean("zebra", ["read", "write"]), None);
    }
}
