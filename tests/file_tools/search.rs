//! list, glob and grep: what is found, what is passed over, and how much of it.

use crate::rig::Rig;
use serde_json::json;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use stoplog::tools::worker::job::ProtectedKind;
use stoplog::tools::worker::reply::{JobError, Stopped};

fn project() -> Rig {
    let rig = Rig::new();
    for (name, content) in [
        (".gitignore", "target/\n*.log\n!keep.log\n/only-top\n"),
        (".git/config", "needle\n"),
        (".hidden", "needle\n"),
        ("a.txt", "nothing\nneedle one\n"),
        ("a/b.txt", "needle two\r\n"),
        ("a/.gitignore", "secret.txt\n"),
        ("a/secret.txt", "needle\n"),
        ("a/only-top", "needle three\n"),
        ("keep.log", "x\n"),
        ("only-top", "needle\n"),
        ("target/out", "needle\n"),
        ("x.log", "needle\n"),
    ] {
        rig.put(name, content);
    }
    rig
}

#[test]
fn what_a_repository_excludes_for_itself_is_ignored_too() {
    let rig = project();
    let names = |path: &str| rig.find("list", json!({"path": path, "depth": 3})).unwrap().names;
    let before = names(".");
    assert!(before.iter().any(|name| name == "a/b.txt") && before.iter().any(|n| n == "a.txt"));
    rig.put(".git/info/exclude", "# local\nb.txt\n/a.txt\nkeep.log\n");
    assert_eq!(names("."), ["a/", "a/only-top", "keep.log"], "a .gitignore is the stronger one");
    assert_eq!(names("a"), ["only-top"], "it holds below its repository's top");
    let grep = rig.grep(json!({"pattern": "needle"})).unwrap();
    assert_eq!(grep.files, 1);
    // A repository within has its own, and it does not reach out of it.
    rig.put("a/sub/.git/info/exclude", "only-top\n");
    rig.put("a/sub/only-top", "needle\n");
    rig.put("a/sub/b.txt", "needle\n");
    assert_eq!(names("."), ["a/", "a/only-top", "a/sub/", "keep.log"]);
    let all = rig.find("list", json!({"all": true})).unwrap().names;
    assert!(all.iter().any(|name| name == "a.txt"), "{all:?}");
    // What is no file of rules, or leads away, is no rule and no error.
    std::fs::remove_file(rig.inside.join(".git/info/exclude")).unwrap();
    symlink("/etc/hostname", rig.inside.join(".git/info/exclude")).unwrap();
    assert!(names(".").iter().any(|name| name == "a.txt"));
}

#[test]
fn a_directory_is_listed_sorted_without_what_git_ignores() {
    let rig = project();
    symlink("a", rig.inside.join("link")).unwrap();
    let found = rig.find("list", json!({})).unwrap();
    assert_eq!(found.names, ["a.txt", "a/", "keep.log", "link -> a"]);
    let found = rig.find("list", json!({"depth": 2})).unwrap();
    assert_eq!(found.names, ["a.txt", "a/", "a/b.txt", "a/only-top", "keep.log", "link -> a"]);
    let found = rig.find("list", json!({"path": "a"})).unwrap();
    assert_eq!(found.names, ["b.txt", "only-top"], "rules of the directory above hold");
    let all = rig.find("list", json!({"all": true})).unwrap().names;
    assert_eq!(
        all,
        [
            ".gitignore",
            ".hidden",
            "a.txt",
            "a/",
            "keep.log",
            "link -> a",
            "only-top",
            "target/",
            "x.log"
        ]
    );
    assert_eq!(rig.find("list", json!({"path": "target"})).unwrap().names, ["out"], "when named");
    assert_eq!(rig.find("list", json!({"path": "link"})).unwrap().names, ["b.txt", "only-top"]);
    let error = rig.find("list", json!({"path": "a.txt"})).unwrap_err();
    assert!(matches!(error, JobError::NotDirectory { .. }), "{error}");
}

