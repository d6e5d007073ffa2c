//! The file tree a program sees.

use crate::rig::{Rig, shown, stdout, without_namespaces};
use std::path::PathBuf;
use stoplog::sandbox::{Degraded, Exit, Grant, GrantAccess, MaskKind, ScratchFile, Step};

#[test]
fn devices_are_the_harmless_ones_and_terminals_exist_only_when_asked_for() {
    let mut rig = Rig::new();
    let text = "ls /dev | tr '\\n' ' '; echo x > /dev/null; head -c 2 /dev/urandom | wc -c; \
        echo s > /dev/shm/f; cat /dev/shm/f; ls /dev/ptmx";
    let finished = rig.run(text);
    let expected = "fd full null random shm stderr stdin stdout urandom zero 2\ns\n";
    assert_eq!(stdout(&finished), expected, "{}", shown(&finished));
    rig.spec.pseudo_terminals = true;
    rig.spec.grants.push(Grant::optional("/usr/bin/script", GrantAccess::ReadExecute));
    let finished = rig.run("script -qec tty /dev/null");
    assert_eq!(stdout(&finished), "/dev/pts/0\r\n", "{}", shown(&finished));
}

#[test]
fn no_way_up_leads_out_of_the_view() {
    let rig = Rig::new();
    let secret = rig.outside().join("secret");
    let changed = || std::fs::metadata(&secret).unwrap().modified().unwrap();
    let before = changed();
    let text = format!(
        "ways='/. /.. /../.. /usr/.. /dev/.. /proc/.. /tmp/.. /tmp/../..'; \
         for way in $ways; do stat -c %d:%i $way; done | sort -u | wc -l; \
         awk '$5 == \"/\"' /proc/self/mountinfo | wc -l; \
         for way in $ways; do ls -d $way{0}; cat $way{0}; touch -c -d @0 $way{0}; done",
        secret.display()
    );
    let finished = rig.run(&text);
    assert_eq!(stdout(&finished), "1\n1\n", "{}", shown(&finished));
    assert_eq!(changed(), before);
    let control = rig.control(&text);
    assert_eq!(control.matches("secret\n").count(), 16, "{control}");
    assert_ne!(changed(), before);
}

#[test]
fn processes_of_others_are_absent_and_the_kernel_cannot_be_set() {
    let rig = Rig::new();
    let text = "ls -d /proc/[0-9]* | wc -l; echo 1 > /proc/sys/vm/drop_caches; \
        echo 1 > /proc/self/oom_score_adj; cat /proc/1/comm > /dev/null && echo init";
    let finished = rig.run(text);
    let lines: Vec<String> = stdout(&finished).lines().map(str::to_owned).collect();
    assert!(lines[0].parse::<u32>().unwrap() <= 5, "{}", shown(&finished));
    assert_eq!(lines[1], "init");
    assert_eq!(
        finished.stderr.head.split(|byte| *byte == b'\n').count(),
        3,
        "{}",
        shown(&finished)
    );
}

#[test]
fn a_private_tmp_is_kept_and_a_fresh_one_is_not() {
    let mut rig = Rig::new();
    let text = "cat /tmp/f /var/tmp/f 2>/dev/null; echo kept > /tmp/f; ls ~ 2>&1; echo x > ~/x";
    let home = PathBuf::from("/home/of/nobody");
    rig.spec.environment.push(("HOME".into(), home.clone().into()));
    rig.spec.scratch.push(home);
    assert_eq!(stdout(&rig.run(text)), "");
    assert_eq!(stdout(&rig.run(text)), "", "nothing is left of the first");
    let tmp = rig.directory.path().join("tmp");
    std::fs::create_dir(&tmp).unwrap();
    rig.spec.private_tmp = Some(tmp.clone());
    assert_eq!(stdout(&rig.run(text)), "");
    assert_eq!(stdout(&rig.run(text)), "kept\nkept\n");
    assert_eq!(std::fs::read_to_string(tmp.join("f")).unwrap(), "kept\n");
}

#[test]
fn a_scratch_file_is_there_anew_for_each_call() {
    let mut rig = Rig::new();
    let home = PathBuf::from("/home/of/nobody");
    let path = home.join(".settings");
    rig.spec.environment.push(("HOME".into(), home.clone().into()));
    rig.spec.scratch_files.push(ScratchFile { path, content: "given\n".into() });
    rig.spec.scratch.push(home);
    let text = "cat ~/.settings; echo changed > ~/.settings; stat -c %u:%a ~/.settings";
    let uid = rustix::process::geteuid().as_raw();
    let expected = format!("given\n{uid}:644\n");
    assert_eq!(stdout(&rig.run(text)), expected);
    assert_eq!(stdout(&rig.run(text)), expected);
    let tmp = rig.directory.path().join("tmp");
    std::fs::create_dir(&tmp).unwrap();
    rig.spec.private_tmp = Some(tmp);
    rig.spec.degraded = Degraded::Allow;
    without_namespaces(&mut rig);
    let finished = rig.run(text);
    assert_eq!(stdout(&finished), expected, "{}", shown(&finished));
}

