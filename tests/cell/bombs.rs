//! Programs that eat what a call has: each ends in time, what the supervisor holds stays bounded, no
//! process survives, and the next call works at once. In both situations.

use crate::rig::{Rig, processes_with, shown, stdout, without_namespaces};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use stoplog::sandbox::{Exit, Finished};

/// Time after which a bomb counts as not ended: its own limit, the grace, and a slow machine.
const ENDS_WITHIN: Duration = Duration::from_secs(12);
/// What the supervisor may take more, whatever a bomb does.
const MEMORY_MAX: u64 = 64 << 20;

/// Largest resident memory of this process so far.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Held by tests that start thousands of processes, so that none of them waits for another.
static MANY_PROCESSES: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    MANY_PROCESSES.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Bomb {
    what: &'static str,
    script: &'static str,
    /// Whether it went off and was contained.
    contained: fn(&Finished) -> bool,
}

/// Stands in the scripts for a time that no other process on the machine sleeps.
const MARK: &str = "61.0417";

/// A process that stays for a minute, if nobody ends it; the mark makes it findable.
const BOMBS: [Bomb; 11] = [
    Bomb {
        what: "fork bomb",
        script: "f() { sleep 61.0417 & f; }; f",
        contained: |finished| finished.exit != Exit::Code(0),
    },
    Bomb {
        what: "memory bomb",
        script: "head -c 2000000000 /dev/zero | tail -c 2000000000 > /dev/null",
        contained: |finished| finished.exit != Exit::Code(0),
    },
    Bomb {
        what: "one endless file",
        script: "head -c 200000000 /dev/zero > big; echo left $?",
        contained: |finished| stdout(finished) != "left 0\n",
    },
    Bomb {
        what: "lines without end",
        script: "yes 61.0417",
        contained: |finished| finished.exit == Exit::OutputCapped,
    },
    Bomb {
        what: "a line without end",
        script: "exec tr '\\0' x < /dev/zero",
        contained: |finished| finished.exit == Exit::OutputCapped,
    },
    Bomb {
        what: "errors without end",
        script: "yes 61.0417 >&2",
        contained: |finished| finished.exit == Exit::OutputCapped,
    },
    Bomb {
        what: "descriptors",
        script: "i=3; while [ $i -lt 200 ]; do eval \"exec $i</dev/null\" || break; i=$((i+1)); done",
        contained: |finished| finished.exit != Exit::Code(0),
    },
    Bomb {
        what: "spinning processors",
        script: "while :; do :; done & while :; do :; done",
        contained: |finished| finished.exit != Exit::Code(0),
    },
    Bomb {
        what: "deaf to signals",
        script: "trap '' TERM INT HUP; while :; do sleep 61.0417; done",
        contained: |finished| finished.exit == Exit::TimedOut,
    },
    Bomb {
        what: "a daemon",
        script: "(setsid sh -c 'trap \"\" TERM HUP; sleep 61.0417' &) ; sleep 0.1",
        contained: |finished| finished.exit == Exit::Code(0) && finished.survivors_killed > 0,
    },
    Bomb {
        what: "a held pipe",
        script: "sleep 61.0417 & echo early",
        contained: |finished| stdout(finished) == "early\n",
    },
];

fn limited(never: bool) -> Rig {
    let mut rig = Rig::new();
    if never {
        without_namespaces(&mut rig);
    }
    let limits = &mut rig.spec.limits;
    limits.wall = Duration::from_secs(3);
    limits.kill_grace = Duration::from_millis(300);
    limits.cpu_seconds = Some(2);
    limits.memory_bytes = Some(200 << 20);
    limits.file_size_bytes = Some(10 << 20);
    limits.open_files = Some(64);
    limits.output_total_bytes = Some(20 << 20);
    rig
}

#[test]
fn after_each_bomb_the_next_call_works_and_nothing_is_left() {
    let _alone = alone();
    for never in [false, true] {
        let mut rig = limited(never);
        rig.run("true");
        // The whole suite may run again at the same time, as another user.
        let mark = format!("61.{:07}", std::process::id());
        let before = peak_memory();
        for Bomb { what, script, contained } in &BOMBS {
            // Without a control group this counts every process of the user.
            rig.spec.limits.processes = Some(if *what == "fork bomb" { 100 } else { 4_000 });
            let start = Instant::now();
            let finished = rig.run(&script.replace(MARK, &mark));
            let shown = shown(&finished);
            assert!(contained(&finished), "{what}, never {never}: {shown}");
            assert!(start.elapsed() < ENDS_WITHIN, "{what}: {:?} {shown}", start.elapsed());
            assert_eq!(processes_with(&mark), 0, "{what} leaves processes");
            let next = rig.run("echo on");
            assert_eq!(stdout(&next), "on\n", "after {what}: {}", crate::rig::shown(&next));
        }
        let more = peak_memory() - before;
        assert!(more < MEMORY_MAX, "never {never}: the supervisor took {more} bytes");
    }
}

