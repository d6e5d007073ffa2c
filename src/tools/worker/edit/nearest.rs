//! Which lines of a file are most like a text that does not occur in it.
//!
//! This is advice in an error message and never decides what is changed. Of several lines the text
//! is laid over the file where most of its lines agree, white space at their ends aside, and the
//! first line that differs there is shown; else the lines most like the text's first are.

use super::super::reply::NearLine;
use super::super::shown;
use crate::base::text::prefix;
use std::collections::BTreeMap;

/// Bytes of the file that are compared: enough for sources, bounded for anything else.
const COMPARED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Lines of the file that are compared.
const COMPARED_LINES_MAX: usize = 200_000;
/// Lines of the text that are laid over the file.
const LAID_LINES_MAX: usize = 200;
/// Equal lines of the text that are laid over one line of the file: many equal lines in both must
/// not cost their product.
const EQUAL_LINES_MAX: usize = 4;
/// Lines that are shown.
const SHOWN_MAX: usize = 3;
/// Bytes of a line that are compared and shown.
const LINE_BYTES_MAX: usize = 200;
/// Least likeness, in hundredths, of a line that is shown.
const LIKENESS_MIN: u32 = 50;

/// The line of `old` that is compared, white space made visible, and the lines nearest to it.
pub(super) fn nearest(content: &[u8], old: &str) -> (String, Vec<NearLine>) {
    let compared = content.get(..COMPARED_BYTES_MAX).unwrap_or(content);
    let text = String::from_utf8_lossy(compared);
    let lines: Vec<&str> = text.split('\n').take(COMPARED_LINES_MAX).collect();
    let wanted: Vec<&str> = old.split('\n').take(LAID_LINES_MAX).collect();
    laid_over(&lines, &wanted).unwrap_or_else(|| most_alike(&lines, &wanted))
}

/// The first difference where most lines of `wanted` agree with the file.
fn laid_over(lines: &[&str], wanted: &[&str]) -> Option<(String, Vec<NearLine>)> {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (offset, line) in wanted.iter().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let offsets = places.entry(line.trim()).or_default();
        if offsets.len() < EQUAL_LINES_MAX {
            offsets.push(offset);
        }
    }
    let mut agreeing: BTreeMap<usize, usize> = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        for offset in places.get(line.trim()).map(Vec::as_slice).unwrap_or_default() {
            if let Some(start) = at.checked_sub(*offset) {
                *agreeing.entry(start).or_default() += 1;
            }
        }
    }
    let (start, _) =
        agreeing.into_iter().max_by_key(|(start, count)| (*count, usize::MAX - start))?;
    let (at, line, other) = wanted.iter().enumerate().find_map(|(offset, line)| {
        let other = lines.get(start + offset)?;
        (other.strip_suffix('\r').unwrap_or(other) != *line).then_some((
            start + offset,
            line,
            other,
        ))
    })?;
    Some((visible(line), vec![near(at, other)]))
}

/// The lines most like the first of `wanted` that is not blank.
fn most_alike(lines: &[&str], wanted: &[&str]) -> (String, Vec<NearLine>) {
    let first = wanted.iter().find(|line| !line.trim().is_empty()).or(wanted.first());
    let line = first.copied().unwrap_or_default();
    let pairs = pairs_of(line);
    let mut scored: Vec<(u32, usize)> = lines
        .iter()
        .enumerate()
        .map(|(at, other)| (likeness(&pairs, &pairs_of(other)), at))
        .filter(|(score, _)| *score >= LIKENESS_MIN)
        .collect();
    scored.sort_by_key(|(score, at)| (u32::MAX - score, *at));
    scored.truncate(SHOWN_MAX);
    let shown = scored.iter().filter_map(|(_, at)| lines.get(*at).map(|other| near(*at, other)));
    (visible(line), shown.collect())
}

fn near(at: usize, line: &str) -> NearLine {
    NearLine { line: at as u64 + 1, text: visible(line) }
}

fn visible(line: &str) -> String {
    let cut = prefix(line, LINE_BYTES_MAX);
    let dots = if cut.len() < line.len() { "…" } else { "" };
    shown::whitespace(cut) + dots
}

/// The sorted pairs of neighbouring bytes, ends of the line included.
fn pairs_of(line: &str) -> Vec<(u8, u8)> {
    let bytes = prefix(line.trim(), LINE_BYTES_MAX).as_bytes();
    let before = std::iter::once(&0).chain(bytes);
    let after = bytes.iter().chain(std::iter::once(&0));
    let mut pairs: Vec<(u8, u8)> = before.zip(after).map(|(a, b)| (*a, *b)).collect();
    pairs.sort_unstable();
    pairs
}

/// Pairs in common, twice, in hundredths of all pairs.
fn likeness(a: &[(u8, u8)], b: &[(u8, u8)]) -> u32 {
    let all = (a.len() + b.len()).max(1);
    let (mut a, mut b) = (a, b);
    let mut common = 0_usize;
    while let (Some((left, a_rest)), Some((right, b_rest))) = (a.split_first(), b.split_first()) {
        let order = left.cmp(right);
        common += usize::from(order.is_eq());
        a = if order.is_le() { a_rest } else { a };
        b = if order.is_ge() { b_rest } else { b };
    }
    u32::try_from(200 * common / all).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_that_differs_is_made_visible() {
        let (wanted, lines) = nearest(b"\tfoo(bar);\nother\n", "    foo(bar);");
        assert_eq!(wanted, "····foo(bar);");
        assert_eq!(lines, [NearLine { line: 1, text: "→foo(bar);".to_owned() }]);
    }

    #[test]
    fn a_misspelt_line_is_found() {
        let (_, lines) =
            nearest(b"one\nlet total = sum(values);\nthree\n", "let totl = sum(values);");
        assert_eq!(lines.first().map(|near| near.line), Some(2));
    }

    #[test]
    fn of_several_lines_the_first_that_differs_is_shown() {
        let content = b"fn a() {\n  1\n}\nfn b() {\n  2\n}\n";
        let (wanted, lines) = nearest(content, "fn b() {\n  3\n}");
        assert_eq!((wanted.as_str(), lines.len()), ("··3", 1));
        assert_eq!(lines[0], NearLine { line: 5, text: "··2".to_owned() });
    }

    #[test]
    fn nothing_alike_and_odd_bytes_are_no_trouble() {
        assert_eq!(nearest(b"", "x").1, []);
        assert_eq!(nearest(b"\xff\xfe\0\n\r\r", "zebra\n\n").1, []);
        assert_eq!(nearest(&[b'a'; 100_000], "b").1, []);
    }

    #[test]
    fn many_equal_lines_in_both_do_not_cost_their_product() {
        let (content, old) = ("a\n".repeat(2_000_000), "a\n".repeat(10_000) + "b");
        nearest(content.as_bytes(), &old);
    }
}
