//! The line editor: prompts, history, and what Ctrl-C, Ctrl-D and signals do while it waits.

use super::input::{Draft, Typed};
use crate::base::exit::Exit;
use crate::chain::abort::StopCause;
use crate::cli::CommandError;
use crate::cli::screen::Screen;
use crate::run::signals::StopSignals;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};
use std::io::{ErrorKind, IsTerminal as _};
use std::path::{Path, PathBuf};

/// Messages that are kept in the history file.
const HISTORY_MAX: usize = 1_000;
/// Told at the first Ctrl-C.
const AGAIN: &str = "Ctrl-C again, or /quit, leaves";
/// Ends the mode in which a paste is marked. Source: xterm control sequences.
const END_BRACKETED_PASTE: &str = "\u{1b}[?2004l\n";

/// What came from the terminal.
#[derive(Debug)]
pub(super) enum Heard {
    Typed(Typed),
    /// The input has ended, or the person wants to leave.
    Left,
    /// A signal asks the program to end.
    Stopped(StopCause),
}

/// What came of waiting for one line.
enum Read {
    Line { editor: Box<Terminal>, line: rustyline::Result<String> },
    Stopped(Heard),
}

pub(super) struct Terminal {
    editor: Editor<(), FileHistory>,
    history: PathBuf,
}

impl Terminal {
    /// An editor with the history of `file`; one that cannot be read is empty.
    pub(super) fn open(file: &Path) -> rustyline::Result<Self> {
        let config = Config::builder().max_history_size(HISTORY_MAX)?.auto_add_history(false);
        let mut editor = Editor::with_config(config.build())?;
        let loaded = editor.load_history(file);
        drop(loaded);
        Ok(Self { editor, history: file.to_owned() })
    }

    /// Waits for a whole message or a command. The editor blocks a thread of its own, so that signals
    /// are heard meanwhile; if one ends the conversation, the editor is that thread's.
    pub(super) async fn listen(
        mut self,
        screen: Screen,
    ) -> Result<(Option<Self>, Heard), CommandError> {
        let mut signals = StopSignals::new().map_err(fault)?;
        let mut interrupted = false;
        let mut draft = Draft::default();
        loop {
            let prompt = if draft.is_empty() { "> " } else { "| " };
            let (back, line) = match self.read(prompt, screen, &mut signals, interrupted).await? {
                Read::Line { editor, line } => (*editor, line),
                Read::Stopped(heard) => return Ok((None, heard)),
            };
            self = back;
            match line {
                Ok(line) => {
                    interrupted = false;
                    if let Some(typed) = draft.feed(&line) {
                        self.remember(&typed);
                        return Ok((Some(self), Heard::Typed(typed)));
                    }
                }
                Err(ReadlineError::Interrupted) if interrupted => {
                    return Ok((Some(self), Heard::Left));
                }
                Err(ReadlineError::Interrupted) => {
                    interrupted = true;
                    draft = Draft::default();
                    screen.err(AGAIN);
                }
                Err(ReadlineError::Eof) if draft.is_empty() => {
                    return Ok((Some(self), Heard::Left));
                }
                Err(ReadlineError::Eof) => {
                    return Ok((Some(self), Heard::Typed(Typed::Message(draft.take()))));
                }
                Err(ReadlineError::Io(error)) if error.kind() == ErrorKind::InvalidData => {
                    screen.err("that line is not UTF-8 text and was dropped");
                }
                Err(error) if is_gone(&error) => {
                    return Ok((None, Heard::Stopped(StopCause::Termination)));
                }
                Err(error) => return Err(CommandError::new(Exit::Fault, error)),
            }
        }
    }

    /// One line, unless a signal comes first. The editor takes Ctrl-C as a key; where it cannot, as on
    /// a terminal that it does not know, it comes as a signal.
    async fn read(
        mut self,
        prompt: &'static str,
        screen: Screen,
        signals: &mut StopSignals,
        mut interrupted: bool,
    ) -> Result<Read, CommandError> {
        let before = tcgetattr(std::io::stdin()).ok();
        let mut reading = tokio::task::spawn_blocking(move || {
            let line = self.editor.readline(prompt);
            (self, line)
        });
        loop {
            let cause = tokio::select! {
                read = &mut reading => {
                    let (editor, line) = read.map_err(|error| CommandError::new(Exit::Fault, error))?;
                    return Ok(Read::Line { editor: Box::new(editor), line });
                }
                cause = signals.next() => cause,
            };
            let asks_again = cause == StopCause::Interrupt && std::io::stdin().is_terminal();
            if asks_again && !interrupted {
                interrupted = true;
                screen.err(AGAIN);
                continue;
            }
            restore(before.as_ref(), screen);
            let heard = if asks_again { Heard::Left } else { Heard::Stopped(cause) };
            return Ok(Read::Stopped(heard));
        }
    }

    /// A history that cannot be written is no reason to stop a conversation.
    fn remember(&mut self, typed: &Typed) {
        let Typed::Message(message) = typed else { return };
        let added = self.editor.add_history_entry(message.as_str());
        if added.unwrap_or(false) {
            drop(self.editor.append_history(&self.history));
        }
    }
}

/// The editor's thread may have left the terminal in modes of its own.
fn restore(before: Option<&Termios>, screen: Screen) {
    let Some(before) = before else { return };
    tcsetattr(std::io::stdin(), OptionalActions::Now, before).ok();
    if screen.erases() {
        screen.piece(END_BRACKETED_PASTE);
    }
}

/// Whether the terminal was closed; SIGHUP says so too, and either may come first.
fn is_gone(error: &ReadlineError) -> bool {
    let code = if let ReadlineError::Io(error) = error {
        error.raw_os_error()
    } else if let ReadlineError::Errno(errno) = error {
        std::io::Error::from(*errno).raw_os_error()
    } else {
        None
    };
    code == Some(rustix::io::Errno::IO.raw_os_error())
}

fn fault(error: std::io::Error) -> CommandError {
    CommandError::new(Exit::Fault, error)
}
