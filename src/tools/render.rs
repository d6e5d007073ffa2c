//! What the model sees of a result: bounded text in a stable wording.
//!
//! First what was asked for, as it is; then, each on a line of its own in square brackets, what the
//! model must know about it. No result is empty.

use crate::base::limits::{RESULT_NOTES_BYTES, TOOL_RESULT_BYTES_MAX};
use crate::base::text::head_and_tail;
use crate::tools::worker::reply::{
    Coverage, Done, Edited, Found, JobReply, Matched, Page, Written,
};
use crate::tools::worker::shown::{self, Decoded, decode, incomplete_end, incomplete_start};
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
pub(super) struct Text(pub(super) String);

impl Text {
    pub(super) fn note(&mut self, note: std::fmt::Arguments<'_>) {
        if !self.0.is_empty() && !self.0.ends_with('\n') {
            self.0.push('\n');
        }
        // Writing to a string cannot fail.
        let _infallible = write!(self.0, "[{note}]");
    }

    /// Says that not all bytes could be shown.
    pub(super) fn note_replaced(&mut self, bytes: u64) {
        if bytes > 0 {
            self.note(format_args!("{bytes} bytes are not UTF-8 text and shown as \u{fffd}"));
        }
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
    page_position(&mut text, page);
    text.0
}

fn page_position(text: &mut Text, page: &Page) {
    let Page { first_line: first, lines, file_bytes, total_lines, .. } = *page;
    let last = (first + lines).saturating_sub(1);
    match (page.next_offset, total_lines) {
        (Some(next), Some(total)) => text
            .note(format_args!("lines {first}-{last} of {total}; the next page has offset {next}")),
        (Some(next), None) => text.note(format_args!(
            "lines {first}-{last} of a file of {file_bytes} bytes; the next page has offset {next}"
        )),
        (None, _) if first > 1 => text.note(format_args!("lines {first}-{last}, the last")),
        (None, _) => {}
    }
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
    coverage(&mut text, &done.coverage, ("names", done.names.is_empty()));
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
    coverage(&mut text, &done.coverage, ("lines", done.lines.is_empty()));
    text.0
}

fn coverage(text: &mut Text, coverage: &Coverage, (what, is_empty): (&str, bool)) {
    let Coverage { omitted, skipped, protected, unreadable, too_deep, stopped } = coverage;
    if is_empty && *skipped > 0 {
        text.note(format_args!(
            "{skipped} hidden or ignored names were left out; set `all` to include them"
        ));
    }
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
    /// It wrote more than it may.
    OutputCapped,
    /// It filled the private temporary directory.
    DiskFull,
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
    text.note_replaced(output.replaced);
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
    protected_repository_note(&mut text, command);
    // The notes have room of their own; what is cut here is an overlong path.
    head_and_tail(&text.0, TOOL_RESULT_BYTES_MAX - 100)
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
        End::OutputCapped => text.note(format_args!(
            "ended: it wrote more output than it may; send output to a file, or print less"
        )),
        End::DiskFull => text.note(format_args!(
            "ended: it filled the temporary directory; remove what is no longer needed in /tmp, or \
             write less"
        )),
        End::Cancelled => text.note(format_args!("cancelled after {seconds:.1} s")),
    }
}