#[test]
fn cells_that_start_at_once_share_a_private_tmp() {
    let mut rig = Rig::new();
    // Its place in the cell has to be made in the private directory.
    let below = tempfile::tempdir_in("/tmp").unwrap();
    rig.spec.grants.push(Grant::new(below.path(), GrantAccess::ReadOnly));
    for round in 0..8 {
        let tmp = rig.directory.path().join(format!("tmp{round}"));
        std::fs::create_dir(&tmp).unwrap();
        rig.spec.private_tmp = Some(tmp);
        let rig = &rig;
        std::thread::scope(|scope| {
            let started = [(); 6].map(|()| scope.spawn(|| stdout(&rig.run("echo ok"))));
            for cell in started {
                assert_eq!(cell.join().unwrap(), "ok\n");
            }
        });
    }
}

#[test]
fn a_grant_inside_a_grant_narrows_it() {
    let mut rig = Rig::new();
    rig.file("vendor/lib", "old");
    rig.spec.grants.push(Grant::new(rig.workspace().join("vendor"), GrantAccess::ReadOnly));
    let text = "cat vendor/lib; echo new > vendor/lib; rm -rf vendor; echo own > own; cat own";
    assert_eq!(stdout(&rig.run(text)), "oldown\n");
    assert_eq!(rig.control("cat vendor/lib"), "old");
    without_namespaces(&mut rig);
    assert_eq!(rig.launch("true").unwrap_err().step, Step::Namespaces);
}

#[test]
fn a_granted_link_leads_where_it_leads_outside() {
    let mut rig = Rig::new();
    let link = rig.directory.path().join("link");
    std::os::unix::fs::symlink("outside", &link).unwrap();
    rig.spec.grants.push(Grant::new(&link, GrantAccess::ReadOnly));
    let text = format!("cat {}/secret {}/secret", link.display(), rig.outside().display());
    assert_eq!(stdout(&rig.run(&text)), "secret\nsecret\n");
}

#[test]
fn a_grant_without_execute_runs_nothing() {
    let mut rig = Rig::new();
    let tool = rig.outside().join("tool");
    std::fs::copy("/bin/true", &tool).unwrap();
    let text =
        format!("{0} && echo ran; /lib64/ld-linux-x86-64.so.2 {0} && echo loaded", tool.display());
    assert_eq!(rig.control(&text), "ran\nloaded\n");
    rig.spec.grants.push(Grant::new(rig.outside(), GrantAccess::ReadOnly));
    assert_eq!(stdout(&rig.run(&text)), "");
}

#[test]
fn a_missing_grant_fails_the_launch_unless_it_is_optional() {
    let mut rig = Rig::new();
    rig.spec.grants.push(Grant::optional("/no/such/path", GrantAccess::ReadOnly));
    assert_eq!(rig.run("echo on").exit, Exit::Code(0));
    rig.spec.grants.push(Grant::new("/no/such/path", GrantAccess::ReadOnly));
    let failed = rig.launch("true").unwrap_err();
    assert_eq!((failed.step, failed.errno), (Step::Grant, libc::ENOENT));
    assert!(failed.to_string().contains("/no/such/path"), "{failed}");
}

#[test]
fn git_goes_on_beside_masks() {
    let mut rig = Rig::new();
    let set_up = "git init -q . && git config user.email a@b && git config user.name c && \
        mkdir -p .git/hooks && echo .env > .gitignore && echo K > .env && echo done";
    if rig.control(set_up) != "done\n" {
        println!("git is not installed; this test did not run");
        return;
    }
    rig.mask(".git/config", MaskKind::ReadOnly)
        .mask(".git/hooks", MaskKind::ReadOnly)
        .mask(".git/config.worktree", MaskKind::ReadOnly)
        .mask("policy.toml", MaskKind::ReadOnly)
        .mask(".env", MaskKind::Hide);
    rig.spec.scratch.push("/home/of/nobody".into());
    rig.spec.environment.push(("HOME".into(), "/home/of/nobody".into()));
    let finished = rig.run(
        "echo a > a && git add . && git commit -qm one && git status --short && \
         git checkout -qb other && echo b > b && git add -A && git commit -qm two && \
         git rebase -q HEAD~1 && git log --oneline | wc -l; git config x.y z || echo held",
    );
    assert_eq!(stdout(&finished), "2\nheld\n", "{}", shown(&finished));
    assert_eq!(rig.control("git status --short; git log --format=%s"), "two\none\n");
}

#[test]
fn parallel_cells_on_one_workspace_all_start() {
    const THREADS: usize = 8;
    const LAUNCHES: usize = 10;
    let mut rig = Rig::new();
    rig.file(".env", "x");
    rig.mask(".env", MaskKind::Hide).mask("missing", MaskKind::ReadOnly);
    let before = rig.control("ls -A");
    let rig = &rig;
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(move || {
                for _ in 0..LAUNCHES {
                    let finished = rig.run("cat .env 2>/dev/null; echo on");
                    assert_eq!(stdout(&finished), "on\n", "{}", shown(&finished));
                }
            });
        }
    });
    assert_eq!(rig.control("ls -A"), before);
}
