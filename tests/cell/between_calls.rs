//! Denials inside a grant over two calls: whatever the first one did to names and directories, the
//! second sees no more.

use crate::rig::{Rig, shown, stdout};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use stoplog::sandbox::{Mask, MaskKind, MaskPattern};

fn pattern(rig: &mut Rig, pattern: &str, kind: MaskKind) {
    let (root, pattern) = (rig.workspace(), pattern.to_owned());
    let pattern = MaskPattern::Glob { root, patterns: vec![pattern], except: Vec::new() };
    rig.spec.masks.push(Mask { pattern, kind, reason_id: "pattern".into() });
}

/// What a first call may try so that a second one finds the file uncovered, and how that one reads it.
const UNCOVERINGS: [(&str, &str); 7] = [
    ("mv a/b/key a/b/other", "cat a/b/other"),
    ("mv a/b a/c", "cat a/c/key"),
    ("mv a d", "cat d/b/key"),
    ("mkdir e && mv a e/ ", "cat e/a/b/key"),
    ("mv a d && mkdir -p a/b && echo mine > a/b/key", "cat d/b/key"),
    ("ln -s a/b way; ln a/b/key second", "cat second way/key"),
    ("cp -al a copy; cp -a a plain", "cat copy/b/key plain/b/key"),
];

#[test]
fn an_exact_name_stays_hidden_whatever_an_earlier_call_renamed() {
    for (first, second) in UNCOVERINGS {
        let mut rig = Rig::new();
        rig.file("a/b/key", "secret\n");
        rig.mask("a/b/key", MaskKind::Hide);
        rig.run(first);
        let finished = rig.run(&format!("{second}; find . -type f | xargs cat"));
        assert!(!stdout(&finished).contains("secret"), "{first}: {}", shown(&finished));
        assert_eq!(fs::read_to_string(rig.workspace().join("a/b/key")).unwrap(), "secret\n");
        // The control: without the mask the way is open.
        let control = Rig::new();
        control.file("a/b/key", "secret\n");
        control.control(first);
        assert!(control.control(second).contains("secret"), "{first} shows nothing");
    }
}

#[test]
fn a_pattern_follows_names_that_an_earlier_call_moved() {
    for (first, second) in UNCOVERINGS
        .map(|(first, second)| (first.replace("key", ".env"), second.replace("key", ".env")))
    {
        let mut rig = Rig::new();
        rig.file("a/b/.env", "secret\n");
        pattern(&mut rig, "**/.env", MaskKind::Hide);
        rig.run(&first);
        let finished = rig.run(&format!("{second}; find . -type f | xargs cat"));
        assert!(!stdout(&finished).contains("secret"), "{first}: {}", shown(&finished));
        let control = rig.control("find . -type f | xargs cat");
        assert!(control.contains("secret"), "it is still somewhere");
    }
}

#[test]
fn a_read_only_directory_stays_what_it_is_whatever_an_earlier_call_did_to_those_above() {
    for first in [
        "mv .git old",
        "mv .git/hooks .git/old",
        "rm -rf .git",
        "mv .git old; mkdir -p .git/hooks",
        "rm -rf .git/hooks; ln -s ../mine .git/hooks",
        "mkdir mine; mv mine .git/hooks; mv -T mine .git/hooks",
    ] {
        let mut rig = Rig::new();
        rig.file(".git/hooks/kept", "kept\n");
        rig.file(".git/HEAD", "x\n");
        rig.mask(".git/hooks", MaskKind::ReadOnly);
        rig.run(first);
        let finished = rig.run("echo evil > .git/hooks/pre-commit; ls .git/hooks");
        assert_eq!(stdout(&finished), "kept\n", "{first}: {}", shown(&finished));
        assert!(!rig.workspace().join(".git/hooks/pre-commit").exists(), "{first}");
        assert_eq!(rig.control("cat .git/hooks/kept"), "kept\n", "{first}");
    }
    let control = Rig::new();
    control.file(".git/hooks/kept", "kept\n");
    control.control("mv .git old; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit");
    assert!(control.workspace().join(".git/hooks/pre-commit").exists());
}

