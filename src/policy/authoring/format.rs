//! The one layout of policy files. Only space changes: a file whose meaning would change is returned
//! as it was, and so is one that cannot be read.

use toml::de::{DeTable, DeValue};

/// `text` in the layout of policy files.
#[must_use]
pub fn format(text: &str) -> String {
    let Ok(table) = DeTable::parse(text) else { return text.to_owned() };
    let mut strings = Vec::new();
    for value in table.get_ref().values() {
        many_line_strings(text, value, &mut strings);
    }
    let formatted = lay_out(text, &strings);
    let same =
        toml::from_str::<toml::Table>(text).ok() == toml::from_str::<toml::Table>(&formatted).ok();
    if same { formatted } else { text.to_owned() }
}

/// Bytes of strings over several lines, in which every space counts.
fn many_line_strings(
    text: &str,
    value: &toml::Spanned<DeValue<'_>>,
    found: &mut Vec<std::ops::Range<usize>>,
) {
    match value.get_ref() {
        DeValue::Table(table) => {
            table.values().for_each(|value| many_line_strings(text, value, found));
        }
        DeValue::Array(array) => {
            array.iter().for_each(|value| many_line_strings(text, value, found))
        }
        DeValue::String(_) if text.get(value.span()).is_some_and(|part| part.contains('\n')) => {
            found.push(value.span());
        }
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => {}
    }
}

fn lay_out(text: &str, strings: &[std::ops::Range<usize>]) -> String {
    let mut layout = Layout::default();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let (start, end) = (at, at + line.len());
        at = end;
        let touches = |string: &std::ops::Range<usize>| string.start < end && start < string.end;
        if strings.iter().any(touches) {
            layout.verbatim(line.trim_end_matches('\n'));
        } else {
            layout.line(line.trim());
        }
    }
    layout.finish()
}

#[derive(Default)]
struct Layout {
    lines: Vec<String>,
    /// Lines of comment that belong to what follows.
    comments: usize,
    depth: usize,
}

impl Layout {
    fn verbatim(&mut self, line: &str) {
        self.comments = 0;
        self.lines.push(line.to_owned());
    }

    fn line(&mut self, line: &str) {
        if line.is_empty() {
            if self.lines.last().is_some_and(|last| !last.is_empty()) {
                self.lines.push(String::new());
            }
            self.comments = 0;
            return;
        }
        let outer = self.depth == 0;
        if outer && line.starts_with('[') {
            self.blank_before_header();
        }
        let opened = self.depth;
        self.count_brackets(line, outer && line.starts_with('['));
        let indent = if line.starts_with([']', '}']) { self.depth } else { opened };
        let body = if outer { spaced(line) } else { line.to_owned() };
        self.comments = if line.starts_with('#') { self.comments + 1 } else { 0 };
        self.lines.push(format!("{}{body}", "  ".repeat(indent)));
    }

    fn blank_before_header(&mut self) {
        let at = self.lines.len().saturating_sub(self.comments);
        let before = at.checked_sub(1).and_then(|before| self.lines.get(before));
        if before.is_some_and(|before| !before.is_empty()) {
            self.lines.insert(at, String::new());
        }
    }

    /// Follows brackets outside strings and comments. A table header opens nothing.
    fn count_brackets(&mut self, line: &str, is_header: bool) {
        if is_header {
            return;
        }
        let (mut quote, mut escaped) = (None, false);
        for character in line.chars() {
            match (quote, character) {
                (Some('"'), '\\') if !escaped => {
                    escaped = true;
                    continue;
                }
                (Some(open), close) if open == close && !escaped => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => quote = Some(character),
                (None, '#') => return,
                (None, '[' | '{') => self.depth += 1,
                (None, ']' | '}') => self.depth = self.depth.saturating_sub(1),
                (None, _) => {}
            }
            escaped = false;
        }
    }

    fn finish(mut self) -> String {
        while self.lines.last().is_some_and(String::is_empty) {
            self.lines.pop();
        }
        let mut text = self.lines.join("\n");
        text.push('\n');
        text
    }
}

/// One space on each side of the `=` of a plain key.
fn spaced(line: &str) -> String {
    let Some((key, value)) = line.split_once('=') else { return line.to_owned() };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let key = key.trim();
    if key.is_empty() || !key.chars().all(plain) {
        return line.to_owned();
    }
    format!("{key} = {}", value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_evened_out_and_meaning_stays() {
        let text = "version=1\n\n\n\n[path]\nread   = [\n\"{workspace}/**\",   # a=b\n  \"/b\" ]\n# about\n[command]\ndefault=\"deny\"  \n\n\n";
        let formatted = format(text);
        assert_eq!(
            formatted,
            "version = 1\n\n[path]\nread = [\n  \"{workspace}/**\",   # a=b\n  \"/b\" ]\n\n# about\n[command]\ndefault = \"deny\"\n"
        );
        assert_eq!(format(&formatted), formatted, "twice is once");
    }

    #[test]
    fn strings_over_several_lines_and_broken_files_stay_as_they_are() {
        let text = "description = \"\"\"\n  a=b   \n\n\n  [x]\n\"\"\"\n";
        assert_eq!(format(text), text);
        assert_eq!(format("[path\n  x"), "[path\n  x");
    }

    #[test]
    fn the_built_in_policies_are_in_the_layout() {
        for name in crate::policy::BUILT_IN_NAMES {
            let text = crate::policy::built_in(name).unwrap();
            assert_eq!(format(text), text, "{name}");
        }
    }
}
