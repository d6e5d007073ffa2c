//! Every place where a text stands in a content, overlapping ones too, in linear time (Knuth, Morris
//! and Pratt): a content and a text made of one letter must not cost their product.

use std::ops::Range;

/// Occurrences whose place is kept; the rest is counted.
const KEPT_MAX: usize = 10;

/// Where a text stands.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Occurrences {
    pub(super) count: u64,
    /// The first of them.
    pub(super) first: Vec<Range<usize>>,
}

/// Finds the exact bytes of `old`, which is not empty.
pub(super) fn find(content: &[u8], old: &[u8]) -> Occurrences {
    let bytes = content.iter().copied().enumerate();
    collect(bytes, old, |end| end.saturating_sub(old.len()))
}

/// Finds `old`, which holds no CR, in the content as if each CR LF of the content were LF. A range
/// that starts with a line end includes its CR.
pub(super) fn find_across_line_ends(content: &[u8], old: &[u8]) -> Occurrences {
    let bytes =
        content.iter().copied().enumerate().filter(|(at, _)| !is_part_of_crlf(content, *at));
    collect(bytes, old, |end| start_before(content, old, end))
}

fn is_part_of_crlf(content: &[u8], at: usize) -> bool {
    content.get(at) == Some(&b'\r') && content.get(at + 1) == Some(&b'\n')
}

fn start_before(content: &[u8], old: &[u8], end: usize) -> usize {
    old.iter().rev().fold(end, |end, byte| {
        let at = end.saturating_sub(1);
        let crlf =
            *byte == b'\n' && at.checked_sub(1).is_some_and(|cr| is_part_of_crlf(content, cr));
        if crlf { at.saturating_sub(1) } else { at }
    })
}

fn collect(
    bytes: impl Iterator<Item = (usize, u8)>,
    old: &[u8],
    start_of: impl Fn(usize) -> usize,
) -> Occurrences {
    let borders = borders(old);
    let border =
        |matched: usize| matched.checked_sub(1).and_then(|last| borders.get(last)).copied();
    let mut occurrences = Occurrences::default();
    let mut matched = 0;
    for (at, byte) in bytes {
        matched = advance(old, &borders, matched, byte);
        if matched == old.len() {
            occurrences.count += 1;
            if occurrences.first.len() < KEPT_MAX {
                occurrences.first.push(start_of(at + 1)..at + 1);
            }
            matched = border(matched).unwrap_or(0);
        }
    }
    occurrences
}

/// How much of `old` is matched after one more byte.
fn advance(old: &[u8], borders: &[usize], mut matched: usize, byte: u8) -> usize {
    loop {
        if old.get(matched) == Some(&byte) {
            return matched + 1;
        }
        match matched.checked_sub(1).and_then(|last| borders.get(last)) {
            Some(shorter) => matched = *shorter,
            None => return 0,
        }
    }
}

/// For each prefix of `old`: the length of its longest proper prefix that is also its suffix.
fn borders(old: &[u8]) -> Vec<usize> {
    let mut borders = Vec::with_capacity(old.len());
    let mut matched = 0;
    for (at, byte) in old.iter().enumerate() {
        matched = if at == 0 { 0 } else { advance(old, &borders, matched, *byte) };
        borders.push(matched);
    }
    borders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naive(content: &[u8], old: &[u8]) -> Vec<Range<usize>> {
        (0..content.len())
            .filter(|start| content[*start..].starts_with(old))
            .map(|start| start..start + old.len())
            .collect()
    }

    #[test]
    fn every_occurrence_is_found() {
        for content in ["", "a", "aaaa", "abababa", "aabaabaaab", "abcabcabd"] {
            for old in ["a", "aa", "aba", "aabaa", "abcabd", "b", "abcabcabd"] {
                let found = find(content.as_bytes(), old.as_bytes());
                let expected = naive(content.as_bytes(), old.as_bytes());
                assert_eq!(found.count, expected.len() as u64, "{content} {old}");
                assert_eq!(found.first, expected, "{content} {old}");
            }
        }
    }

    #[test]
    fn line_ends_of_either_kind_match() {
        let content = b"x\r\ny\nz\r\n";
        for (old, expected) in
            [("x\ny", Some(0..4)), ("y\nz\n", Some(3..8)), ("\ny", Some(1..4)), ("x\nz", None)]
        {
            let found = find_across_line_ends(content, old.as_bytes());
            assert_eq!(found.first.first().cloned(), expected, "{old:?}");
        }
    }

    #[test]
    fn one_letter_repeated_takes_linear_time() {
        let (content, old) = (vec![b'a'; 2_000_000], vec![b'a'; 1_000_000]);
        assert_eq!(find(&content, &old).count, 1_000_001);
    }
}
