//! Measurements on data that is not part of this repository. Where it is absent they say so and pass.

use super::{analysed, programs};
use serde_json::Value;
use std::path::PathBuf;
use stoplog::call::effects::{Effects, UnresolvedReason};

/// The directory of shared data, or a line that says that it is not there.
fn shared(name: &str) -> Option<PathBuf> {
    let given = option_env!("STOPLOG_SHARED").map(PathBuf::from);
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(1)
        .map(|parent| parent.join("shared"));
    let further = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .map(|parent| parent.join("shared"));
    let found = [given, beside, further]
        .into_iter()
        .flatten()
        .map(|root| root.join("corpora").join(name))
        .find(|path| path.exists());
    if found.is_none() {
        println!(
            "NOT RUN: shared corpus `{name}` is not here (set STOPLOG_SHARED when building the tests)"
        );
    }
    found
}

fn json_list(path: &PathBuf) -> Vec<Value> {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// A name without quotes and continuations, since the corpus gives names as written.
fn bare(name: &str) -> String {
    name.chars().filter(|character| !matches!(character, '\'' | '"' | '\\' | '\n')).collect()
}

fn found_names(effects: &Effects) -> Vec<String> {
    let own = effects.commands.iter().filter(|command| command.via.is_empty());
    let mut names: Vec<String> = own.map(|command| bare(command.program.shown())).collect();
    names.extend(effects.function_calls.iter().map(|call| call.name.clone()));
    names.sort();
    names.dedup();
    names
}

/// Rows whose name our reading resolves further than the corpus writes it.
const RESOLVED_FURTHER: [&str; 6] = ["ansi-c", "brace-cmd", "trap", "b-tilde", "b-ifs", "eval"];

#[test]
fn bash_cases_are_read_exactly_or_refused() {
    let Some(directory) = shared("bash") else { return };
    let mut ordinary = (0, 0);
    for file in ["cases.json", "cases2.json", "x.json"] {
        for case in json_list(&directory.join(file)) {
            let (id, script) = (case["id"].as_str().unwrap(), case["src"].as_str().unwrap());
            let effects = analysed(script);
            let Some(expected) = case["exp"].as_array() else {
                assert!(!effects.unresolved.is_empty(), "{id}: {script:?}");
                continue;
            };
            let refused = effects.unresolved.iter().any(|u| {
                matches!(
                    u.reason,
                    UnresolvedReason::Refused
                        | UnresolvedReason::Syntax
                        | UnresolvedReason::TooLarge
                )
            });
            if file != "x.json" {
                ordinary.0 += 1;
                ordinary.1 += usize::from(refused);
            }
            let mut names: Vec<String> =
                expected.iter().map(|name| bare(name.as_str().unwrap())).collect();
            names.sort();
            names.dedup();
            let same = found_names(&effects) == names;
            assert!(
                same || refused || RESOLVED_FURTHER.contains(&id),
                "{id}: {script:?}: {:?}",
                programs(&effects)
            );
        }
    }
    println!("ordinary cases: {}, not read: {}", ordinary.0, ordinary.1);
    assert!(ordinary.1 * 20 <= ordinary.0, "{ordinary:?}");
}

fn commands_of(name: &str) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(shared(name)?).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    Some(rows.map(|row| row["command"].as_str().unwrap().to_owned()).collect())
}

#[test]
fn benign_commands_are_resolved() {
    for (name, share) in [
        ("benign_commands.jsonl", 0.03),
        ("benign_hard.jsonl", 0.05),
        ("gray_commands.jsonl", 0.05),
    ] {
        let Some(commands) = commands_of(name) else { continue };
        let held: Vec<&String> =
            commands.iter().filter(|command| !analysed(command).unresolved.is_empty()).collect();
        println!("{name}: {} of {} not resolved", held.len(), commands.len());
        let most = commands.len() as f64 * share;
        assert!(held.len() as f64 <= most, "{name}: {held:#?}");
    }
}
