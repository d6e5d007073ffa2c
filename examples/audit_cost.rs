//! Measures what the audit log costs: `cargo run --release --example audit_cost [DIRECTORY]`.
//!
//! Prints the time of one append with its flush in DIRECTORY (default: the directory for temporary
//! files), the same in memory, where a flush costs nothing, and the time to verify and to query.

use serde_json::json;
use std::error::Error;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;
use stoplog::audit::query::{Filter, Rows};
use stoplog::audit::read::Lines;
use stoplog::audit::record::{Body, Rejected, RejectedBecause, Session};
use stoplog::audit::{Anchors, AuditWriter, Redactor, log_path, verify};
use stoplog::base::clock::Clock;
use stoplog::base::digest::Digest;
use stoplog::base::ids::Id;
use stoplog::base::text::Untrusted;

const RECORDS: u32 = 2_000;

fn main() -> Result<(), Box<dyn Error>> {
    let given = std::env::args_os().nth(1).map(PathBuf::from);
    let disk = given.map_or_else(tempfile::tempdir, tempfile::tempdir_in)?;
    measure("on disk", disk.path())?;
    if let Ok(memory) = tempfile::tempdir_in("/dev/shm") {
        measure("in memory", memory.path())?;
    }
    Ok(())
}

fn measure(name: &str, directory: &Path) -> Result<(), Box<dyn Error>> {
    let session = Id::new();
    let mut writer = AuditWriter::open(directory, &session, Redactor::new(&[]), Clock::default())?;
    writer.append(&begin(&session)?)?;
    let start = Instant::now();
    for number in 0..RECORDS {
        writer.append(&record(number))?;
    }
    report(name, "append", start)?;
    drop(writer);
    let log = log_path(directory, &session);
    let anchors = Anchors::beside(&log)?;
    let start = Instant::now();
    let problems = verify(&log, &anchors)?.problems.len();
    report(name, &format!("verify ({problems} problems)"), start)?;
    let filter = Filter { tool: Some("nothing".to_owned()), ..Filter::default() };
    let start = Instant::now();
    let rows = Rows::new(Lines::open(&log)?, &filter).count();
    report(name, &format!("query ({rows} rows)"), start)
}

fn report(name: &str, what: &str, start: Instant) -> Result<(), Box<dyn Error>> {
    let each = start.elapsed() / RECORDS;
    let mut out = std::io::stdout();
    writeln!(out, "{name:<10} {what:<22} {each:>10.1?} a record")?;
    Ok(())
}

fn begin(session: &Id) -> Result<Body, serde_json::Error> {
    let record: Session = serde_json::from_value(json!({
        "session": session, "program": "0", "resumed": false, "uid": 0, "host": "h", "pid": 1,
        "role": "main", "headless": true, "places": {}, "policy": {"digest": Digest::zero()},
        "tools": [], "model": "m", "enforced": null,
    }))?;
    Ok(Body::Session(Box::new(record)))
}

/// About as long as a decision on a short shell command.
fn record(number: u32) -> Body {
    let arguments =
        format!("{{\"command\":\"cargo test {number} {}\"}}", "-- --nocapture ".repeat(40));
    Body::Rejected(Box::new(Rejected {
        call: Id::new(),
        provider_id: Untrusted::new("call_1"),
        origin: Untrusted::new("main"),
        tool: Untrusted::new("bash"),
        because: RejectedBecause::Aborted,
        told: Untrusted::new("the run is being stopped"),
        arguments_hash: Digest::of(arguments.as_bytes()),
        arguments: Untrusted::new(arguments),
    }))
}
