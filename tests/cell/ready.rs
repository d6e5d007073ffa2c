//! A child that waits before it is known what it will be, and a program that waits in its cell for the
//! word to start.

use crate::rig::{Rig, launcher, script, shown, stdout, wait_until};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stoplog::sandbox::probe::{Act, Answer};
use stoplog::sandbox::{Cancel, Exit, Held, Launcher, Program, SandboxSpec, Stdin, Step};

/// Children of this process that were started as `executable`, those too that have ended and are not
/// waited for yet.
fn children(executable: &Path) -> Vec<(i32, String)> {
    let name = executable.file_name().unwrap().to_string_lossy().into_owned();
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let children = tasks
        .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).ok());
    let children: Vec<i32> = children
        .flat_map(|list| list.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<_>>())
        .collect();
    let stat = |id| Some((id, std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?));
    let ours = |(_, stat): &(i32, String)| stat.contains(&format!("({name}) "));
    children.into_iter().filter_map(stat).filter(ours).collect()
}

/// Those of them that live.
fn waiting(executable: &Path) -> Vec<i32> {
    let living = |(id, stat): (i32, String)| (!stat.contains(") Z ")).then_some(id);
    children(executable).into_iter().filter_map(living).collect()
}

/// How many processes of that name live, whoever started them: a child's own first process waits with it.
fn alive(executable: &Path) -> usize {
    let name = format!("({}) ", executable.file_name().unwrap().to_string_lossy());
    let stats = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| std::fs::read_to_string(entry.unwrap().path().join("stat")).ok());
    stats.filter(|stat| stat.contains(&name) && !stat.contains(") Z ")).count()
}

/// One test, because one process has one spare child.
#[test]
fn a_child_waits_becomes_one_cell_and_ends_with_its_guard() {
    let mut rig = Rig::new();
    // A name of its own, so that no other test of this process takes the child.
    let executable = rig.directory.path().join("ready-child");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_stoplog"), &executable).unwrap();
    let launcher = Launcher::with_executable(&executable);
    let run = |rig: &mut Rig, text: &str| {
        rig.spec.program = script(text);
        launcher.launch(&rig.spec).unwrap().wait(&Cancel::new())
    };

    let once = launcher.ready_once();
    wait_until("the start", || waiting(&executable).len() == 1);
    let finished = run(&mut rig, "echo one");
    assert_eq!(stdout(&finished), "one\n", "{}", shown(&finished));
    wait_until("its exit", || waiting(&executable).is_empty());
    drop(once);
    assert_eq!(children(&executable), [], "it was used, and no other was started");

    let always = launcher.ready_always();
    wait_until("the start", || waiting(&executable).len() == 1);
    wait_until("the start of its init", || alive(&executable) == 2);
    let before = waiting(&executable);
    // The init that waits with it is the cell's own, and not made for nothing.
    let children_of = |id: i32| std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
    let init = children_of(before[0]).unwrap();
    let started = rig.workspace().join("started");
    rig.spec.program = script("touch started; sleep 60");
    let running = launcher.launch(&rig.spec).unwrap();
    wait_until("the effect", || started.exists());
    assert_eq!(children_of(before[0]).unwrap(), init);
    drop(running);
    // The one that was used may still be on its way out.
    let others = || waiting(&executable).into_iter().filter(|id| !before.contains(id));
    wait_until("the next start", || others().count() == 1);
    let after: Vec<i32> = others().collect();
    // One that was killed while it waited stops nothing.
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(after[0]), nix::sys::signal::SIGKILL)
        .unwrap();
    wait_until("the end", || {
        std::fs::read_to_string(format!("/proc/{}/stat", after[0])).unwrap().contains(") Z ")
    });
    assert_eq!(stdout(&run(&mut rig, "echo three")), "three\n");
    drop(always);
    assert_eq!(children(&executable), [], "none is left behind, not even as an entry");
    wait_until("the end of what waited with them", || alive(&executable) == 0);
}

fn hold(rig: &Rig, text: &str) -> Held {
    launcher().hold(Arc::new(SandboxSpec { program: script(text), ..rig.spec.clone() }))
}

#[test]
fn a_held_program_starts_with_the_word_and_not_before() {
    let rig = Rig::new();
    let ran = rig.workspace().join("ran");
    let held = hold(&rig, "touch ran; echo done");
    // Far longer than the cell takes to stand.
    std::thread::sleep(Duration::from_millis(300));
    assert!(!ran.exists(), "it waits");
    let finished = held.release().unwrap().wait(&Cancel::new());
    assert_eq!(stdout(&finished), "done\n", "{}", shown(&finished));
    assert!(ran.exists());
    // The word may come before the cell stands.
    let finished = hold(&rig, "rm ran; exit 3").release().unwrap().wait(&Cancel::new());
    assert_eq!(finished.exit, Exit::Code(3), "{}", shown(&finished));
    assert!(!ran.exists());
}

#[test]
fn a_held_program_that_is_let_go_never_runs_and_leaves_nothing() {
    let rig = Rig::new();
    let ran = rig.workspace().join("ran");
    for wait in [0, 1, 3, 10, 100] {
        let held = hold(&rig, "touch ran; sleep 60");
        std::thread::sleep(Duration::from_millis(wait));
        let start = Instant::now();
        drop(held);
        assert!(start.elapsed() < Duration::from_secs(5), "after {wait} ms");
        std::thread::sleep(Duration::from_millis(20));
        assert!(!ran.exists(), "after {wait} ms");
    }
    // The same script runs where it is released.
    let running = hold(&rig, "touch ran; sleep 60").release().unwrap();
    wait_until("the effect", || ran.exists());
    drop(running);
}

#[test]
fn what_goes_wrong_with_a_held_cell_is_told_when_it_is_released() {
    let mut rig = Rig::new();
    rig.spec.cwd = rig.outside();
    let failed = hold(&rig, "true").release().unwrap_err();
    assert_eq!(failed.step, Step::WorkingDirectory, "{failed}");
    let program = Program::Exec { argv: Vec::new(), stdin: Stdin::Empty };
    let nothing = SandboxSpec { program, ..rig.spec.clone() };
    let failed = launcher().hold(Arc::new(nothing)).release().unwrap_err();
    assert_eq!(failed.step, Step::Spec, "{failed}");
}

#[test]
fn a_process_that_stays_this_binary_has_its_standard_streams_alone() {
    let rig = Rig::new();
    // The flags of each open number, in octal, as the kernel tells them: the last digit is the access.
    let numbers = 0..64;
    let path = |number| format!("/proc/self/fdinfo/{number}").into();
    let acts: Vec<Act> = numbers.clone().map(|number| Act::ReadFile(path(number))).collect();
    let program = Program::Acts { acts: serde_json::to_string(&acts).unwrap() };
    let finished = launcher().launch(&SandboxSpec { program, ..rig.spec.clone() }).unwrap();
    let finished = finished.wait(&Cancel::new());
    let answers: Vec<Answer> =
        stdout(&finished).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), acts.len(), "{}", shown(&finished));
    let is_writable = |answer: &Answer| {
        let flags = answer.value.lines().find_map(|line| line.strip_prefix("flags:"));
        flags.map(|flags| flags.trim().ends_with(['1', '2']))
    };
    let open =
        numbers.zip(&answers).filter_map(|(number, answer)| Some((number, is_writable(answer)?)));
    let open: Vec<(i32, bool)> = open.collect();
    assert_eq!(open, [(0, false), (1, true), (2, true)], "the control is that these are seen");
}
