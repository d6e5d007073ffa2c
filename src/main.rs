//! Entry point.
use std::process::ExitCode;

fn main() -> ExitCode {
    // A cell's child never gets further than this line: no thread and no runtime exists yet.
    if let Some(code) = stoplog::sandbox::child_entry(|_job, _output| 2) {
        return code;
    }
    ExitCode::SUCCESS
}
