//! The last stage: asking a person.
//!
//! What is shown is a security property, so nothing of the call reaches the terminal unescaped and
//! every program and resolved path is listed. A run that nobody watches never waits: there the answer
//! is no. A remembered answer covers exactly the call that was shown, as long as the program runs.

use crate::audit::record::Reason;
use crate::base::digest::Digest;
use crate::base::limits::PERMISSION_TIME_MAX;
use crate::base::text::{Untrusted, head_and_tail};
use crate::chain::approvals::Approvals;
use crate::chain::verdict::{Verdict, place, reason};
use crate::sandbox::Cancel;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Timespec;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

/// Bytes of a command or argument that are shown whole; more is shown with its middle left out and
/// must be approved by reading the audit record or not at all.
const SHOWN_BYTES_MAX: usize = 4_000;

/// The code of a no that a person said.
pub const USER_DENIED: &str = "user-denied";

/// Time between two looks at the abort signal while waiting for an answer.
const WAIT_SLICE: Duration = Duration::from_millis(200);

/// Everything that the person decides on.
#[derive(Debug, Clone)]
pub struct Question {
    /// The tool.
    pub tool: &'static str,
    /// The arguments, as the model wrote them.
    pub arguments: Untrusted,
    /// Programs that would run, wrappers included.
    pub programs: Vec<Untrusted>,
    /// Paths after links were followed, each with what is done to it.
    pub paths: Vec<Untrusted>,
    /// Why a person is asked.
    pub reasons: Vec<Reason>,
    /// The hash of tool, arguments, workspace and role: what a remembered answer is bound to.
    pub identity: Digest,
    /// A file that the call runs and that tools may change. What is shown does not say what it will
    /// hold the next time, so that a yes covers this call alone.
    pub changeable: Option<Untrusted>,
}

/// What the person said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Yes, this once.
    Once,
    /// Yes, and for exactly this call again.
    Remember,
    /// No.
    No,
    /// Nothing, until the time was up.
    TimedOut,
    /// There is no terminal to ask on.
    Unavailable,
    /// The run was stopped while the question stood.
    Aborted,
}

/// How far a yes reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granted {
    /// This call.
    Once,
    /// This exact call until the program ends.
    Lasting,
    /// This call, since the same one was approved until the program ends.
    Remembered,
}

/// Who is asked.
#[derive(Debug)]
pub enum Prompter {
    /// Nobody.
    Headless,
    /// The person at the controlling terminal.
    Terminal,
    /// Answers given beforehand; when they run out, nobody.
    Scripted(VecDeque<Answer>),
}

/// The stage: who is asked, and what was said so far.
#[derive(Debug)]
pub struct Permission {
    prompter: Prompter,
    approvals: Approvals,
    time_max: Duration,
    may_remember: bool,
}

impl Permission {
    /// A stage that asks `prompter` and waits at most `time_max` (default
    /// [`PERMISSION_TIME_MAX`]).
    #[must_use]
    pub fn new(prompter: Prompter, time_max: Option<Duration>) -> Self {
        let time_max = time_max.unwrap_or(PERMISSION_TIME_MAX);
        Self { prompter, approvals: Approvals::default(), time_max, may_remember: true }
    }

    /// The same stage, which knows what was approved before and adds to it.
    #[must_use]
    pub fn with(self, approvals: Approvals) -> Self {
        Self { approvals, ..self }
    }

    /// The same stage, where every call is asked about anew.
    #[must_use]
    pub fn that_forgets(self) -> Self {
        Self { may_remember: false, ..self }
    }

    /// Whether nobody can be asked.
    #[must_use]
    pub const fn is_headless(&self) -> bool {
        matches!(self.prompter, Prompter::Headless)
    }

    /// Asks, and turns the answer into a verdict and the words for the `grant` record. Blocks the
    /// calling thread for at most the time limit.
    pub fn ask(&mut self, question: &Question, abort: &Cancel) -> (Verdict, Option<Granted>) {
        if self.may_remember && self.approvals.covers(&question.identity) {
            let words = "the same call was approved before, until the program ends";
            return (pass(words), Some(Granted::Remembered));
        }
        let answer = match &mut self.prompter {
            Prompter::Headless => Answer::Unavailable,
            Prompter::Terminal => ask_on_terminal(question, abort, self.time_max),
            Prompter::Scripted(answers) => answers.pop_front().unwrap_or(Answer::Unavailable),
        };
        self.settle(question, answer)
    }

