//! The state directory: refused where others can reach it, listed whatever is in it.

use crate::rig::{header, scratch, write};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use stoplog::base::clock::Clock;
use stoplog::base::ids::Id;
use stoplog::session::{PruneRule, SessionStatus, Store, StoreError};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn store() -> (tempfile::TempDir, Store) {
    let directory = scratch();
    let store = Store::open(&directory.path().join("state/stoplog"), &[]).unwrap();
    (directory, store)
}

#[test]
fn a_session_has_its_own_directory_that_only_its_owner_can_enter() {
    let (directory, store) = store();
    let (session, journal) = store.create(header(&[]), Clock::fixed(5)).unwrap();
    assert_eq!(journal.state().header.created_at, 5);
    assert!(journal.state().header.is_extended());
    assert!(session.path().starts_with(directory.path().canonicalize().unwrap()));
    for path in [session.path(), &session.quarantine(), &session.tmp()] {
        assert_eq!(mode(path), 0o700, "{}", path.display());
    }
    assert_eq!(mode(&session.journal()), 0o600);
    assert_eq!(mode(&directory.path().join("state/stoplog")), 0o700);
}

#[test]
fn a_state_directory_that_others_can_reach_is_refused_with_what_to_do() {
    let directory = scratch();
    let base = directory.path().canonicalize().unwrap();
    let workspace = base.join("work");
    let state = base.join("state");
    fs::create_dir(&workspace).unwrap();
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, Permissions::from_mode(0o700)).unwrap();
    Store::open(&state, &[&workspace]).unwrap();
    fs::set_permissions(&state, Permissions::from_mode(0o750)).unwrap();
    let error = Store::open(&state, &[]).unwrap_err();
    assert!(matches!(error, StoreError::OpenToOthers { mode: 0o750, .. }), "{error}");
    assert!(error.to_string().contains("chmod 700"), "{error}");
    let link = base.join("link");
    symlink(&state, &link).unwrap();
    let error = Store::open(&link, &[]).unwrap_err();
    assert!(matches!(error, StoreError::SymbolicLink { .. }), "{error}");
    write(&base.join("file"), b"");
    let error = Store::open(&base.join("file"), &[]).unwrap_err();
    assert!(matches!(error, StoreError::NotADirectory { .. }), "{error}");
    let error = Store::open(Path::new("state"), &[]).unwrap_err();
    assert!(matches!(error, StoreError::Relative { .. }), "{error}");
}

/// Only the superuser can give a directory away; anybody else has the superuser's directories at hand.
#[test]
fn a_state_directory_of_somebody_else_is_refused() {
    let directory = scratch();
    let state = directory.path().canonicalize().unwrap().join("state");
    Store::open(&state, &[]).unwrap();
    let given_away = std::os::unix::fs::chown(&state, Some(12_345), None).is_ok();
    let foreign = if given_away { state.as_path() } else { Path::new("/usr") };
    let error = Store::open(foreign, &[]).unwrap_err();
    assert!(matches!(error, StoreError::ForeignOwner { .. }), "{error}");
    assert!(error.to_string().contains("--state-dir"), "{error}");
}

#[test]
fn a_state_directory_and_a_workspace_may_not_lie_in_one_another() {
    let directory = scratch();
    let workspace = directory.path().join("work");
    fs::create_dir(&workspace).unwrap();
    let inner = workspace.join(".state");
    let refused = |root: &Path, workspace: &Path| {
        matches!(Store::open(root, &[workspace]), Err(StoreError::InWorkspace { .. }))
    };
    assert!(refused(&inner, &workspace));
    assert!(!inner.exists(), "it is not made first");
    assert!(refused(&workspace, &workspace));
    let by_another_name = directory.path().join("alias");
    symlink(&workspace, &by_another_name).unwrap();
    assert!(refused(&by_another_name.join("state"), &workspace));
    assert!(refused(directory.path(), &workspace));
    Store::open(&directory.path().join("state"), &[&workspace]).unwrap();
}

#[test]
fn sessions_are_listed_newest_first_and_a_damaged_one_as_damaged() {
    let (_directory, store) = store();
    let (old, mut journal) = store.create(header(&[]), Clock::default()).unwrap();
    journal.begin_run("What is this?", None).unwrap();
    let (damaged, other) = store.create(header(&[]), Clock::default()).unwrap();
    drop(other);
    write(&damaged.journal(), b"{\"kind\":\"header\"}\n");
    let (gone, other) = store.create(header(&[]), Clock::default()).unwrap();
    drop(other);
    fs::remove_file(gone.journal()).unwrap();
    let listed = store.list().unwrap();
    let ids: Vec<&Id> = listed.iter().map(|summary| &summary.directory.id).collect();
    assert_eq!(ids, [&gone.id, &damaged.id, &old.id]);
    assert!(matches!(listed[0].status, SessionStatus::Unreadable(_)));
    assert!(matches!(listed[1].status, SessionStatus::Corrupt(_)));
    assert_eq!((&listed[2].status, listed[2].in_use), (&SessionStatus::Unfinished, true));
    let content = listed[2].content.as_ref().unwrap();
    assert_eq!(content.first_message.as_deref(), Some("What is this?"));
    drop(journal);
    assert!(!store.list().unwrap()[2].in_use);
}

#[test]
fn a_session_is_found_by_its_beginning_or_its_end_if_that_is_unique() {
    let (_directory, store) = store();
    let (first, _one) = store.create(header(&[]), Clock::default()).unwrap();
    let (second, _two) = store.create(header(&[]), Clock::default()).unwrap();
    assert_eq!(store.find(first.id.as_str()).unwrap(), first);
    assert_eq!(store.find(second.id.short()).unwrap(), second);
    let error = store.find(first.id.as_str().get(..4).unwrap()).unwrap_err();
    assert!(matches!(&error, StoreError::Ambiguous { fitting, .. } if fitting.len() == 2));
    for wanted in ["", "zzzz", "../..", "\u{1b}[2J"] {
        let error = store.find(wanted).unwrap_err();
        assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
        assert!(!error.to_string().contains('\u{1b}'));
    }
}

#[test]
fn pruning_spares_the_newest_the_recent_and_those_in_use() {
    let (_directory, store) = store();
    let mut made = Vec::new();
    for _ in 0..4 {
        made.push(store.create(header(&[]), Clock::default()).unwrap());
    }
    let (ids, mut journals): (Vec<Id>, Vec<_>) =
        made.into_iter().map(|(session, journal)| (session.id, journal)).unzip();
    let kept = journals.remove(0);
    journals.clear();
    let none = PruneRule { keep_newest: 0, created_before: 1_000 };
    assert!(store.prune(none).unwrap().is_empty());
    let locked = store.find(ids[1].as_str()).unwrap().tmp().join("locked");
    fs::create_dir_all(locked.join("inner")).unwrap();
    fs::set_permissions(&locked, Permissions::from_mode(0o500)).unwrap();
    let all = PruneRule { keep_newest: 1, created_before: u64::MAX };
    assert_eq!(store.prune(all).unwrap(), [ids[2].clone(), ids[1].clone()]);
    let error = store.remove(&store.find(ids[0].as_str()).unwrap()).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error}");
    drop(kept);
    store.remove(&store.find(ids[0].as_str()).unwrap()).unwrap();
    let left: Vec<Id> =
        store.directories().unwrap().into_iter().map(|session| session.id).collect();
    assert_eq!(left, [ids[3].clone()]);
}
