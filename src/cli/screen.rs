//! How text reaches the terminal: what is coloured, and that a closed pipe is no error.
//!
//! Results go to standard output, everything else to standard error. Colour is for terminals only,
//! unless asked for, and never when NO_COLOR is set. A terminal also has a line that says what is going
//! on and gives way to whatever comes next.

use super::args::Colour;
use anstyle::{AnsiColor, Style};
use std::io::{IsTerminal as _, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Goes to the start of the line and erases it. Source: ECMA-48, CR and EL.
const ERASE_LINE: &str = "\r\u{1b}[K";
/// Columns of a terminal that does not tell.
const COLUMNS: usize = 80;
/// The terminal's last line, if it is one that gives way. There is one terminal for all of the process.
static PASSING: Mutex<Option<String>> = Mutex::new(None);

/// What a piece of text means; the colour follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// Something went well.
    Good,
    /// Something was refused or failed.
    Bad,
    /// Something is weaker than it should be.
    Weak,
    /// Of less interest.
    Dim,
    /// A heading.
    Strong,
}

/// The two output streams with their settings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Screen {
    colour_out: bool,
    colour_err: bool,
    /// Whether standard error is a terminal that can erase a line.
    erases: bool,
}

impl Screen {
    /// Decides about colour once, from the flag, NO_COLOR and whether the streams are terminals.
    #[must_use]
    pub(super) fn new(colour: Colour, no_color: bool) -> Self {
        let decide = |is_terminal: bool| match colour {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => is_terminal && !no_color,
        };
        Self {
            colour_out: decide(std::io::stdout().is_terminal()),
            colour_err: decide(std::io::stderr().is_terminal()),
            erases: false,
        }
    }

    /// The same, on a terminal of this kind (`TERM`).
    #[must_use]
    pub(super) fn on(self, terminal: Option<&str>) -> Self {
        let knows = terminal.is_some_and(|kind| kind != "dumb");
        Self { erases: knows && std::io::stderr().is_terminal(), ..self }
    }

    /// Whether standard error is a terminal that takes control sequences.
    #[must_use]
    pub(super) const fn erases(self) -> bool {
        self.erases
    }

    /// Shows what is going on, until anything else is shown. Only a terminal has such a line; elsewhere
    /// what has happened is told, not what happens.
    pub(super) fn passing(self, text: &str) {
        if !self.erases {
            return;
        }
        let line = fitting(text, columns());
        if passing_line().as_deref() == Some(line) {
            return;
        }
        self.erase();
        let mut stream = std::io::stderr().lock();
        let written = write!(stream, "{}", self.paint(Tone::Dim, line));
        drop(written.and_then(|()| stream.flush()));
        *passing_line() = Some(line.to_owned());
    }

    fn erase(self) {
        if passing_line().take().is_some() {
            let mut stream = std::io::stderr().lock();
            let written = stream.write_all(ERASE_LINE.as_bytes()).and_then(|()| stream.flush());
            drop(written);
        }
    }

    /// Whether standard error is coloured.
    #[must_use]
    pub(super) const fn colours_err(self) -> bool {
        self.colour_err
    }

    /// Writes a result and a line feed. A reader that went away (`| head`) is no error of ours.
    pub(super) fn out(self, text: &str) {
        self.erase();
        let mut stream = std::io::stdout().lock();
        let written = writeln!(stream, "{text}").and_then(|()| stream.flush());
        drop(written);
    }

    /// Writes a piece of a result as it arrives, without a line feed.
    pub(super) fn piece(self, text: &str) {
        self.erase();
        let mut stream = std::io::stdout().lock();
        let written = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
        drop(written);
    }

    /// Writes progress, a question or an error, and a line feed.
    pub(super) fn err(self, text: &str) {
        self.erase();
        let mut stream = std::io::stderr().lock();
        let written = writeln!(stream, "{text}");
        drop(written);
    }

    /// `text` in the colour of `tone`, for standard error.
    #[must_use]
    pub(super) fn paint(self, tone: Tone, text: &str) -> String {
        paint(self.colour_err, tone, text)
    }

    /// `text` in the colour of `tone`, for standard output.
    #[must_use]
    pub(super) fn paint_out(self, tone: Tone, text: &str) -> String {
        paint(self.colour_out, tone, text)
    }
}

fn passing_line() -> MutexGuard<'static, Option<String>> {
    PASSING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(COLUMNS)
}

/// As much of `text` as surely fits into one line: a line that wraps could not be erased. What is not
/// ASCII may take two columns.
fn fitting(text: &str, columns: usize) -> &str {
    let most = columns.saturating_sub(1);
    let mut used = 0;
    let end = text.char_indices().find_map(|(at, character)| {
        used += if character.is_ascii() { 1 } else { 2 };
        (used > most).then_some(at)
    });
    text.get(..end.unwrap_or(text.len())).unwrap_or_default()
}

fn paint(coloured: bool, tone: Tone, text: &str) -> String {
    if !coloured {
        return text.to_owned();
    }
    let style = match tone {
        Tone::Good => AnsiColor::Green.on_default(),
        Tone::Bad => AnsiColor::Red.on_default().bold(),
        Tone::Weak => AnsiColor::Yellow.on_default(),
        Tone::Dim => Style::new().dimmed(),
        Tone::Strong => Style::new().bold(),
    };
    format!("{style}{text}{style:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_and_the_flag_are_honoured() {
        assert!(!Screen::new(Colour::Auto, true).colours_err());
        assert!(Screen::new(Colour::Always, true).colours_err());
        let never = Screen::new(Colour::Never, false);
        assert_eq!(never.paint(Tone::Bad, "x"), "x");
        assert_eq!(paint(true, Tone::Good, "x"), "\u{1b}[32mx\u{1b}[0m");
    }

    #[test]
    fn a_passing_line_never_wraps() {
        assert_eq!(fitting("bash true", 80), "bash true");
        assert_eq!(fitting("bash true", 5), "bash");
        assert_eq!(fitting("\u{4e2d}\u{4e2d}\u{4e2d}", 6), "\u{4e2d}\u{4e2d}");
        assert_eq!(fitting("bash", 0), "");
    }
}
