//! Bytes and lines changed, removed, moved, added.

use crate::records::*;
use proptest::prelude::*;
use serde_json::json;
use stoplog::audit::verify::{ProblemKind, verify_all};
use stoplog::audit::{Anchors, Head, Report, Status};
use stoplog::base::digest::Digest;
use stoplog::base::ids::Id;

fn kinds(report: &Report) -> Vec<(ProblemKind, Option<u64>)> {
    report.problems.iter().map(|problem| (problem.kind, problem.sequence)).collect()
}

/// The control of every test here.
#[test]
fn an_untouched_log_is_intact() {
    let place = Place::with_run();
    place.run();
    let report = place.verify();
    assert_eq!((report.status(), report.records), (Status::Intact, 10), "{report}");
    assert_eq!(report.anchored_records, Some(10));
    assert!(report.to_string().contains("intact"));
}

#[test]
fn every_changed_byte_is_reported_and_its_record_is_named() {
    let place = Place::with_run();
    let (bytes, anchors) = (place.bytes(), place.anchors());
    let mut record = 1;
    for at in 0..bytes.len() {
        for changed in [bytes[at] ^ 1, bytes[at] ^ 0x20, b'\n', 0xff] {
            if changed == bytes[at] {
                continue;
            }
            let mut edited = bytes.clone();
            edited[at] = changed;
            let report = verify_bytes(&edited, &anchors);
            assert_eq!(report.status(), Status::Damaged, "byte {at} to {changed}: {report}");
            let named = report.problems.iter().find_map(|problem| problem.sequence);
            assert_eq!(named, Some(record), "byte {at} to {changed}: {report}");
        }
        record += u64::from(bytes[at] == b'\n');
    }
}

#[test]
fn an_edit_is_one_problem_and_not_everything_after_it() {
    let place = Place::with_run();
    let mut lines = split(&place.bytes());
    let edited = String::from_utf8(lines[1].clone()).unwrap().replace("true", "evil");
    lines[1] = edited.into_bytes();
    let report = verify_bytes(&lines.concat(), &place.anchors());
    assert_eq!(kinds(&report), [(ProblemKind::Edited, Some(2))], "{report}");
    assert_eq!(report.problems[0].line, Some(2));
}

#[test]
fn a_removed_line_is_named() {
    let place = Place::with_run();
    let lines = split(&place.bytes());
    for index in 0..lines.len() {
        let mut rest = lines.clone();
        rest.remove(index);
        let report = verify_bytes(&rest.concat(), &place.anchors());
        let sequence = index as u64 + 1;
        let kind = if index + 1 == lines.len() { ProblemKind::Cut } else { ProblemKind::Removed };
        assert!(kinds(&report).contains(&(kind, Some(sequence))), "{report}");
    }
}

#[test]
fn swapped_lines_are_told_as_moved() {
    let place = Place::with_run();
    let lines = split(&place.bytes());
    for index in 1..lines.len() {
        let mut swapped = lines.clone();
        swapped.swap(index - 1, index);
        let report = verify_bytes(&swapped.concat(), &place.anchors());
        assert_eq!(kinds(&report), [(ProblemKind::Reordered, Some(index as u64))], "{report}");
    }
}

#[test]
fn a_repeated_line_is_named() {
    let place = Place::with_run();
    let lines = split(&place.bytes());
    for index in 0..lines.len() {
        for at in [index + 1, lines.len()] {
            let mut repeated = lines.clone();
            repeated.insert(at, lines[index].clone());
            let report = verify_bytes(&repeated.concat(), &place.anchors());
            let expected = (ProblemKind::Duplicated, Some(index as u64 + 1));
            assert_eq!(kinds(&report), [expected], "{report}");
        }
    }
}

#[test]
fn a_log_cut_anywhere_is_seen_against_the_ledger_and_never_passes_as_ended() {
    let place = Place::with_run();
    let (bytes, anchors) = (place.bytes(), place.anchors());
    for length in 0..bytes.len() {
        let report = verify_bytes(&bytes[..length], &anchors);
        assert!(kinds(&report).iter().any(|(kind, _)| *kind == ProblemKind::Cut), "{report}");
        let alone = verify_bytes(&bytes[..length], &Anchors::default());
        assert_ne!(alone.status(), Status::Intact, "cut at {length}: {alone}");
        assert!(alone.to_string().contains("no ledger"), "{alone}");
    }
}

#[test]
fn a_head_noted_elsewhere_is_as_good_as_the_ledger() {
    let place = Place::with_run();
    let bytes = place.bytes();
    let report = verify_bytes(&bytes, &Anchors::default());
    let head = Head { records: report.records, link: report.head.unwrap() };
    let anchors = Anchors { head: Some(head), ..Anchors::default() };
    assert_eq!(verify_bytes(&bytes, &anchors).status(), Status::Intact);
    let mut lines = split(&bytes);
    lines.pop();
    assert_eq!(verify_bytes(&lines.concat(), &anchors).status(), Status::Damaged);
}

#[test]
fn a_suffix_with_all_links_made_anew_differs_from_the_ledger() {
    let place = Place::with_run();
    for first in 0..5 {
        let mut lines = split(&place.bytes());
        let mut record = value(&lines[first]);
        record["time"] = json!("2024-03-09T16:00:00.999Z");
        lines[first] = format!("{record}\n").into_bytes();
        relink(&mut lines, first);
        let forged = lines.concat();
        let report = verify_bytes(&forged, &place.anchors());
        assert_eq!(kinds(&report), [(ProblemKind::Rewritten, Some(5))], "from {first}: {report}");
        let control = verify_bytes(&forged, &Anchors::default());
        assert!(control.problems.is_empty(), "it fits itself: {control}");
    }
}

