//! Tests that a page names as a proof exist. A name has the form `module::path::of_the_test`: the path
//! of a file below `tests/` or `src/` and the function, which has at least two underscores in it.

use super::markdown::{page, root, spans};
use std::fs;
use std::path::PathBuf;

/// Pages that name tests.
const PAGES: [&str; 2] = ["SECURITY.md", "docs/ARCHITECTURE.md"];

/// The tests that a page names.
fn named(text: &str) -> Vec<String> {
    let is_name = |span: &String| {
        let Some((path, function)) = span.rsplit_once("::") else { return false };
        let is_path = path
            .chars()
            .all(|c| c.is_ascii_lowercase() || c == '_' || c == ':' || c.is_ascii_digit());
        is_path && function.matches('_').count() >= 2 && !function.contains(' ')
    };
    spans(text).into_iter().filter(is_name).collect()
}

/// The files in which the test of this name could be.
fn candidates(path: &str) -> Vec<PathBuf> {
    let path = path.replace("::", "/");
    let mut files = Vec::new();
    for top in ["tests", "src"] {
        for name in [format!("{path}.rs"), format!("{path}/mod.rs"), format!("{path}/main.rs")] {
            files.push(root().join(top).join(name));
        }
    }
    files
}

/// Whether `text` has a test function of this name.
fn has_test(text: &str, function: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let heads = [format!("fn {function}("), format!("async fn {function}(")];
    let is_head = |line: &&str| heads.iter().any(|head| line.starts_with(head.as_str()));
    let Some(at) = lines.iter().position(is_head) else { return false };
    // Attributes and comments stand between the mark and the function.
    let before = lines[..at].iter().rev();
    let mut between = before.take_while(|line| line.starts_with('#') || line.starts_with("//"));
    between.any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
}

fn exists(name: &str) -> bool {
    let Some((path, function)) = name.rsplit_once("::") else { return false };
    let texts = candidates(path).into_iter().filter_map(|file| fs::read_to_string(file).ok());
    texts.into_iter().any(|text| has_test(&text, function))
}

#[test]
fn every_test_that_is_named_as_a_proof_exists() {
    for page_name in PAGES {
        let names = named(&page(page_name));
        assert!(names.len() > 10, "{page_name} names tests");
        let absent: Vec<_> = names.into_iter().filter(|name| !exists(name)).collect();
        assert!(absent.is_empty(), "{page_name} names tests that are not there: {absent:#?}");
    }
}

#[test]
fn every_guarantee_has_a_proof_or_says_that_it_has_none() {
    let text = page("SECURITY.md");
    for number in 1..=16 {
        let row = text.lines().find(|line| line.starts_with(&format!("| G{number} |")));
        let row = row.unwrap_or_else(|| panic!("SECURITY.md has no row for G{number}"));
        let proved = !named(row).is_empty();
        assert!(proved || row.to_lowercase().contains("not yet"), "G{number} is only said");
    }
    for number in 1..=10 {
        assert!(text.contains(&format!("| L{number} |")), "SECURITY.md has no limit L{number}");
    }
}

#[test]
fn a_proof_that_is_not_there_is_seen() {
    assert_eq!(
        named("`a::b_c` `escape::one_two_three` `two_under_scores` `x::a_b_c d`"),
        ["escape::one_two_three"]
    );
    assert!(exists("docs::proofs::a_proof_that_is_not_there_is_seen"));
    assert!(!exists("docs::proofs::no_such_test_as_this"));
    assert!(!exists("escape::a_proof_that_is_not_there_is_seen"));
    assert!(has_test("#[test]\n// why\nfn one_two_three() {", "one_two_three"));
    assert!(!has_test("fn one_two_three() {", "one_two_three"), "a function is no test");
}