    fn settle(&mut self, question: &Question, answer: Answer) -> (Verdict, Option<Granted>) {
        let deny = |code: &str, sentence: &str| (refusal(question, code, sentence), None);
        match answer {
            Answer::Once => (pass("the user said yes, once"), Some(Granted::Once)),
            Answer::Remember if !self.may_remember || question.changeable.is_some() => {
                (pass("the user said yes, once"), Some(Granted::Once))
            }
            Answer::Remember => {
                self.approvals.remember(question.identity);
                let words = "the user said yes to this exact call until the program ends";
                (pass(words), Some(Granted::Lasting))
            }
            Answer::No => deny(USER_DENIED, "the user said no"),
            Answer::TimedOut => deny(
                "permission-timeout",
                &format!("nobody answered within {} seconds", self.time_max.as_secs()),
            ),
            Answer::Unavailable => {
                deny("ask-headless", "this call needs a person's approval and nobody can be asked")
            }
            Answer::Aborted => deny("aborted", "the run was stopped"),
        }
    }
}

fn pass(words: &str) -> Verdict {
    Verdict::Pass(vec![reason("user-approved", words)])
}

/// The refusal carries the rule that wanted the question, so that the denial can be traced to it.
fn refusal(question: &Question, code: &str, sentence: &str) -> Verdict {
    let own = reason(code, sentence);
    let Some(first) = question.reasons.first() else { return Verdict::deny(own) };
    let sentence = Untrusted::new(format!("{sentence}: {}", first.sentence.raw()));
    let decisive = Reason { code: own.code, sentence, ..first.clone() };
    let others = question.reasons.iter().skip(1).cloned();
    Verdict::Deny(std::iter::once(decisive).chain(others).collect())
}

/// The question as it is shown; no byte of the call is in it unescaped.
#[must_use]
pub fn shown(question: &Question) -> String {
    let mut text = format!("\nstoplog: the agent wants to use `{}`\n", question.tool);
    let arguments = head_and_tail(&question.arguments.to_string(), SHOWN_BYTES_MAX);
    text.push_str(&format!("  arguments  {arguments}\n"));
    for (title, values) in [("runs", &question.programs), ("touches", &question.paths)] {
        for value in values {
            text.push_str(&format!("  {title:<9}  {value}\n"));
        }
    }
    for reason in &question.reasons {
        let rule = match (&reason.rule, place(reason)) {
            (Some(rule), Some(place)) => format!(" [{rule}, {place}]"),
            (Some(rule), None) => format!(" [{rule}]"),
            (None, _) => String::new(),
        };
        text.push_str(&format!("  asked as   {}{rule}\n", reason.sentence));
    }
    match &question.changeable {
        None => text.push_str("Allow? [y] once  [a] this exact call until stoplog ends  [N] no: "),
        Some(file) => {
            text.push_str(&format!("  each time  tools may change {file} after this answer\n"));
            text.push_str("Allow? [y] once  [N] no: ");
        }
    }
    text
}

fn ask_on_terminal(question: &Question, abort: &Cancel, time_max: Duration) -> Answer {
    let opened = File::options().read(true).write(true).open("/dev/tty");
    let Ok(mut terminal) = opened else { return Answer::Unavailable };
    // What was typed before the question stood is no answer to it.
    let flushed = rustix::termios::tcflush(&terminal, rustix::termios::QueueSelector::IFlush);
    if flushed.is_err() || terminal.write_all(shown(question).as_bytes()).is_err() {
        return Answer::Unavailable;
    }
    match read_line(&mut terminal, abort, time_max) {
        Ok(line) => match line.trim() {
            "y" | "Y" | "yes" => Answer::Once,
            "a" | "A" => Answer::Remember,
            _ => Answer::No,
        },
        Err(answer) => answer,
    }
}

/// One line from the terminal, at most 64 bytes; a longer one is no answer.
fn read_line(terminal: &mut File, abort: &Cancel, time_max: Duration) -> Result<String, Answer> {
    let end = Instant::now() + time_max;
    let mut line = Vec::new();
    loop {
        if abort.is_cancelled() {
            return Err(Answer::Aborted);
        }
        if Instant::now() >= end {
            return Err(Answer::TimedOut);
        }
        if !is_readable(terminal)? {
            continue;
        }
        let mut buffer = [0_u8; 64];
        let count = terminal.read(&mut buffer).map_err(|_error| Answer::Unavailable)?;
        line.extend_from_slice(buffer.get(..count).unwrap_or_default());
        if count == 0 || line.contains(&b'\n') || line.len() > 64 {
            return Ok(String::from_utf8_lossy(&line).into_owned());
        }
    }
}