#[test]
fn an_empty_directory_is_said_to_be() {
    let rig = Rig::new();
    assert_eq!(rig.text("list", json!({})), "(nothing found)");
    assert_eq!(rig.text("grep", json!({"pattern": "x"})), "(no matches)");
}

#[test]
fn a_star_stays_within_its_directory() {
    let rig = project();
    for (pattern, expected) in [
        ("*.txt", ["a.txt"].as_slice()),
        ("**/*.txt", &["a.txt", "a/b.txt"]),
        ("./a/*", &["a/b.txt", "a/only-top"]),
        ("*", &["a.txt", "keep.log"]),
        ("{a,keep}.*", &["a.txt", "keep.log"]),
        ("nothing", &[]),
    ] {
        let found = rig.find("glob", json!({"pattern": pattern})).unwrap();
        assert_eq!(found.names, expected, "{pattern}");
    }
    let found = rig.find("glob", json!({"pattern": "**/*.txt", "all": true})).unwrap();
    assert_eq!(found.names, ["a.txt", "a/b.txt", "a/secret.txt"]);
    let found = rig.find("glob", json!({"pattern": "*.txt", "path": "a"})).unwrap();
    assert_eq!(found.names, ["b.txt"]);
}

#[test]
fn a_pattern_may_ask_for_hidden_names_itself() {
    let rig = Rig::new();
    rig.put(".github/a.yml", "needle\n");
    rig.put(".env", "needle\n");
    rig.put(".gitignore", ".env\n");
    for (pattern, expected) in [
        ("**/*.yml", [].as_slice()),
        (".github/*.yml", &[".github/a.yml"]),
        ("{x,.github}/*", &[".github/a.yml"]),
        (".env", &[]),
    ] {
        let found = rig.find("glob", json!({"pattern": pattern})).unwrap();
        assert_eq!(found.names, expected, "{pattern}");
    }
    let text = rig.text("glob", json!({"pattern": "**/*.yml"}));
    assert_eq!(
        text,
        "(nothing found)\n[3 hidden or ignored names were left out; set `all` to include them]"
    );
    let include = |include: &str| json!({"pattern": "needle", "include": include});
    assert_eq!(rig.grep(include("*.yml")).unwrap().files, 0);
    assert_eq!(rig.grep(include(".github/*")).unwrap().files, 1);
}

#[test]
fn patterns_that_cannot_be_used_say_why() {
    let rig = Rig::new();
    let bomb = "{a,b}".repeat(800) + &"{".repeat(90);
    for pattern in ["/etc/*", "../*", "a/../../*", "a[", "{a", &bomb, &"x".repeat(5_000)] {
        let error = rig.find("glob", json!({"pattern": pattern})).unwrap_err();
        assert!(matches!(error, JobError::BadPattern { .. }), "{error}");
        assert!(error.to_string().len() < 1_000);
    }
    for pattern in ["(", "[a", "\\p{Nope}", "(?:\\w{1000}){1000}", &"(".repeat(3_000)] {
        let error = rig.grep(json!({"pattern": pattern})).unwrap_err();
        assert!(matches!(error, JobError::BadPattern { .. }), "{pattern}: {error}");
    }
    let error = rig.grep(json!({"pattern": "x", "include": "a["})).unwrap_err();
    assert!(matches!(error, JobError::BadPattern { .. }), "{error}");
}

#[test]
fn lines_are_found_with_file_and_number() {
    let rig = project();
    let text = rig.text("grep", json!({"pattern": "needle \\w+$"}));
    assert_eq!(text, "a.txt:2:needle one\na/b.txt:1:needle two\na/only-top:1:needle three");
    let matched = rig.grep(json!({"pattern": "NEEDLE", "include": "*.txt"})).unwrap();
    assert_eq!(matched.lines.len(), 0);
    let ignore_case = json!({"pattern": "NEEDLE", "ignore_case": true, "include": "*.txt"});
    assert_eq!(rig.grep(ignore_case).unwrap().files, 2);
    let matched =
        rig.grep(json!({"pattern": "needle", "include": "a/*.txt", "all": true})).unwrap();
    assert_eq!(matched.files, 2);
    let all = rig.grep(json!({"pattern": "needle", "all": true})).unwrap();
    assert!(all.lines.iter().all(|line| !line.file.starts_with(".git/")), "never in .git");
    assert!(all.lines.iter().any(|line| line.file == ".hidden"));
    let single = rig.text("grep", json!({"pattern": "needle", "path": "a.txt"}));
    assert_eq!(single, "a.txt:2:needle one");
}

