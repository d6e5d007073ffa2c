//! `doctor` as a user calls it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use serde_json::Value;
use std::process::{Command, Output};

#[expect(clippy::disallowed_methods, reason = "the program under test is started from outside")]
fn doctor(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stoplog")).arg("doctor").args(arguments).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn doctor_tells_what_the_machine_gives() {
    let output = doctor(&[]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for word in
        ["kernel ", "landlock ", "seccomp ", "namespace ", "control groups ", "cell ", "G16"]
    {
        assert!(text.contains(word), "{word} in {text}");
    }
    let facts = json(&doctor(&["--json"]));
    assert!(facts["facts"]["landlock"].as_u64().is_some_and(|version| version > 0), "{facts}");
    assert!(facts["guarantees"].as_array().unwrap().iter().all(|row| row["held"].is_null()));
}

#[test]
fn the_self_test_proves_the_guarantees_on_this_machine() {
    let output = doctor(&["--selftest", "--json"]);
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    let without_probe = [12, 13, 14];
    for row in report["guarantees"].as_array().unwrap() {
        let number = row["guarantee"].as_u64().unwrap();
        let shown = if without_probe.contains(&number) { Value::Null } else { "pass".into() };
        // A machine that refuses namespaces cannot hold all of G4, and says so.
        let weaker = number == 4 && report["cell"]["mount_view"] == Value::Bool(false);
        assert!(row["held"] == shown || weaker && row["held"] == "not-supported", "{row}");
    }
}
