//! `chat` at a terminal, as a person uses it: what stands on the screen while the agent works, what
//! Ctrl-C does and when, what is remembered from one turn to the next, what is typed over several lines.

use super::pty::{Pty, Streams};
use super::rig::{Rig, answer, bash, call, write};
use super::scripted_http::{Reply, Server};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::Duration;

const ASKS: &str = "[[command.rule]]\nid = \"ask-touch\"\ndecision = \"ask\"\n\
    reason = \"ask first\"\nprogram = \"touch\"\n";
const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";
/// Begins every colour and every other rendition. Source: ECMA-48, CSI … m.
const COLOUR: &str = "\u{1b}[3";

fn chat(rig: &Rig, turns: &[Value], more: &[&str]) -> Pty {
    chat_with(rig, turns, more, &[])
}

fn chat_with(rig: &Rig, turns: &[Value], more: &[&str], environment: &[(&str, &str)]) -> Pty {
    let script = rig.script(turns);
    let arguments = [&["chat", "--model", &script], more].concat();
    Pty::start(rig, &arguments, environment, Streams::All)
}

#[test]
fn an_answer_appears_as_it_arrives_and_the_session_is_named_at_the_end() {
    let rig = Rig::new();
    let piece = |text: &str| {
        let delta = json!({"choices": [{"index": 0, "delta": {"content": text}}]});
        format!("data: {delta}\n\n").into_bytes()
    };
    let end = b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
        data: [DONE]\n\n";
    let hour = Duration::from_secs(3_600);
    let whole = Reply::stream(&[&piece("whole answer"), end]);
    let begun = Reply::open_stream().then_chunk(&piece("first words")).then_pause(hour);
    let server = Server::start(vec![whole, begun]);
    let url = server.base_url();
    let arguments = ["chat", "--model", "openai/x", "--base-url", &url];
    let mut chat = Pty::start(&rig, &arguments, &[("OPENAI_API_KEY", "k")], Streams::All);
    chat.is_asked().types("hello\r").sees("session ").sees("whole answer\r\n");
    // The second answer never ends, and its beginning is there.
    chat.is_asked().types("more\r").sees("first words").types(CTRL_C).sees("stopped");
    chat.is_asked().types(CTRL_D).sees("stoplog chat --resume ");
    let (done, shown) = chat.ends();
    drop(done.exits(0));
    assert_eq!(shown.matches("session 0").count(), 1, "told once: {shown}");
}

#[test]
fn a_call_is_shown_while_it_runs_and_an_edit_as_a_diff() {
    let rig = Rig::new();
    rig.file("a.txt", "one\ntwo\n");
    let edit = call("edit", &json!({"path": "a.txt", "old": "two\n", "new": "2\n"}));
    let turns = [bash("touch begun; sleep 600"), edit, answer("changed")];
    let mut chat = chat(&rig, &turns, &[]);
    chat.is_asked().types("wait\r").until(|| rig.has("begun"));
    chat.sees("… bash touch begun; sleep 600").types(CTRL_C);
    // The line gives way to what became of the call.
    chat.sees("\u{1b}[K").sees("bash touch begun; sleep 600").sees(" ms").sees("stopped");
    chat.is_asked().types("now the file\r").sees("edit a.txt").sees("-two").sees("+2");
    chat.sees("changed").is_asked().types("/quit\r");
    let (done, shown) = chat.ends();
    drop(done.exits(0));
    assert!(shown.contains(COLOUR), "the control: without NO_COLOR there is colour");
    assert_eq!(rig.text("a.txt"), "one\n2\n");
}

#[test]
fn no_color_is_honoured_and_nothing_of_a_model_or_a_tool_reaches_the_terminal_as_it_is() {
    let rig = Rig::new();
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m";
    let failing = json!({"text": format!("look {hostile}"), "calls": [
        {"name": "bash", "arguments": {"command": "printf '\\033[2J\\033]0;owned\\007\\n'; exit 3"}},
        {"name": "read", "arguments": {"path": format!("a{hostile}")}},
    ]});
    let turns = [failing, answer(&format!("done {hostile}"))];
    let mut chat = chat_with(&rig, &turns, &[], &[("NO_COLOR", "1")]);
    chat.is_asked().types("go\r").sees("done ").is_asked().types("/quit\r");
    let (done, shown) = chat.ends();
    drop(done.exits(0));
    assert!(shown.contains("look \\u{1b}]0;owned\\u{7}\\u{1b}[2J\\u{9b}31m"), "{shown:?}");
    for sequence in ["\u{1b}]", "\u{1b}[2J", "\u{9b}", "\u{7}", COLOUR, "\u{1b}[2m", "\u{1b}[1m"] {
        assert!(!shown.contains(sequence), "{sequence:?} in {shown:?}");
    }
}

