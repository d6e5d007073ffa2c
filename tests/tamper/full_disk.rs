//! No room left: the append is refused with a typed error, the log stays valid, and the end of the
//! run is still recorded from the reserve.

use crate::records::*;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use rustix::process::{Resource, getrlimit};
use std::path::Path;
use stoplog::audit::{Anchors, AuditError, AuditWriter, log_path, verify};
use stoplog::base::ids::Id;
use stoplog::base::jsonl::JsonlError;

/// More than fits into either of the spaces below.
const RECORDS: usize = 5_000;

fn append_until_full(writer: &mut AuditWriter, id: &Id) -> Option<AuditError> {
    writer
        .append(&session(id))
        .err()
        .or_else(|| (0..RECORDS).find_map(|_| writer.append(&decision(&Id::new())).err()))
}

fn check_valid(directory: &Path, id: &Id) -> stoplog::audit::Report {
    let path = log_path(directory, id);
    let report = verify(&path, &Anchors::beside(&path).unwrap()).unwrap();
    assert!(report.problems.is_empty() && report.torn_bytes == 0, "{report}");
    report
}

/// In a mount namespace of this thread alone.
#[test]
fn a_full_disk_refuses_the_call_and_still_records_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    let mounted = unshare(CloneFlags::CLONE_NEWNS)
        .and_then(|()| mount(None::<&str>, "/", None::<&str>, private, None::<&str>))
        .and_then(|()| {
            let options = Some("size=2m");
            mount(Some("tmpfs"), directory.path(), Some("tmpfs"), MsFlags::empty(), options)
        });
    if let Err(errno) = mounted {
        println!("did not run: a small tmpfs needs root here ({errno})");
        return;
    }
    let id = Id::new();
    let mut writer = open_in(directory.path(), &id).unwrap();
    let error = append_until_full(&mut writer, &id).expect("2 MiB are too small");
    let AuditError::File(JsonlError::Io { source, .. }) = &error else { panic!("{error}") };
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull, "{error}");
    let stopped = writer.append(&decision(&Id::new())).unwrap_err();
    assert!(matches!(stopped, AuditError::Stopped), "{stopped}");
    let before = check_valid(directory.path(), &id).records;
    writer.append(&end()).expect("the reserve holds the end");
    let report = check_valid(directory.path(), &id);
    assert!(report.is_ended && report.records == before + 1, "{report}");
    assert_eq!(report.anchored_records, Some(report.records), "the ledger had its reserve too");
}

/// Run by the test below under a limit on the size of files; without one it only writes.
#[test]
fn inner_append_under_a_limit() {
    let directory = tempfile::tempdir().unwrap();
    let id = Id::new();
    let mut writer = open_in(directory.path(), &id).unwrap();
    if getrlimit(Resource::Fsize).current.is_none() {
        writer.append(&session(&id)).unwrap();
        check_valid(directory.path(), &id);
        return;
    }
    let error = append_until_full(&mut writer, &id).expect("the limit is too small");
    assert!(matches!(error, AuditError::File(JsonlError::Io { .. })), "{error}");
    let before = check_valid(directory.path(), &id).records;
    let ended = writer.append(&end());
    drop(writer);
    let report = check_valid(directory.path(), &id);
    assert_eq!(report.records, before + u64::from(ended.is_ok()), "{ended:?} {report}");
    println!("refused after {before} records: {error}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test itself is run again, under a limit")]
fn a_write_that_the_kernel_cuts_short_leaves_whole_records() {
    let script = "trap '' XFSZ; ulimit -f 300; exec \"$0\" --exact --nocapture \
                  full_disk::inner_append_under_a_limit";
    let own = std::fs::read_link("/proc/self/exe").unwrap();
    let output = std::process::Command::new("bash").args(["-c", script]).arg(own).output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{shown}{}", String::from_utf8_lossy(&output.stderr));
    assert!(shown.contains("refused after"), "{shown}");
}
