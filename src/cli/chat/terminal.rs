//! The line editor: prompts, history, and what Ctrl-C, Ctrl-D and SIGTERM do while it waits.

use super::input::{Draft, Typed};
use crate::base::exit::Exit;
use crate::cli::CommandError;
use crate::cli::screen::Screen;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};
use std::path::{Path, PathBuf};
use tokio::signal::unix::{SignalKind, signal};

/// Messages that are kept in the history file.
const HISTORY_MAX: usize = 1_000;

/// What came from the terminal.
#[derive(Debug)]
pub(super) enum Heard {
    Typed(Typed),
    /// The input has ended, or the person wants to leave.
    Left,
    /// SIGTERM.
    Terminated,
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

    /// Waits for a whole message or a command. The editor blocks a thread of its own, so that SIGTERM
    /// is heard meanwhile; after that the editor is that thread's.
    pub(super) async fn listen(
        mut self,
        screen: Screen,
    ) -> Result<(Option<Self>, Heard), CommandError> {
        let fault = |error: std::io::Error| CommandError::new(Exit::Fault, error);
        let mut terminate = signal(SignalKind::terminate()).map_err(fault)?;
        let mut interrupted = false;
        let mut draft = Draft::default();
        let before = tcgetattr(std::io::stdin()).ok();
        loop {
            let prompt = if draft.is_empty() { "> " } else { "| " };
            let mut reading = tokio::task::spawn_blocking(move || {
                let line = self.editor.readline(prompt);
                (self, line)
            });
            let read = tokio::select! {
                read = &mut reading => read,
                _ = terminate.recv() => {
                    restore(before.as_ref());
                    return Ok((None, Heard::Terminated));
                }
            };
            let (back, line) = read.map_err(|error| CommandError::new(Exit::Fault, error))?;
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
                    screen.err("Ctrl-C again, or /quit, leaves");
                }
                Err(ReadlineError::Eof) if draft.is_empty() => {
                    return Ok((Some(self), Heard::Left));
                }
                Err(ReadlineError::Eof) => {
                    return Ok((Some(self), Heard::Typed(Typed::Message(draft.take()))));
                }
                Err(error) => return Err(CommandError::new(Exit::Fault, error)),
            }
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

/// The editor's thread may have left the terminal in raw mode.
fn restore(before: Option<&Termios>) {
    if let Some(before) = before {
        tcsetattr(std::io::stdin(), OptionalActions::Now, before).ok();
    }
}
