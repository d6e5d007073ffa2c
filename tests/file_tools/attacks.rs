//! Ways out of the roots, things that are no files, and sizes that fill memory: each with a control
//! in which the naive way succeeds.

use crate::rig::{Rig, SECRET, peak_memory, put};
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use serde_json::json;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use stoplog::tools::worker::job::{FileIdentity, ProtectedKind, Root};
use stoplog::tools::worker::reply::{FileKind, JobError};

const MEGABYTE: u64 = 1024 * 1024;

#[test]
fn read_through_a_link_that_leads_outside_is_refused() {
    let rig = Rig::new();
    symlink("../outside/secret", rig.inside.join("relative")).unwrap();
    symlink(rig.outside.join("secret"), rig.inside.join("absolute")).unwrap();
    symlink("../outside", rig.inside.join("parent")).unwrap();
    symlink("parent/secret", rig.inside.join("twice")).unwrap();
    symlink("/proc/self/root", rig.inside.join("magic")).unwrap();
    for path in ["relative", "absolute", "parent/secret", "twice", "magic/etc/passwd"] {
        let naive = fs::read_to_string(rig.inside.join(path)).unwrap();
        assert!(!naive.is_empty(), "control: {path} leads somewhere");
        let error = rig.read(path).unwrap_err();
        assert!(matches!(error, JobError::Outside { via: Some(_), .. }), "{path}: {error}");
        assert!(rig.edit(path, &[("secret", "x")]).is_err(), "{path}");
        assert!(rig.grep(json!({"pattern": "secret", "path": path})).is_err(), "{path}");
    }
    for path in ["../outside/secret", "/etc/passwd", "a/../../outside/secret"] {
        let error = rig.read(path).unwrap_err();
        assert!(matches!(error, JobError::Outside { via: None, .. }), "{path}: {error}");
    }
    assert!(rig.find("list", json!({"path": "parent"})).is_err());
    assert!(rig.grep(json!({"pattern": "secret"})).unwrap().lines.is_empty());
    assert_eq!(rig.find("glob", json!({"pattern": "*/secret"})).unwrap().names.len(), 0);
    rig.assert_outside_untouched();
}

#[test]
fn write_through_a_link_that_leads_outside_is_refused() {
    let rig = Rig::new();
    symlink("../outside/secret", rig.inside.join("link")).unwrap();
    symlink("../outside", rig.inside.join("parent")).unwrap();
    symlink("../outside/new", rig.inside.join("dangling")).unwrap();
    for path in ["link", "parent/secret", "parent/new", "parent/newdir/f", "dangling", "dangling/f"]
    {
        let error = rig.write(path, "changed").unwrap_err();
        assert!(matches!(error, JobError::Outside { via: Some(_), .. }), "{path}: {error}");
        rig.assert_outside_untouched();
    }
    rig.assert_no_drafts();
    // Control: the naive way makes the file outside.
    put(&rig.inside.join("dangling"), b"naive");
    assert!(rig.outside.join("new").exists());
}

#[test]
fn links_in_a_circle_end() {
    let rig = Rig::new();
    symlink("b", rig.inside.join("a")).unwrap();
    symlink("a", rig.inside.join("b")).unwrap();
    for error in [rig.read("a").unwrap_err(), rig.write("a", "x").unwrap_err()] {
        assert!(matches!(error, JobError::TooManyLinks { .. }), "{error}");
    }
}

