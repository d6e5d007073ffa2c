//! Second names of what masks cover, that were there before the first call.

use crate::rig::{Rig, shown, stdout, without_namespaces};
use std::fs;
use std::path::PathBuf;
use stoplog::sandbox::{Degraded, HardLinks, Mask, MaskKind, MaskPattern, SecondName, hard_links};

const PLENTY: u64 = 10_000;

fn look(rig: &Rig) -> HardLinks {
    hard_links(&[rig.workspace()], &rig.spec.masks, PLENTY).unwrap()
}

fn link(rig: &Rig, from: &str, to: &str) {
    let to = rig.workspace().join(to);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::hard_link(rig.workspace().join(from), to).unwrap();
}

fn names(found: &HardLinks) -> Vec<PathBuf> {
    found.second_names.iter().map(|second| second.name.clone()).collect()
}

fn close(rig: &mut Rig, found: &HardLinks) {
    rig.spec.masks.extend(found.second_names.iter().map(|second| Mask {
        pattern: MaskPattern::Exact(second.name.clone()),
        kind: second.kind,
        reason_id: second.reason_id.clone(),
    }));
}

#[test]
fn second_names_of_hidden_and_of_read_only_files_are_found_and_can_be_closed() {
    let mut rig = Rig::new();
    rig.file("deep/.env", "KEY\n");
    rig.file(".git/config", "[core]\n");
    rig.file("free", "free\n");
    link(&rig, "deep/.env", "notes/copy");
    link(&rig, ".git/config", "plain");
    link(&rig, "free", "also-free");
    let pattern = "**/.env".to_owned();
    let pattern =
        MaskPattern::Glob { root: rig.workspace(), patterns: vec![pattern], except: Vec::new() };
    rig.spec.masks.push(Mask { pattern, kind: MaskKind::Hide, reason_id: "env".into() });
    rig.mask(".git/config", MaskKind::ReadOnly);
    let text = "cat notes/copy; echo evil > plain; cat .git/config";
    // The control: masks cover names, and the second name is as good as the first.
    assert_eq!(stdout(&rig.run(text)), "KEY\nevil\n");
    fs::write(rig.workspace().join(".git/config"), "[core]\n").unwrap();
    let found = look(&rig);
    assert!(found.complete && found.elsewhere == 0, "{found:?}");
    let mut second_names = found.second_names.clone();
    second_names.sort_by(|left, right| left.name.cmp(&right.name));
    let second = |name: &str, covered: &str, kind, rule: &str| SecondName {
        name: rig.workspace().join(name),
        covered: rig.workspace().join(covered),
        kind,
        reason_id: rule.into(),
    };
    let expected = [
        second("notes/copy", "deep/.env", MaskKind::Hide, "env"),
        second("plain", ".git/config", MaskKind::ReadOnly, "test-rule"),
    ];
    assert_eq!(second_names, expected);
    close(&mut rig, &found);
    let finished = rig.run(text);
    assert_eq!(stdout(&finished), "[core]\n", "{}", shown(&finished));
    assert_eq!(rig.control("cat notes/copy"), "KEY\n");
}

#[test]
fn a_second_name_in_another_root_and_behind_a_covered_link_is_found() {
    let mut rig = Rig::new();
    let other = rig.directory.path().join("other");
    fs::create_dir(&other).unwrap();
    rig.file("secrets/a", "KEY\n");
    fs::hard_link(rig.workspace().join("secrets/a"), other.join("b")).unwrap();
    // The name that is covered is a link; what it leads to has a second name.
    rig.file("real", "KEY\n");
    std::os::unix::fs::symlink("real", rig.workspace().join(".env")).unwrap();
    link(&rig, "real", "twin");
    rig.mask("secrets", MaskKind::Hide).mask(".env", MaskKind::Hide);
    let found = hard_links(&[rig.workspace(), other.clone()], &rig.spec.masks, PLENTY).unwrap();
    let mut names = names(&found);
    names.sort();
    let mut expected =
        vec![other.join("b"), rig.workspace().join("real"), rig.workspace().join("twin")];
    expected.sort();
    assert_eq!(names, expected, "{found:?}");
}

#[test]
fn a_file_with_a_name_outside_is_counted_and_named() {
    let rig = Rig::new();
    fs::hard_link(rig.outside().join("secret"), rig.workspace().join("link")).unwrap();
    rig.file("own", "x");
    link(&rig, "own", "own-too");
    let found = look(&rig);
    assert_eq!((found.elsewhere, found.second_names.len()), (1, 0), "{found:?}");
    assert_eq!(found.examples, [rig.workspace().join("link")]);
    // Limit L3 as it is: the name gives the content.
    assert_eq!(stdout(&rig.run("cat link")), "secret\n");
}

#[test]
fn the_look_is_bounded_and_says_when_it_was_cut() {
    let mut rig = Rig::new();
    for number in 0..50 {
        rig.file(&format!("d/{number}"), "x");
    }
    rig.file(".env", "KEY\n");
    link(&rig, ".env", "z/copy");
    rig.mask(".env", MaskKind::Hide);
    let whole = look(&rig);
    assert!(whole.complete && names(&whole) == [rig.workspace().join("z/copy")], "{whole:?}");
    assert_eq!(whole.entries, 54, "50 files, 1 hidden, 1 copy, 2 directories");
    let cut = hard_links(&[rig.workspace()], &rig.spec.masks, 20).unwrap();
    assert!(!cut.complete && cut.entries == 20 && cut.elsewhere == 0, "{cut:?}");
    let exact = hard_links(&[rig.workspace()], &rig.spec.masks, 54).unwrap();
    assert!(exact.complete, "a bound that is just reached cuts nothing");
}

#[test]
fn the_look_opens_no_file_and_follows_no_link() {
    let rig = Rig::new();
    // Whoever opens it waits for ever.
    rig.control("mkfifo pipe");
    std::os::unix::fs::symlink(rig.outside(), rig.workspace().join("way-out")).unwrap();
    std::os::unix::fs::symlink(".", rig.workspace().join("circle")).unwrap();
    let found = look(&rig);
    assert_eq!((found.complete, found.entries), (true, 3), "{found:?}");
    let nowhere = hard_links(&[rig.workspace().join("gone")], &[], PLENTY).unwrap();
    assert!(nowhere.complete && nowhere.entries == 0);
}

#[test]
fn a_cell_cannot_make_a_second_name_of_what_a_mask_covers() {
    let mut rig = Rig::new();
    rig.file(".env", "KEY\n");
    rig.file("fixed", "old\n");
    let text = "ln .env a; ln fixed b; cat a; echo evil > b; cat fixed";
    assert_eq!(rig.control(text), "KEY\nevil\n");
    for name in ["a", "b"] {
        fs::remove_file(rig.workspace().join(name)).unwrap();
    }
    fs::write(rig.workspace().join("fixed"), "old\n").unwrap();
    rig.mask(".env", MaskKind::Hide).mask("fixed", MaskKind::ReadOnly);
    let finished = rig.run(text);
    assert_eq!(stdout(&finished), "old\n", "{}", shown(&finished));
    assert!(look(&rig).second_names.is_empty());
    // Without a view there are no masks, so that nothing stops it: the loss is named.
    without_namespaces(&mut rig);
    rig.spec.degraded = Degraded::Allow;
    let finished = rig.run("ln .env c && cat c");
    assert_eq!(stdout(&finished), "KEY\n", "{}", shown(&finished));
    assert!(finished.enforced.lost.iter().any(|lost| lost == "G4-deny-inside-allow"));
}
