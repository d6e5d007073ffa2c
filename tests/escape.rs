//! Attacks on the cell, each with the layer that must stop it and a control: the same act works
//! outside. Every test runs in both situations that matter, with namespaces and on a machine that
//! refuses them; the two tests at the end run all of them once more as an ordinary user, and under a
//! filter that really refuses namespaces.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]
#![expect(clippy::print_stdout, reason = "a test says what it could not show")]

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use stoplog::sandbox::probe::{
    Act, Answer, Bench, CALLS, CALLS_WITHOUT_NAMESPACES, CANARY, Call, Held, PROBES, Reach, Report,
    expected_errno, put,
};
use stoplog::sandbox::{
    Enforced, Exit, Finished, Grant, GrantAccess, Identity, Mask, MaskKind, MaskPattern, Network,
    SandboxSpec,
};

/// Set for the run of a test under a filter that refuses namespaces.
const REFUSED: &str = "STOPLOG_TEST_NAMESPACES_REFUSED";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Situation {
    /// The launcher takes what the machine gives.
    Usual,
    /// The launcher behaves as where namespaces are refused.
    NoNamespaces,
}

impl Situation {
    fn bench(self) -> Bench {
        let bench = Bench::new(&base(), Path::new(env!("CARGO_BIN_EXE_stoplog"))).unwrap();
        match self {
            Self::Usual => bench,
            Self::NoNamespaces => bench.without_namespaces(),
        }
    }
}

/// Where the benches lie: not in `/tmp`, which a cell replaces by its own.
fn base() -> PathBuf {
    PathBuf::from("/var/tmp")
}

fn in_each_situation(test: impl Fn(Situation, &Bench)) {
    for situation in [Situation::Usual, Situation::NoNamespaces] {
        test(situation, &situation.bench());
    }
}

fn call(name: &str) -> Act {
    Act::Call(name.into())
}

fn inside(bench: &Bench, acts: &[Act]) -> (Enforced, Vec<Answer>) {
    bench.confined(acts).unwrap_or_else(|fault| panic!("{fault}"))
}

fn outside(bench: &Bench, acts: &[Act]) -> Vec<Answer> {
    bench.plain(acts).unwrap_or_else(|fault| panic!("{fault}"))
}

fn run(bench: &Bench, spec: &SandboxSpec) -> Finished {
    bench.run(spec).unwrap_or_else(|failed| panic!("{failed}"))
}