#[test]
fn pipes_sockets_devices_and_process_files_are_refused_at_once() {
    let mut rig = Rig::new();
    mknodat(CWD, rig.inside.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let _listener = UnixListener::bind(rig.inside.join("socket")).unwrap();
    let started = Instant::now();
    for (path, expected) in [("pipe", FileKind::Fifo), ("socket", FileKind::Socket)] {
        for error in [
            rig.read(path).unwrap_err(),
            rig.write(path, "x").unwrap_err(),
            rig.edit(path, &[("a", "b")]).unwrap_err(),
        ] {
            let refused =
                matches!(&error, JobError::NotRegularFile { kind, .. } if *kind == expected);
            assert!(refused, "{path}: {error}");
        }
    }
    assert_eq!(
        rig.find("list", json!({})).unwrap().names,
        ["pipe (a named pipe)", "socket (a socket)"]
    );
    assert!(rig.grep(json!({"pattern": "x"})).unwrap().lines.is_empty(), "not even opened");
    for path in ["/dev/zero", "/proc/self/environ"] {
        assert!(fs::metadata(path).is_ok(), "control: {path} is there");
        assert!(matches!(rig.read(path).unwrap_err(), JobError::Outside { .. }), "{path}");
    }
    rig.job.roots.push(Root { path: "/dev".into(), writable: true });
    for error in [rig.read("/dev/zero").unwrap_err(), rig.write("/dev/null", "x").unwrap_err()] {
        assert!(
            matches!(error, JobError::NotRegularFile { kind: FileKind::Device, .. }),
            "{error}"
        );
    }
    assert!(started.elapsed() < Duration::from_secs(5), "nothing waits");
}

#[test]
fn a_magic_link_of_a_granted_proc_is_only_text() {
    let mut rig = Rig::new();
    rig.job.roots.push(Root { path: "/proc".into(), writable: false });
    let held = File::open(rig.outside.join("secret")).unwrap();
    let way = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&held));
    assert_eq!(fs::read_to_string(&way).unwrap(), SECRET, "control: the kernel follows it");
    let error = rig.read(&way).unwrap_err();
    assert!(matches!(error, JobError::Outside { .. }), "{error}");
}

#[test]
fn a_hard_link_is_not_written() {
    let mut rig = Rig::new();
    let (name, outside) = (rig.inside.join("twin"), rig.outside.join("secret"));
    fs::hard_link(&outside, &name).unwrap();
    for error in
        [rig.write("twin", "x").unwrap_err(), rig.edit("twin", &[("secret", "x")]).unwrap_err()]
    {
        assert!(matches!(error, JobError::HardLinked { links: 2, .. }), "{error}");
        assert!(error.to_string().contains("cp -p"), "{error}");
    }
    rig.assert_outside_untouched();
    // A file of this session is known not to come from outside.
    let made = rig.write("own", "mine").unwrap();
    fs::hard_link(rig.inside.join("own"), rig.inside.join("second")).unwrap();
    assert!(matches!(rig.write("own", "x").unwrap_err(), JobError::HardLinked { .. }));
    rig.job.created.push(made.identity);
    rig.write("own", "x").unwrap();
    // Its number alone, in a file born at another time, is no pass.
    fs::hard_link(rig.inside.join("second"), rig.inside.join("third")).unwrap();
    rig.job.created = vec![FileIdentity { born_ns: Some(1), ..made.identity }];
    if made.identity.born_ns.is_some() {
        assert!(matches!(rig.write("third", "x").unwrap_err(), JobError::HardLinked { .. }));
    }
    // Control: the naive way changes the file outside.
    put(&name, b"naive");
    assert_eq!(fs::read(&outside).unwrap(), b"naive");
}

#[test]
fn a_protected_path_is_closed_under_every_name() {
    let mut rig = Rig::new();
    rig.put(".git/config", "[core]\n");
    rig.put(".env", "KEY=1\n");
    symlink(".git", rig.inside.join("g")).unwrap();
    symlink("f", rig.inside.join("link")).unwrap();
    rig.put("f", "x");
    fs::hard_link(rig.inside.join(".git/config"), rig.inside.join("twin")).unwrap();
    for path in [".git/config", ".env", "g/config", "twin", "link"] {
        assert!(rig.read(path).is_ok(), "control: {path}");
    }
    rig.write("link", "control").unwrap();
    rig.protect_exact(".git/config", ProtectedKind::ReadOnly);
    rig.protect_exact(".git/hooks", ProtectedKind::ReadOnly);
    rig.protect_exact("link", ProtectedKind::ReadOnly);
    rig.protect("**/.env", ProtectedKind::Hide);
    for path in [
        ".git/config",
        "g/config",
        "./.git/../.git/config",
        ".git/hooks/pre-commit",
        "link",
        "twin",
        "f",
    ] {
        let error = rig.write(path, "x").unwrap_err();
        assert!(matches!(error, JobError::Protected { .. }), "{path}: {error}");
        assert!(error.to_string().contains("`test-rule`"), "{error}");
    }
    assert!(!rig.inside.join(".git/hooks").exists(), "no parent was made");
    rig.read(".git/config").unwrap();
    for error in [rig.read(".env").unwrap_err(), rig.write("a/.env", "x").unwrap_err()] {
        assert!(matches!(error, JobError::Protected { .. }), "{error}");
    }
    assert!(!rig.inside.join("a").exists());
    rig.write(".git/description", "open").unwrap();
}

