//! What is taken back inside a grant.

use crate::rig::{Rig, shown, stdout};
use std::ffi::OsString;
use std::time::Instant;
use stoplog::sandbox::{Grant, GrantAccess, Mask, MaskKind, MaskPattern, Step};

#[test]
fn a_hidden_file_looks_absent_and_keeps_its_content() {
    let mut rig = Rig::new();
    let path = rig.file(".env", "KEY=1\n");
    let text = "cat .env; test -e .env && echo there; echo x > .env; rm -f .env; mv .env a; echo";
    rig.mask(".env", MaskKind::Hide);
    let finished = rig.run(text);
    assert_eq!(stdout(&finished), "\n", "{}", shown(&finished));
    assert!(shown(&finished).contains("No such file"), "{}", shown(&finished));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "KEY=1\n");
    assert_eq!(rig.control("cat .env; test -e .env && echo there"), "KEY=1\nthere\n");
}

#[test]
fn a_hidden_directory_is_empty_and_cannot_be_filled() {
    let mut rig = Rig::new();
    rig.file("private/key", "secret");
    rig.mask("private", MaskKind::Hide);
    let finished = rig.run("ls -A private; cat private/key; echo x > private/new; rmdir private");
    assert_eq!(stdout(&finished), "", "{}", shown(&finished));
    assert!(!rig.workspace().join("private/new").exists());
    assert_eq!(rig.control("cat private/key"), "secret");
}

#[test]
fn a_read_only_name_is_read_and_cannot_be_changed_in_any_way() {
    let mut rig = Rig::new();
    rig.file(".git/config", "old\n");
    rig.file(".git/hooks/sample", "sample\n");
    rig.mask(".git/config", MaskKind::ReadOnly).mask(".git/hooks", MaskKind::ReadOnly);
    let text = "cat .git/config; echo new > .git/config; rm -rf .git/hooks; mv .git/config .git/c; \
        echo evil > .git/hooks/pre-commit; echo n > .git/n; mv -f .git/n .git/config; \
        chmod 0777 .git/config; ln .git/config linked && echo bad > linked";
    let finished = rig.run(text);
    assert_eq!(stdout(&finished), "old\n", "{}", shown(&finished));
    let hooks: Vec<_> = std::fs::read_dir(rig.workspace().join(".git/hooks")).unwrap().collect();
    assert_eq!(hooks.len(), 1);
    assert_eq!(std::fs::read_to_string(rig.workspace().join(".git/config")).unwrap(), "old\n");
    rig.control(text);
    assert!(
        rig.workspace().join(".git/hooks/pre-commit").exists()
            || !rig.workspace().join(".git/hooks").exists()
    );
}

#[test]
fn a_directory_above_a_masked_name_cannot_be_renamed_away() {
    let mut rig = Rig::new();
    rig.file("a/b/key", "secret");
    let text = "mv a/b a/c || mv a d || echo held";
    rig.mask("a/b/key", MaskKind::Hide);
    assert_eq!(stdout(&rig.run(text)), "held\n");
    assert!(rig.workspace().join("a/b/key").exists());
    rig.control(text);
    assert!(!rig.workspace().join("a/b/key").exists(), "the control renames");
}

#[test]
fn work_beside_a_masked_name_goes_on() {
    let mut rig = Rig::new();
    rig.file("a/b/key", "secret");
    rig.mask("a/b/key", MaskKind::Hide);
    let finished =
        rig.run("echo 1 > a/b/x; mv a/b/x a/b/y; mkdir a/b/d; mv a/b/y a/b/d/; cat a/b/d/y");
    assert_eq!(stdout(&finished), "1\n", "{}", shown(&finished));
}

#[test]
fn a_masked_link_hides_what_it_means_and_stays_in_place() {
    let mut rig = Rig::new();
    rig.file("real/key", "secret");
    std::os::unix::fs::symlink("real/key", rig.workspace().join("key")).unwrap();
    rig.mask("key", MaskKind::Hide);
    assert_eq!(
        stdout(&rig.run("cat key real/key; mv real r2; cat r2/key; rm -f key; ls")),
        "key\nreal\n"
    );
    assert_eq!(rig.control("cat key real/key"), "secretsecret");
}