fn said(finished: &Finished) -> String {
    let mut text = String::from_utf8_lossy(&finished.stdout.head).into_owned();
    text.push_str(&String::from_utf8_lossy(&finished.stderr.head));
    text
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

// --- the filter ---------------------------------------------------------------------------------

/// Inside, each call gives the filter's answer. Outside, root's call gets to the kernel, which
/// complains about the arguments; calls that this kernel was built without are named.
fn filter_stops(bench: &Bench, calls: &[Call]) {
    let acts: Vec<Act> = calls.iter().map(|row| call(row.name)).collect();
    let control = outside(bench, &acts);
    let (_, confined) = inside(bench, &acts);
    let mut not_shown = Vec::new();
    for ((row, control), confined) in calls.iter().zip(control).zip(confined) {
        let expected = expected_errno(row);
        assert_eq!(confined.errno, expected, "`{}` inside: {}", row.name, confined.value);
        let built_in = control.errno != libc::ENOSYS;
        if control.errno == expected || !built_in {
            not_shown.push(row.name);
            let without_right = control.errno == libc::EPERM && !is_root();
            assert!(!built_in || without_right, "`{}` fails outside too", row.name);
        }
    }
    println!("not in this kernel, or for root alone: {not_shown:?}");
    assert!(not_shown.len() * 3 < calls.len(), "too few controls work: {not_shown:?}");
}

#[test]
fn every_second_door_is_shut() {
    in_each_situation(|_, bench| filter_stops(bench, CALLS));
}

#[test]
fn without_namespaces_the_filter_shuts_what_they_would_have() {
    filter_stops(&Situation::NoNamespaces.bench(), CALLS_WITHOUT_NAMESPACES);
}

#[test]
fn the_32_bit_door_kills() {
    in_each_situation(|_, bench| {
        let script = format!(
            "{} {} '[\"ForeignCall\"]'",
            env!("CARGO_BIN_EXE_stoplog"),
            stoplog::sandbox::probe::PROBE_ARGUMENT
        );
        let control = bench.plain_script(&script).unwrap();
        let finished = run(bench, &bench.script(&format!("exec {script}")));
        assert_eq!(finished.exit, Exit::Signal(libc::SIGSYS), "{}", said(&finished));
        assert_ne!(control.status.code(), Some(2), "the act is known");
    });
}

#[test]
fn the_filter_is_over_the_program_and_its_children() {
    in_each_situation(|_, bench| {
        let status = "grep -E '^(Seccomp|NoNewPrivs|CapEff|CapBnd|CapPrm):' /proc/self/status";
        let finished = run(bench, &bench.script(&format!("{status}; sh -c \"{status}\"")));
        let text = said(&finished);
        for line in ["Seccomp:\t2", "NoNewPrivs:\t1", "CapEff:\t0000000000000000"] {
            assert_eq!(text.matches(line).count(), 2, "{text}");
        }
    });
}

// --- files --------------------------------------------------------------------------------------

/// Acts on files outside that must fail in every situation.
fn attacks_on(directory: &Path, workspace: &Path) -> Vec<Act> {
    let secret = directory.join("secret");
    vec![
        Act::ReadFile(secret.clone()),
        Act::AppendFile(secret.clone()),
        Act::CreateFile(directory.join("new")),
        Act::RemoveFile(directory.join("second")),
        Act::Rename(directory.join("third"), workspace.join("taken")),
        Act::Link(secret.clone(), workspace.join("linked")),
        Act::SetMode(secret.clone()),
        Act::SetTimes(secret.clone()),
        Act::SetAttribute(secret),
        Act::ListDirectory(directory.to_path_buf()),
        Act::Watch(directory.to_path_buf()),
    ]
}

fn fill(directory: &Path) {
    fs::create_dir(directory).unwrap();
    for name in ["secret", "second", "third"] {
        put(&directory.join(name), CANARY).unwrap();
    }
}

#[test]
fn files_outside_are_out_of_reach() {
    in_each_situation(|situation, bench| {
        let [control, target] = ["a", "b"].map(|name| bench.outside().join(name));
        fill(&control);
        fill(&target);
        let mode = fs::metadata(target.join("secret")).unwrap().permissions().mode();
        for (act, answer) in attacks_on(&control, &bench.outside())
            .iter()
            .zip(outside(bench, &attacks_on(&control, &bench.outside())))
        {
            assert!(answer.worked(), "control {act:?}: {}", answer.value);
        }
        let attacks = attacks_on(&target, &bench.workspace());
        let (enforced, answers) = inside(bench, &attacks);
        for (act, answer) in attacks.iter().zip(answers) {
            assert!(!answer.worked(), "{act:?} in {situation:?}");
            if enforced.mount_view {
                assert_eq!(answer.errno, libc::ENOENT, "{act:?} looks absent: {}", answer.value);
            }
        }
        for name in ["secret", "second", "third"] {
            assert_eq!(fs::read_to_string(target.join(name)).unwrap(), CANARY, "{name}");
        }
        let after = fs::metadata(target.join("secret")).unwrap();
        assert_eq!(after.permissions().mode(), mode);
        assert_eq!(fs::read_dir(&target).unwrap().count(), 3, "nothing came or went");
    });
}

#[test]
fn a_read_only_grant_is_read_only_and_still_lockable() {
    in_each_situation(|_, bench| {
        let shared = bench.place().join("shared");
        fill(&shared);
        let mut spec = bench.spec();
        spec.grants.push(Grant::new(&shared, GrantAccess::ReadOnly));
        let secret = shared.join("secret");
        let acts = [
            Act::ReadFile(secret.clone()),
            Act::AppendFile(secret.clone()),
            Act::CreateFile(shared.join("new")),
            Act::RemoveFile(shared.join("second")),
            Act::SetMode(secret.clone()),
            Act::SetTimes(secret.clone()),
            // A lock needs no right to write; no layer of the kernel can refuse it by path. A grant
            // of a directory whose files others lock gives them a reason to wait.
            Act::Lock(secret),
        ];
        let (_, answers) = bench.confined_in(spec, &acts).unwrap();
        let worked: Vec<bool> = answers.iter().map(Answer::worked).collect();
        assert_eq!(worked, [true, false, false, false, false, false, true], "{answers:?}");
    });
}

#[test]
fn names_outside_are_absent_with_a_view_and_only_named_without() {
    in_each_situation(|_, bench| {
        let (enforced, answers) = inside(bench, &[Act::ReadMetadata(bench.canary())]);
        // Limit L2: without a mount view sizes and times stay visible. This is asserted as it is.
        assert_eq!(answers[0].worked(), !enforced.mount_view, "{answers:?}");
    });
}

#[test]
fn a_hidden_name_stays_hidden_and_its_parents_stay_put() {
    let bench = Situation::Usual.bench();
    let hooks = bench.workspace().join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    put(&hooks.join("pre-commit"), CANARY).unwrap();
    put(&bench.workspace().join(".env"), CANARY).unwrap();
    let mask = |name: &str, kind| Mask {
        pattern: MaskPattern::Exact(bench.workspace().join(name)),
        kind,
        reason_id: "test".into(),
    };
    let masks = vec![mask(".env", MaskKind::Hide), mask(".git/hooks", MaskKind::ReadOnly)];
    let spec = SandboxSpec { masks, ..bench.spec() };
    let acts = [
        Act::ReadFile(hooks.join("pre-commit")),
        Act::AppendFile(hooks.join("pre-commit")),
        Act::CreateFile(hooks.join("post-commit")),
        Act::Rename(bench.workspace().join(".git"), bench.workspace().join("moved")),
        Act::Rename(hooks.clone(), bench.workspace().join("moved")),
        Act::CreateFile(bench.workspace().join(".git/index")),
    ];
    let (_, answers) = bench.confined_in(spec.clone(), &acts).unwrap();
    let worked: Vec<bool> = answers.iter().map(Answer::worked).collect();
    assert_eq!(worked, [true, false, false, false, false, true], "{answers:?}");
    let (_, answers) =
        bench.confined_in(spec, &[Act::ReadFile(bench.workspace().join(".env"))]).unwrap();
    assert!(!answers[0].value.contains("canary"), "{answers:?}");
    // The control: without masks all of it works.
    let (_, answers) = bench.confined(&acts[..4]).unwrap();
    assert!(answers.iter().all(Answer::worked), "{answers:?}");
}

#[test]
fn a_workspace_without_execution_runs_nothing_by_name() {
    in_each_situation(|_, bench| {
        let program = bench.workspace().join("program");
        put(&program, "#!/bin/sh\necho ran\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let mut spec = bench.script("./program");
        assert_eq!(said(&run(bench, &spec)), "ran\n", "the control");
        for grant in &mut spec.grants {
            if grant.path == bench.workspace() {
                grant.access = GrantAccess::ReadWrite;
            }
        }
        let finished = run(bench, &spec);
        assert_eq!(finished.exit, Exit::Code(126), "{}", said(&finished));
        // Limit L4, asserted as it is: an interpreter of the system runs what it can read.
        let by_interpreter = SandboxSpec { program: bench.script("sh ./program").program, ..spec };
        assert_eq!(said(&run(bench, &by_interpreter)), "ran\n");
    });
}

#[test]
fn the_loader_runs_a_program_that_may_not_be_executed() {
    let loader = Path::new("/lib64/ld-linux-x86-64.so.2");
    if !loader.exists() {
        println!("not run: this machine has another loader");
        return;
    }
    in_each_situation(|situation, bench| {
        fs::copy("/bin/true", bench.workspace().join("program")).unwrap();
        let mut spec = bench.script(&format!("{} ./program", loader.display()));
        assert_eq!(run(bench, &spec).exit, Exit::Code(0), "the control");
        for grant in &mut spec.grants {
            if grant.path == bench.workspace() {
                grant.access = GrantAccess::ReadWrite;
            }
        }
        let finished = run(bench, &spec);
        // Limit L4, asserted as it is: a mount says no to the loader, Landlock alone does not.
        let runs = finished.exit == Exit::Code(0);
        assert_eq!(runs, situation == Situation::NoNamespaces, "{}", said(&finished));
    });
}

#[test]
fn code_in_memory_runs_where_no_file_may_be_executed() {
    const FROM_MEMORY: &str = "import os; code = open('program', 'rb').read(); \
         file = os.memfd_create('x', 0); os.write(file, code); os.execve(file, ['program'], {})";
    in_each_situation(|_, bench| {
        fs::copy("/bin/true", bench.workspace().join("program")).unwrap();
        if run(bench, &bench.script("python3 --version")).exit != Exit::Code(0) {
            println!("not run: there is no python3");
            return;
        }
        let named = bench.script("./program");
        let from_memory = bench.script(&format!("python3 -c \"{FROM_MEMORY}\""));
        // Limit L4, asserted as it is: what has no name is nobody's file, in either situation.
        for (mut spec, runs_without) in [(named, false), (from_memory, true)] {
            let control = run(bench, &spec);
            assert_eq!(control.exit, Exit::Code(0), "the control: {}", said(&control));
            for grant in &mut spec.grants {
                if grant.path == bench.workspace() {
                    grant.access = GrantAccess::ReadWrite;
                }
            }
            let finished = run(bench, &spec);
            assert_eq!(finished.exit == Exit::Code(0), runs_without, "{}", said(&finished));
        }
    });
}

#[test]
fn a_hard_link_from_before_gives_its_content() {
    // Limit L3, asserted as it is: the name in the workspace is as good as the one outside.
    in_each_situation(|_, bench| {
        let link = bench.workspace().join("link");
        fs::hard_link(bench.canary(), &link).unwrap();
        assert_eq!(inside(bench, &[Act::ReadFile(link)]).1[0].value, CANARY);
    });
}

#[test]
fn a_symbolic_link_to_the_outside_leads_nowhere() {
    in_each_situation(|_, bench| {
        let link = bench.workspace().join("link");
        std::os::unix::fs::symlink(bench.canary(), &link).unwrap();
        let through = bench.workspace().join("directory");
        std::os::unix::fs::symlink(bench.outside(), &through).unwrap();
        let acts = [
            Act::ReadFile(link.clone()),
            Act::AppendFile(link),
            Act::CreateFile(through.join("new")),
        ];
        assert!(outside(bench, &acts[..1])[0].worked());
        let (_, answers) = inside(bench, &acts);
        assert!(answers.iter().all(|answer| !answer.worked()), "{answers:?}");
        assert!(!bench.outside().join("new").exists());
    });
}

// --- network and sockets ------------------------------------------------------------------------

#[test]
fn only_route_queries_are_left_of_netlink() {
    in_each_situation(|_, bench| {
        let finished = run(bench, &bench.script("ls /sys/class/net >/dev/null 2>&1; echo ok"));
        assert_eq!(said(&finished), "ok\n");
        let acts = [call("socket-netlink-audit"), call("socket-netlink-events")];
        assert!(inside(bench, &acts).1.iter().all(|answer| answer.errno == libc::EPERM));
    });
}

#[test]
fn the_granted_network_brings_tcp_and_udp_and_nothing_else() {
    in_each_situation(|situation, bench| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let hidden = bench.outside().join("socket");
        let _socket = UnixListener::bind(&hidden).unwrap();
        let name = format!("stoplog-escape-{}-{situation:?}", std::process::id());
        let address = UnixAddress::from_abstract_name(&name).unwrap();
        let _abstract = UnixListener::bind_addr(&address).unwrap();
        let acts = [
            Act::ConnectTcp(listener.local_addr().unwrap()),
            Act::SendUdp(receiver.local_addr().unwrap()),
            Act::ConnectPath(hidden),
            Act::ConnectAbstract(name),
            call("socket-multipath"),
            call("socket-packet"),
            call("socket-raw"),
            call("socket-netlink-events"),
        ];
        let spec = SandboxSpec { network: Network::Host, ..bench.spec() };
        let (_, answers) = bench.confined_in(spec, &acts).unwrap();
        let worked: Vec<bool> = answers.iter().map(Answer::worked).collect();
        let expected = [true, true, false, false, false, false, false, false];
        assert_eq!(worked, expected, "{situation:?}: {answers:?}");
        assert!(outside(bench, &acts[..4]).iter().all(Answer::worked), "the control");
    });
}

#[test]
fn without_the_network_nothing_leaves_by_any_door() {
    in_each_situation(|situation, bench| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver.set_nonblocking(true).unwrap();
        let acts = [
            Act::ConnectTcp(listener.local_addr().unwrap()),
            Act::SendFastOpen(listener.local_addr().unwrap()),
            Act::SendUdp(receiver.local_addr().unwrap()),
        ];
        let arrived = || {
            let connections = std::iter::from_fn(|| listener.accept().ok()).count();
            connections + std::iter::from_fn(|| receiver.recv(&mut [0; 8]).ok()).count()
        };
        outside(bench, &acts);
        assert_eq!(arrived(), 3, "the control");
        inside(bench, &acts);
        assert_eq!(arrived(), 0, "{situation:?}");
    });
}

