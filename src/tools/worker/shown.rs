//! How bytes from files and programs become text: names, lines, and whole outputs.
//!
//! Every byte that could not be shown is counted, so that a reader knows the text is not the file.

use crate::base::text::escape;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// A name or path as one visible line: control and format characters escaped, bytes that are not
/// UTF-8 as `\xNN`.
#[must_use]
pub fn path(path: &Path) -> String {
    name(path.as_os_str().as_bytes())
}

/// Like [`path`], for raw bytes.
#[must_use]
pub fn name(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(&escape(chunk.valid()));
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _infallible = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Text with the number of bytes that had no place in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decoded {
    /// The text.
    pub text: String,
    /// Bytes that are not UTF-8 or NUL; each run of invalid bytes and each NUL became one U+FFFD.
    pub replaced: u64,
}

/// Reads `bytes` as UTF-8, replacing what cannot be shown.
#[must_use]
pub fn decode(bytes: &[u8]) -> Decoded {
    let mut decoded = Decoded::default();
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid();
        decoded.replaced += valid.bytes().filter(|byte| *byte == 0).count() as u64;
        decoded.text.extend(valid.chars().map(|c| if c == '\0' { '\u{fffd}' } else { c }));
        if !chunk.invalid().is_empty() {
            decoded.replaced += chunk.invalid().len() as u64;
            decoded.text.push('\u{fffd}');
        }
    }
    decoded
}

/// How many bytes at the end of `bytes` begin a character whose rest is missing.
#[must_use]
pub fn incomplete_end(bytes: &[u8]) -> usize {
    let last = bytes.utf8_chunks().last();
    last.map_or(0, |chunk| {
        let cut = std::str::from_utf8(chunk.invalid())
            .is_err_and(|error| error.error_len().is_none() && error.valid_up_to() == 0);
        if cut { chunk.invalid().len() } else { 0 }
    })
}

/// How many bytes at the start of `bytes` end a character whose beginning is missing.
#[must_use]
pub fn incomplete_start(bytes: &[u8]) -> usize {
    let continued = bytes.iter().take_while(|byte| **byte & 0xc0 == 0x80).count();
    if continued <= 3 { continued } else { 0 }
}

/// Makes spaces and tabs visible, and escapes what else hides.
#[must_use]
pub fn whitespace(line: &str) -> String {
    let marked: String = line
        .chars()
        .map(|character| match character {
            ' ' => '·',
            '\t' => '→',
            other => other,
        })
        .collect();
    escape(&marked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_visible_line() {
        assert_eq!(name(b"a\xffb\n\x1b[2J"), "a\\xffb\\n\\u{1b}[2J");
        assert_eq!(name("grüße 漢".as_bytes()), "grüße 漢");
    }

    #[test]
    fn what_cannot_be_shown_is_counted() {
        let decoded = decode(b"a\xff\xfe\0b");
        assert_eq!((decoded.text.as_str(), decoded.replaced), ("a\u{fffd}\u{fffd}\u{fffd}b", 3));
        assert_eq!(decode("漢🙂\u{fffd}".as_bytes()).replaced, 0);
    }

    #[test]
    fn cut_characters_are_told_from_bad_bytes() {
        let text = "漢🙂".as_bytes();
        for (end, cut) in [(7, 0), (6, 3), (5, 2), (4, 1), (3, 0), (2, 2), (1, 1), (0, 0)] {
            assert_eq!(incomplete_end(&text[..end]), cut, "{end}");
        }
        for (start, cut) in [(0, 0), (1, 2), (2, 1), (3, 0), (4, 3)] {
            assert_eq!(incomplete_start(&text[start..]), cut, "{start}");
        }
        assert_eq!(incomplete_end(b"a\xff"), 0);
        assert_eq!(incomplete_start(b"\x80\x80\x80\x80a"), 0);
    }

    #[test]
    fn white_space_is_visible() {
        assert_eq!(whitespace("\ta b\u{200b}\r"), "→a·b\\u{200b}\\r");
    }
}