#[test]
fn binary_files_are_counted_and_long_lines_are_cut_around_the_match() {
    let rig = Rig::new();
    rig.put("binary", b"needle\nneedle\0needle\n");
    rig.put("late", [b"needle\n".repeat(30_000).as_slice(), b"\0"].concat());
    rig.put("long", "中".repeat(3_000) + "needle" + &"🙂".repeat(3_000) + "\n");
    let matched = rig.grep(json!({"pattern": "needle"})).unwrap();
    assert_eq!((matched.binary, matched.files, matched.lines.len()), (2, 1, 1));
    let line = &matched.lines[0];
    assert!(line.text.contains("needle") && line.text.len() <= 500, "{}", line.text);
    assert!(!line.text.contains('\u{fffd}'), "{}", line.text);
    assert_eq!(line.omitted_bytes + line.text.len() as u64, 9_000 + 6 + 12_000);
    let text = rig.text("grep", json!({"pattern": "needle"}));
    assert!(text.contains("[2 binary files not searched]"), "{text}");
    let error = rig.grep(json!({"pattern": "needle", "path": "binary"})).unwrap_err();
    assert!(matches!(error, JobError::Binary { .. }), "{error}");
}

#[test]
fn results_are_bounded_and_the_rest_is_counted() {
    let mut rig = Rig::new();
    for index in 0..1_500 {
        rig.put(&format!("d/{index:04}"), "needle\nneedle\n");
    }
    for arguments in [("list", json!({"path": "d"})), ("glob", json!({"pattern": "d/*"}))] {
        let found = rig.find(arguments.0, arguments.1.clone()).unwrap();
        assert_eq!((found.names.len(), found.coverage.omitted), (1_000, 500));
        assert!(rig.text(arguments.0, arguments.1).contains("[500 more names not shown"));
    }
    let matched = rig.grep(json!({"pattern": "needle"})).unwrap();
    assert_eq!(
        (matched.lines.len(), matched.coverage.omitted, matched.files),
        (1_000, 2_000, 1_500)
    );
    rig.job.limits.entries = 100;
    let found = rig.find("list", json!({"path": "d"})).unwrap();
    assert_eq!((found.names.len(), found.coverage.stopped), (100, Some(Stopped::Entries)));
    assert!(rig.text("list", json!({"path": "d"})).contains("not complete"));
    rig.job.limits.entries = 10_000;
    rig.job.limits.time_ms = 0;
    let matched = rig.grep(json!({"pattern": "needle"})).unwrap();
    assert_eq!(matched.coverage.stopped, Some(Stopped::Time));
    rig.job.limits.time_ms = 20_000;
    rig.job.limits.scan_bytes = 100;
    let matched = rig.grep(json!({"pattern": "needle"})).unwrap();
    assert_eq!(matched.coverage.stopped, Some(Stopped::Bytes));
}

#[test]
fn long_names_and_lines_stay_within_a_result() {
    let rig = Rig::new();
    for index in 0..600 {
        let name = format!("{}{index:03}", "n".repeat(240));
        rig.put(&name, "needle ".repeat(60) + "\n");
    }
    let found = rig.find("list", json!({})).unwrap();
    assert!(found.coverage.omitted > 0);
    assert_eq!(found.names.len() as u64 + found.coverage.omitted, 600);
    rig.text("list", json!({}));
    let matched = rig.grep(json!({"pattern": "needle"})).unwrap();
    assert_eq!(matched.lines.len() as u64 + matched.coverage.omitted, 600);
    let text = rig.text("grep", json!({"pattern": "needle"}));
    assert!(text.contains("more lines not shown"), "notes are never cut off");
}

