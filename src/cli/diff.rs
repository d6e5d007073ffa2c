//! What an edit changed, as a unified diff of the texts that the call named. Every line is escaped.

use super::screen::Tone;
use crate::base::text::escape_keeping_lines;
use serde::Deserialize;
use similar::{ChangeTag, TextDiff};
use std::time::Duration;

/// Unchanged lines around a change.
const CONTEXT: usize = 2;
/// Lines of one edit that are shown.
const LINES_MAX: usize = 60;
/// Time for one comparison; what is not compared by then is shown as replaced as a whole.
const TIME_MAX: Duration = Duration::from_millis(200);

#[derive(Deserialize)]
struct Edit {
    #[serde(default)]
    edits: Vec<Replacement>,
    old: Option<String>,
    new: Option<String>,
}

#[derive(Deserialize)]
struct Replacement {
    old: String,
    new: String,
}

/// The lines of the diff with their tones; none for arguments that are no edit.
pub(super) fn of_edit(arguments: &str) -> Vec<(Tone, String)> {
    let Ok(Edit { mut edits, old, new }) = serde_json::from_str(arguments) else {
        return Vec::new();
    };
    if let (Some(old), Some(new)) = (old, new) {
        edits.push(Replacement { old, new });
    }
    let mut lines: Vec<_> = edits.iter().flat_map(of_replacement).collect();
    if lines.len() > LINES_MAX {
        let more = lines.len() - LINES_MAX;
        lines.truncate(LINES_MAX);
        lines.push((Tone::Dim, format!("… {more} more lines")));
    }
    lines
}

fn of_replacement(replacement: &Replacement) -> Vec<(Tone, String)> {
    let Replacement { old, new } = replacement;
    let diff = TextDiff::configure().timeout(TIME_MAX).diff_lines(old.as_str(), new.as_str());
    let mut lines = Vec::new();
    for group in diff.grouped_ops(CONTEXT) {
        lines.push((Tone::Dim, "@@".to_owned()));
        for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
            let (sign, tone) = match change.tag() {
                ChangeTag::Delete => ('-', Tone::Bad),
                ChangeTag::Insert => ('+', Tone::Good),
                ChangeTag::Equal => (' ', Tone::Dim),
            };
            let text = change.value().trim_end_matches('\n');
            lines.push((tone, format!("{sign}{}", escape_keeping_lines(text))));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_stand_with_their_signs_and_nothing_is_unescaped() {
        let arguments = r#"{"path":"a","edits":[{"old":"one\ntwo\nthree\n","new":"one\n2\u001b[2J\nthree\n"}]}"#;
        let lines: Vec<String> = of_edit(arguments).into_iter().map(|(_, line)| line).collect();
        assert_eq!(lines, ["@@", " one", "-two", "+2\\u{1b}[2J", " three"]);
        let single = of_edit(r#"{"path":"a","old":"x","new":"y"}"#);
        assert_eq!(single[1], (Tone::Bad, "-x".to_owned()));
        assert!(of_edit("no edit").is_empty() && of_edit("{\"path\":\"a\"}").is_empty());
    }

    #[test]
    fn a_long_diff_is_cut_and_says_so() {
        let new = "line\\n".repeat(500);
        let lines = of_edit(&format!(r#"{{"old":"","new":"{new}"}}"#));
        assert_eq!(lines.len(), LINES_MAX + 1);
        assert!(lines[LINES_MAX].1.contains("441 more lines"), "{}", lines[LINES_MAX].1);
    }
}
