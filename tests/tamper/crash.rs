//! The writer killed at any byte, and opened again.

use crate::records::*;
use stoplog::audit::{Status, log_path};
use stoplog::base::digest::Digest;
use stoplog::base::ids::Id;

/// A log without an end, and a directory in which it and the ledger of its beginning lie.
fn killed_at(bytes: &[u8], place: &Place) -> Place {
    let killed = Place { directory: directory(), session: place.session.clone() };
    overwrite(&killed.log(), bytes);
    overwrite(&killed.ledger(), &std::fs::read(place.ledger()).unwrap());
    killed
}

#[test]
fn a_log_cut_at_any_byte_by_a_crash_is_continued_and_the_torn_line_is_kept() {
    let place = Place::new();
    let call = Id::new();
    place.write(&[decision(&call), started(&call)]);
    let bytes = place.bytes();
    for length in 0..=bytes.len() {
        let whole = bytes[..length].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let killed = killed_at(&bytes[..length], &place);
        assert_ne!(killed.verify().status(), Status::Damaged, "a crash is no tampering");
        killed.run();
        let report = killed.verify();
        assert!(report.problems.is_empty() && report.is_ended, "killed at {length}: {report}");
        let after = killed.bytes();
        assert_eq!(after[..whole], bytes[..whole], "whole records stay");
        let next = value(&split(&after[whole..])[0]);
        if whole == length {
            assert_eq!(next["kind"], "session");
            continue;
        }
        let torn = &bytes[whole..length];
        assert_eq!(next["kind"], "recovered");
        assert_eq!(next["bytes"], torn.len());
        assert_eq!(next["digest"], Digest::of(torn).to_string());
        let aside = killed.directory.path().join(next["aside"].as_str().unwrap());
        assert_eq!(std::fs::read(aside).unwrap(), torn);
    }
}

#[test]
fn a_crash_between_keeping_and_cutting_the_torn_line_loses_nothing() {
    let place = Place::new();
    place.write(&[]);
    let bytes = [place.bytes(), b"{\"v\":1,\"se".to_vec()].concat();
    for already_kept in [10, 3, 0] {
        let killed = killed_at(&bytes, &place);
        let torn = &bytes[bytes.len() - 10..];
        let name = format!("torn-{}-{}", bytes.len() - 10, Digest::of(torn).short());
        let aside = log_path(killed.directory.path(), &killed.session).with_extension(name);
        overwrite(&aside, &torn[..already_kept]);
        killed.run();
        let recovered = value(&split(&killed.bytes())[1]);
        let kept = killed.directory.path().join(recovered["aside"].as_str().unwrap());
        assert_eq!(std::fs::read(kept).unwrap(), torn, "{already_kept} bytes were kept before");
        assert!(killed.verify().problems.is_empty());
    }
}

#[test]
fn a_torn_ledger_is_mended_and_kept() {
    let place = Place::with_run();
    let mut ledger = std::fs::read(place.ledger()).unwrap();
    ledger.extend_from_slice(b"{\"v\":1,");
    overwrite(&place.ledger(), &ledger);
    assert_eq!(place.verify().status(), Status::Intact);
    place.run();
    assert_eq!(place.verify().status(), Status::Intact);
    let names = std::fs::read_dir(place.directory.path()).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().any(|name| name.to_string_lossy().starts_with("ledger.torn-")));
}

#[test]
fn a_run_that_never_ended_is_open_and_not_intact() {
    let place = Place::new();
    place.write(&[]);
    let report = place.verify();
    assert_eq!(report.status(), Status::Open, "{report}");
    assert!(report.to_string().contains("no end record"), "{report}");
}