#[test]
fn own_sockets_work_where_they_reach_only_the_cell() {
    // With an empty network of its own a cell may serve itself, as test suites do.
    let bench = Situation::Usual.bench();
    let (enforced, answers) = inside(&bench, &[call("socket-inet"), call("socket-unix")]);
    let own = enforced.namespaces.iter().any(|name| name == "net");
    assert_eq!(answers.iter().all(Answer::worked), own && enforced.mount_view, "{answers:?}");
}

// --- processes and shared objects ---------------------------------------------------------------

#[test]
fn no_process_outside_is_reached_in_any_way() {
    in_each_situation(|situation, bench| {
        let (mut control, mut target) = (bench.victim().unwrap(), bench.victim().unwrap());
        let acts = |pid: i32| Reach::ALL.map(|reach| Act::Process(pid, reach));
        let niceness = niceness(target.number());
        let before = outside(bench, &acts(control.number()));
        let working = before.iter().filter(|answer| answer.worked()).count();
        assert!(working >= 7, "controls work, tracing may be off: {before:?}");
        let (_, answers) = inside(bench, &acts(target.number()));
        for (reach, answer) in Reach::ALL.iter().zip(answers) {
            assert!(!answer.worked(), "{reach:?} in {situation:?}");
        }
        assert!(target.lives() && control.lives());
        assert_eq!(self::niceness(target.number()), niceness, "{situation:?}");
    });
}

