//! Recordings, forks, exports and plans.

use super::Rig;

const KEY: &str = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH";

#[test]
fn a_recorded_run_plays_again_and_never_replaces_a_file() {
    let rig = Rig::new();
    let model = rig.script(&[
        "{\"error\":{\"kind\":\"connect\",\"message\":\"x\"}}",
        r#"{"calls":[{"name":"write","arguments":{"path":"a","content":"x"}}]}"#,
        "{\"text\":\"done\"}",
    ]);
    let file = rig.path("recorded.jsonl").to_string_lossy().into_owned();
    let arguments = ["run", "--model", &model, "--headless", "--record", &file, "work"];
    assert_eq!(rig.run(&arguments).0, "done\n");
    let (_, err, code) = rig.run(&arguments);
    assert!(code == 2 && err.contains("new file"), "{err}");
    std::fs::remove_file(rig.path("w/a")).unwrap();
    let again = format!("script/{file}");
    assert_eq!(rig.run(&["run", "--model", &again, "--headless", "work"]).0, "done\n");
    assert!(rig.path("w/a").exists(), "the call was played as well");
}

#[test]
fn a_fork_goes_on_apart_from_its_original() {
    let rig = Rig::new();
    let model = rig.script(&["{\"text\":\"first\"}"]);
    rig.run(&["run", "--model", &model, "--headless", "--policy", "readonly", "original words"]);
    let (fork, err, code) = rig.run(&["session", "fork"]);
    assert_eq!(code, 0, "{err}");
    let model = rig.script(&["{\"text\":\"second\"}"]);
    let resume = ["resume", fork.trim(), "other words", "--model", &model, "--headless"];
    let (out, err, code) = rig.run(&resume);
    assert_eq!((out.as_str(), code), ("second\n", 0), "{err}");
    let (list, ..) = rig.run(&["session", "list", "--json"]);
    let counts = list.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["messages"].as_u64().unwrap()
    });
    let counts: Vec<u64> = counts.collect();
    assert_eq!(counts, [4, 2], "the original is as it was");
    assert_eq!(rig.run(&["audit", "verify", "--all"]).2, 0);
    let wider = ["resume", fork.trim(), "more", "--policy", "workspace", "--headless"];
    assert_eq!(rig.run(&wider).2, 23, "the fork keeps the original's policy");
}

#[test]
fn a_page_loads_nothing_escapes_everything_and_holds_no_key() {
    let rig = Rig::new();
    let text = format!(r#"{{"text":"<script>alert(1)</script> \u202e & {KEY}"}}"#);
    let model = rig.script(&[&text]);
    rig.run(&["run", "--model", &model, "--headless", "show <b>it</b>"]);
    let (page, err, code) = rig.run(&["session", "export", "--format", "html"]);
    assert_eq!(code, 0, "{err}");
    assert!(page.contains("default-src 'none'; style-src 'sha256-"), "{page}");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt; \\u{202e} &amp;"), "{page}");
    assert!(page.contains("show &lt;b&gt;it&lt;/b&gt;"));
    for no in ["<script", KEY, "http://", "https://", "src=", "href="] {
        assert!(!page.contains(no), "{no}");
    }
}

#[test]
fn a_plan_is_told_in_words() {
    let rig = Rig::new();
    let model = rig.script(&["{\"text\":\"first\"}"]);
    rig.run(&["run", "--model", &model, "--headless", "words"]);
    let (list, ..) = rig.run(&["session", "list", "--json"]);
    let line: serde_json::Value = serde_json::from_str(list.trim()).unwrap();
    let session = line["session"].as_str().unwrap();
    let journal = rig.path(&format!("state/stoplog/sessions/{session}/journal.jsonl"));
    let digest = format!("sha256:{}", "0".repeat(64));
    let current =
        format!(r#"{{"configurationDigest":"{digest}","environmentIdentity":"/w","tools":[]}}"#);
    let current = rig.write("current.json", &current);
    let journal = journal.to_string_lossy().into_owned();
    let (out, err, code) = rig.run(&["session", "plan", &journal, "--config", &current]);
    assert_eq!((out.trim(), code), ("next: nothing is left to do", 0), "{err}");
}
