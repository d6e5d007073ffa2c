//! The command lines that read what was recorded: `stoplog audit` and `stoplog session`.

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
        session: Option<String>,
        /// Only this decision: pass or deny.
        #[arg(long, value_name = "WHICH")]
        decision: Option<String>,
        /// Only calls of this tool.
        #[arg(long, value_name = "TOOL")]
        tool: Option<String>,
        /// Only decisions that this rule made.
        #[arg(long, value_name = "ID")]
        rule: Option<String>,
        /// Print JSON lines.
        #[arg(long)]
        json: bool,
    },
    /// Explain one decision: every stage, the rule, and what came of it.
    Show {
        /// Call id, the end of one, or its number in the log.
        call: String,
        /// Session id, its beginning or end, or a log file. Default: the newest session.
        #[arg(long, value_name = "ID")]
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
        session: Option<String>,
        /// Check every session.
        #[arg(long, conflicts_with = "session")]
        all: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
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
        session: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write a session's conversation as a document, secrets left out.
    Export {
        /// Session id, its beginning or end. Default: the newest session.
        session: Option<String>,
        /// The form.
        #[arg(long, value_enum, default_value_t = ExportFormat::Markdown)]
        format: ExportFormat,
    },
    /// Make a new session that begins with all of another one, and print its id.
    Fork {
        /// Session id or its beginning. Default: the newest session.
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
