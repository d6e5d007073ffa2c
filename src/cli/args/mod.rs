//! The command line as typed values. Nothing here reads a file or decides anything; what the flags
//! mean is the business of the command files beside this one.

mod policy;
mod records;

pub use policy::*;
pub use records::*;

use super::completion;
use crate::base::dollars::Dollars;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Runs an AI agent that nobody has to trust.
///
/// Every tool call of the model passes one policy chain, is recorded before it takes effect, and runs
/// in a child process that Landlock, seccomp and namespaces confine.
#[derive(Debug, Parser)]
#[command(name = "stoplog", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "\
Examples:
  stoplog demo                                        watch an agent work and be stopped
  stoplog run --model openrouter/z-ai/glm-4.6 'fix the failing test'
  stoplog exec --policy workspace -- make test        one command in the cell, no model
  stoplog policy explain 'git status && rm -rf /'     what would be decided, and why
  stoplog audit verify                                is the newest log intact?

Exit codes: 0 done · 1 fault · 2 usage · 10 done, some calls denied · 11 iteration limit ·
12 model error · 13 truncated or empty answer · 14 budget spent · 15 loop detected ·
20 sandbox guarantee not met · 21 policy invalid · 22 audit or journal failure ·
23 session locked, blocked or corrupt · 130 / 143 interrupted")]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub everywhere: Everywhere,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
pub struct Everywhere {
    /// Directory for sessions and logs. Default: $XDG_STATE_HOME/stoplog.
    #[arg(long, global = true, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// When to colour text: a terminal gets colour unless NO_COLOR is set.
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub color: Colour,
}

/// A line of `exec`, whose start is waited for: describing the options of all commands would take a
/// twentieth of it.
#[derive(Debug, Parser)]
struct ExecLine {
    #[command(flatten)]
    everywhere: Everywhere,
    #[command(subcommand)]
    command: OnlyExec,
}

#[derive(Debug, Subcommand)]
enum OnlyExec {
    Exec(ExecArgs),
}

impl Cli {
    /// Reads the command line of this process. Help, version and mistakes come as errors, too.
    ///
    /// # Errors
    /// What is to be printed instead.
    pub fn read() -> Result<Self, clap::Error> {
        if super::starts_one_cell()
            && let Ok(ExecLine { everywhere, command: OnlyExec::Exec(args) }) =
                ExecLine::try_parse()
        {
            return Ok(Self { everywhere, command: Command::Exec(args) });
        }
        // Whatever is no line of `exec` is read, and answered, here.
        Self::try_parse()
    }
}

/// When to colour text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Give an agent a task.
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Talk with an agent on a terminal, all turns in one session.
    #[command(after_help = CHAT_EXAMPLES)]
    Chat(ChatArgs),
    /// Go on with an earlier session, also one that a crash interrupted.
    #[command(after_help = RESUME_EXAMPLES)]
    Resume(ResumeArgs),
    /// Run one command in a policy's cell, without a model.
    #[command(after_help = EXEC_EXAMPLES)]
    Exec(ExecArgs),
    /// Watch a scripted agent repair a repository while its attempts to escape are refused.
    Demo(DemoArgs),
    /// Check, explain, test, lint and print policies.
    Policy(PolicyArgs),
    /// Read and verify the audit log.
    Audit(AuditArgs),
    /// List, show and check sessions.
    Session(SessionArgs),
    /// What this machine can enforce.
    Doctor(DoctorArgs),
    /// The model providers that are known, and whether one answers.
    Models(ModelsArgs),
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page (roff).
    Man,
}

const RUN_EXAMPLES: &str = "\
Examples:
  stoplog run --model openai/gpt-5 'make the tests pass'
  stoplog run --model ollama/qwen3 --tools read,grep --policy readonly 'explain src/'
  stoplog run --model script/turns.jsonl --headless --output json 'replay a script'
  stoplog run --policy ci --policy ./extra.toml --headless --output stream-json 'update the docs'

The key comes from the provider's environment variable (OPENAI_API_KEY, OPENROUTER_API_KEY,
ANTHROPIC_API_KEY, …) or --key-file, never from the command line.";

const CHAT_EXAMPLES: &str = "\
Examples:
  stoplog chat --model openai/gpt-5
  stoplog chat --model ollama/qwen3 --policy readonly
  stoplog chat --resume 019af2                go on with an earlier conversation

Ctrl-C stops the agent's turn, twice ends the program. /help lists the commands.";