#[test]
fn a_root_inside_another_that_was_swapped_for_a_link_is_refused() {
    let mut rig = Rig::new();
    rig.put("sub/secret", "inside\n");
    let sub = rig.inside.join("sub");
    rig.job.roots.push(Root { path: sub.clone(), writable: false });
    assert_eq!(rig.read("sub/secret").unwrap().text, "inside\n", "control");
    fs::rename(&sub, rig.inside.join("moved")).unwrap();
    symlink("../outside", &sub).unwrap();
    assert_eq!(fs::read_to_string(sub.join("secret")).unwrap(), SECRET, "control: naive");
    assert!(matches!(rig.read("sub/secret").unwrap_err(), JobError::Outside { .. }));
}

#[test]
fn a_single_writable_file_is_not_replaced_through_its_directory() {
    let mut rig = Rig::new();
    let path = rig.outside.join("secret");
    rig.job.roots.push(Root { path: path.clone(), writable: true });
    let error = rig.write(path.to_str().unwrap(), "x").unwrap_err();
    assert!(error.to_string().contains("not its directory"), "{error}");
    rig.assert_outside_untouched();
    rig.job.roots.push(Root { path: rig.outside.clone(), writable: true });
    rig.write(path.to_str().unwrap(), "control").unwrap();
}

#[test]
fn a_protected_link_to_what_is_above_it_does_not_close_everything() {
    let mut rig = Rig::new();
    rig.put("f", "x");
    rig.put("target/f", "x");
    rig.protect_exact(".env", ProtectedKind::Hide);
    symlink(".", rig.inside.join(".env")).unwrap();
    assert!(rig.read("f").is_ok());
    assert!(matches!(rig.read(".env/f").unwrap_err(), JobError::Protected { .. }));
    fs::remove_file(rig.inside.join(".env")).unwrap();
    symlink("target", rig.inside.join(".env")).unwrap();
    assert!(matches!(rig.read("target/f").unwrap_err(), JobError::Protected { .. }), "control");
}

#[test]
fn a_protected_directory_that_was_renamed_is_still_closed() {
    let mut rig = Rig::new();
    rig.put("closed/f", "x");
    rig.protect_exact("closed", ProtectedKind::Hide);
    let job = rig.job.clone();
    rig.job.protected.clear();
    fs::rename(rig.inside.join("closed"), rig.inside.join("moved")).unwrap();
    assert!(rig.read("moved/f").is_ok(), "control: without protection");
    rig.job = job;
    // The name is free now; what stands under the new one is told by the file only while the
    // protected name still leads there.
    symlink("moved", rig.inside.join("closed")).unwrap();
    assert!(matches!(rig.read("moved/f").unwrap_err(), JobError::Protected { .. }));
}

/// Ends the swapping however the test ends.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Swaps two names again and again while `act` runs.
fn swap_while<T>(a: &Path, b: &Path, act: impl FnOnce() -> T) -> T {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = Stop(&ended);
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
            }
        });
        act()
    })
}

const ROUNDS: usize = 2_000;

#[test]
fn a_directory_swapped_for_a_link_leads_nowhere_outside() {
    let rig = Rig::quick();
    rig.put("d/secret", "inside\n");
    symlink("../outside", rig.inside.join("link")).unwrap();
    put(&rig.outside.join("target"), b"target outside\n");
    rig.put("d/target", "target inside\n");
    let (d, link) = (rig.inside.join("d"), rig.inside.join("link"));
    let escaped = swap_while(&d, &link, || {
        (0..ROUNDS * 20)
            .any(|_| fs::read_to_string(d.join("secret")).is_ok_and(|text| text == SECRET))
    });
    assert!(escaped, "control: a naive read gets out");
    let (mut read, mut written) = (0, 0);
    swap_while(&d, &link, || {
        for round in 0..ROUNDS {
            if let Ok(page) = rig.read("d/secret") {
                assert_eq!(page.text, "inside\n", "round {round}");
                read += 1;
            }
            let result = if round % 2 == 0 {
                rig.write("d/target", "changed\n").map(drop)
            } else {
                rig.edit("d/target", &[("target", "x")]).map(drop)
            };
            written += usize::from(result.is_ok());
            let _refused = rig.write("d/new/f", "x").is_err();
            let matched = rig.grep(json!({"pattern": "secret outside"})).unwrap();
            assert!(matched.lines.is_empty(), "round {round}: {matched:?}");
        }
    });
    assert!(read > 0 && written > 0, "some rounds met the directory: {read} {written}");
    assert_eq!(fs::read(rig.outside.join("target")).unwrap(), b"target outside\n");
    fs::remove_file(rig.outside.join("target")).unwrap();
    rig.assert_outside_untouched();
}

