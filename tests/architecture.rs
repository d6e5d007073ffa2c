//! Holds the structure of the source: imports point down only, files stay small, `unsafe` stays in
//! its one place. A newcomer can trust `docs/ARCHITECTURE.md` because this test reads the code.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What each module may use, besides itself. Source: the diagram in `src/lib.rs`.
const MAY_USE: [(&str, &[&str]); 12] = [
    ("base", &[]),
    ("call", &["base"]),
    ("policy", &["base", "call"]),
    ("model", &["base", "call"]),
    ("audit", &["base", "call"]),
    ("sandbox", &["base"]),
    ("session", &["base", "call"]),
    ("chain", &["base", "call", "policy", "model", "audit", "sandbox"]),
    ("tools", &["base", "call", "policy", "model", "audit", "sandbox", "chain"]),
    (
        "agent",
        &["base", "call", "policy", "model", "audit", "sandbox", "session", "chain", "tools"],
    ),
    (
        "run",
        &[
            "base", "call", "policy", "model", "audit", "sandbox", "session", "chain", "tools",
            "agent",
        ],
    ),
    (
        "cli",
        &[
            "base", "call", "policy", "model", "audit", "sandbox", "session", "chain", "tools",
            "agent", "run",
        ],
    ),
];

/// Lines of one source file, tests in it included, above which it no longer has one purpose.
const FILE_LINES_MAX: usize = 800;

fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut pending = vec![root.clone()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(&root).unwrap().to_owned(), text));
            }
        }
    }
    found.sort();
    assert!(found.len() > 20, "the walk found the sources");
    found
}

/// The top modules that `text` names after `crate::`, comments left out.
fn used_modules(text: &str) -> Vec<String> {
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.split("crate::").skip(1))
        .map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
        .collect()
}

#[test]
fn imports_point_down_only() {
    // A19, A20, A21, B1, B29: model, loop, tools and host are modules that know only what they need.
    let table: BTreeMap<_, _> = MAY_USE.into_iter().collect();
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let top = path.iter().next().unwrap().to_string_lossy().trim_end_matches(".rs").to_owned();
        if top == "main" || top == "lib" {
            continue;
        }
        let allowed = table.get(top.as_str()).unwrap_or_else(|| panic!("unknown module `{top}`"));
        for used in used_modules(&text) {
            let known = table.contains_key(used.as_str());
            if known && used != top && !allowed.contains(&used.as_str()) {
                wrong.push(format!("{} uses {used}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "imports that point up:\n{}", wrong.join("\n"));
}

/// A source without its unit tests.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap()
}

/// Sources below `directory` that hold one of `words`, tests left out.
fn holders(directory: &str, words: &[&str]) -> Vec<String> {
    sources()
        .into_iter()
        .filter(|(path, _)| path.starts_with(directory) && !path.iter().any(|part| part == "tests"))
        .filter(|(_, text)| words.iter().any(|word| without_tests(text).contains(word)))
        .map(|(path, _)| path.display().to_string())
        .collect()
}

#[test]
fn a_model_adapter_has_no_way_to_a_file_or_a_process() {
    // A4, A6: what the model asks for is a proposal; adapters turn messages into requests and back.
    let ways = ["std::fs", "std::process", "rustix::", "nix::", "tokio::fs"];
    for directory in ["model/adapter", "model/normalise", "model/providers"] {
        assert_eq!(holders(directory, &ways), [""; 0], "{directory}");
    }
    assert!(!holders("tools", &ways).is_empty(), "the search finds what is there");
}

#[test]
fn the_loop_knows_no_tool_by_name() {
    // A13: no domain rules in the loop. B2: which tools there are is the business of `call` and `tools`.
    let names =
        ["\"bash\"", "\"read\"", "\"write\"", "\"edit\"", "\"grep\"", "\"glob\"", "ToolName::Bash"];
    assert_eq!(holders("agent", &names), [""; 0]);
    assert!(!holders("call", &names).is_empty(), "the search finds what is there");
}

#[test]
fn the_import_check_can_fail() {
    assert_eq!(
        used_modules("use crate::cli::Args;\n// crate::run\nx(crate::base::y)"),
        ["cli", "base"]
    );
}

#[test]
fn every_module_has_a_header_and_no_name_that_says_nothing() {
    for (path, text) in sources() {
        assert!(text.starts_with("//!"), "{} needs a header", path.display());
        for part in &path {
            let name = part.to_string_lossy();
            let name = name.trim_end_matches(".rs");
            let empty = ["util", "utils", "common", "core", "types", "helpers", "misc"];
            assert!(!empty.contains(&name), "{}: the name must say what may not go in", name);
        }
    }
}

#[test]
fn files_stay_readable_in_one_sitting() {
    for (path, text) in sources() {
        let lines = text.lines().count();
        assert!(lines <= FILE_LINES_MAX, "{} has {lines} lines", path.display());
    }
}

#[test]
fn unsafe_code_lives_in_one_file() {
    for (path, text) in sources() {
        let has_unsafe = text.lines().any(|line| {
            let code = line.split("//").next().unwrap_or("");
            code.contains("unsafe {") || code.contains("unsafe fn") || code.contains("unsafe impl")
        });
        assert!(
            !has_unsafe || path == Path::new("sandbox/sys.rs"),
            "{} holds unsafe code",
            path.display()
        );
    }
}
