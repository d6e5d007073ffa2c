//! Privileges, environment and limits of a program.

use crate::rig::{Rig, is_root, shown, stdout, without_namespaces};
use stoplog::sandbox::{Exit, Step};

#[test]
fn no_process_of_a_cell_shows_the_callers_environment() {
    let rig = Rig::new();
    assert!(std::env::var_os("PATH").is_some(), "the control: the caller has an environment");
    let finished = rig.run("cat /proc/1/environ | wc -c; tr '\\0' '\\n' < /proc/self/environ");
    let text = stdout(&finished);
    assert!(text.starts_with("0\nPATH=/usr/local/bin:/usr/bin:/bin\n"), "{}", shown(&finished));
    assert_eq!(text.lines().count(), 2, "{text}");
}

#[test]
fn no_capability_and_no_new_privileges_reach_a_program() {
    for never in [false, true] {
        let mut rig = Rig::new();
        if never {
            without_namespaces(&mut rig);
        }
        let finished = rig.run("grep -E 'Cap|NoNewPrivs|Seccomp:' /proc/self/status");
        let text = stdout(&finished);
        let zero = text.lines().filter(|line| line.ends_with("\t0000000000000000")).count();
        let sets = if is_root() || !never { 5 } else { 4 };
        assert!(zero >= sets, "{}", shown(&finished));
        assert!(text.contains("NoNewPrivs:\t1") && text.contains("Seccomp:\t2"), "{text}");
    }
}

#[test]
fn only_three_descriptors_are_inherited() {
    let file = std::fs::File::open("/etc/passwd").unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    for never in [false, true] {
        let mut rig = Rig::new();
        if never {
            without_namespaces(&mut rig);
        }
        let finished = rig.run("ls -l /proc/self/fd | grep -c -- '->'");
        // 0, 1, 2 and the one that `ls` itself has open.
        assert_eq!(stdout(&finished), "4\n", "{}", shown(&finished));
    }
}

#[test]
fn an_ordinary_user_stays_who_he_is_and_root_can_become_another() {
    let mut rig = Rig::new();
    let own = rustix::process::geteuid().as_raw();
    assert_eq!(stdout(&rig.run("id -u")), format!("{own}\n"));
    rig.spec.identity = stoplog::sandbox::Identity::User { uid: 20_001, gid: 20_002 };
    if is_root() {
        rig.spec.cwd = "/tmp".into();
        let finished = rig.run("id -u; id -g; id -G; touch /tmp/x && echo wrote; cat /etc/shadow");
        assert_eq!(stdout(&finished), "20001\n20002\n20002\nwrote\n", "{}", shown(&finished));
    } else {
        assert_eq!(rig.launch("id -u").unwrap_err().step, Step::Identity);
    }
}

#[test]
fn limits_hold() {
    let mut rig = Rig::new();
    rig.spec.limits.file_size_bytes = Some(1_000);
    rig.spec.limits.open_files = Some(20);
    let finished =
        rig.run("head -c 2000 /dev/zero > big; stat -c %s big; ulimit -n; ulimit -Hn; ulimit -c");
    assert_eq!(stdout(&finished), "1000\n20\n20\n0\n", "{}", shown(&finished));
    rig.control("head -c 2000 /dev/zero > big");
    assert_eq!(std::fs::metadata(rig.workspace().join("big")).unwrap().len(), 2_000);
}

#[test]
fn processor_time_is_limited() {
    let mut rig = Rig::new();
    rig.spec.limits.cpu_seconds = Some(1);
    let finished = rig.run("exec sh -c 'while :; do :; done'");
    assert_eq!(finished.exit, Exit::Signal(libc::SIGXCPU), "{}", shown(&finished));
}

#[test]
fn processes_of_the_tree_are_limited() {
    let mut rig = Rig::new();
    rig.spec.limits.processes = Some(20);
    let finished = rig.run("i=0; while [ $i -lt 40 ]; do sleep 5 & i=$((i+1)); done; echo all");
    assert!(!stdout(&finished).contains("all"), "{} {}", finished.enforced, shown(&finished));
    rig.spec.limits.processes = None;
    let finished = rig.run("i=0; while [ $i -lt 40 ]; do sleep 5 & i=$((i+1)); done; echo all");
    assert_eq!(stdout(&finished), "all\n");
}

#[test]
fn without_a_limit_of_the_policy_an_ordinary_user_has_one_that_counts_the_cell_alone() {
    let mut rig = Rig::new();
    let finished = rig.run("sed -n 's/^Max processes *\\([0-9a-z]*\\).*/\\1/p' /proc/self/limits");
    if !finished.enforced.namespaces.iter().any(|kind| kind == "user") {
        eprintln!("NOT RUN: there is no user namespace in which a cell is counted alone");
        return;
    }
    assert_eq!(stdout(&finished), "4096\n", "{}", shown(&finished));
    // What else the user runs is no matter: more than the whole limit.
    let sleeps = (0..30).map(|_| std::process::Command::new("sleep").arg("60").spawn().unwrap());
    let sleeps: Vec<_> = sleeps.collect();
    rig.spec.limits.processes = Some(20);
    let finished = rig.run("for i in 1 2 3 4 5 6 7 8; do sleep 5 & done; echo all");
    for mut sleep in sleeps {
        sleep.kill().unwrap();
        sleep.wait().unwrap();
    }
    assert_eq!(stdout(&finished), "all\n", "{}", shown(&finished));
}

#[test]
fn memory_is_limited() {
    let mut rig = Rig::new();
    rig.spec.limits.memory_bytes = Some(64 << 20);
    let text = "head -c 200000000 /dev/zero | tail -c 200000000 | wc -c";
    let finished = rig.run(text);
    assert!(
        !stdout(&finished).starts_with("200000000"),
        "{} {}",
        finished.enforced,
        shown(&finished)
    );
    rig.spec.limits.memory_bytes = None;
    assert_eq!(stdout(&rig.run(text)), "200000000\n");
}

#[test]
fn a_control_group_tells_when_memory_ran_out_and_is_removed() {
    let mut rig = Rig::new();
    rig.spec.limits.memory_bytes = Some(64 << 20);
    let finished = rig.run("head -c 200000000 /dev/zero | tail -c 200000000 > /dev/null");
    if finished.enforced.limits == stoplog::sandbox::LimitsHeld::Rlimit {
        println!("no control group can be made here; the rest of this test did not run");
        return;
    }
    assert_eq!(finished.exit, Exit::OutOfMemory, "{}", shown(&finished));
    assert!(finished.resources.tree_memory_bytes.is_some());
}