#[test]
fn a_protected_name_is_moved_aside_after_each_call_that_makes_it() {
    let mut rig = Rig::new();
    rig.file(".git/HEAD", "x");
    rig.mask(".git/hooks/pre-commit", MaskKind::ReadOnly);
    for round in 0..3 {
        let finished =
            rig.run(&format!("mkdir -p .git/hooks; echo evil{round} > .git/hooks/pre-commit"));
        assert_eq!(finished.protected_created.len(), 1, "{}", shown(&finished));
        assert!(!rig.workspace().join(".git/hooks/pre-commit").exists(), "round {round}");
    }
    // Nothing that was moved aside is lost.
    assert_eq!(rig.control("find . -type f | xargs cat | sort").matches("evil").count(), 3);
}

#[test]
fn names_that_are_no_text_are_hidden_and_kept() {
    let mut rig = Rig::new();
    let odd = |text: &[u8]| OsString::from_vec(text.to_vec());
    let directory = rig.workspace().join(odd(b"d\xff"));
    fs::create_dir(&directory).unwrap();
    for name in [&b"\xfe.key"[..], b"\xc3\x28.key", b"\xed\xa0\x80.key", b"\xff"] {
        fs::write(directory.join(odd(name)), "secret\n").unwrap();
    }
    fs::write(directory.join("free"), "free\n").unwrap();
    let text = "find . -type f -print0 | xargs -0 cat 2>/dev/null | sort | uniq -c";
    assert!(rig.control(text).contains("4 secret"), "the control");
    pattern(&mut rig, "**/*.key", MaskKind::Hide);
    let exact = MaskPattern::Exact(directory.join(odd(b"\xff")));
    rig.spec.masks.push(Mask { pattern: exact, kind: MaskKind::Hide, reason_id: "exact".into() });
    let finished = rig.run(text);
    assert_eq!(stdout(&finished).trim(), "1 free", "{}", shown(&finished));
    assert_eq!(finished.enforced.masked, 4);
    assert!(rig.control(text).contains("4 secret"));
}

#[test]
fn nested_repositories_and_linked_worktrees_keep_hooks_and_configuration() {
    let mut rig = Rig::new();
    for repository in ["", "vendor/one/", "vendor/one/deep/two/"] {
        rig.file(&format!("{repository}.git/config"), "[core]\n");
        rig.file(&format!("{repository}.git/hooks/sample"), "sample\n");
    }
    rig.file("linked/.git", "gitdir: ../.git/worktrees/linked\n");
    for name in ["**/.git/config", "**/.git/hooks"] {
        pattern(&mut rig, name, MaskKind::ReadOnly);
    }
    rig.mask("linked/.git/hooks", MaskKind::ReadOnly);
    let attack = "for d in . vendor/one vendor/one/deep/two linked; do \
        echo evil >> $d/.git/config; echo evil > $d/.git/hooks/pre-commit; \
        mv $d/.git $d/x; rm -rf $d/.git; mkdir -p $d/.git/hooks; echo evil > $d/.git/hooks/post; done";
    rig.run(attack);
    let finished = rig.run(attack);
    let left = rig.control("find . -type f | sort; find . -type f | xargs cat | grep -c evil");
    let expected = "./.git/config\n./.git/hooks/sample\n./linked/.git\n\
        ./vendor/one/.git/config\n./vendor/one/.git/hooks/sample\n\
        ./vendor/one/deep/two/.git/config\n./vendor/one/deep/two/.git/hooks/sample\n0\n";
    assert_eq!(left, expected, "{}", shown(&finished));
    rig.control(attack);
    let control = rig.control("find . -type f | xargs cat | grep -c evil");
    assert!(control.trim().parse::<u32>().unwrap() >= 4, "the control: {control}");
}
