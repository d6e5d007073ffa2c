//! What the shipped `workspace` policy answers on commands that others collected. The collections are
//! not part of the repository: without them the test says so and checks nothing. Run with
//! `--nocapture` to see the shares and the rows that got the other answer.

use super::*;
use crate::call::shell::{ShellContext, analyse};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Families with fewer rows say nothing by their share.
const ROWS_MIN: usize = 8;

fn corpora() -> Option<PathBuf> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let named = option_env!("STOPLOG_SHARED").map(PathBuf::from);
    let nearby = [package.join("../shared"), package.join("../../shared")];
    let found = named.into_iter().chain(nearby).map(|shared| shared.join("corpora"));
    found.into_iter().find(|directory| directory.is_dir())
}

fn answer(policy: &BoundPolicy, script: &str) -> Judgement {
    let places = Places::example();
    let context =
        ShellContext { cwd: places.workspace, home: places.home, ..ShellContext::default() };
    judge(policy, &analyse(script, &context))
}

/// Which rows count, and which answers are misses.
type Question = (fn(&serde_json::Value) -> bool, fn(Decision) -> bool);

/// Allowed and all rows for each family, and the rows that `is_miss` names.
fn shares(
    policy: &BoundPolicy,
    file: &Path,
    (wanted, is_miss): Question,
) -> BTreeMap<String, (usize, usize)> {
    let mut table = BTreeMap::<String, (usize, usize)>::new();
    for line in std::fs::read_to_string(file).unwrap().lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        if !wanted(&row) {
            continue;
        }
        let judgement = answer(policy, row["command"].as_str().unwrap());
        let entry = table.entry(row["intent"].as_str().unwrap_or("all").to_owned()).or_default();
        entry.1 += 1;
        if is_miss(judgement.decision) {
            entry.0 += 1;
            println!(
                "{} {}: {}",
                row["id"],
                judgement.decision,
                judgement.for_model().replace('\n', " ")
            );
        }
    }
    table
}

#[test]
fn acts_of_collected_attacks_are_refused_and_everyday_commands_are_not() {
    let Some(corpora) = corpora() else {
        println!("not run: no collections of commands beside the repository");
        return;
    };
    let set = load(vec![built_in_source("workspace").unwrap()], &|_| None).unwrap();
    let policy = set.bind(&Places::example()).unwrap();
    let attacks = shares(
        &policy,
        &corpora.join("attack_commands.jsonl"),
        (|row| row["tier"] == 1, |decision| decision == Decision::Allow),
    );
    for (family, (allowed, rows)) in &attacks {
        println!("attack {family}: {allowed} of {rows} allowed");
        assert!(*rows < ROWS_MIN || allowed * 7 <= *rows, "{family}: {allowed} of {rows}");
    }
    let refused = |decision| decision > Decision::Allow;
    let everyday = shares(
        &policy,
        &corpora.join("benign_commands.jsonl"),
        (|row| row["scope"] == "workspace", refused),
    );
    let near = shares(&policy, &corpora.join("benign_hard.jsonl"), (|_| true, refused));
    let (mut refusals, mut rows) = (0, 0);
    for (refused, all) in everyday.values().chain(near.values()) {
        refusals += refused;
        rows += all;
    }
    println!("everyday: {refusals} of {rows} asked or denied");
    assert!(refusals * 1_000 <= rows * 25, "{refusals} of {rows}");
}