/// The nice value of a process.
fn niceness(process: i32) -> String {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    stat.split(' ').nth(18).unwrap().to_owned()
}

#[test]
fn another_identity_has_no_more_reach() {
    if !is_root() {
        println!("not run: only root can take another identity");
        return;
    }
    in_each_situation(|situation, bench| {
        let script =
            "id -u; id -g; cat ../outside/canary; grep CapEff /proc/self/status; echo x >new";
        let mut spec = bench.script(script);
        spec.identity = Identity::User { uid: 65534, gid: 65534 };
        fs::set_permissions(bench.place(), fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::chown(bench.workspace(), Some(65534), Some(65534)).unwrap();
        let text = said(&run(bench, &spec));
        assert!(
            text.starts_with("65534\n65534\nCapEff:\t0000000000000000\n"),
            "{situation:?}: {text}"
        );
        assert!(!text.contains(CANARY), "{text}");
        assert_eq!(fs::metadata(bench.workspace().join("new")).unwrap().uid(), 65534);
    });
}

#[test]
fn shared_memory_of_python_works_in_a_view() {
    if !has_program("python3") {
        println!("not run: no python3");
        return;
    }
    let bench = Situation::Usual.bench();
    let script = "from concurrent.futures import ProcessPoolExecutor as P\n\
                  if __name__ == '__main__':\n    print(list(P(2).map(abs, [1, -2])))\n";
    put(&bench.workspace().join("pool.py"), script).unwrap();
    assert_eq!(said(&run(&bench, &bench.script("python3 pool.py"))), "[1, 2]\n");
}

#[test]
fn the_first_process_of_the_cell_tells_no_environment() {
    let bench = Situation::Usual.bench();
    let (_, answers) = inside(&bench, &[Act::Process(1, Reach::ReadEnvironment)]);
    let shown: Vec<&str> = answers[0].value.split('\0').filter(|pair| !pair.is_empty()).collect();
    assert!(
        !answers[0].worked() || shown.iter().all(|pair| pair.starts_with("PATH=")),
        "{shown:?}"
    );
}

#[test]
fn system_v_memory_of_the_host_is_out_of_reach() {
    in_each_situation(|_, bench| {
        let made = bench.plain_script("ipcmk -M 4096 | grep -o '[0-9]*$'").unwrap();
        let id = String::from_utf8_lossy(&made.stdout).trim().to_owned();
        assert!(!id.is_empty(), "`ipcmk` of util-linux makes a segment");
        // Without an IPC namespace the segment is listed; what is refused is every use of it.
        let remove = format!("ipcrm -m {id}");
        let finished = run(bench, &bench.script(&remove));
        assert_ne!(finished.exit, Exit::Code(0), "{}", said(&finished));
        let control = bench.plain_script(&remove).unwrap();
        assert!(control.status.success(), "the segment is still there, and can be removed outside");
    });
}

// --- what must keep working ---------------------------------------------------------------------

/// Scripts that a well-known layer broke in a well-known tool, and what they print here.
const KEEPS_WORKING: &[(&str, &str, &str)] = &[
    ("rename between directories", "mkdir -p d/s; echo x >d/f; mv d/f d/s/ && ls d/s", "f\n"),
    ("link between directories", "mkdir -p e/s; echo x >e/f; ln e/f e/s/g && ls e/s", "g\n"),
    ("the null device", "echo x >/dev/null && echo ok", "ok\n"),
    ("random bytes", "head -c 4 /dev/urandom | wc -c", "4\n"),
    ("process substitution", "bash -c 'cat <(echo x)'", "x\n"),
    ("here-documents", "cat <<EOF\nx\nEOF", "x\n"),
    ("large pipes", "head -c 3000000 /dev/zero | wc -c", "3000000\n"),
    ("background jobs", "sleep 0.1 & wait; echo done", "done\n"),
    ("own signals", "sh -c 'kill -0 $$ && echo ok'", "ok\n"),
    ("own limits", "ulimit -n 99; ulimit -n", "99\n"),
    ("own priority", "echo $(( $(nice -n 1 nice) - $(nice) ))", "1\n"),
    ("modes", "echo x >m; chmod 754 m && stat -c %a m", "754\n"),
    ("modes of directories", "mkdir n; chmod -R 700 n && stat -c %a n", "700\n"),
    ("modes by a link", "echo x >o; ln -s o p; chmod 711 p && stat -c %a o", "711\n"),
    ("times", "touch t; touch -d @1 t && stat -c %Y t", "1\n"),
    ("times of a link", "ln -s t u; touch -h -d @2 u && stat -c %Y u", "2\n"),
    ("owners", "echo x >v; chown $(id -u):$(id -g) v && echo ok", "ok\n"),
    (
        "archives",
        "mkdir w; echo x >w/y; chmod 750 w; tar cf z w; rm -r w; tar xf z && stat -c %a w",
        "750\n",
    ),
    (
        "copies",
        "mkdir a; echo x >a/b; chmod 640 a/b; touch -d @3 a/b; cp -a a c && stat -c %a%Y c/b",
        "6403\n",
    ),
    ("install", "echo x >f1; install -m 751 f1 f2 && stat -c %a f2", "751\n"),
    (
        "many modes at once",
        "seq 200 | xargs -P 8 -n 10 sh -c 'for f; do : >q$f; chmod 640 q$f; done' x; \
         stat -c %a q* | sort | uniq -c",
        "    200 640\n",
    ),
    (
        "threads",
        "python3 -c 'import threading as t; a=t.Thread(target=print,args=(1,)); a.start(); a.join()'",
        "1\n",
    ),
    ("interfaces", "python3 -c 'import socket; print(len(socket.if_nameindex()) > 0)'", "True\n"),
    (
        "repositories",
        "export HOME=$PWD GIT_CONFIG_NOSYSTEM=1; git init -q r && cd r && git config user.email a@b && git config user.name a \
         && echo x >f && git add f && git commit -qm m && git clone -q . ../s && git -C ../s log --format=%s",
        "m\n",
    ),
    (
        "compilers",
        "printf 'int main(void){return 3;}' >k.c && TMPDIR=$PWD gcc k.c -o k && ./k; echo $?",
        "3\n",
    ),
];

fn has_program(name: &str) -> bool {
    ["/usr/bin", "/bin"].iter().any(|directory| Path::new(directory).join(name).exists())
}

#[test]
fn ordinary_scripts_keep_working() {
    in_each_situation(|situation, bench| {
        for (what, script, expected) in KEEPS_WORKING {
            let missing = ["python3", "git", "gcc"]
                .into_iter()
                .find(|program| script.contains(program) && !has_program(program));
            if let Some(program) = missing {
                println!("not run, without `{program}`: {what} in {situation:?}");
                continue;
            }
            let finished = run(bench, &bench.script(script));
            assert_eq!(said(&finished), *expected, "{what} in {situation:?}");
        }
    });
}

#[test]
fn temporary_files_go_to_the_private_directory_and_nowhere_else() {
    in_each_situation(|situation, bench| {
        let private = bench.place().join("tmp");
        fs::create_dir(&private).unwrap();
        let mut spec =
            bench.script("f=$(mktemp) && echo x >$f && echo ok; ls /tmp/.. >/dev/null 2>&1");
        spec.private_tmp = Some(private.clone());
        spec.environment.push(("TMPDIR".into(), "/tmp".into()));
        assert_eq!(said(&run(bench, &spec)), "ok\n", "{situation:?}");
        let names = fs::read_dir(&private).unwrap().map(|entry| entry.unwrap().file_name());
        let made = names.filter(|name| name.to_string_lossy().starts_with("tmp.")).count();
        assert_eq!(made, 1, "{situation:?}");
    });
}

#[test]
fn a_home_that_is_not_granted_is_empty_and_writable() {
    in_each_situation(|situation, bench| {
        let (home, private) = (bench.outside(), bench.place().join("tmp"));
        fs::create_dir(&private).unwrap();
        put(&home.join(".gitconfig"), "[user]\n").unwrap();
        let mut spec = bench.script("cd $HOME && ls -A && echo x >settings && cat settings");
        spec.environment.push(("HOME".into(), home.clone().into()));
        spec.scratch.push(home.clone());
        spec.private_tmp = Some(private);
        assert_eq!(said(&run(bench, &spec)), "x\n", "{situation:?}");
        assert!(!home.join("settings").exists());
    });
}

#[test]
fn a_home_shows_what_is_granted_in_it_and_nothing_else() {
    in_each_situation(|situation, bench| {
        let (home, private) = (bench.outside(), bench.place().join("tmp"));
        fs::create_dir(&private).unwrap();
        put(&home.join(".gitconfig"), "[user]\n").unwrap();
        fs::create_dir_all(home.join(".cache/tool")).unwrap();
        put(&home.join(".cache/tool/f"), "cached\n").unwrap();
        let text = "cat ~/.cache/tool/f; cat ~/.gitconfig 2>&1 | grep -c 'No such file'; echo x >~/own; cat ~/own";
        let mut spec = bench.script(text);
        spec.environment.push(("HOME".into(), home.clone().into()));
        spec.scratch.push(home.clone());
        spec.grants.push(Grant::new(home.join(".cache/tool"), GrantAccess::ReadOnly));
        spec.private_tmp = Some(private);
        assert_eq!(said(&run(bench, &spec)), "cached\n1\nx\n", "{situation:?}");
        assert!(!home.join("own").exists());
    });
}

#[test]
fn the_end_of_a_program_is_told_as_it_was() {
    in_each_situation(|situation, bench| {
        for (script, exit) in [
            ("exit 7", Exit::Code(7)),
            ("kill -KILL $$", Exit::Signal(libc::SIGKILL)),
            ("kill -SEGV $$", Exit::Signal(libc::SIGSEGV)),
            ("kill -TERM $$", Exit::Signal(libc::SIGTERM)),
            ("kill -TERM 0", Exit::Signal(libc::SIGTERM)),
            ("no-such-program", Exit::Code(127)),
        ] {
            assert_eq!(run(bench, &bench.script(script)).exit, exit, "{script} in {situation:?}");
        }
    });
}

/// Where there is no view the attendant answers; it looks at where a path ends, not at its text.
#[test]
fn metadata_by_any_spelling_stays_inside() {
    in_each_situation(|situation, bench| {
        let outside = bench.outside();
        fill(&outside.join("d"));
        let shared = bench.place().join("shared");
        fill(&shared);
        std::os::unix::fs::symlink(&outside, bench.workspace().join("link")).unwrap();
        let mut spec = bench.script(&format!(
            "chmod 600 ../outside/d/secret; chmod 600 link/d/secret; cd ..; \
             chmod 600 {outside}/d/secret; touch -d @1 {outside}/d/secret; \
             chmod 600 /proc/self/cwd/outside/d/secret; chmod 600 {shared}/secret; \
             chmod 700 {outside}; chown 1:1 {outside}/d/secret; chmod 4755 workspace/own",
            outside = outside.display(),
            shared = shared.display(),
        ));
        spec.grants.push(Grant::new(&shared, GrantAccess::ReadOnly));
        put(&bench.workspace().join("own"), "").unwrap();
        let look = |path: PathBuf| {
            let metadata = fs::metadata(path).unwrap();
            (metadata.permissions().mode(), metadata.modified().unwrap(), metadata.uid())
        };
        let targets = [outside.join("d/secret"), shared.join("secret"), outside.clone()];
        let before = targets.clone().map(look);
        let finished = run(bench, &spec);
        let complaints = said(&finished).lines().count();
        assert_eq!(targets.map(look), before, "{situation:?}: {}", said(&finished));
        assert!(complaints >= 9, "{}", said(&finished));
        let own = fs::metadata(bench.workspace().join("own")).unwrap().permissions().mode();
        assert_eq!(own & 0o4000, 0, "no set-user-id file");
    });
}

// --- the whole ----------------------------------------------------------------------------------

#[test]
fn the_self_test_finds_no_failure() {
    in_each_situation(|situation, bench| {
        let report = Report::of(bench, &PROBES);
        println!("{report}");
        assert!(!report.failed(), "{situation:?}\n{report}");
        for guarantee in [5, 6, 7, 8, 9, 16] {
            assert_eq!(
                report.held(guarantee),
                Some(Held::Pass),
                "G{guarantee} in {situation:?}\n{report}"
            );
        }
        assert_eq!(report.held(1), None, "no probe is registered for it here");
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["proofs"].as_array().map(Vec::len), Some(PROBES.len()));
    });
}

