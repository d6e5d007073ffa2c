//! What a cell of the shipped policy costs inside a run: against a plain spawn, against the size of
//! the supervisor, with the child that a run keeps ready, and eight at once in turn with bubblewrap.
//! `cargo bench --bench cell`; prints medians, asserts no time.

#![expect(clippy::unwrap_used, reason = "a measurement may fail loudly")]
#![expect(clippy::disallowed_methods, reason = "the plain spawn is what is measured against")]
#![expect(clippy::print_stdout, reason = "the result")]

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use stoplog::policy::Places;
use stoplog::run::cell::{CellInputs, base};
use stoplog::run::environment::Environment;
use stoplog::run::policies;
use stoplog::sandbox::{Cancel, Exit, Launcher, Namespaces, Program, SandboxSpec, Stdin};

/// Calls of each kind in one series.
const ROUNDS: usize = 200;
/// Calls that run at the same time.
const AT_ONCE: usize = 8;
/// Series of calls at the same time, of each kind.
const SERIES: usize = 5;
/// What is measured beside them.
const PEER: &str = "/usr/bin/bwrap";
/// Time between two calls of a run: its model takes this long to answer, and more.
const ANSWER: Duration = Duration::from_millis(20);
/// Memory of a supervisor that holds long conversations.
const BALLAST_BYTES: usize = 600 * 1024 * 1024;

fn main() {
    let place = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
    let workspace = place.path().join("work");
    let tmp = place.path().join("tmp");
    std::fs::create_dir(&workspace).unwrap();
    std::fs::create_dir(&tmp).unwrap();
    let spec = spec(&workspace, &tmp);
    let launcher = Launcher::with_executable(env!("CARGO_BIN_EXE_stoplog"));
    series("one call after the other", Duration::ZERO, &launcher, &spec);
    let ready = launcher.ready_always();
    series("a child waits, as in a run", ANSWER, &launcher, &spec);
    let ballast = vec![1_u8; BALLAST_BYTES];
    series("the same, 600 MiB more", ANSWER, &launcher, &spec);
    drop(std::hint::black_box(ballast));
    rates(&launcher, &spec, &workspace);
    drop(ready);
}

/// The cell that a tool call of a run gets: the shipped policy, a private temporary directory.
fn spec(workspace: &Path, tmp: &Path) -> SandboxSpec {
    let variables = [("PATH", "/usr/bin:/bin"), ("HOME", "/nonexistent")];
    let environment = Environment::of(variables.map(|(n, v)| (OsString::from(n), v.into())));
    let set = policies::load(&[], Some(workspace), &environment).unwrap();
    let places = Places {
        workspace: workspace.to_owned(),
        home: environment.home(),
        tmp: "/tmp".into(),
        protected: Vec::new(),
    };
    let inputs = CellInputs {
        environment: &environment,
        workspace,
        private_tmp: Some(tmp.to_owned()),
        quarantine: None,
        namespaces: Namespaces::Auto,
        unwatched: false,
    };
    let argv = vec!["/usr/bin/true".into()];
    let program = Program::Exec { argv, stdin: Stdin::Empty };
    base(&set.bind(&places).unwrap(), inputs).unwrap().spec(program, &[])
}

fn confined(launcher: &Launcher, spec: &SandboxSpec) {
    let finished = launcher.launch(spec).unwrap().wait(&Cancel::new());
    assert_eq!(finished.exit, Exit::Code(0));
}

/// A spawn with the same streams.
fn plain() {
    let mut command = Command::new("/usr/bin/true");
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    assert!(command.output().unwrap().status.success());
}

/// Both kinds in turn, each after the same rest.
fn series(name: &str, rest: Duration, launcher: &Launcher, spec: &SandboxSpec) {
    let (mut plains, mut confineds) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        std::thread::sleep(rest);
        plains.push(time(plain));
        std::thread::sleep(rest);
        confineds.push(time(|| confined(launcher, spec)));
    }
    let (plain, confined) = (median(plains), median(confineds));
    println!(
        "{name}: plain spawn {:.2} ms, confined {:.2} ms, added {:.2} ms",
        milliseconds(plain),
        milliseconds(confined),
        milliseconds(confined) - milliseconds(plain)
    );
}

/// Calls a second when several run at once, in turn with bubblewrap where that is installed.
fn rates(launcher: &Launcher, spec: &SandboxSpec, workspace: &Path) {
    let has_peer = Path::new(PEER).exists();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..SERIES {
        ours.push(at_once(&|| confined(launcher, spec)));
        theirs.extend(has_peer.then(|| at_once(&|| bubblewrap(workspace))));
    }
    println!("{ROUNDS} calls, {AT_ONCE} at once: {} a second", shown(&mut ours));
    if has_peer {
        println!("the same with bubblewrap: {} a second", shown(&mut theirs));
    } else {
        println!("the same with bubblewrap: not measured, {PEER} is not here");
    }
}

/// Every namespace, and the file tree that `launch.py` gives it.
fn bubblewrap(workspace: &Path) {
    let mut command = Command::new(PEER);
    command.args("--unshare-all --die-with-parent --new-session --ro-bind /usr /usr".split(' '));
    command.args(
        "--symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64".split(' '),
    );
    command.args("--ro-bind /etc /etc --proc /proc --dev /dev --tmpfs /tmp --bind".split(' '));
    command.arg(workspace).arg(workspace).args(["--", "/usr/bin/true"]);
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    assert!(command.output().unwrap().status.success());
}

/// Calls a second.
fn at_once(call: &(dyn Fn() + Sync)) -> f64 {
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| (0..ROUNDS / AT_ONCE).for_each(|_| call()));
        }
    });
    f64::from(u32::try_from(ROUNDS).unwrap()) / began.elapsed().as_secs_f64()
}

/// The median and the bounds of several rates.
fn shown(rates: &mut [f64]) -> String {
    rates.sort_by(f64::total_cmp);
    let at = |place: usize| rates.get(place).copied().unwrap_or_default();
    format!("{:.0} ({:.0} to {:.0})", at(rates.len() / 2), at(0), at(rates.len() - 1))
}

fn time(work: impl FnOnce()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap()
}

fn milliseconds(time: Duration) -> f64 {
    1_000.0 * time.as_secs_f64()
}