#[test]
fn names_that_are_not_text_are_shown_escaped() {
    let rig = Rig::new();
    let odd = rig.inside.join(OsStr::from_bytes(b"bad\xff\x1b[2J\nname"));
    crate::rig::put(&odd, b"needle\n");
    let shown = "bad\\xff\\u{1b}[2J\\nname";
    assert_eq!(rig.find("list", json!({})).unwrap().names, [shown]);
    assert_eq!(rig.find("glob", json!({"pattern": "bad*"})).unwrap().names, [shown]);
    assert_eq!(rig.grep(json!({"pattern": "needle"})).unwrap().lines[0].file, shown);
}

#[test]
fn protected_names_are_counted_and_not_given() {
    let mut rig = Rig::new();
    rig.put(".env", "needle\n");
    rig.put("d/key", "needle\n");
    rig.put("f", "needle\n");
    let count = |rig: &Rig| rig.grep(json!({"pattern": "needle", "all": true})).unwrap().files;
    assert_eq!(count(&rig), 3, "control");
    rig.protect("**/.env", ProtectedKind::Hide);
    rig.protect_exact("d", ProtectedKind::Hide);
    assert_eq!(count(&rig), 1);
    let found = rig.find("list", json!({"all": true})).unwrap();
    assert_eq!((found.names, found.coverage.protected), (vec!["f".to_owned()], 2));
    assert!(matches!(
        rig.find("list", json!({"path": "d"})).unwrap_err(),
        JobError::Protected { .. }
    ));
}

#[test]
fn a_hidden_file_is_not_searched_under_a_second_name() {
    let mut rig = Rig::new();
    rig.put("key", "needle\n");
    std::fs::hard_link(rig.inside.join("key"), rig.inside.join("twin")).unwrap();
    assert_eq!(rig.grep(json!({"pattern": "needle"})).unwrap().files, 2, "control");
    rig.protect_exact("key", ProtectedKind::Hide);
    let matched = rig.grep(json!({"pattern": "needle"})).unwrap();
    assert_eq!((matched.files, matched.coverage.protected), (0, 2));
}

#[test]
fn rules_above_a_repository_do_not_reach_into_it() {
    let rig = Rig::new();
    rig.put(".gitignore", "*.log\n");
    rig.put("repository/x.log", "");
    rig.put("plain/x.log", "");
    std::fs::create_dir(rig.inside.join("repository/.git")).unwrap();
    assert_eq!(rig.find("list", json!({"path": "repository"})).unwrap().names, ["x.log"]);
    assert!(rig.find("list", json!({"path": "plain"})).unwrap().names.is_empty(), "control");
}

#[test]
fn a_directory_of_more_names_than_can_be_sorted_is_given_in_part() {
    let rig = Rig::quick();
    for index in 0..100_050 {
        std::fs::File::create(rig.inside.join(index.to_string())).unwrap();
    }
    let found = rig.find("list", json!({})).unwrap();
    assert_eq!((found.names.len(), found.coverage.omitted), (1_000, 99_000));
    assert_eq!(found.coverage.stopped, Some(Stopped::Entries));
    assert!(rig.text("list", json!({})).contains("[at least 99000 more names not shown"));
}

#[test]
fn a_deep_tree_and_a_link_to_itself_end() {
    let rig = Rig::new();
    let mut path = rig.inside.clone();
    for _ in 0..100 {
        path.push("d");
        std::fs::create_dir(&path).unwrap();
    }
    symlink(".", rig.inside.join("loop")).unwrap();
    let found = rig.find("glob", json!({"pattern": "**/*"})).unwrap();
    assert_eq!((found.names, found.coverage.too_deep), (vec!["loop -> .".to_owned()], 1));
}
