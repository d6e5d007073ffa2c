//! How text reaches the terminal: what is coloured, and that a closed pipe is no error.
//!
//! Results go to standard output, everything else to standard error. Colour is for terminals only,
//! unless asked for, and never when NO_COLOR is set.

use super::args::Colour;
use anstyle::{AnsiColor, Style};
use std::io::{IsTerminal as _, Write};

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
        }
    }

    /// Whether standard error is coloured.
    #[must_use]
    pub(super) const fn colours_err(self) -> bool {
        self.colour_err
    }

    /// Writes a result and a line feed. A reader that went away (`| head`) is no error of ours.
    pub(super) fn out(self, text: &str) {
        let mut stream = std::io::stdout().lock();
        let written = writeln!(stream, "{text}").and_then(|()| stream.flush());
        drop(written);
    }

    /// Writes a piece of a result as it arrives, without a line feed.
    pub(super) fn piece(self, text: &str) {
        let mut stream = std::io::stdout().lock();
        let written = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
        drop(written);
    }

    /// Writes progress, a question or an error, and a line feed.
    pub(super) fn err(self, text: &str) {
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
}