#[test]
fn a_masked_name_behind_a_link_is_covered_where_it_really_is() {
    let mut rig = Rig::new();
    rig.file("real/hooks/old", "x");
    std::os::unix::fs::symlink("real", rig.workspace().join("link")).unwrap();
    rig.mask("link/hooks", MaskKind::ReadOnly);
    let text = "echo x > real/hooks/new; echo x > link/hooks/new; rm link; mkdir -p link/hooks";
    let finished = rig.run(text);
    assert!(!rig.workspace().join("real/hooks/new").exists(), "{}", shown(&finished));
    assert!(std::fs::symlink_metadata(rig.workspace().join("link")).unwrap().is_symlink());
    rig.control(text);
    assert!(rig.workspace().join("real/hooks/new").exists(), "the control writes");
}

#[test]
fn odd_masked_names_do_not_stop_a_launch() {
    use std::os::unix::ffi::OsStringExt;
    let mut rig = Rig::new();
    let workspace = rig.workspace();
    let odd = OsString::from_vec(b"not-\xff-text".to_vec());
    std::fs::write(workspace.join(&odd), "secret").unwrap();
    std::os::unix::fs::symlink("nowhere", workspace.join("dangling")).unwrap();
    std::os::unix::fs::symlink("loop", workspace.join("loop")).unwrap();
    std::os::unix::fs::symlink("/etc/shadow", workspace.join("out")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        workspace.join("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(workspace.join("socket")).unwrap();
    rig.file("plain", "x");
    for name in ["dangling", "loop", "out", "fifo", "socket", "plain/below", "missing/below"] {
        rig.mask(name, MaskKind::Hide).mask(name, MaskKind::ReadOnly);
    }
    let pattern = MaskPattern::Exact(workspace.join(&odd));
    rig.spec.masks.push(Mask { pattern, kind: MaskKind::Hide, reason_id: "odd".into() });
    let finished =
        rig.run("cat not-*; echo on; rm -f dangling loop out; ls -l dangling loop out | wc -l");
    assert_eq!(stdout(&finished), "on\n3\n", "{}", shown(&finished));
}

#[test]
fn ten_thousand_matches_of_one_pattern_are_all_hidden() {
    let mut rig = Rig::new();
    for number in 0..10_000 {
        rig.file(&format!("d{}/s{number}/.env", number % 10), "secret");
    }
    let pattern = MaskPattern::Glob {
        root: rig.workspace(),
        patterns: vec!["**/.env".into()],
        except: Vec::new(),
    };
    rig.spec.masks.push(Mask { pattern, kind: MaskKind::Hide, reason_id: "glob".into() });
    let start = Instant::now();
    let finished = rig.run("cat d*/s*/.env 2>/dev/null | wc -c; mv d1 e1; cat e1/*/.env | wc -c");
    assert_eq!(stdout(&finished), "0\n0\n", "{}", shown(&finished));
    assert_eq!(finished.enforced.masked, 10_000);
    println!("10,000 masks: {:?}", start.elapsed());
    assert_eq!(rig.control("cat d*/*/.env e1/*/.env | wc -c"), "60000\n");
}

#[test]
fn a_directory_that_a_pattern_closes_takes_no_new_file() {
    let mut rig = Rig::new();
    rig.file(".git/modules/sub/hooks/sample", "sample");
    rig.file(".git/modules/sub/config", "old\n");
    let pattern = MaskPattern::Glob {
        root: rig.workspace().join(".git/modules"),
        patterns: vec!["*/hooks/**".into()],
        except: Vec::new(),
    };
    rig.spec.masks.push(Mask { pattern, kind: MaskKind::ReadOnly, reason_id: "glob".into() });
    let text = "echo evil > .git/modules/sub/hooks/post-checkout; cat .git/modules/sub/hooks/*; \
        rm -rf .git/modules/sub/hooks; mv .git/modules .git/m; echo x > .git/modules/sub/config";
    let finished = rig.run(text);
    assert_eq!(stdout(&finished), "sample", "{}", shown(&finished));
    assert_eq!(finished.enforced.masked, 1, "nothing below it needs a mount of its own");
    let sub = rig.workspace().join(".git/modules/sub");
    assert!(sub.join("hooks/sample").exists() && !sub.join("hooks/post-checkout").exists());
    assert_eq!(std::fs::read_to_string(sub.join("config")).unwrap(), "x\n");
    rig.control(text);
    assert!(!sub.join("hooks/sample").exists(), "the control removes");
}

#[test]
fn a_protected_name_that_the_call_creates_is_moved_aside_and_reported() {
    let mut rig = Rig::new();
    rig.file(".git/HEAD", "x");
    rig.mask(".git/hooks/pre-commit", MaskKind::ReadOnly).mask("policy.toml", MaskKind::ReadOnly);
    let finished =
        rig.run("mkdir .git/hooks; echo evil > .git/hooks/pre-commit; mv .git g2; echo ok");
    assert_eq!(stdout(&finished), "ok\n", "{}", shown(&finished));
    assert!(!rig.workspace().join(".git/hooks/pre-commit").exists());
    assert!(rig.workspace().join(".git/HEAD").exists(), "the directory above stays where it is");
    let [created] = finished.protected_created.as_slice() else {
        panic!("{:?}", finished.protected_created)
    };
    assert_eq!(created.path, rig.workspace().join(".git/hooks/pre-commit"));
    assert_eq!(created.reason_id, "test-rule");
    assert_eq!(std::fs::read_to_string(created.moved_to.as_ref().unwrap()).unwrap(), "evil\n");
    assert_eq!(finished.enforced.watched, 2);
}

#[test]
fn a_link_in_place_of_a_protected_directory_is_moved_and_its_target_is_not_touched() {
    let mut rig = Rig::new();
    rig.file("decoy/policy.toml", "decoy");
    rig.mask("conf/policy.toml", MaskKind::ReadOnly);
    let finished = rig.run("ln -s decoy conf");
    assert!(!rig.workspace().join("conf").exists(), "{}", shown(&finished));
    assert!(rig.workspace().join("decoy/policy.toml").exists());
    assert_eq!(finished.protected_created.len(), 1);
}

#[test]
fn a_linked_worktree_keeps_its_git_file() {
    let mut rig = Rig::new();
    rig.file(".git", "gitdir: /somewhere/else\n");
    rig.mask(".git/hooks", MaskKind::ReadOnly).mask(".git/config", MaskKind::ReadOnly);
    let finished = rig.run("rm -f .git; echo gitdir: evil > .git; mkdir -p .git/hooks; cat .git");
    assert_eq!(stdout(&finished), "gitdir: /somewhere/else\n", "{}", shown(&finished));
}

#[test]
fn nothing_is_left_on_the_host_by_masks() {
    let mut rig = Rig::new();
    rig.file("a/.env", "x");
    rig.mask("a/.env", MaskKind::Hide).mask(".env", MaskKind::Hide).mask("b/c", MaskKind::ReadOnly);
    let before = rig.control("find . | sort");
    rig.run("true");
    assert_eq!(rig.control("find . | sort"), before);
}

#[test]
fn a_grant_that_a_call_turned_into_a_link_is_refused() {
    let mut rig = Rig::new();
    let outside = rig.outside();
    std::os::unix::fs::symlink(&outside, rig.workspace().join("vendor")).unwrap();
    rig.spec.grants.push(Grant::new(rig.workspace().join("vendor"), GrantAccess::ReadOnly));
    let failed = rig.launch("cat vendor/secret").unwrap_err();
    assert_eq!((failed.step, failed.errno), (Step::Grant, libc::EXDEV), "{failed}");
}
