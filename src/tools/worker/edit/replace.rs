//! The pure part of edit: from content and edits to new content, or to why not.
//!
//! Each `old` must occur exactly once, overlapping occurrences counted. If it occurs not at all and
//! holds plain line feeds, a line feed in it may also stand for CR LF. That is the only leniency:
//! line ends are invisible to a model. Line feeds of `new` follow suit: where the file ends its
//! lines with CR LF around the place, and `new` holds no CR of its own, they become CR LF.

use super::super::reply::{EditNumber, JobError};
use super::nearest;
use super::occurrences::{Occurrences, find, find_across_line_ends};
use crate::call::request::Replacement;
use std::ops::Range;

/// What the edits make of the content.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) content: Vec<u8>,
    /// Line where each edit begins, in the order of the edits.
    pub(super) lines: Vec<u64>,
    pub(super) crlf_adapted: bool,
}

/// One edit with its place in the content.
struct Located {
    number: usize,
    range: Range<usize>,
    new: Vec<u8>,
    crlf_adapted: bool,
}

/// Checks all edits against `content` and applies them. `path` is for messages.
pub(super) fn plan(content: &[u8], edits: &[Replacement], path: &str) -> Result<Plan, JobError> {
    let mut located = edits
        .iter()
        .enumerate()
        .map(|(index, edit)| {
            let number = EditNumber { number: index + 1, of: edits.len() };
            locate(content, edit, number, path)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let lines = located.iter().map(|edit| line_at(content, edit.range.start)).collect();
    let crlf_adapted = located.iter().any(|edit| edit.crlf_adapted);
    located.sort_by_key(|edit| (edit.range.start, edit.range.end));
    refuse_overlap(&located, path)?;
    Ok(Plan { content: apply(content, &located), lines, crlf_adapted })
}

fn locate(
    content: &[u8],
    edit: &Replacement,
    number: EditNumber,
    path: &str,
) -> Result<Located, JobError> {
    let (old, new) = (edit.old.as_bytes(), edit.new.as_bytes());
    if old.is_empty() {
        return Err(JobError::EmptyTarget { edit: number });
    }
    if old == new {
        return Err(JobError::NoOp { edit: number });
    }
    let exact = find(content, old);
    let lenient = exact.count == 0 && old.contains(&b'\n') && !old.contains(&b'\r');
    let found = if lenient { find_across_line_ends(content, old) } else { exact };
    let range = with_whole_line_end(content, the_only(content, &found, edit, number, path)?, old);
    let adapts = new.contains(&b'\n') && !new.contains(&b'\r') && uses_crlf(content, &range);
    let new = if adapts { edit.new.replace('\n', "\r\n").into_bytes() } else { new.to_vec() };
    if content.get(range.clone()) == Some(new.as_slice()) {
        return Err(JobError::NoOp { edit: number });
    }
    Ok(Located { number: number.number, range, new, crlf_adapted: lenient || adapts })
}

fn the_only(
    content: &[u8],
    found: &Occurrences,
    edit: &Replacement,
    number: EditNumber,
    path: &str,
) -> Result<Range<usize>, JobError> {
    let path = path.to_owned();
    match (found.count, found.first.as_slice()) {
        (1, [range]) => Ok(range.clone()),
        (0, _) => {
            let (wanted, nearest) = nearest::nearest(content, &edit.old);
            Err(JobError::NoMatch { path, edit: number, wanted, nearest })
        }
        (count, first) => {
            let lines = first.iter().map(|range| line_at(content, range.start)).collect();
            Err(JobError::Ambiguous { path, edit: number, count, lines })
        }
    }
}

/// A text that begins with a line feed means the whole line end, its CR included.
fn with_whole_line_end(content: &[u8], range: Range<usize>, old: &[u8]) -> Range<usize> {
    let cr = range.start.checked_sub(1).filter(|at| content.get(*at) == Some(&b'\r'));
    match cr.filter(|_| old.starts_with(b"\n") && !old.contains(&b'\r')) {
        Some(start) => start..range.end,
        None => range,
    }
}

/// Whether the lines around `range` end with CR LF: the first line end in it decides, else the first
/// after it, else the last before it.
fn uses_crlf(content: &[u8], range: &Range<usize>) -> bool {
    let feed_from = |start: usize, end: usize| {
        let part = content.get(start..end).unwrap_or_default();
        part.iter().position(|byte| *byte == b'\n').map(|at| start + at)
    };
    let before = content.get(..range.start).unwrap_or_default();
    feed_from(range.start, range.end)
        .or_else(|| feed_from(range.end, content.len()))
        .or_else(|| before.iter().rposition(|byte| *byte == b'\n'))
        .and_then(|feed| content.get(feed.checked_sub(1)?))
        == Some(&b'\r')
}

fn refuse_overlap(sorted: &[Located], path: &str) -> Result<(), JobError> {
    let overlapping = sorted
        .iter()
        .zip(sorted.iter().skip(1))
        .find(|(earlier, later)| later.range.start < earlier.range.end);
    overlapping.map_or(Ok(()), |(earlier, later)| {
        Err(JobError::Overlap {
            path: path.to_owned(),
            first: earlier.number,
            second: later.number,
        })
    })
}

fn apply(content: &[u8], sorted: &[Located]) -> Vec<u8> {
    let mut result = Vec::with_capacity(content.len());
    let mut copied = 0;
    for edit in sorted {
        result.extend_from_slice(content.get(copied..edit.range.start).unwrap_or_default());
        result.extend_from_slice(&edit.new);
        copied = edit.range.end;
    }
    result.extend_from_slice(content.get(copied..).unwrap_or_default());
    result
}

/// The number of the line that holds the byte at `offset`.
fn line_at(content: &[u8], offset: usize) -> u64 {
    let before = content.get(..offset).unwrap_or_default();
    1 + before.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edits(pairs: &[(&str, &str)]) -> Vec<Replacement> {
        let own = |(old, new): &(&str, &str)| Replacement {
            old: (*old).to_owned(),
            new: (*new).to_owned(),
        };
        pairs.iter().map(own).collect()
    }

    fn planned(content: &str, pairs: &[(&str, &str)]) -> Result<String, JobError> {
        plan(content.as_bytes(), &edits(pairs), "f")
            .map(|plan| String::from_utf8(plan.content).unwrap())
    }

    #[test]
    fn only_the_matched_bytes_change() {
        for (content, pairs, expected) in [
            ("a\r\nb\r\nc\n", [("b", "B")].as_slice(), "a\r\nB\r\nc\n"),
            ("a\r\nb\r\nc\r\n", &[("a\nb", "A\nB\nX")], "A\r\nB\r\nX\r\nc\r\n"),
            ("a\r\nb\r\nc\r\n", &[("a\r\nb", "A\r\nB")], "A\r\nB\r\nc\r\n"),
            ("a\r\nb\r\n", &[("b", "b1\nb2")], "a\r\nb1\r\nb2\r\n"),
            ("a\nb\r\nc\n", &[("a", "x\ny")], "x\ny\nb\r\nc\n"),
            ("a\nb\r\nc\n", &[("b", "x\ny")], "a\nx\r\ny\r\nc\n"),
            ("a\r\nb", &[("b", "x\ny")], "a\r\nx\r\ny"),
            ("a\r\nb", &[("\nb", "\nc")], "a\r\nc"),
            ("a\r\nb", &[("\nb", "")], "a"),
            ("\u{feff}a\nb\n", &[("a", "A")], "\u{feff}A\nb\n"),
            ("\u{feff}a\nb", &[("\u{feff}a", "\u{feff}A")], "\u{feff}A\nb"),
            (
                "untouched   \nreplace me   \nafter\n",
                &[("replace me", "done")],
                "untouched   \ndone   \nafter\n",
            ),
            ("x", &[("x", "$& ok $$100 ${1} \\1 $0")], "$& ok $$100 ${1} \\1 $0"),
            ("abc", &[("c", "3"), ("a", "1")], "1b3"),
            ("ab", &[("a", "b"), ("b", "a")], "ba"),
            ("abc", &[("b", "")], "ac"),
        ] {
            assert_eq!(planned(content, pairs).unwrap(), expected, "{content:?} {pairs:?}");
        }
    }

    proptest! {
        #[test]
        fn an_edit_replaces_its_one_target_and_nothing_else(
            before in "[ab\r\n]{0,12}",
            old in "[xyz\n]{1,6}",
            new in "[xy$\\\\\n]{0,6}",
            after in "[ab\r\n]{0,12}",
        ) {
            let content = format!("{before}{old}{after}");
            match planned(&content, &[(&old, &new)]) {
                Ok(result) => {
                    // A line end at the start of the target takes its CR with it.
                    let kept = before.strip_suffix('\r').unwrap_or(&before);
                    prop_assert!(result.starts_with(kept) && result.ends_with(&after));
                    let middle = &result.as_bytes()[kept.len()..result.len() - after.len()];
                    let middle = String::from_utf8_lossy(middle).replace('\r', "");
                    prop_assert_eq!(middle, new);
                }
                Err(error) => {
                    let twice = find(content.as_bytes(), old.as_bytes()).count > 1;
                    let same = matches!(error, JobError::NoOp { .. });
                    prop_assert!(twice || same, "{}", error);
                }
            }
        }
    }

    #[test]
    fn bytes_that_are_not_text_stay_as_they_are() {
        let plan = plan(b"caf\xe9\0 x\xff\n", &edits(&[("x", "y")]), "f").unwrap();
        assert_eq!(plan.content, b"caf\xe9\0 y\xff\n");
    }

    #[test]
    fn a_target_must_occur_once() {
        let error = planned("aaa", &[("aa", "b")]).unwrap_err();
        assert!(matches!(error, JobError::Ambiguous { count: 2, .. }), "overlapping: {error}");
        let error = planned("x\ny\nx\n", &[("y", "z"), ("x", "w")]).unwrap_err().to_string();
        assert!(error.contains("edit 2 of 2"), "{error}");
        assert!(error.contains("occurs 2 times in `f`, at lines 1, 3;"), "{error}");
        // In the original: what an edit inserts is no target for another.
        let error = planned("a", &[("a", "b"), ("b", "c")]).unwrap_err();
        assert!(matches!(error, JobError::NoMatch { .. }), "{error}");
        // Not fuzzy: quotes, ligatures, fractions, trailing space.
        for (content, old) in
            [("it\u{2019}s", "it's"), ("\u{bd}", "1/2"), ("\u{fb01}", "fi"), ("a ", "a  ")]
        {
            assert!(planned(content, &[(old, "x")]).is_err(), "{old}");
        }
    }

    #[test]
    fn a_changed_middle_between_equal_ends_is_no_match() {
        let content = "fn a() {\n    one();\n}\nfn b() {\n    two();\n}\n";
        let error = planned(content, &[("fn b() {\n    three();\n}", "")]).unwrap_err().to_string();
        assert!(error.contains("occurs 0 times"), "{error}");
        assert!(error.contains("····three();") && error.contains("line 5: ····two();"), "{error}");
    }

    #[test]
    fn what_changes_nothing_overlaps_or_is_empty_is_refused() {
        for (content, pairs, expected) in [
            ("a", [("a", "a")].as_slice(), "changes nothing"),
            ("a\r\nb", &[("a\nb", "a\nb")], "changes nothing"),
            ("a", &[("", "b")], "empty `old`"),
            ("abc", &[("bc", "x"), ("ab", "y")], "edits 2 and 1 overlap"),
            ("abc", &[("abc", "x"), ("b", "y")], "edits 1 and 2 overlap"),
            ("a", &[("a", "x"), ("a", "y")], "overlap"),
        ] {
            let error = planned(content, pairs).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(planned("ab", &[("a", "x"), ("b", "y")]).unwrap(), "xy", "neighbours");
    }
}
