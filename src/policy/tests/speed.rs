//! Bounds on time, wide enough for a busy machine and an unoptimised build: they catch a change of
//! order of magnitude, not of percent.

use super::*;
use std::time::{Duration, Instant};

fn rules(count: usize) -> String {
    let mut text = String::from("[command]\ndefault = \"deny\"\n");
    for index in 0..count {
        text.push_str(&format!(
            "[[command.rule]]\nid = \"r{index}\"\ndecision = \"allow\"\nreason = \"r\"\nprogram = \"p{index}\"\ntokens = [[\"a\", \"b\"], \"**\"]\nmatch = [\"p{index} a\"]\n"
        ));
    }
    text
}

fn each(runs: u32, mut act: impl FnMut()) -> Duration {
    let start = Instant::now();
    (0..runs).for_each(|_| act());
    start.elapsed() / runs
}

#[test]
fn time_of_a_decision_does_not_grow_with_rules_for_other_programs() {
    let effects = Effects { commands: vec![command("p7 a x y")], ..Effects::default() };
    let (few, many) = (bound(&rules(50)), bound(&rules(1_000)));
    let with_few = each(2_000, || drop(judge(&few, &effects)));
    let with_many = each(2_000, || drop(judge(&many, &effects)));
    println!("judge: {with_few:?} with 50 rules, {with_many:?} with 1,000");
    assert!(with_many < with_few * 20 + Duration::from_micros(100));
}

#[test]
fn thousands_of_rules_load() {
    let text = rules(10_000);
    let start = Instant::now();
    assert!(load_one(&text).is_err(), "above the size of a file");
    let text = rules(4_000);
    assert!(load_one(&text).is_ok());
    println!("load of 4,000 rules: {:?}", start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn the_shipped_policies_load_and_judge_quickly() {
    for name in BUILT_IN_NAMES {
        let source = built_in_source(name).unwrap();
        let loading = each(5, || drop(load(vec![source.clone()], &|_| None).unwrap()));
        let set = load(vec![source], &|_| None).unwrap();
        let binding = each(5, || drop(set.bind(&Places::example()).unwrap()));
        let policy = set.bind(&Places::example()).unwrap();
        let effects =
            Effects { commands: vec![command("git status --short")], ..Effects::default() };
        let judging = each(500, || drop(judge(&policy, &effects)));
        println!("{name}: load {loading:?}, bind {binding:?}, judge {judging:?}");
        assert!(loading < Duration::from_secs(2) && judging < Duration::from_millis(5));
    }
}

#[test]
fn long_commands_and_many_stars_are_answered_in_bounded_time() {
    let stars = vec!["\"**\", \"x\""; 20].join(", ");
    let policy = bound(&format!(
        "[command]\ndefault = \"allow\"\n[[command.rule]]\nid = \"a\"\ndecision = \"deny\"\nreason = \"r\"\nprogram = \"p\"\ntokens = [{stars}, \"y\"]\n"
    ));
    let long = format!("p {}", "x ".repeat(5_000));
    let effects = Effects { commands: vec![command(&long)], ..Effects::default() };
    let start = Instant::now();
    assert_eq!(judge(&policy, &effects).decision, Decision::Allow);
    assert!(start.elapsed() < Duration::from_secs(5));
}
