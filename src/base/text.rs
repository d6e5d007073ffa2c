//! Text that came from outside: how it is cut, and how it is shown.
//!
//! Nothing a model, a tool or a file wrote may reach a terminal unescaped: control characters move
//! the cursor, format characters reorder or hide what a person reads. `Untrusted` makes the escaped
//! form the only one that `Display` gives.

use std::fmt;

/// Text from outside. `Display` escapes; `raw` is for hashing, storing and running.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Untrusted(String);

impl Untrusted {
    /// Marks `text` as coming from outside.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text as it came. Never print it.
    #[must_use]
    pub fn raw(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Untrusted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&escape(&self.0))
    }
}

impl fmt::Debug for Untrusted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", escape(&self.0))
    }
}

/// Escapes every character that moves, hides or reorders text, line ends and tabs included, so that
/// the result is one visible line.
#[must_use]
pub fn escape(text: &str) -> String {
    escape_where(text, is_hidden)
}

/// Like [`escape`], but keeps line feeds and tabs: for showing text of several lines.
#[must_use]
pub fn escape_keeping_lines(text: &str) -> String {
    escape_where(text, |character| !matches!(character, '\n' | '\t') && is_hidden(character))
}

fn escape_where(text: &str, hidden: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if hidden(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Control characters and those format characters of Unicode 16 (general category Cf, fillers, line
/// and paragraph separators) that are invisible or change the order of what surrounds them.
#[must_use]
pub fn is_hidden(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_control();
    }
    character.is_control()
        || matches!(character,
            '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}'
            | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}')
}

/// The longest prefix of `text` of at most `bytes` bytes that ends on a character boundary.
#[must_use]
pub fn prefix(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.get(..end).unwrap_or("")
}

/// The longest suffix of `text` of at most `bytes` bytes that starts on a character boundary.
#[must_use]
pub fn suffix(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start = start.saturating_add(1);
    }
    text.get(start..).unwrap_or("")
}

/// `text` if it has at most `bytes` bytes, else its head and tail with a line between them that
/// says how many bytes are missing. The result has at most `bytes` bytes plus that line.
#[must_use]
pub fn head_and_tail(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let head = prefix(text, bytes / 2);
    let tail = suffix(text, bytes - bytes / 2);
    let omitted = text.len() - head.len() - tail.len();
    format!("{head}\n[... {omitted} bytes omitted ...]\n{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_or_hides_text_is_escaped() {
        assert_eq!(escape("a\u{1b}[2Jb\r\n\tc"), "a\\u{1b}[2Jb\\r\\n\\tc");
        assert_eq!(escape("x\u{202e}y\u{200b}z\u{9b}"), "x\\u{202e}y\\u{200b}z\\u{9b}");
        assert_eq!(escape("grüße 漢字 🙂"), "grüße 漢字 🙂");
        assert_eq!(escape_keeping_lines("a\n\tb\r"), "a\n\tb\\r");
        assert_eq!(Untrusted::new("\u{7}").to_string(), "\\u{7}");
    }

    #[test]
    fn cuts_fall_on_character_boundaries() {
        let text = "漢".repeat(40_000);
        for bytes in [0, 1, 2, 3, 4, 50_000] {
            assert!(prefix(&text, bytes).len() <= bytes);
            assert!(suffix(&text, bytes).len() <= bytes);
        }
        let cut = head_and_tail(&text, 50_000);
        assert!(cut.contains("bytes omitted"), "the cut is named");
        assert!(cut.len() < 50_100);
        assert_eq!(head_and_tail("🙂", 4), "🙂");
    }
}
