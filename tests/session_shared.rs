//! The session format against the conformance fixtures that lie beside the repository, if they do:
//! every reducer fixture and every planner fixture must come out as expected.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test says what it did and fails by panicking"
)]

use serde_json::Value;
use std::path::{Path, PathBuf};
use stoplog::base::json::parse_strict;
use stoplog::session::{CurrentConfiguration, plan_json, reduce, reduced_json};

/// The fixtures: under `STOPLOG_SHARED`, or beside the directory of the repository.
#[expect(clippy::disallowed_methods, reason = "the place of the fixtures is given from outside")]
fn fixtures() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let given = std::env::var_os("STOPLOG_SHARED").map(PathBuf::from);
    let root = given.unwrap_or(beside).join("session-v2/schemas/session");
    if root.is_dir() {
        return Some(root);
    }
    println!("NOT RUN: the shared session fixtures are not at {}", root.display());
    None
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn cases(folder: &Path) -> Vec<Value> {
    json(&folder.join("manifest.json"))["fixtures"].as_array().unwrap().clone()
}

#[test]
fn every_shared_reducer_fixture_gives_its_expected_state() {
    let Some(root) = fixtures() else { return };
    let folder = root.join("fixtures");
    let cases = cases(&folder);
    for case in &cases {
        let bytes = std::fs::read(folder.join(case["file"].as_str().unwrap())).unwrap();
        let expected = folder.join(case["expected"].as_str().unwrap());
        let (printed, damage) = reduced_json(&bytes).unwrap();
        let value: Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(value, json(&expected), "{}: {damage:?}", case["name"]);
        let expected = std::fs::read_to_string(&expected).unwrap();
        assert_eq!(printed, expected, "{}: same value, other spelling", case["name"]);
    }
    println!("{} reducer fixtures", cases.len());
    assert_eq!(cases.len(), 48);
}

#[test]
fn every_shared_planner_fixture_gives_its_expected_plan() {
    let Some(root) = fixtures() else { return };
    let folder = root.join("planner-fixtures");
    let cases = cases(&folder);
    for case in &cases {
        let input = std::fs::read(folder.join(case["input"].as_str().unwrap())).unwrap();
        let input = parse_strict(&input).unwrap();
        let session = root.join("fixtures").join(input["sessionFile"].as_str().unwrap());
        let state = reduce(&std::fs::read(session).unwrap()).unwrap();
        let current: CurrentConfiguration =
            serde_json::from_value(input["current"].clone()).unwrap();
        let printed = plan_json(&state, &current).unwrap();
        let expected = folder.join(case["expected"].as_str().unwrap());
        let value: Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(value, json(&expected), "{}", case["name"]);
        let expected = std::fs::read_to_string(&expected).unwrap();
        assert_eq!(printed, expected, "{}: same value, other spelling", case["name"]);
    }
    println!("{} planner fixtures", cases.len());
    assert_eq!(cases.len(), 17);
}