#[test]
fn a_run_starts_with_a_proof_of_its_own_cell() {
    in_each_situation(|situation, bench| {
        let enforced = bench.prove(&bench.spec()).unwrap();
        assert_eq!(enforced.mount_view, situation == Situation::Usual, "{enforced}");
        let mut open = bench.spec();
        open.grants.push(Grant::new(bench.outside(), GrantAccess::ReadOnly));
        let refused = bench.prove(&open).unwrap_err().to_string();
        assert!(refused.contains("reading a file outside worked"), "{refused}");
    });
}

/// Runs the other tests of this binary again, started by `command`.
fn rerun(mut command: Command) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(!text.contains(" 0 passed"), "{text}");
}

/// The test binary under `wrapper`, without the tests that would start it again.
#[expect(clippy::disallowed_methods, reason = "the test binary itself is started again")]
fn this_binary_under(wrapper: &str, arguments: &[&str]) -> Command {
    let own = fs::read_link("/proc/self/exe").unwrap();
    let mut command = Command::new(wrapper);
    command.args(arguments).arg(own);
    command
}

#[test]
fn as_an_ordinary_user_once_more() {
    if !is_root() {
        println!("not run: the tests already run as an ordinary user");
        return;
    }
    let user = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let mut command = this_binary_under("setpriv", &user);
    command.args(["--skip", "once_more", "--skip", "refuses_namespaces"]);
    rerun(command);
}

