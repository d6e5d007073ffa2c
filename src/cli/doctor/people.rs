//! Proofs of what a person at a terminal is promised: what is shown is what runs, and an answer
//! covers no more than was shown. The program is run at a terminal of its own and answered.

use super::trials::{Found, Trial, bash, judged, rule, rule_on};
use crate::sandbox::probe::{Bench, Finding, Probe, Typing, put};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;

/// The trials, as rows for the table of probes.
pub(super) const TRIALS: [Probe; 2] = [
    Probe { guarantee: 12, name: "a question with hidden text", run: hidden_text },
    Probe { guarantee: 13, name: "a remembered answer", run: remembered_answer },
];

/// Part of a file name: it wipes a terminal's line, goes up one, and turns the writing around.
const HIDDEN: &str = "a\u{1b}[2K\u{1b}[1A\u{202e}b";
/// Characters of it that must not arrive.
const CONTROLS: [char; 2] = ['\u{1b}', '\u{202e}'];

fn hidden_text(bench: &Bench) -> Found {
    let plain = [OsString::from("-c"), "printf %s \"$1\"; printf %s \"$1\" >&2".into()];
    let plain = [&plain[..], &["sh".into(), HIDDEN.into()]].concat();
    let unasked = Typing { question: "", answers: &[] };
    let control = bench.sit_at_terminal(OsStr::new("/bin/sh"), &plain, unasked)?;
    let trial = Trial::new(bench, "shown")?;
    fs::create_dir(trial.workspace().join("real"))?;
    std::os::unix::fs::symlink("real", trial.workspace().join("link"))?;
    let command = format!("env touch 'link/{HIDDEN}'");
    let (_, sitting) = trial.at_terminal(&rule("ask"), &[vec![bash(&command)]], &["y"])?;
    let shown = &sitting.shown;
    let arrived = |text: &str| CONTROLS.iter().filter(|control| text.contains(**control)).count();
    let real = trial.workspace().join("real");
    let parts = [
        ("the wrapper", "runs       env".to_owned()),
        ("the program in it", "runs       touch".to_owned()),
        ("the path behind the link", format!("write {}", real.display())),
        ("a control character as a word", r"\u{1b}".to_owned()),
        ("a format character as a word", r"\u{202e}".to_owned()),
    ];
    let missing: Vec<&str> =
        parts.iter().filter(|(_, text)| !shown.contains(text)).map(|(what, _)| *what).collect();
    let ran = real.join(HIDDEN).exists();
    if arrived(shown) > 0 || !missing.is_empty() || !ran {
        return Ok(Finding::fail(format!(
            "{} control characters arrived; not shown: {missing:?}; what was approved ran: {ran}",
            arrived(shown)
        )));
    }
    let detail = format!(
        "{} kinds of hidden characters arrive plainly, none in the question, which shows {} things; \
         the approved name was made byte for byte",
        arrived(&control.shown),
        parts.len()
    );
    Ok(judged(arrived(&control.shown) == CONTROLS.len(), true, detail))
}

fn remembered_answer(bench: &Bench) -> Found {
    let trial = Trial::new(bench, "remembered")?;
    let script = trial.workspace().join("run.sh");
    put(&script, "echo first >>ran\n")?;
    let rules = format!("{}{}", rule("ask"), rule_on("sh", "ask"));
    let turns = [
        vec![bash("touch one")],
        vec![bash("rm one")],
        vec![bash("touch one")],
        vec![bash("touch two")],
        vec![bash("sh run.sh")],
        vec![bash("echo 'echo other >>ran' >run.sh")],
        vec![bash("sh run.sh")],
    ];
    // The first question and the one about the script are answered with `a`.
    let (ended, sitting) = trial.at_terminal(&rules, &turns, &["a", "n", "a", "n"])?;
    let ran = fs::read_to_string(trial.workspace().join("ran")).or_else(absent_is_empty)?;
    let remembered = trial.made("one");
    let kept_apart = !trial.made("two") && ran == "first\n" && ended.denials == 2;
    fs::remove_file(trial.workspace().join("one")).or_else(absent_is_done)?;
    let later = trial.headless(&trial.resumption(None, &[vec![bash("touch one")]])?)?;
    let forgotten = !trial.made("one") && later.denials == 1;
    let detail = format!(
        "{} questions; the same call ran unasked: {remembered}; another call and a changed script \
         were asked about: {kept_apart}; a later run had to ask: {forgotten}",
        sitting.questions
    );
    Ok(judged(remembered, kept_apart && forgotten && sitting.questions == 4, detail))
}

fn absent_is_empty(error: io::Error) -> io::Result<String> {
    if error.kind() == io::ErrorKind::NotFound { Ok(String::new()) } else { Err(error) }
}

fn absent_is_done(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}