#[test]
fn a_file_swapped_for_a_link_leads_nowhere_outside() {
    let rig = Rig::quick();
    rig.put("f", "inside\n");
    symlink("../outside/secret", rig.inside.join("link")).unwrap();
    let (f, link) = (rig.inside.join("f"), rig.inside.join("link"));
    let escaped = swap_while(&f, &link, || {
        (0..ROUNDS * 20).any(|_| fs::read_to_string(&f).is_ok_and(|text| text == SECRET))
    });
    assert!(escaped, "control: a naive read gets out");
    let mut read = 0;
    swap_while(&f, &link, || {
        for round in 0..ROUNDS {
            if let Ok(page) = rig.read("f") {
                assert_ne!(page.text, SECRET, "round {round}");
                read += 1;
            }
            let _either = rig.write("f", "changed\n").is_ok();
        }
    });
    assert!(read > 0, "some rounds met the file");
    rig.assert_outside_untouched();
    rig.assert_no_drafts();
}

#[test]
fn a_sparse_file_of_100_gigabytes_is_read_in_bounded_memory() {
    let rig = Rig::new();
    let path = rig.put("sparse", "head\n".repeat(5_000));
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(100 * 1024 * MEGABYTE).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().size(), 100 * 1024 * MEGABYTE, "control");
    let (before, started) = (peak_memory(), Instant::now());
    let page = rig.read("sparse").unwrap();
    assert_eq!((page.lines, page.next_offset, page.total_lines), (2_000, Some(2_001), None));
    assert_eq!(page.digest, None, "too large to be edited");
    let mut limited = rig;
    limited.job.limits.time_ms = 300;
    let error = limited.read_page(json!({"path": "sparse", "offset": 1_000_000})).unwrap_err();
    assert!(matches!(error, JobError::NotReached { lines: 5_000, .. }), "{error}");
    assert!(matches!(
        limited.edit("sparse", &[("head", "x")]).unwrap_err(),
        JobError::TooLarge { .. }
    ));
    assert!(limited.grep(json!({"pattern": "tail"})).unwrap().lines.is_empty());
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    assert!(peak_memory() - before < 64 * MEGABYTE, "{} bytes", peak_memory() - before);
    let empty = limited.inside.join("hole");
    File::create(&empty).unwrap().set_len(5 * 1024 * MEGABYTE).unwrap();
    assert!(matches!(limited.read("hole").unwrap_err(), JobError::Binary { .. }));
}

#[test]
fn a_line_of_a_gigabyte_is_cut_and_not_held() {
    let rig = Rig::new();
    // Written sparsely: letters, then a hole, which reads as NUL bytes and no line feed.
    let path = rig.put("line", "a".repeat(200_000));
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(b"z\nlast\n", 1024 * MEGABYTE).unwrap();
    let before = peak_memory();
    let page = rig.read("line").unwrap();
    assert!(page.text.bytes().all(|byte| byte == b'a'));
    assert!(page.cut_line_bytes.is_some() && page.next_offset == Some(2));
    let matched = rig.grep(json!({"pattern": "last"})).unwrap();
    assert_eq!((matched.lines.len(), matched.binary + matched.long_lines), (0, 1));
    assert!(peak_memory() - before < 64 * MEGABYTE, "{} bytes", peak_memory() - before);
}

#[test]
fn a_job_that_is_not_understood_gives_no_reply() {
    for job in [b"".as_slice(), b"{}", b"\xff", b"[]"] {
        let mut out = Vec::new();
        assert_eq!(stoplog::tools::worker::serve(job, &mut out), 1);
        assert!(out.is_empty());
    }
}

#[test]
fn the_largest_reply_fits_its_bound() {
    let rig = Rig::new();
    // Control characters take six bytes each in JSON.
    rig.put("f", "\u{1}".repeat(60_000));
    assert_eq!(rig.read("f").unwrap().lines, 1);
    for index in 0..1_200 {
        rig.put(&format!("d/{index:04}{}", "\u{1}".repeat(200)), "\u{1}".repeat(900) + "needle\n");
    }
    rig.find("list", json!({"path": "d"})).unwrap();
    rig.grep(json!({"pattern": "needle"})).unwrap();
}