#[test]
fn a_private_directory_on_disk_that_is_filled_ends_the_call_that_fills_it() {
    const MOST: u64 = 30 << 20;
    for never in [false, true] {
        let mut rig = Rig::new();
        if never {
            without_namespaces(&mut rig);
        }
        let tmp = rig.directory.path().join("private");
        std::fs::create_dir(&tmp).unwrap();
        rig.spec.private_tmp = Some(tmp.clone());
        rig.spec.environment.push(("TMPDIR".into(), "/tmp".into()));
        rig.spec.limits.wall = Duration::from_secs(20);
        rig.spec.limits.kill_grace = Duration::from_millis(100);
        let fill = "i=0; while [ $i -lt 60 ]; do head -c 5000000 /dev/zero > $TMPDIR/f$i; \
            sleep 0.05; i=$((i+1)); done; echo all";
        // The control: nothing else stops it.
        assert_eq!(stdout(&rig.run(fill)), "all\n");
        rig.run("rm $TMPDIR/f*");
        rig.spec.limits.private_tmp_bytes = Some(MOST);
        let finished = rig.run(fill);
        assert_eq!(finished.exit, Exit::DiskFull, "never {never}: {}", shown(&finished));
        let left: u64 = std::fs::read_dir(&tmp)
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum();
        assert!(left > MOST && left < 8 * MOST, "{left}");
        // What is there is not lost, and the next calls can look and make room.
        assert_eq!(stdout(&rig.run("sleep 0.6; ls $TMPDIR | grep -c f0; rm $TMPDIR/f*")), "1\n");
        assert_eq!(stdout(&rig.run("echo x > $TMPDIR/y; cat $TMPDIR/y")), "x\n");
    }
}

#[test]
fn a_directory_in_memory_that_is_filled_with_names_or_bytes_ends_with_the_call() {
    let mut rig = Rig::new();
    rig.spec.limits.wall = Duration::from_secs(60);
    let names = "cd /tmp; i=0; while [ $i -lt 40 ]; do mkdir d$i && (cd d$i && \
        seq 10000 | xargs -n 2000 touch) || break; i=$((i+1)); done 2>/dev/null; ls | wc -l";
    let finished = rig.run(names);
    let made: u32 = stdout(&finished).trim().parse().unwrap();
    assert!((1..40).contains(&made), "{made} directories of 10,000: {}", shown(&finished));
    assert_eq!(stdout(&rig.run("ls -d /tmp/d0; echo x > /tmp/f && cat /tmp/f")), "x\n");
    let bytes = "head -c 3000000000 /dev/zero > /tmp/big 2>/dev/null || stat -c %s /tmp/big";
    rig.spec.limits.memory_bytes = None;
    let finished = rig.run(bytes);
    let size: u64 = stdout(&finished).trim().parse().unwrap_or(u64::MAX);
    assert!(size <= 2 << 30, "{size}: {}", shown(&finished));
    assert_eq!(stdout(&rig.run("ls /tmp/big; echo on")), "on\n");
}

#[test]
fn without_a_limit_of_the_policy_a_cell_starts_no_more_processes_than_it_may() {
    let _alone = alone();
    let of_the_machine = || std::fs::read_to_string("/proc/sys/kernel/pid_max").unwrap();
    let before = of_the_machine();
    let rig = Rig::new();
    let start = |number: u32| {
        let script = "mkfifo f 2>/dev/null; exec 3<>f; i=0; while [ $i -lt NUMBER ]; do read x <&3 & \
             i=$((i+1)); done; echo all";
        rig.run(&script.replace("NUMBER", &number.to_string()))
    };
    let bound = rig.run("cat /proc/sys/kernel/pid_max");
    let alone = bound.enforced.namespaces.iter().any(|kind| kind == "user");
    assert_eq!(of_the_machine(), before, "the machine's own number is as it was");
    if !alone && stdout(&bound) == before {
        eprintln!("NOT RUN: root is bounded by its time alone on this kernel");
        return;
    }
    let many = start(4_500);
    assert!(!stdout(&many).contains("all"), "{}", shown(&many));
    assert!(shown(&many).contains("Cannot fork"), "{}", shown(&many));
    assert_eq!(stdout(&start(2_000)), "all\n", "the control");
}
