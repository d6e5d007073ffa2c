//! A child that waits before it is known what it will be.

use crate::rig::{Rig, script, shown, stdout, wait_until};
use std::path::Path;
use stoplog::sandbox::{Cancel, Launcher};

/// Children of this process that were started as `executable`.
fn waiting(executable: &Path) -> Vec<i32> {
    let name = executable.file_name().unwrap().to_string_lossy().into_owned();
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let children = tasks
        .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).ok());
    let children: Vec<i32> = children
        .flat_map(|list| list.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<_>>())
        .collect();
    let is_ours = |id: &i32| {
        std::fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|comm| comm.trim() == name)
    };
    children.into_iter().filter(is_ours).collect()
}

/// One test, because one process has one spare child.
#[test]
fn a_child_waits_becomes_one_cell_and_ends_with_its_guard() {
    let mut rig = Rig::new();
    // A name of its own, so that no other test of this process takes the child.
    let executable = rig.directory.path().join("ready-child");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_stoplog"), &executable).unwrap();
    let launcher = Launcher::with_executable(&executable);
    let mut run = |text: &str| {
        rig.spec.program = script(text);
        launcher.launch(&rig.spec).unwrap().wait(&Cancel::new())
    };

    let once = launcher.ready_once();
    wait_until("the start", || waiting(&executable).len() == 1);
    let finished = run("echo one");
    assert_eq!(stdout(&finished), "one\n", "{}", shown(&finished));
    assert_eq!(waiting(&executable), [0; 0], "it was used, and no other was started");
    drop(once);

    let always = launcher.ready_always();
    wait_until("the start", || waiting(&executable).len() == 1);
    let before = waiting(&executable);
    assert_eq!(stdout(&run("echo two")), "two\n");
    wait_until("the next start", || waiting(&executable).len() == 1);
    let after = waiting(&executable);
    assert_ne!(before, after, "another one waits for the next call");
    // One that was killed while it waited stops nothing.
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(after[0]), nix::sys::signal::SIGKILL)
        .unwrap();
    wait_until("the end", || {
        std::fs::read_to_string(format!("/proc/{}/stat", after[0])).unwrap().contains(") Z ")
    });
    assert_eq!(stdout(&run("echo three")), "three\n");
    drop(always);
    assert_eq!(waiting(&executable), [0; 0], "none is left behind");
}