const RESUME_EXAMPLES: &str = "\
Examples:
  stoplog resume 019af2                       go on where a crash stopped it
  stoplog resume 019af2 'now add a test'      a further task in the same session";

const EXEC_EXAMPLES: &str = "\
Examples:
  stoplog exec -- make test
  stoplog exec --policy readonly --workspace ~/src/project -- grep -r TODO .

The exit code is the command's own; 10 if the policy denies it, 128 + N if signal N ended it,
124 at the time limit, 127 if there is no such program, 126 if it cannot be run.";

/// What to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Text,
    /// One JSON object at the end.
    Json,
    /// One JSON object a line, as things happen.
    StreamJson,
}

/// Where a run works and under which rules.
#[derive(Debug, Clone, Args)]
pub struct PlaceArgs {
    /// Policy by name (base, readonly, workspace, ci, untrusted) or file; may be repeated, the
    /// strictest answer wins. Default: workspace.
    #[arg(long, value_name = "NAME|FILE", add = completion::policies())]
    pub policy: Vec<String>,
    /// Directory the agent works in. Default: the current one.
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Role of the user on whose behalf the agent acts.
    #[arg(long, value_name = "ROLE")]
    pub role: Option<String>,
}

/// How the model is reached and bounded.
#[derive(Debug, Clone, Args)]
pub struct ModelChoice {
    /// The model: PROVIDER/NAME, or script/FILE for a scripted one.
    #[arg(long, value_name = "PROVIDER/NAME")]
    pub model: Option<String>,
    /// Base URL of an OpenAI-compatible server, instead of the provider's.
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// File that holds the key; else the provider's environment variable is read.
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// File with certificate authorities (PEM) to trust besides the system's.
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Ask for whole answers instead of a stream.
    #[arg(long)]
    pub no_stream: bool,
    /// Sampling temperature.
    #[arg(long, value_name = "N")]
    pub temperature: Option<f64>,
    /// Most output tokens of one answer.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_tokens: Option<u32>,
    /// How the model asks for tools: in the provider's own form, or as JSON that a schema constrains,
    /// for models and servers without tool calls.
    #[arg(long, value_enum, default_value_t = ToolCalls::Native, value_name = "FORM")]
    pub tool_calls: ToolCalls,
    /// Record every attempt of the model in a new file that `--model script/FILE` plays again.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// How much the model may think.
    #[arg(long, value_enum, default_value_t = Thinking::None, value_name = "LEVEL")]
    pub thinking: Thinking,
}

/// How the model asks for tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ToolCalls {
    /// In the provider's own form.
    Native,
    /// As one JSON document that is the whole answer.
    Json,
}

/// How much the model may think before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Thinking {
    /// Not at all.
    None,
    /// A little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
}

/// How a run behaves.
#[derive(Debug, Clone, Args)]
pub struct BehaviourArgs {
    /// Only these tools: their schemas go into the request and nothing else is dispatched.
    #[arg(long, value_delimiter = ',', value_name = "TOOL,…")]
    pub tools: Option<Vec<String>>,
    /// Most model calls. Default 40.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_iterations: Option<u32>,
    /// Times that the same calls may give the same results in a row before the model is told, and
    /// again before the run ends (exit 15). Default 3; 0 never ends it.
    #[arg(long, value_name = "N")]
    pub max_repeats: Option<u32>,
    /// Messages of history in one request, cut between whole turns. Default 100.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_history: Option<u32>,
    /// Times that a failed model call is repeated. Default 2.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=10))]
    pub max_retries: Option<u32>,
    /// Times in a row that something that ended in the background keeps the run going after a text
    /// answer. Default 3.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=100))]
    pub max_background_rounds: Option<u32>,
    /// Most that the model calls may cost, in dollars by the provider table's prices: no further request
    /// is sent once it is reached (exit 14). A model without a known price is refused then.
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    pub max_cost: Option<Dollars>,
    /// Never ask: what needs a person is denied.
    #[arg(long)]
    pub headless: bool,
    /// Do not put the workspace's AGENTS.md before the model (it is shown as data, never obeyed as
    /// configuration).
    #[arg(long)]
    pub no_agents_file: bool,
    /// What to print.
    #[arg(long, value_enum, default_value_t = Output::Text, value_name = "FORM")]
    pub output: Output,
    /// With --output stream-json or json: leave out every word of the user, the model, tools, files and
    /// servers; sizes, digests, identifiers, decisions and rules stay.
    #[arg(long)]
    pub no_content: bool,
}

