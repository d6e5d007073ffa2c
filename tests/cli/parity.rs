//! One place, one answer, whatever asks: a file tool, the words of a command, a program that no rule
//! sees into.

use super::rig::{Rig, answer, bash, call, write};
use serde_json::json;

/// A name of the workspace that may be read and not be changed.
const RULE: &str = "[[path.rule]]\nid = \"kept\"\ndecision = \"deny\"\naccess = [\"write\"]\n\
                    reason = \"it is kept\"\npaths = [\"{workspace}/kept.txt\"]\n";

#[test]
fn what_write_is_refused_is_refused_to_edit_and_to_the_shell_by_the_same_rule() {
    let rig = Rig::new();
    rig.file("f0", "changed\n");
    rig.file("copy.sh", "cp f0 \"$1\"; echo tried");
    let turns = |name: &str| {
        let path = rig.work().join(name);
        let path = path.to_str().unwrap();
        [
            write(name, "changed\n"),
            write(&format!("./x/../{name}"), "changed\n"),
            write(path, "changed\n"),
            call("edit", &json!({"path": name, "old": "as it was", "new": "changed"})),
            bash(&format!("cp f0 {name}")),
            bash(&format!("cp f0 {path}")),
            bash(&format!("echo changed > {name}")),
            bash(&format!("tee -a {name} < f0")),
            bash(&format!("rm -f {name}")),
            bash(&format!("sh copy.sh {name}")),
            answer("done"),
        ]
    };
    let policy = rig.policy(RULE);
    rig.file("kept.txt", "as it was\n");
    let done = rig.play(&turns("kept.txt"), &["--policy", &policy]).exits(10);
    assert_eq!(rig.text("kept.txt"), "as it was\n");
    let denials = done.result()["denials"].as_array().unwrap().clone();
    assert_eq!(denials.len(), 9, "all whose words name it: {denials:?}");
    for denial in &denials {
        assert_eq!((&denial["stage"], &denial["rule"]), (&json!("firewall"), &json!("kept")));
    }
    // The words of the last name it, too, but not what is done to it; there the cell holds.
    let results = done.results();
    assert!(results[9].contains("Read-only file system"), "{}", results[9]);
    assert!(results[9].contains("tried"), "{}", results[9]);

    // The control: a name that no rule names is changed by each of them.
    rig.file("free.txt", "as it was\n");
    for (number, turn) in turns("free.txt").into_iter().take(10).enumerate() {
        rig.file("free.txt", "as it was\n");
        rig.play(&[turn, answer("done")], &["--policy", &policy]).exits(0);
        assert_ne!(rig.text("free.txt"), "as it was\n", "call {number}");
    }
}