fn is_readable(terminal: &File) -> Result<bool, Answer> {
    let slice = Timespec::try_from(WAIT_SLICE).map_err(|_error| Answer::Unavailable)?;
    let mut polled = [PollFd::new(terminal, PollFlags::IN)];
    match poll(&mut polled, Some(&slice)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(_) => Err(Answer::Unavailable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(arguments: &str) -> Question {
        Question {
            tool: "bash",
            arguments: Untrusted::new(arguments),
            programs: vec![Untrusted::new("rm")],
            paths: vec![Untrusted::new("write /w/x\u{202e}y")],
            reasons: vec![Reason {
                rule: Some(Untrusted::new("ask-rm")),
                ..reason("command-ask", "removes files")
            }],
            identity: Digest::of(arguments.as_bytes()),
            changeable: None,
        }
    }

    #[test]
    fn nothing_of_the_call_is_shown_unescaped() {
        let text = shown(&question("ls # \u{1b}[2K\r\nrm -rf x \u{200b}"));
        for hidden in ['\u{1b}', '\r', '\u{200b}', '\u{202e}'] {
            assert!(!text.contains(hidden), "{hidden:?}");
        }
        assert!(text.contains(r"ls # \u{1b}[2K\r\nrm -rf x \u{200b}"), "{text}");
        assert!(text.contains("runs       rm") && text.contains("ask-rm"));
    }

    #[test]
    fn nobody_to_ask_is_a_no_that_names_the_rule() {
        let mut permission = Permission::new(Prompter::Headless, None);
        let (verdict, _) = permission.ask(&question("x"), &Cancel::new());
        let Verdict::Deny(reasons) = verdict else { panic!("denied") };
        assert_eq!(reasons[0].code.raw(), "ask-headless");
        assert_eq!(reasons[0].rule, Some(Untrusted::new("ask-rm")));
    }

    #[test]
    fn a_stage_that_forgets_asks_again() {
        let answers = VecDeque::from([Answer::Remember]);
        let mut permission = Permission::new(Prompter::Scripted(answers), None).that_forgets();
        let abort = Cancel::new();
        assert_eq!(permission.ask(&question("x"), &abort).1, Some(Granted::Once));
        assert_eq!(permission.ask(&question("x"), &abort).1, None);
    }

    #[test]
    fn a_call_that_runs_a_file_which_tools_may_change_is_not_remembered() {
        let answers = VecDeque::from([Answer::Remember]);
        let mut permission = Permission::new(Prompter::Scripted(answers), None);
        let file = Some(Untrusted::new("/w/run\u{1b}.sh"));
        let question = Question { changeable: file, ..question("sh run.sh") };
        assert_eq!(permission.ask(&question, &Cancel::new()).1, Some(Granted::Once));
        assert_eq!(permission.ask(&question, &Cancel::new()).1, None);
        let text = shown(&question);
        assert!(text.contains(r"/w/run\u{1b}.sh") && !text.contains("[a]"), "{text}");
    }

    #[test]
    fn a_yes_until_the_program_ends_reaches_the_next_run_unless_the_policy_forgets() {
        let (approvals, abort) = (Approvals::default(), Cancel::new());
        let answers = VecDeque::from([Answer::Remember]);
        let mut first = Permission::new(Prompter::Scripted(answers), None).with(approvals.clone());
        assert_eq!(first.ask(&question("x"), &abort).1, Some(Granted::Lasting));
        let mut next = Permission::new(Prompter::Headless, None).with(approvals.clone());
        assert_eq!(next.ask(&question("x"), &abort).1, Some(Granted::Remembered));
        assert_eq!(next.ask(&question("y"), &abort).1, None);
        let mut strict = Permission::new(Prompter::Headless, None).with(approvals).that_forgets();
        assert_eq!(strict.ask(&question("x"), &abort).1, None);
    }

    #[test]
    fn a_remembered_answer_covers_that_call_only() {
        let answers = VecDeque::from([Answer::Remember]);
        let mut permission = Permission::new(Prompter::Scripted(answers), None);
        let abort = Cancel::new();
        let mut granted = |text: &str| permission.ask(&question(text), &abort).1;
        assert_eq!(granted("x"), Some(Granted::Lasting));
        assert_eq!(granted("x"), Some(Granted::Remembered));
        assert_eq!(granted("x "), None);
    }
}
