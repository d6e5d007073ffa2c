//! Every relative link leads to a file or a heading that is there.

use super::markdown::{anchors, destination, pages, targets};
use std::fs;
use std::path::Path;

fn broken(page: &Path, text: &str) -> Vec<String> {
    let is_broken = |target: &String| {
        let Some((path, anchor)) = destination(page, target) else { return false };
        let Some(anchor) = anchor else { return !path.exists() };
        let at = if path == page {
            text.to_owned()
        } else {
            fs::read_to_string(&path).unwrap_or_default()
        };
        !anchors(&at).contains(&anchor)
    };
    let broken = targets(text).into_iter().filter(is_broken);
    broken.map(|target| format!("{}: {target}", page.display())).collect()
}

#[test]
fn every_relative_link_leads_somewhere() {
    let broken: Vec<String> = pages().iter().flat_map(|(page, text)| broken(page, text)).collect();
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn a_broken_link_is_seen() {
    let page = super::markdown::root().join("README.md");
    let text =
        "# Head\n[a](absent.md) [b](#head) [c](#tail) [d](SECURITY.md#limits) [e](https://x/y)";
    let found = broken(&page, text);
    assert_eq!(found.len(), 2, "{found:?}");
}
