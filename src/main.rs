//! Entry point. A process that was started as the inside of a cell becomes that first, before any
//! thread or runtime exists; everything else is the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    stoplog::sandbox::child_entry(stoplog::tools::worker::serve)
        .or_else(stoplog::sandbox::probe::probe_entry)
        .unwrap_or_else(stoplog::cli::main)
}