#[test]
fn a_rewritten_suffix_is_narrowed_down_to_what_follows_the_last_good_head() {
    let place = Place::with_run();
    place.run();
    let mut lines = split(&place.bytes());
    let mut record = value(&lines[6]);
    record["arguments"] = json!({"command": "false"});
    lines[6] = format!("{record}\n").into_bytes();
    relink(&mut lines, 6);
    let report = verify_bytes(&lines.concat(), &place.anchors());
    assert_eq!(kinds(&report), [(ProblemKind::Rewritten, Some(10))], "{report}");
    assert!(report.problems[0].sentence.contains("after record 5"), "{report}");
}

#[test]
fn lines_appended_after_the_end_are_named() {
    let place = Place::with_run();
    let lines = split(&place.bytes());
    let forged = |template: usize| {
        let mut lines = lines.clone();
        lines.push(lines[template].clone());
        relink(&mut lines, 5);
        verify_bytes(&lines.concat(), &place.anchors())
    };
    for template in 0..5 {
        let report = forged(template);
        let expected = (ProblemKind::Appended, Some(6));
        assert!(kinds(&report).contains(&expected), "{template}: {report}");
    }
    for garbage in ["\n", "{}\n", "\u{0}\n", "not a record\n"] {
        let bytes = [place.bytes(), garbage.as_bytes().to_vec()].concat();
        let report = verify_bytes(&bytes, &place.anchors());
        assert_eq!(kinds(&report), [(ProblemKind::Inserted, None)], "{garbage:?}: {report}");
        assert_eq!(report.problems[0].line, Some(6));
    }
}

#[test]
fn a_line_put_between_two_records_is_told_from_them() {
    let place = Place::with_run();
    let lines = split(&place.bytes());
    for at in 0..5 {
        let mut more = lines.clone();
        more.insert(at, b"{\"v\":1}\n".to_vec());
        let report = verify_bytes(&more.concat(), &place.anchors());
        assert_eq!(kinds(&report), [(ProblemKind::Inserted, None)], "{at}: {report}");
        assert_eq!(report.problems[0].line, Some(at as u64 + 1));
    }
    let mut forged = value(&lines[1]);
    forged["arguments"] = json!({"command": "false"});
    let mut more = lines.clone();
    more.insert(1, format!("{forged}\n").into_bytes());
    let report = verify_bytes(&more.concat(), &place.anchors());
    assert_eq!(kinds(&report), [(ProblemKind::Inserted, Some(2))], "{report}");
    assert_eq!(report.problems[0].line, Some(2), "the genuine one stands on line 3");
}

#[test]
fn a_missing_log_and_an_unknown_one_are_seen() {
    let place = Place::with_run();
    let bytes = place.bytes();
    std::fs::remove_file(place.log()).unwrap();
    let reports = verify_all(place.directory.path()).unwrap();
    assert_eq!(kinds(&reports[0]), [(ProblemKind::Missing, None)], "{}", reports[0]);
    assert!(reports[0].problems[0].sentence.contains("5 records"));

    let stranger = Place { session: Id::new(), ..place };
    overwrite(&stranger.log(), &bytes);
    let report = stranger.verify();
    assert!(kinds(&report).contains(&(ProblemKind::Misplaced, None)), "{report}");
    assert!(kinds(&report).contains(&(ProblemKind::Unledgered, None)), "{report}");
}

#[test]
fn a_changed_ledger_is_seen() {
    let place = Place::with_run();
    let ledger = std::fs::read(place.ledger()).unwrap();
    let lines = split(&ledger);
    assert_eq!(lines.len(), 2, "opened and ended");
    for at in 0..lines[0].len() {
        let mut edited = ledger.clone();
        edited[at] ^= 1;
        overwrite(&place.ledger(), &edited);
        assert_eq!(place.verify().status(), Status::Damaged, "byte {at}");
    }
    overwrite(&place.ledger(), &lines[1]);
    assert!(kinds(&place.verify()).contains(&(ProblemKind::LedgerDamaged, None)));
}

#[test]
fn a_link_in_the_first_record_is_part_of_the_chain() {
    let place = Place::with_run();
    let text = String::from_utf8(place.bytes()).unwrap();
    let zero = Digest::zero().to_string();
    let other = Digest::of(b"x").to_string();
    let report = verify_bytes(text.replace(&zero, &other).as_bytes(), &place.anchors());
    assert_eq!(kinds(&report), [(ProblemKind::Edited, Some(1))], "{report}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// However the bytes up to the noted head were changed, the log does not pass.
    #[test]
    fn no_change_of_bytes_passes(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..200, prop::collection::vec(any::<u8>(), 0..20)), 1..4)
    ) {
        let place = Place::with_run();
        let original = place.bytes();
        let mut bytes = original.clone();
        for (index, length, replacement) in edits {
            if bytes.is_empty() {
                break;
            }
            let start = index.index(bytes.len());
            let stop = (start + length).min(bytes.len());
            bytes.splice(start..stop, replacement);
        }
        prop_assume!(bytes != original && !bytes.starts_with(&original));
        let report = verify_bytes(&bytes, &place.anchors());
        prop_assert_eq!(report.status(), Status::Damaged, "{}", report);
    }

    /// Whole lines dropped, moved and repeated in any way.
    #[test]
    fn no_rearrangement_of_lines_passes(order in prop::collection::vec(0_usize..5, 0..8)) {
        prop_assume!(order != [0, 1, 2, 3, 4]);
        let place = Place::with_run();
        let lines = split(&place.bytes());
        let bytes: Vec<u8> = order.iter().flat_map(|index| lines[*index].clone()).collect();
        let report = verify_bytes(&bytes, &place.anchors());
        prop_assert_eq!(report.status(), Status::Damaged, "{:?}: {}", order, report);
    }
}
