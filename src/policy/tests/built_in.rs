//! The policies that are part of the program.

use super::*;

#[test]
fn every_built_in_policy_loads_and_its_examples_hold() {
    for name in BUILT_IN_NAMES {
        let source = built_in_source(name).unwrap();
        let set =
            load(vec![source], &|_| None).unwrap_or_else(|errors| panic!("{name}:\n{errors}"));
        set.bind(&Places::example()).unwrap();
    }
    let set = load(vec![built_in_source("base").unwrap()], &|_| None).unwrap();
    assert_eq!(set.files()[0].layer, Layer::BuiltIn);
    assert_eq!(built_in("none"), None);
}

#[test]
fn the_examples_of_every_built_in_policy_hold_and_its_expressions_compile() {
    for name in BUILT_IN_NAMES {
        let text = built_in(name).unwrap();
        // As a file of the user everything is checked that a start takes for granted.
        load_one(text).unwrap_or_else(|errors| panic!("{name}:\n{errors}"));
        if !text.contains("match = [") {
            assert_eq!(name, "workspace", "it has no rules of its own");
            continue;
        }
        let broken = text.replacen("match = [", "match = [\"no such thing\", ", 1);
        let errors = load_one(&broken).unwrap_err();
        assert!(errors.0.iter().any(|error| error.code == "failing-example"), "{name}: {errors}");
    }
}