fn dollars(text: &str) -> Result<Dollars, String> {
    let number = text.parse().ok().and_then(Dollars::limit);
    number.ok_or_else(|| "give an amount of dollars, such as 2.5".to_owned())
}

/// What every command that starts an agent takes.
#[derive(Debug, Clone, Args)]
pub struct AgentArgs {
    /// Where and under which rules.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Which model.
    #[command(flatten)]
    pub model: ModelChoice,
    /// How to behave.
    #[command(flatten)]
    pub behaviour: BehaviourArgs,
    /// In an earlier session: go on with what its policy and the present one both allow, where the
    /// present one may allow more (it is refused otherwise).
    #[arg(long)]
    pub keep_policy: bool,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The task, in words.
    pub task: String,
    /// Where, with which model and how.
    #[command(flatten)]
    pub agent: AgentArgs,
    /// Give the task to an earlier session instead of a new one.
    #[arg(long, value_name = "ID", add = completion::session_ids())]
    pub resume: Option<String>,
}

/// Arguments of `chat`.
#[derive(Debug, Args)]
pub struct ChatArgs {
    /// Where, with which model and how.
    #[command(flatten)]
    pub agent: AgentArgs,
    /// Go on with an earlier session.
    #[arg(long, value_name = "ID", add = completion::session_ids())]
    pub resume: Option<String>,
}

/// Arguments of `resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The session: its id, or the beginning or end of one.
    #[arg(add = completion::session_ids())]
    pub session: String,
    /// A further task. Without one an interrupted session is finished.
    pub task: Option<String>,
    /// Where, with which model and how; what is not given is as the session had it.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// Arguments of `exec`.
#[derive(Debug, Args)]
pub struct ExecArgs {
    /// Where and under which rules.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Print what the kernel enforced to stderr.
    #[arg(long)]
    pub show_cell: bool,
    /// The program and its arguments.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Keep the workspace and say where it is.
    #[arg(long)]
    pub keep: bool,
    /// Take away user namespaces, to see what is weaker without them.
    #[arg(long)]
    pub no_namespaces: bool,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Prove each guarantee with a live probe and a control; exit 20 if one fails.
    #[arg(long)]
    pub selftest: bool,
    /// Show what a kernel gives whose Landlock has no newer interface: in cells of the doctor itself,
    /// which then cap what they use. No run can be capped.
    #[arg(long, value_name = "VERSION", value_parser = clap::value_parser!(u32).range(1..))]
    pub landlock_at_most: Option<u32>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `models`.
#[derive(Debug, Args)]
pub struct ModelsArgs {
    /// Check this one with a one-token call.
    #[arg(value_name = "PROVIDER/NAME")]
    pub check: Option<String>,
    /// Base URL of an OpenAI-compatible server, instead of the provider's.
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_line_of_exec_is_read_alike_by_itself_and_among_all_commands() {
        let lines = [
            "exec -- true",
            "--color never exec --policy ci --policy x.toml -- a -b",
            "exec --state-dir /s --workspace /w --role r -- make -k exec",
            "exec --color=always -- exec",
            "exec",
            "exec --no-such-option -- true",
        ];
        let mut read = 0;
        for line in lines {
            let words = || ["stoplog"].into_iter().chain(line.split(' '));
            let alone = ExecLine::try_parse_from(words()).ok().map(|line| {
                let OnlyExec::Exec(args) = line.command;
                format!("{:?} {args:?}", line.everywhere)
            });
            let among = Cli::try_parse_from(words()).ok().map(|cli| {
                let Command::Exec(args) = cli.command else { panic!("{line}") };
                format!("{:?} {args:?}", cli.everywhere)
            });
            read += usize::from(alone.is_some());
            assert_eq!(alone, among, "{line}");
        }
        assert_eq!(read, 4);
        for line in ["run exec", "exec --help", "--version exec"] {
            let words = ["stoplog"].into_iter().chain(line.split(' '));
            assert!(ExecLine::try_parse_from(words).is_err(), "{line}");
        }
    }

    #[test]
    fn a_command_after_two_dashes_is_taken_whole() {
        let cli = Cli::try_parse_from(["stoplog", "exec", "--", "ls", "--color", "-h"]).unwrap();
        let Command::Exec(exec) = cli.command else { panic!("exec") };
        assert_eq!(exec.command, ["ls", "--color", "-h"]);
    }
}