/// Programs name the file and the kernel's reason, which are the same as on a broken disk; the model
/// must know that another place is the way, and not another spelling.
fn protected_repository_note(text: &mut Text, command: &Command<'_>) {
    const BUSY: &str = "Device or resource busy";
    const READ_ONLY: &str = "Read-only file system";
    let failed = !matches!(command.end, End::Code(0));
    let said = |part: &[u8]| {
        let part = String::from_utf8_lossy(part);
        let names_one = |line: &str| {
            (line.contains(".git/") && (line.contains(BUSY) || line.contains(READ_ONLY)))
                || (line.starts_with("mv: ") && line.contains(BUSY))
        };
        part.lines().any(names_one)
    };
    if failed && (said(command.head) || said(command.tail)) {
        text.note(format_args!(
            "hooks and configuration of a git repository cannot be changed, moved or removed in the \
             workspace once the call that made it has ended; make a repository that is to go away \
             again in $TMPDIR"
        ));
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
    /// Bytes of the text's origin that could not be shown.
    replaced: u64,
    /// Bytes of the output that are not in the text.
    omitted: u64,
}

impl Output {
    fn of(command: &Command<'_>, bytes_max: usize) -> Self {
        let Command { head, tail, total_bytes, .. } = *command;
        if (head.len() + tail.len()) as u64 >= total_bytes {
            let whole = [head, tail].concat();
            let decoded = decode(&whole);
            if decoded.text.len() <= bytes_max {
                return Self { text: decoded.text, replaced: decoded.replaced, omitted: 0 };
            }
            return Self::cut((&whole, &whole), total_bytes, bytes_max);
        }
        Self::cut((head, tail), total_bytes, bytes_max)
    }

    /// The start of one part of the output and the end of another, or the same.
    fn cut((head, tail): (&[u8], &[u8]), total_bytes: u64, bytes_max: usize) -> Self {
        let (head, head_bytes) = fitting(head, bytes_max / 2, start_of);
        let (tail, tail_bytes) = fitting(tail, bytes_max / 2, end_of);
        let omitted = total_bytes.saturating_sub((head_bytes + tail_bytes) as u64);
        let text = format!("{}\n[... {omitted} bytes omitted ...]\n{}", head.text, tail.text);
        Self { text, replaced: head.replaced + tail.replaced, omitted }
    }
}

/// As much of `bytes` as gives at most `room` bytes of text, and how many bytes that is. Each byte
/// that cannot be shown takes three.
fn fitting(bytes: &[u8], room: usize, part: fn(&[u8], usize) -> &[u8]) -> (Decoded, usize) {
    let all = part(bytes, room);
    let decoded = decode(all);
    if decoded.text.len() <= room {
        return (decoded, all.len());
    }
    let third = part(bytes, room / 3);
    (decode(third), third.len())
}

/// As much of an output's next bytes as a result holds, and how many bytes that is. A character whose end
/// is missing waits for it, unless the output `ends` with these bytes.
pub(super) fn start_of_output(bytes: &[u8], ends: bool) -> (Decoded, usize) {
    let room = TOOL_RESULT_BYTES_MAX - RESULT_NOTES_BYTES;
    let (decoded, used) = fitting(bytes, room, start_of);
    if ends && bytes.len() - used == incomplete_end(bytes) && bytes.len() < room / 3 {
        return (decode(bytes), bytes.len());
    }
    (decoded, used)
}

fn start_of(bytes: &[u8], length: usize) -> &[u8] {
    let part = bytes.get(..length).unwrap_or(bytes);
    part.get(..part.len() - incomplete_end(part)).unwrap_or_default()
}

fn end_of(bytes: &[u8], length: usize) -> &[u8] {
    let part = bytes.get(bytes.len().saturating_sub(length)..).unwrap_or_default();
    part.get(incomplete_start(part)..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(end: End, output: &[u8]) -> String {
        let total_bytes = output.len() as u64;
        command(&Command { end, head: output, total_bytes, ..silent() })
    }

    fn silent() -> Command<'static> {
        Command {
            end: End::Code(0),
            head: b"",
            tail: b"",
            total_bytes: 0,
            spill: None,
            duration: Duration::from_millis(1_540),
            memory_bytes: Some(512 * 1024 * 1024),
        }
    }

    #[test]
    fn every_end_is_told_apart() {
        for (end, expected) in [
            (End::Code(0), "[exit status 0]"),
            (End::Code(127), "[exit status 127]"),
            (End::Signal(9), "[ended by signal 9 (SIGKILL)]"),
            (End::Signal(34), "[ended by signal 34]"),
            (End::TimedOut, "[timed out after 1.5 s"),
            (End::OutOfMemory, "[ended: it ran out of its memory limit of 512 MiB]"),
            (End::Cancelled, "[cancelled after 1.5 s]"),
        ] {
            let text = ended(end, b"partial\n");
            assert!(text.starts_with("partial\n[") && text.contains(expected), "{text}");
            assert_eq!(text.lines().count(), 2);
        }
    }

    #[test]
    fn a_repository_that_cannot_go_away_is_explained_and_nothing_else_is() {
        let said = |code, output: &[u8]| ended(End::Code(code), output).contains("$TMPDIR");
        assert!(said(1, b"a\nrm: cannot remove 'x/.git/config': Device or resource busy\nb\n"));
        assert!(said(1, b"chmod: changing permissions of '.git/hooks/a': Read-only file system\n"));
        assert!(said(1, b"mv: cannot move 'x' to 'y': Device or resource busy\n"));
        assert!(!said(0, b"rm: cannot remove 'x/.git/config': Device or resource busy\n"));
        assert!(!said(1, b"umount: /mnt: Device or resource busy\nsee .git/config\n"));
    }

    #[test]
    fn silence_is_named() {
        assert_eq!(command(&silent()), "(no output)\n[exit status 0]");
        assert_eq!(ended(End::Code(0), b"\n"), "\n[exit status 0]", "a line end is output");
        assert_eq!(ended(End::Code(0), b"a"), "a\n[exit status 0]");
    }

    #[test]
    fn bad_bytes_are_counted() {
        let text = ended(End::Code(0), b"\xf0\n");
        assert_eq!(
            text,
            "\u{fffd}\n[1 bytes are not UTF-8 text and shown as \u{fffd}]\n[exit status 0]"
        );
    }

    #[test]
    fn head_and_tail_surround_an_exact_count() {
        let whole = "中".repeat(40_000);
        let bytes = whole.as_bytes();
        // Cut inside characters at both ends, as a capture by bytes does.
        let (head, tail) = (&bytes[..10_000], &bytes[110_001..]);
        let spill = Some((Path::new("/session/out"), 120_000));
        let text = command(&Command { head, tail, total_bytes: 120_000, spill, ..silent() });
        let expected = format!(
            "{0}\n[... 100002 bytes omitted ...]\n{0}\n[the whole output is in `/session/out`; page it \
             with read, starting at offset 1]\n[exit status 0]",
            "中".repeat(3_333)
        );
        assert_eq!(text, expected);
        let spill = Some((Path::new("/s"), 50_000));
        let text = command(&Command { head, tail, total_bytes: 120_000, spill, ..silent() });
        assert!(text.contains("[the first 50000 bytes of the output are in `/s`;"), "{text}");
    }

    #[test]
    fn output_larger_than_a_result_is_cut_and_counted() {
        for unit in ["#", "中", "🙂", "\0", "\u{1b}"] {
            let whole = unit.repeat(100_000);
            let (head, tail) = whole.as_bytes().split_at(whole.len() / 2);
            let total_bytes = whole.len() as u64;
            let text = command(&Command { head, tail, total_bytes, ..silent() });
            assert!(text.len() <= TOOL_RESULT_BYTES_MAX, "{} bytes", text.len());
            let omitted = text.split("[... ").nth(1).and_then(|rest| rest.split(' ').next());
            let omitted: usize = omitted.unwrap().parse().unwrap();
            let shown = if unit == "\0" { "\u{fffd}" } else { unit };
            assert_eq!(
                text.matches(shown).count() - usize::from(unit == "\0"),
                (whole.len() - omitted) / unit.len(),
                "{unit:?}"
            );
        }
        let exact = "x".repeat(TOOL_RESULT_BYTES_MAX - RESULT_NOTES_BYTES);
        assert_eq!(ended(End::Code(0), exact.as_bytes()), exact.clone() + "\n[exit status 0]");
        let text = ended(End::Code(0), (exact + "yy").as_bytes());
        assert!(text.contains("[... 2 bytes omitted ...]"));
    }

    #[test]
    fn head_and_tail_that_are_the_whole_are_joined() {
        let bytes = "a中b".as_bytes();
        let (head, tail) = bytes.split_at(2);
        let text = command(&Command { head, tail, total_bytes: 5, ..silent() });
        assert_eq!(text, "a中b\n[exit status 0]");
    }
}
