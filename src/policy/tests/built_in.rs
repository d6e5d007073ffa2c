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
