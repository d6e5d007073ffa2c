//! The command line: arguments, output, exit codes. One file a command; none of them decides
//! anything about a call.

pub mod args;
mod audit;
mod chat;
mod completion;
mod demo;
mod diff;
mod doctor;
mod exec;
mod live;
mod models;
mod policy;
mod progress;
mod run;
mod screen;
mod session;

use crate::base::exit::Exit;
use crate::run::RunError;
use crate::run::environment::Environment;
use args::{Cli, Command};
use clap::CommandFactory as _;
use screen::{Screen, Tone};
use std::path::PathBuf;
use std::process::ExitCode;

/// What every command is given.
#[derive(Debug)]
struct Context {
    environment: Environment,
    state_directory: Option<PathBuf>,
    screen: Screen,
}

/// Why a command ended without a result.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    #[error(transparent)]
    Run(#[from] RunError),
    /// A message and the exit code that goes with it.
    #[error("{message}")]
    Other { message: String, exit: Exit },
}

impl CommandError {
    fn new(exit: Exit, message: impl std::fmt::Display) -> Self {
        Self::Other { message: message.to_string(), exit }
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Run(error) => error.exit(),
            Self::Other { exit, .. } => *exit,
        }
    }
}

type Outcome = Result<Exit, CommandError>;

/// Whether the command line looks like one that starts one program in one cell, so that it pays to
/// have a child ready. A wrong guess costs a copy of the process, which then ends with it.
#[must_use]
pub fn starts_one_cell() -> bool {
    std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "exec")
}

/// Reads the command line and carries it out.
#[must_use]
pub fn main() -> ExitCode {
    if let Err(error) = crate::sandbox::harden_supervisor() {
        Screen::new(args::Colour::Auto, true).err(&format!("error: {error}"));
        return Exit::Sandbox.into();
    }
    let environment = Environment::of_process();
    if let Some(answered) = completion::answer(&environment) {
        return answered;
    }
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors; clap knows which stream and which code.
            let code = u8::try_from(error.exit_code()).unwrap_or(Exit::Usage.code());
            drop(error.print());
            return ExitCode::from(code);
        }
    };
    let screen = Screen::new(cli.everywhere.color, environment.get("NO_COLOR").is_some());
    let screen = screen.on(environment.text("TERM"));
    let context = Context { environment, state_directory: cli.everywhere.state_dir, screen };
    match carry_out(&context, cli.command) {
        Ok(exit) => exit.into(),
        Err(error) => {
            tell(screen, &error);
            error.exit().into()
        }
    }
}

/// Prints an error. Those of a policy come with the place and a label of their own.
fn tell(screen: Screen, error: &CommandError) {
    if let CommandError::Run(RunError::Policy(diagnostics)) = error {
        screen.err(diagnostics.render(screen.colours_err()).trim_end());
        return;
    }
    screen.err(&format!("{} {error}", screen.paint(Tone::Bad, "error:")));
}

fn carry_out(context: &Context, command: Command) -> Outcome {
    match command {
        Command::Run(args) => run::run(context, args),
        Command::Chat(args) => chat::chat(context, args),
        Command::Resume(args) => run::resume(context, args),
        Command::Exec(args) => exec::exec(context, args),
        Command::Demo(args) => demo::demo(context, &args),
        Command::Policy(args) => policy::policy(context, args.command),
        Command::Audit(args) => audit::audit(context, args.command),
        Command::Session(args) => session::session(context, args.command),
        Command::Doctor(args) => doctor::doctor(context, &args),
        Command::Models(args) => models::models(context, &args),
        Command::Completions { shell } => completion::script(context, shell),
        Command::Man => {
            let mut page = Vec::new();
            let rendered = clap_mangen::Man::new(Cli::command()).render(&mut page);
            rendered.map_err(|error| CommandError::new(Exit::Fault, error))?;
            context.screen.out(String::from_utf8_lossy(&page).trim_end());
            Ok(Exit::Done)
        }
    }
}

/// JSON of something whose types hold nothing that JSON cannot.
fn json(value: &impl serde::Serialize) -> Result<String, CommandError> {
    serde_json::to_string(value).map_err(|error| CommandError::new(Exit::Fault, error))
}
