//! `chat`: a conversation on a terminal, all turns in one session. Each turn is a run like any other,
//! under the same policy, with the same records; this file reads what the person types and says what
//! became of it.
//!
//! Ctrl-C stops the turn, a second one ends the program; at the prompt it takes back what was typed,
//! a second one leaves.

mod input;
mod terminal;

use super::args::{ChatArgs, Output};
use super::live::{self, Answers, Opening};
use super::screen::{Screen, Tone};
use super::{CommandError, Context, Outcome, run as run_command};
use crate::agent::events::{FinishReason, RunResult};
use crate::base::exit::Exit;
use crate::base::text::{escape, escape_keeping_lines};
use crate::run::memory::Memory;
use crate::run::setup::state_directory;
use crate::run::signals::exit_of;
use crate::run::{self, Job, RunConfig, RunError};
use input::{Command, Typed};
use terminal::{Heard, Terminal};

const HELP: &str = "\
/help      this list
/policy    the policy of this session, and how to ask it
/session   the session's name, what it used, and how to read its log
/quit      leave (also Ctrl-D, or Ctrl-C twice)
A line that ends in \\ goes on in the next one; ``` on a line of its own begins and ends a longer text.
Ctrl-C stops the agent's turn; twice ends the program. `//` begins a message that starts with `/`.";

/// `stoplog chat`
pub(super) fn chat(context: &Context, args: ChatArgs) -> Outcome {
    let ChatArgs { agent, resume } = args;
    if agent.behaviour.output != Output::Text {
        let words = "`chat` is for people and has no --output; scripts use `run`";
        return Err(CommandError::new(Exit::Usage, words));
    }
    let mut config = run_command::config(context, agent)?;
    config.shows_pieces = true;
    // A session that is gone on with names its own model, unless another one is given.
    if resume.is_none() || config.model.name.is_some() {
        let connected = run::model::connect(&config.model, &config.environment)?;
        config.model.connected = Some(connected);
    }
    let state = state_directory(config.state_directory.as_deref(), &config.environment)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(RunError::from)?;
    let terminal = Terminal::open(&state.join("chat-history"));
    let terminal = terminal.map_err(|error| CommandError::new(Exit::Fault, error))?;
    let mut chat = Chat {
        screen: context.screen,
        config,
        session: resume,
        memory: Memory::default(),
        turns: 0,
        tokens: 0,
        denied: 0,
    };
    context.screen.err(&context.screen.paint(Tone::Dim, "/help lists the commands"));
    let outcome = runtime.block_on(chat.talk(terminal));
    // A thread that still waits for the terminal must not keep the process.
    runtime.shutdown_background();
    outcome
}

struct Chat {
    screen: Screen,
    config: RunConfig,
    session: Option<String>,
    memory: Memory,
    turns: u32,
    tokens: u64,
    denied: usize,
}

impl Chat {
    async fn talk(&mut self, mut terminal: Terminal) -> Outcome {
        loop {
            let (back, heard) = terminal.listen(self.screen).await?;
            let ended = match heard {
                Heard::Typed(Typed::Message(message)) => self.turn(message).await?,
                Heard::Typed(Typed::Command(Command::Quit)) | Heard::Left => Some(Exit::Done),
                Heard::Typed(Typed::Command(command)) => self.obey(&command)?,
                Heard::Stopped(cause) => Some(exit_of(cause)),
            };
            match (ended, back) {
                (None, Some(back)) => terminal = back,
                (Some(exit), _) => {
                    self.say_goodbye();
                    return Ok(exit);
                }
                (None, None) => return Ok(Exit::Terminated),
            }
        }
    }

    /// One turn of the agent. What went wrong in it is told and does not end the conversation, unless
    /// there is none yet or the records cannot be written.
    async fn turn(&mut self, task: String) -> Result<Option<Exit>, CommandError> {
        let job = match &self.session {
            None => Job::New { task },
            Some(session) => Job::Resume { session: session.clone(), task: Some(task) },
        };
        let opening = if self.turns == 0 { Opening::Shown } else { Opening::Known };
        let listener = live::listener(self.screen, Answers::Shown, opening);
        match run::run_once(&self.config, job, &self.memory, listener).await {
            Ok(result) => Ok(self.settle(&result)),
            Err(error) if self.turns == 0 => Err(error.into()),
            Err(error) => {
                self.tell_error(&error.to_string());
                Ok(None)
            }
        }
    }

    fn settle(&mut self, result: &RunResult) -> Option<Exit> {
        self.session = Some(result.session.to_string());
        self.turns += 1;
        let tokens = result.usage.input.saturating_add(result.usage.output);
        self.tokens = self.tokens.saturating_add(tokens);
        self.denied += result.denials.len();
        if let Some(error) = &result.error {
            self.tell_error(error);
        }
        match result.finish_reason {
            FinishReason::RecordFailure => Some(Exit::Record),
            FinishReason::Interrupted => {
                self.screen.err(&self.screen.paint(Tone::Weak, "stopped"));
                (result.exit_code == Exit::Terminated.code()).then_some(Exit::Terminated)
            }
            FinishReason::Stop
            | FinishReason::MaxIterations
            | FinishReason::Error
            | FinishReason::Truncated
            | FinishReason::Empty
            | FinishReason::Budget
            | FinishReason::Loop
            | FinishReason::SandboxFailure
            | FinishReason::HookDenied => None,
        }
    }

    fn tell_error(&self, error: &str) {
        let label = self.screen.paint(Tone::Bad, "error:");
        self.screen.err(&format!("{label} {}", escape_keeping_lines(error)));
    }

    fn obey(&self, command: &Command) -> Result<Option<Exit>, CommandError> {
        match command {
            Command::Help => self.screen.err(HELP),
            Command::Policy => self.tell_policy()?,
            Command::Session => self.tell_session(),
            Command::Unknown(word) => {
                let word = escape(word);
                self.screen.err(&format!("unknown command `{word}`; /help lists the commands"));
            }
            Command::Quit => return Ok(Some(Exit::Done)),
        }
        Ok(None)
    }

    fn tell_policy(&self) -> Result<(), CommandError> {
        let grounds = run::grounds(&self.config, None)?;
        let set = grounds.policy.set();
        self.screen.err(&format!("policy {}", set.digest().short()));
        for file in set.files() {
            self.screen.err(&format!("  {} ({})", escape(&file.name), file.layer.as_str()));
        }
        let workspace = escape(&grounds.workspace.to_string_lossy());
        self.screen.err(&format!("workspace {workspace}"));
        self.screen.err("`stoplog policy explain 'COMMAND'` says what would be decided and why");
        Ok(())
    }

    fn tell_session(&self) {
        let Some(session) = &self.session else {
            self.screen.err("no session yet: it begins with the first message");
            return;
        };
        let Self { turns, tokens, denied, .. } = self;
        let session = escape(session);
        self.screen.err(&format!(
            "session {session}: {turns} turns, {tokens} tokens, {denied} calls denied\n\
             stoplog audit log {session}    what was decided\n\
             stoplog session show {session} what was said"
        ));
    }

    fn say_goodbye(&self) {
        if let Some(session) = &self.session {
            let line = format!("go on later: stoplog chat --resume {}", escape(session));
            self.screen.err(&self.screen.paint(Tone::Dim, &line));
        }
    }
}
