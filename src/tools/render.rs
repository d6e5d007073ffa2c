//! What the model sees of a result: bounded text in a stable wording.
//!
//! First what was asked for, as it is; then, each on a line of its own in square brackets, what the
//! model must know about it. No result is empty.

use crate::base::limits::{RESULT_NOTES_BYTES, TOOL_RESULT_BYTES_MAX};
use crate::base::text::{head_and_tail, prefix, suffix};
use crate::tools::worker::reply::{
    Coverage, Done, Edited, Found, JobReply, Matched, Page, Written,
};
use crate::tools::worker::shown::{self, decode, incomplete_end, incomplete_start};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// What is shown for a result that holds nothing.
pub const NO_OUTPUT: &str = "(no output)";

/// The text of a file job's reply, at most `TOOL_RESULT_BYTES_MAX` bytes.
#[must_use]
pub fn job(reply: &JobReply) -> String {
    let text = match reply {
        JobReply::Done(Done::Read(read)) => page(read),
        JobReply::Done(Done::Written(done)) => written(done),
        JobReply::Done(Done::Edited(done)) => edited(done),
        JobReply::Done(Done::Found(done)) => found(done),
        JobReply::Done(Done::Matched(done)) => matched(done),
        JobReply::Failed(error) => format!("error: {error}"),
    };
    // Pages and lists leave room for their notes; what is cut here is an overlong error.
    head_and_tail(&text, TOOL_RESULT_BYTES_MAX - 100)
}

/// A body with notes below it.
struct Text(String);

impl Text {
    fn note(&mut self, note: std::fmt::Arguments<'_>) {
        if !self.0.is_empty() && !self.0.ends_with('\n') {
            self.0.push('\n');
        }
        // Writing to a string cannot fail.
        let _infallible = write!(self.0, "[{note}]");
    }
}

fn page(page: &Page) -> String {
    let Page { first_line: first, lines, .. } = *page;
    if page.file_bytes == 0 && lines == 0 {
        return "(the file is empty)".to_owned();
    }
    let mut text = Text(page.text.clone());
    if let Some(bytes) = page.cut_line_bytes {
        text.note(format_args!(
            "line {first} is too long: its first {} of at least {bytes} bytes are shown; use bash \
             for the rest, for example `cut -c`",
            page.text.len()
        ));
    }
    if page.byte_order_mark && first == 1 {
        text.note(format_args!("starts with a UTF-8 byte order mark, not shown"));
    }
    if page.crlf {
        text.note(format_args!("lines end with CR LF"));
    }
    if page.replaced_bytes > 0 {
        text.note(format_args!(
            "{} bytes are not UTF-8 text and shown as \u{fffd}; edit keeps them",
            page.replaced_bytes
        ));
    }
    if let Some(next) = page.next_offset {
        let last = (first + lines).saturating_sub(1);
        match page.total_lines {
            Some(total) => text.note(format_args!(
                "lines {first}-{last} of {total}; the next page has offset {next}"
            )),
            None => text.note(format_args!(
                "lines {first}-{last} of a file of {} bytes; the next page has offset {next}",
                page.file_bytes
            )),
        }
    } else if first > 1 {
        text.note(format_args!("lines {first} to the end, {}", page.total_lines.unwrap_or(0)));
    }
    text.0
}

fn written(done: &Written) -> String {
    let path = shown::path(&done.path);
    match done.replaced_bytes {
        Some(old) => format!("replaced `{path}`: {} bytes now, {old} before", done.bytes),
        None => format!("created `{path}`: {} bytes", done.bytes),
    }
}

fn edited(done: &Edited) -> String {
    let lines = done.lines.iter().take(50).map(u64::to_string).collect::<Vec<_>>().join(", ");
    let more = if done.lines.len() > 50 { ", …" } else { "" };
    let (count, plural) = (done.lines.len(), if done.lines.len() == 1 { "" } else { "s" });
    let crlf = if done.crlf_adapted { "; line ends kept as CR LF" } else { "" };
    format!(
        "edited `{}`: {count} replacement{plural} at line{plural} {lines}{more}; {} bytes now, {} \
         before{crlf}",
        shown::path(&done.file.path),
        done.file.bytes,
        done.file.replaced_bytes.unwrap_or(0)
    )
}

fn found(done: &Found) -> String {
    let mut text = Text(done.names.join("\n"));
    if done.names.is_empty() {
        text.0.push_str("(nothing found)");
    }
    coverage(&mut text, &done.coverage, "names");
    text.0
}

fn matched(done: &Matched) -> String {
    let mut text = Text(String::new());
    for line in &done.lines {
        let cut = match line.omitted_bytes {
            0 => String::new(),
            bytes => format!(" [{bytes} bytes of the line omitted]"),
        };
        let separator = if text.0.is_empty() { "" } else { "\n" };
        let _infallible =
            write!(text.0, "{separator}{}:{}:{}{cut}", line.file, line.line, line.text);
    }
    if done.lines.is_empty() {
        text.0.push_str("(no matches)");
    }
    if done.binary > 0 {
        text.note(format_args!("{} binary files not searched", done.binary));
    }
    if done.long_lines > 0 {
        text.note(format_args!(
            "{} files not searched to the end: a line is too long",
            done.long_lines
        ));
    }
    coverage(&mut text, &done.coverage, "lines");
    text.0
}

