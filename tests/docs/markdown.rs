//! The little of Markdown that the checks need: pages, fenced blocks, code spans, links, headings.

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The text of a page, by its path below the root.
pub(crate) fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Every page of the repository with its text.
pub(crate) fn pages() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut pending = vec![root()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let is_source = !name.starts_with('.') && name != "target";
            if path.is_dir() && is_source {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found.sort();
    assert!(found.len() >= 10, "the walk found the pages");
    found
}

/// A fenced block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The word behind the fence.
    pub(crate) language: String,
    /// The lines, long ones that are continued by a backslash joined.
    pub(crate) lines: Vec<String>,
}

/// The fenced blocks of a page.
pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in text.lines() {
        open = match (line.strip_prefix("```"), open) {
            (Some(language), None) => Some((language.to_owned(), String::new())),
            (Some(_), Some((language, body))) => {
                let joined = body.replace("\\\n", " ");
                blocks.push(Block { language, lines: joined.lines().map(str::to_owned).collect() });
                None
            }
            (None, Some((language, body))) => Some((language, format!("{body}{line}\n"))),
            (None, None) => None,
        };
    }
    assert!(open.is_none(), "a fence is never closed");
    blocks
}

/// The page without its fenced blocks.
pub(crate) fn prose(text: &str) -> String {
    let mut fenced = false;
    let mut kept = String::new();
    for line in text.lines() {
        let is_fence = line.starts_with("```");
        if !fenced && !is_fence {
            kept.push_str(line);
            kept.push('\n');
        }
        fenced ^= is_fence;
    }
    kept
}

/// The code spans of the prose: what stands between single backticks.
pub(crate) fn spans(text: &str) -> Vec<String> {
    prose(text).split('`').skip(1).step_by(2).map(|span| span.replace('\n', " ")).collect()
}

/// The targets of the links in the prose, code left out.
pub(crate) fn targets(text: &str) -> Vec<String> {
    let text = prose(text);
    let outside: String = text.split('`').step_by(2).collect();
    let target = |rest: &str| rest.split_once(')').map(|(target, _)| target.to_owned());
    outside.split("](").skip(1).filter_map(target).collect()
}

/// The anchors of a page's headings.
pub(crate) fn anchors(text: &str) -> Vec<String> {
    let heading = |line: &&str| line.starts_with('#');
    let slug = |heading: &str| {
        let kept = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    prose(text).lines().filter(heading).map(slug).collect()
}

/// Where a link of `page` leads on the disk, and the anchor there; `None` for other places.
pub(crate) fn destination(page: &Path, target: &str) -> Option<(PathBuf, Option<String>)> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').map_or((target, None), |(f, a)| (f, Some(a)));
    let path = if file.is_empty() { page.to_owned() } else { page.parent().unwrap().join(file) };
    Some((path, anchor.map(str::to_owned)))
}

const SAMPLE: &str =
    "# One two\n[a](b.md) `c::d` and `[e](f.md)`\n```sh\nls \\\n  -l\n```\n## G5: x/y\n";

#[test]
fn a_page_is_taken_apart() {
    assert_eq!(targets(SAMPLE), ["b.md"]);
    assert_eq!(spans(SAMPLE), ["c::d", "[e](f.md)"]);
    assert_eq!(anchors(SAMPLE), ["one-two", "g5-xy"]);
    assert_eq!(
        blocks(SAMPLE),
        [Block { language: "sh".to_owned(), lines: vec!["ls    -l".to_owned()] }]
    );
}