#[test]
fn ctrl_c_stops_the_turn_and_a_second_one_ends_the_program_with_130() {
    let rig = Rig::new();
    // It does not end when it is asked to, so that the first Ctrl-C is still at work.
    let stubborn = bash("trap '' TERM; touch begun; while :; do sleep 600; done");
    let mut chat = chat(&rig, &[stubborn, answer("never")], &[]);
    chat.is_asked().types("go\r").until(|| rig.has("begun"));
    chat.types(CTRL_C).types(CTRL_C);
    drop(chat.ends().0.exits(130));
    // What was in flight is told when the session goes on.
    let session = rig.session();
    rig.script(&[json!({"expect": "interrupted", "text": "I will look"})]);
    let done = rig.stoplog(&["resume", &session, "go on", "--headless"]).exits(0);
    assert!(done.stdout.contains("I will look"));
    drop(done.says(&["Call 1 of 1, `bash`, had started; whether it took effect is unknown"]));
}

#[test]
fn ctrl_c_at_the_prompt_takes_back_what_was_typed_and_twice_leaves() {
    let rig = Rig::new();
    let mut chat = chat(&rig, &[answer("one"), answer("two")], &[]);
    chat.is_asked().types("half a mess").types(CTRL_C).sees("Ctrl-C again");
    chat.is_asked().types("hello\r").sees("one");
    chat.is_asked().types(CTRL_C).sees("Ctrl-C again");
    chat.is_asked().types("and so on\r").sees("two");
    chat.is_asked().types(CTRL_C).is_asked().types(CTRL_C).sees("go on later");
    drop(chat.ends().0.exits(0));
    let shown = rig.stoplog(&["session", "show"]).exits(0).stdout;
    assert!(shown.contains("hello") && !shown.contains("half a mess"), "{shown}");
}

