//! The command lines that read what was recorded: `stoplog audit` and `stoplog session`.

use super::super::completion;
use crate::audit::record::{Body, Stage};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Arguments of `audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: AuditCommand,
}

/// The commands of `audit`.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// List the decisions of a session.
    Log {
        /// Session id, its beginning or end, or a log file. Default: the newest session.
        #[arg(add = completion::session_ids())]
        session: Option<String>,
        /// Only this decision: pass or deny.
        #[arg(long, value_name = "WHICH")]
        decision: Option<String>,
        /// Only calls of this tool.
        #[arg(long, value_name = "TOOL")]
        tool: Option<String>,
        /// Only decisions that this rule made.
        #[arg(long, value_name = "ID", add = completion::rules())]
        rule: Option<String>,
        /// Print JSON lines.
        #[arg(long)]
        json: bool,
    },
    /// Find records in the logs of all sessions. Every condition must hold.
    #[command(after_help = "\
Examples:
  stoplog audit query --decision deny --since 2026-01-01
  stoplog audit query --program curl --json
  stoplog audit query --path '/etc/**' --stage firewall

Exit codes: 0 also if nothing is found · 22 a log cannot be read.")]
    Query(Box<QueryArgs>),
    /// Explain one decision: every stage, the rule, and what came of it.
    Show {
        /// Call id, the end of one, or its number in the log.
        call: String,
        /// Session id, its beginning or end, or a log file. Default: the newest session.
        #[arg(long, value_name = "ID", add = completion::session_ids())]
        session: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Check that a log is as it was written.
    #[command(after_help = "\
Exit codes: 0 intact · 22 not intact (edited, removed, reordered, cut, or unreadable), or a call has
no outcome.")]
    Verify {
        /// Session id, its beginning or end, or a log file. Default: the newest session.
        #[arg(add = completion::session_ids())]
        session: Option<String>,
        /// Check every session.
        #[arg(long, conflicts_with = "session")]
        all: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Arguments of `audit query`.
#[derive(Debug, Args)]
pub struct QueryArgs {
    /// Session ids, their beginnings or ends, or log files. Default: every session.
    #[arg(value_name = "SESSION|LOG", add = completion::session_ids())]
    pub logs: Vec<String>,
    /// Only records of this kind; may be repeated.
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(Body::KINDS))]
    pub kind: Vec<String>,
    /// Only this decision.
    #[arg(long, value_name = "WHICH", value_parser = ["pass", "deny"])]
    pub decision: Option<String>,
    /// Only calls that this stage denied or asked about.
    #[arg(long, value_name = "STAGE", value_parser = PossibleValuesParser::new(Stage::ALL.map(Stage::as_str)))]
    pub stage: Option<String>,
    /// Only records with this reason code.
    #[arg(long, value_name = "CODE")]
    pub code: Option<String>,
    /// Only decisions that this rule made.
    #[arg(long, value_name = "ID", add = completion::rules())]
    pub rule: Option<String>,
    /// Only calls of this tool.
    #[arg(long, value_name = "TOOL")]
    pub tool: Option<String>,
    /// Only calls that run this program, by name or path.
    #[arg(long, value_name = "PROGRAM")]
    pub program: Option<String>,
    /// Only calls that touch a path of this pattern.
    #[arg(long, value_name = "GLOB")]
    pub path: Option<String>,
    /// Only calls that name this host; `*.example.org` is everything below it.
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// Only what was done in this role.
    #[arg(long, value_name = "ROLE")]
    pub role: Option<String>,
    /// Only sessions of this login name or user id.
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Not before this time: RFC 3339, or a date in UTC.
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Before this time.
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Print JSON lines.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `session`.
#[derive(Debug, Args)]
pub struct SessionArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: SessionCommand,
}

/// The commands of `session`.
#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// List the sessions, newest first.
    List {
        /// Print JSON lines.
        #[arg(long)]
        json: bool,
    },
    /// Show a session's conversation and state.
    Show {
        /// Session id, its beginning or end. Default: the newest session.
        #[arg(add = completion::session_ids())]
        session: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write a session's conversation as a document, secrets left out.
    Export {
        /// Session id, its beginning or end. Default: the newest session.
        #[arg(add = completion::session_ids())]
        session: Option<String>,
        /// The form.
        #[arg(long, value_enum, default_value_t = ExportFormat::Markdown)]
        format: ExportFormat,
    },
    /// Make a new session that begins with all of another one, and print its id.
    Fork {
        /// Session id or its beginning. Default: the newest session.
        #[arg(add = completion::session_ids())]
        session: Option<String>,
    },
    /// Fold a journal into its state.
    Reduce {
        /// The journal.
        file: PathBuf,
        /// Print the state as JSON.
        #[arg(long)]
        json: bool,
    },
    /// What resuming a journal would do.
    Plan {
        /// The journal.
        session: PathBuf,
        /// The current configuration (JSON).
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove sessions that ended long ago.
    Prune {
        /// Age in days.
        #[arg(long, value_name = "DAYS", default_value_t = 30)]
        older_than: u64,
        /// Really remove; otherwise only list.
        #[arg(long)]
        yes: bool,
    },
}

/// Forms of an exported session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Markdown.
    Markdown,
    /// One page without scripts, images or anything else to load.
    Html,
}
