//! `doctor` as a user calls it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_stoplog");

fn doctor(arguments: &[&str]) -> Output {
    doctor_under("env", &[], Path::new(PROGRAM), arguments)
}

/// `doctor` of `program`, started by `wrapper`.
#[expect(clippy::disallowed_methods, reason = "the program under test is started from outside")]
fn doctor_under(wrapper: &str, before: &[&str], program: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(wrapper);
    command.args(before).arg(program).arg("doctor").args(arguments).output().unwrap()
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
    let words = [
        "kernel ",
        "landlock ",
        "seccomp ",
        "namespace ",
        "control groups ",
        "cell ",
        "G16",
        "policy          workspace: ",
        "policy          untrusted: ",
    ];
    for word in words {
        assert!(text.contains(word), "{word} in {text}");
    }
    let facts = json(&doctor(&["--json"]));
    assert!(facts["facts"]["landlock"].as_u64().is_some_and(|version| version > 0), "{facts}");
    assert!(facts["guarantees"].as_array().unwrap().iter().all(|row| row["held"].is_null()));
    // What holds a limit over a tree is what a cell shows that has one.
    let (groups, held) = (&facts["facts"]["control_groups"], &facts["cell"]["limits"]);
    let delegated = groups["delegated"] == true;
    match (groups["version"].as_str().unwrap(), delegated) {
        ("v1", true) => assert_eq!(held, "cgroup-v1", "{facts}"),
        // A group may be writable and yet hand nothing on.
        ("v2", true) => assert!(held == "cgroup-v2" || held == "rlimit", "{facts}"),
        _ => assert_eq!(held, "rlimit", "{facts}"),
    }
}

/// What became of each guarantee: 1 to 16, in order.
fn held(report: &Value) -> Vec<String> {
    let rows = report["guarantees"].as_array().unwrap();
    assert_eq!(rows.len(), 16);
    rows.iter().map(|row| row["held"].as_str().unwrap_or("unproved").to_owned()).collect()
}

/// The probes that found something else than a pass.
fn weaker(report: &Value) -> Vec<String> {
    let proofs = report["proofs"].as_array().unwrap().iter();
    let weaker = proofs.filter(|proof| proof["held"] != "pass");
    weaker.map(|proof| proof["probe"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_self_test_proves_every_guarantee_on_this_machine() {
    let output = doctor(&["--selftest", "--json"]);
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    if report["cell"]["mount_view"] == Value::Bool(false) {
        return without_a_view(&report);
    }
    assert_eq!(held(&report), ["pass"; 16], "{report:#}");
    for policy in report["policies"].as_array().unwrap() {
        assert!(policy["cell"]["mount_view"] == Value::Bool(true), "{policy}");
        assert_eq!(policy["cell"]["lost"], serde_json::json!([]), "{policy}");
    }
}

/// Only what a mount view alone can hold is "not supported", and the text says so, too.
fn without_a_view(report: &Value) {
    let expected: Vec<&str> = (1..=16)
        .map(|number| if [4, 10].contains(&number) { "not-supported" } else { "pass" })
        .collect();
    assert_eq!(held(report), expected, "{report:#}");
    assert_eq!(
        weaker(report),
        ["names outside", "deny inside allow", "an attack on the own files"],
        "{report:#}"
    );
    for policy in report["policies"].as_array().unwrap() {
        let refused = policy["refused"].as_str().unwrap();
        assert!(refused.contains("masks need a mount view"), "{policy}");
    }
}

#[test]
fn the_self_test_without_namespaces_lacks_what_only_a_view_can_hold() {
    // Inside a user namespace the limits on namespaces can be set to none for all below it.
    let limits = ["user", "mnt", "pid", "net", "ipc", "uts"]
        .map(|kind| format!("echo 0 >/proc/sys/user/max_{kind}_namespaces"));
    let script = format!("{} && exec \"$@\"", limits.join(" && "));
    let shell = ["--user", "--map-root-user", "sh", "-c", &script, "sh"];
    for form in [&["--selftest", "--json"][..], &["--selftest"]] {
        let output = doctor_under("unshare", &shell, Path::new(PROGRAM), form);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        if form.contains(&"--json") {
            without_a_view(&json(&output));
            continue;
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        for line in ["G4  not supported", "G10 not supported", "G12 pass", "G13 pass", "G14 pass"] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}

#[test]
fn the_self_test_passes_for_an_ordinary_user() {
    if !rustix::process::geteuid().is_root() {
        return; // The other tests run as one already.
    }
    let place = tempfile::Builder::new().prefix("stoplog-doctor-").tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = place.path().join("stoplog");
    fs::copy(PROGRAM, &program).unwrap();
    let user = ["--reuid=20000", "--regid=20000", "--clear-groups"];
    let output = doctor_under("setpriv", &user, &program, &["--selftest", "--json"]);
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    assert_eq!(report["facts"]["user"], 20_000);
    assert_eq!(held(&report), ["pass"; 16], "{report:#}");
}

#[test]
fn an_older_landlock_is_shown_with_what_it_lacks() {
    let lacks = [
        (1, "renaming between directories"),
        (2, "truncation"),
        (3, "TCP ports"),
        (4, "device requests"),
        (5, "scopes for signals and abstract sockets"),
    ];
    let kernel = json(&doctor(&["--json"]))["facts"]["landlock"].as_u64().unwrap();
    for version in 1..=kernel {
        let flag = version.to_string();
        let output = doctor(&["--landlock-at-most", &flag]);
        assert_eq!(output.status.code(), Some(0));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find(|line| line.starts_with("landlock ")).unwrap();
        assert_eq!(line.contains("emulated"), version < kernel, "{line}");
        for (without, right) in lacks {
            assert_eq!(line.contains(right), version <= without, "{right} in {line}");
        }
        let report = json(&doctor(&["--landlock-at-most", &flag, "--json"]));
        assert_eq!(report["facts"]["landlock"], version);
        assert_eq!(report["cell"]["landlock_abi"], version);
        for policy in report["policies"].as_array().unwrap() {
            assert_eq!(policy["cell"]["landlock_abi"], version, "{policy}");
        }
    }
}
