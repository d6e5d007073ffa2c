//! Entry point. A process that was started as the inside of a cell becomes that first, before any
//! thread or runtime exists; a command that will start one cell copies itself for it in the same
//! moment; everything else is the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    let serve = stoplog::tools::worker::serve;
    stoplog::sandbox::child_entry(serve)
        .or_else(stoplog::sandbox::probe::probe_entry)
        .or_else(|| {
            stoplog::cli::starts_one_cell().then(|| stoplog::sandbox::copy_at_start(serve))?
        })
        .unwrap_or_else(stoplog::cli::main)
}