fn coverage(text: &mut Text, coverage: &Coverage, what: &str) {
    let Coverage { omitted, protected, unreadable, too_deep, stopped } = coverage;
    if *omitted > 0 {
        let least = if stopped.is_some() { "at least " } else { "" };
        text.note(format_args!("{least}{omitted} more {what} not shown; narrow the search"));
    }
    if let Some(stopped) = stopped {
        text.note(format_args!("not complete: the search reached {stopped}; narrow it"));
    }
    for (count, why) in [
        (protected, "names are protected and not shown"),
        (unreadable, "files or directories could not be opened"),
        (too_deep, "directories lie too deep and were not entered"),
    ] {
        if *count > 0 {
            text.note(format_args!("{count} {why}"));
        }
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It exited.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// Its time was up.
    TimedOut,
    /// It used more memory than it may.
    OutOfMemory,
    /// The run was cancelled.
    Cancelled,
}

/// What is known about a command that ended.
#[derive(Debug, Clone, Copy)]
pub struct Command<'a> {
    /// How it ended.
    pub end: End,
    /// The first bytes of its output.
    pub head: &'a [u8],
    /// The last bytes; they follow the head directly if the two together are the whole.
    pub tail: &'a [u8],
    /// Bytes of the whole output.
    pub total_bytes: u64,
    /// Where the whole output is kept, as the model may name it to read, and how many bytes of it.
    pub spill: Option<(&'a Path, u64)>,
    /// How long it ran.
    pub duration: Duration,
    /// The memory it was allowed.
    pub memory_bytes: Option<u64>,
}

/// The text of a command's result, at most `TOOL_RESULT_BYTES_MAX` bytes.
#[must_use]
pub fn command(command: &Command<'_>) -> String {
    let output = Output::of(command, TOOL_RESULT_BYTES_MAX - RESULT_NOTES_BYTES);
    let mut text = Text(output.text);
    if command.total_bytes == 0 {
        text.0.push_str(NO_OUTPUT);
    }
    if output.replaced > 0 {
        text.note(format_args!(
            "{} bytes are not UTF-8 text and shown as \u{fffd}",
            output.replaced
        ));
    }
    if let Some((path, kept)) = command.spill.filter(|_| output.omitted > 0) {
        let whole = if kept < command.total_bytes {
            format!("the first {kept} bytes of the output are in")
        } else {
            "the whole output is in".to_owned()
        };
        let path = shown::path(path);
        text.note(format_args!("{whole} `{path}`; page it with read, starting at offset 1"));
    }
    end_note(&mut text, command);
    text.0
}

fn end_note(text: &mut Text, command: &Command<'_>) {
    let seconds = command.duration.as_secs_f64();
    match command.end {
        End::Code(code) => text.note(format_args!("exit status {code}")),
        End::Signal(signal) => {
            text.note(format_args!("ended by signal {signal}{}", signal_name(signal)));
        }
        End::TimedOut => text.note(format_args!(
            "timed out after {seconds:.1} s and was ended with everything it started; raise \
             timeout_ms, or do less in one command"
        )),
        End::OutOfMemory => {
            let limit = command
                .memory_bytes
                .map(|bytes| format!(" of {} MiB", bytes / (1024 * 1024)))
                .unwrap_or_default();
            text.note(format_args!("ended: it ran out of its memory limit{limit}"));
        }
        End::Cancelled => text.note(format_args!("cancelled after {seconds:.1} s")),
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        3 => " (SIGQUIT)",
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        14 => " (SIGALRM)",
        15 => " (SIGTERM)",
        24 => " (SIGXCPU: its CPU time limit)",
        25 => " (SIGXFSZ: its file size limit)",
        31 => " (SIGSYS: a system call that is not allowed)",
        _other => "",
    }
}

/// Output as text, cut on character boundaries.
struct Output {
    text: String,
    replaced: u64,
    /// Bytes of the output that are not in the text.
    omitted: u64,
}

impl Output {
    fn of(command: &Command<'_>, bytes_max: usize) -> Self {
        let captured = (command.head.len() + command.tail.len()) as u64;
        if captured >= command.total_bytes {
            return Self::whole(&[command.head, command.tail].concat(), bytes_max);
        }
        let head = command.head;
        let head = head.get(..head.len() - incomplete_end(head)).unwrap_or_default();
        let tail = command.tail.get(incomplete_start(command.tail)..).unwrap_or_default();
        let missing = command.total_bytes - (head.len() + tail.len()) as u64;
        let (head, tail) = (decode(head), decode(tail));
        let replaced = head.replaced + tail.replaced;
        Self::joined((&head.text, &tail.text), missing, replaced, bytes_max)
    }

    fn whole(bytes: &[u8], bytes_max: usize) -> Self {
        let decoded = decode(bytes);
        if decoded.text.len() <= bytes_max {
            return Self { text: decoded.text, replaced: decoded.replaced, omitted: 0 };
        }
        let text = decoded.text.as_str();
        Self::joined((text, text), 0, decoded.replaced, bytes_max)
    }

    /// The start of one text and the end of another (or the same), with what is missing between.
    fn joined((head, tail): (&str, &str), missing: u64, replaced: u64, bytes_max: usize) -> Self {
        let is_one = std::ptr::eq(head, tail);
        let shown_head = prefix(head, bytes_max / 2);
        let shown_tail = suffix(tail, bytes_max / 2);
        let given = (shown_head.len() + shown_tail.len()) as u64;
        let all = if is_one { head.len() } else { head.len() + tail.len() } as u64;
        let omitted = missing + all.saturating_sub(given);
        let text = format!("{shown_head}\n[... {omitted} bytes omitted ...]\n{shown_tail}");
        Self { text, replaced, omitted }
    }
}
