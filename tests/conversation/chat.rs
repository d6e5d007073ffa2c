//! `chat`, fed through a pipe.

use super::{Rig, texts};

#[test]
fn all_turns_are_one_session_and_the_script_goes_on() {
    let rig = Rig::new();
    let model = rig.script(&[
        "{\"text\":\"first answer\"}",
        "{\"expect\":\"two\\nlines\",\"text\":\"second answer\"}",
    ]);
    let input = "hello\n/session\ntwo\\\nlines\n/nonsense\n/quit\n";
    let (out, err, code) = texts(&rig.start(&["chat", "--model", &model], input));
    assert_eq!((out.as_str(), code), ("first answer\nsecond answer\n", 0), "{err}");
    assert!(err.contains("1 turns") && err.contains("unknown command `/nonsense`"), "{err}");
    assert!(err.contains("stoplog chat --resume"), "{err}");
    let (list, ..) = rig.run(&["session", "list"]);
    assert_eq!(list.lines().count(), 1, "{list}");
    let shown = rig.shown();
    for said in ["hello", "first answer", "two\nlines", "second answer"] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    assert_eq!(rig.run(&["audit", "verify", "--all"]).2, 0);
    let history = std::fs::read_to_string(rig.path("state/stoplog/chat-history")).unwrap();
    assert!(history.contains("hello") && !history.contains("/session"), "{history}");
}

#[test]
fn an_edit_is_shown_as_a_diff_and_nothing_reaches_the_terminal_unescaped() {
    let rig = Rig::new();
    rig.write("w/a.txt", "one\ntwo\n");
    let model = rig.script(&[
        r#"{"text":"I \u001b[2Jlook","calls":[{"name":"edit","arguments":{"path":"a.txt","old":"two\n","new":"2 \u001b]0;x\u0007\n"}}]}"#,
        "{\"text\":\"done\"}",
    ]);
    let output = rig.start(&["chat", "--model", &model, "--policy", "workspace"], "go\n");
    let (out, err, code) = texts(&output);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("I \\u{1b}[2Jlook\n") && out.ends_with("done\n"), "{out}");
    assert!(err.contains("-two") && err.contains("+2 \\u{1b}]0;x\\u{7}"), "{err}");
    assert!(!out.contains('\u{1b}') && !err.contains('\u{1b}'));
}

#[test]
fn a_conversation_goes_on_in_a_later_process_and_errors_do_not_end_it() {
    let rig = Rig::new();
    let model = rig.script(&["{\"text\":\"one\"}"]);
    let input = "hello\nagain\n/quit\n";
    let (out, err, code) = texts(&rig.start(&["chat", "--model", &model], input));
    assert_eq!((out.as_str(), code), ("one\n", 0));
    assert!(err.contains("error:") && err.contains("no turn left"), "{err}");
    let (list, ..) = rig.run(&["session", "list", "--json"]);
    let session: serde_json::Value = serde_json::from_str(list.trim()).unwrap();
    let session = session["session"].as_str().unwrap();
    let model = rig.script(&["{\"text\":\"three\"}"]);
    let arguments = ["chat", "--resume", session, "--model", &model];
    assert_eq!(texts(&rig.start(&arguments, "more")).0, "three\n", "the end of the input sends");
    assert_eq!(rig.run(&["session", "list"]).0.lines().count(), 1);
}

#[test]
fn what_cannot_start_is_said_before_the_first_prompt() {
    let rig = Rig::new();
    let (_, err, code) = texts(&rig.start(&["chat"], "hello\n"));
    assert!(code == 2 && err.contains("no model is named"), "{err}");
    let model = rig.script(&["{\"text\":\"one\"}"]);
    let arguments = ["chat", "--model", &model, "--output", "json"];
    assert_eq!(texts(&rig.start(&arguments, "")).2, 2);
}