#[test]
fn a_message_of_several_lines_a_paste_and_the_history() {
    let rig = Rig::new();
    let heard = |text: &str, answer: &str| json!({"expect": text, "text": answer});
    let turns = [
        heard("one\ntwo", "first"),
        heard("three\\\nfour", "second"),
        heard("```sh\nls \\\n  -l\n```\nwhat is this?", "third"),
        heard("  -l\n```\nwhat is this?", "fourth"),
    ];
    let mut chat = chat(&rig, &turns, &[]);
    chat.is_asked().types("one\\\r").sees("| ").types("two\r").sees("first");
    chat.is_asked().types("```\r").sees("| ").types("three\\\r").sees("| ").types("four\r");
    chat.sees("| ").types("```\r").sees("second");
    let paste = "\u{1b}[200~```sh\rls \\\r  -l\r```\rwhat is this?\u{1b}[201~\r";
    chat.is_asked().types(paste).sees("third");
    let up = "\u{1b}[A";
    chat.is_asked().types(up).types("\r").sees("fourth");
    chat.types(CTRL_D);
    drop(chat.ends().0.exits(0));
    // The next conversation knows what was typed in this one.
    let script = rig.script(&[heard("  -l\n```\nwhat is this?", "again")]);
    let mut next = Pty::start(&rig, &["chat", "--model", &script], &[], Streams::All);
    next.is_asked().types(up).types("\r").sees("again").types(CTRL_D);
    drop(next.ends().0.exits(0));
    let history = rig.state().join("chat-history");
    let mode = std::os::unix::fs::PermissionsExt::mode(&history.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_yes_until_the_end_holds_for_that_call_in_every_later_turn() {
    let rig = Rig::new();
    let policy = rig.policy(ASKS);
    let turns = [
        bash("touch one"),
        answer("first"),
        bash("rm one; touch one"),
        answer("second"),
        bash("touch one"),
        bash("touch two"),
        answer("third"),
    ];
    let mut chat = chat(&rig, &turns, &["--policy", &policy]);
    chat.is_asked().types("go\r").sees("Allow?").types("a\r").sees("first");
    chat.is_asked().types("go\r").sees("Allow?").types("n\r").sees("second");
    chat.is_asked().types("go\r").sees("Allow?").types("y\r").sees("third");
    chat.is_asked().types("/quit\r");
    let (done, shown) = chat.ends();
    drop(done.exits(0));
    assert_eq!(shown.matches("Allow?").count(), 3, "{shown}");
    assert!(rig.has("one") && rig.has("two"));
    let by_whom: Vec<Value> =
        rig.records_of("grant").iter().map(|grant| grant["approved"].clone()).collect();
    assert_eq!(by_whom, [true, false, true, true]);
    // A later process asks anew.
    let session = rig.session();
    rig.script(&[bash("touch one"), answer("x")]);
    let mut later = Pty::start(&rig, &["chat", "--resume", &session], &[], Streams::All);
    later.is_asked().types("go\r").sees("Allow?").types("n\r").is_asked().types("/quit\r");
    drop(later.ends().0.exits(0));
    rig.stoplog(&["audit", "verify"]).exits(0);
}

#[test]
fn a_file_that_the_person_changed_between_two_turns_is_not_edited_unread() {
    let rig = Rig::new();
    rig.file("a.txt", "one\ntwo\n");
    let edit =
        |old: &str, new: &str| call("edit", &json!({"path": "a.txt", "old": old, "new": new}));
    let read = call("read", &json!({"path": "a.txt"}));
    let turns = [
        read.clone(),
        answer("I have read it"),
        edit("two", "2"),
        answer("it has changed"),
        read,
        edit("two", "2"),
        answer("now it is done"),
    ];
    let mut chat = chat(&rig, &turns, &[]);
    chat.is_asked().types("read\r").sees("I have read it").is_asked();
    rig.file("a.txt", "zero\none\ntwo\n");
    chat.types("edit\r").sees("it has changed").is_asked();
    assert_eq!(rig.text("a.txt"), "zero\none\ntwo\n", "the edit was refused");
    chat.types("again\r").sees("now it is done").is_asked().types("/quit\r");
    drop(chat.ends().0.exits(0));
    assert_eq!(rig.text("a.txt"), "zero\none\n2\n");
}

#[test]
fn ctrl_c_at_a_question_is_a_no_and_stops_the_turn() {
    let rig = Rig::new();
    let policy = rig.policy(ASKS);
    let mut chat = chat(&rig, &[bash("touch made"), answer("next")], &["--policy", &policy]);
    chat.is_asked().types("go\r").sees("Allow?").types(CTRL_C).sees("stopped");
    assert!(!rig.has("made"));
    chat.is_asked().types("go on\r").sees("next").is_asked().types(CTRL_D);
    drop(chat.ends().0.exits(0));
}

#[test]
fn a_signal_at_the_prompt_leaves_the_terminal_as_it_was() {
    let rig = Rig::new();
    let mut chat = chat(&rig, &[answer("one")], &[]);
    chat.is_asked().signal(Signal::TERM);
    let (done, shown) = chat.ends();
    drop(done.exits(143));
    let (on, off) = (shown.rfind("\u{1b}[?2004h"), shown.rfind("\u{1b}[?2004l"));
    assert!(on.is_some() && off > on, "pastes are still marked: {shown:?}");
}

#[test]
fn a_terminal_without_control_sequences_is_no_obstacle() {
    let rig = Rig::new();
    let mut chat = chat_with(&rig, &[answer("one")], &[], &[("TERM", "dumb"), ("NO_COLOR", "1")]);
    chat.is_asked().types("hello\r").sees("one").is_asked();
    chat.types(CTRL_C).sees("Ctrl-C again").types(CTRL_C).sees("go on later");
    let (done, shown) = chat.ends();
    drop(done.exits(0));
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn a_terminal_that_goes_away_ends_the_turn_in_an_orderly_way() {
    let rig = Rig::new();
    let turns = [bash("touch begun; sleep 600"), write("never", "x"), answer("x")];
    let mut chat = chat(&rig, &turns, &[]);
    chat.is_asked().types("go\r").until(|| rig.has("begun"));
    chat.closes();
    drop(chat.ends().0.exits(143));
    assert!(!rig.has("never"));
    assert_eq!(rig.records_of("end")[0]["exit_code"], 143, "the log has its end");
    rig.stoplog(&["audit", "verify"]).exits(0);
    // At the prompt, too.
    let script = rig.script(&[answer("one")]);
    let mut idle = Pty::start(&rig, &["chat", "--model", &script], &[], Streams::All);
    idle.is_asked().types("hello\r").sees("one").is_asked().closes();
    drop(idle.ends().0.exits(143));
}

#[test]
fn a_process_that_was_told_to_survive_its_terminal_does() {
    let rig = Rig::new();
    let script =
        rig.script(&[bash("touch begun; until test -e gone; do sleep 0.05; done"), answer("x")]);
    let mut command = rig.program("nohup", &[super::rig::PROGRAM, "--state-dir"]);
    command.arg(rig.state()).args(["run", "--headless", "--model", &script, "--workspace"]);
    command.arg(rig.work()).arg("task");
    let mut live = super::rig::Live::start(command);
    assert!(live.until(|| rig.has("begun")));
    live.signal(Signal::HUP);
    rig.file("gone", "");
    drop(live.end().exits(0));
}

#[test]
fn a_policy_file_that_becomes_wider_between_two_turns_is_told_and_holds_the_turn_back() {
    let rig = Rig::new();
    let directory = rig.home().join(".config/stoplog");
    std::fs::create_dir_all(&directory).unwrap();
    let policy = directory.join("policy.toml");
    std::fs::write(&policy, format!("version = 1\n{}", ASKS.replace("ask\"\n", "deny\"\n")))
        .unwrap();
    let turns = [answer("first"), bash("touch made"), answer("second"), answer("third")];
    let mut chat = chat(&rig, &turns, &[]);
    chat.is_asked().types("go\r").sees("first").is_asked();
    std::fs::rename(&policy, directory.join("away")).unwrap();
    chat.types("again\r").sees("has changed since").sees("`ask-touch`").sees("--keep-policy");
    chat.is_asked();
    std::fs::rename(directory.join("away"), &policy).unwrap();
    chat.types("again\r").sees("denied by firewall").sees("second");
    chat.is_asked().types("/quit\r");
    drop(chat.ends().0.exits(0));
    assert!(!rig.has("made"));
}