#[test]
fn a_machine_that_refuses_namespaces_gives_the_second_layer() {
    const NAME: &str = "a_machine_that_refuses_namespaces_gives_the_second_layer";
    #[expect(clippy::disallowed_methods, reason = "the test talks to itself")]
    let refused = std::env::var_os(REFUSED).is_some();
    if refused {
        return the_second_layer_holds();
    }
    // Inside a user namespace the limits on namespaces can be set to none for all below it.
    let limits = ["user", "mnt", "pid", "net", "ipc", "uts"]
        .map(|kind| format!("echo 0 >/proc/sys/user/max_{kind}_namespaces"));
    let script = format!("{} && exec \"$@\"", limits.join(" && "));
    let shell = ["--user", "--map-root-user", "sh", "-c", &script, "sh"];
    let mut command = this_binary_under("unshare", &shell);
    command.args(["--exact", NAME]).env(REFUSED, "1");
    rerun(command);
}

fn the_second_layer_holds() {
    let bench = Situation::Usual.bench();
    let acts = [
        Act::ReadFile(bench.canary()),
        Act::CreateFile(bench.workspace().join("new")),
        call("socket-inet"),
        call("socket-unix"),
    ];
    let (enforced, answers) = inside(&bench, &acts);
    assert!(enforced.namespaces.is_empty() && !enforced.mount_view, "{enforced}");
    let worked: Vec<bool> = answers.iter().map(Answer::worked).collect();
    assert_eq!(worked, [false, true, false, false], "{answers:?}");
    let mask = Mask {
        pattern: MaskPattern::Exact(bench.workspace().join(".env")),
        kind: MaskKind::Hide,
        reason_id: "test".into(),
    };
    let failed = bench.run(&SandboxSpec { masks: vec![mask], ..bench.script("true") }).unwrap_err();
    assert_eq!(failed.step.name(), "namespaces", "{failed}");
}
