//! What a cell holds on kernels whose Landlock is older, emulated by capping the version: what another
//! layer holds stays held, what nothing holds is refused, and nothing is ever weaker in silence.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]

use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use stoplog::sandbox::probe::{
    Act, Answer, Bench, CANARY, Facts, Held, PROBES, Probe, Reach, Report, put,
};
use stoplog::sandbox::{Degraded, LandlockVersions, SandboxSpec};

/// The newest version that these tests know. A kernel with less makes them fail, not pass with less.
const NEWEST: u32 = 7;
/// The first version that handles the cutting of files, which a view holds otherwise.
const TRUNCATE_SINCE: u32 = 3;

fn bench() -> Bench {
    let bench =
        Bench::new(Path::new("/var/tmp"), Path::new(env!("CARGO_BIN_EXE_stoplog"))).unwrap();
    let kernel = Facts::of(&bench).landlock;
    assert!(kernel.is_some_and(|kernel| kernel >= NEWEST), "Landlock {kernel:?} of {NEWEST}");
    bench
}

/// Acts that a layer must stop in every version, with the newest version that each would need if
/// Landlock stood alone.
struct Targets {
    tcp: TcpListener,
    _abstract: UnixListener,
    name: String,
}

impl Targets {
    fn new() -> Self {
        // Tests of this file run at the same time, with the same versions.
        let name = format!("stoplog-landlock-{}", uuid::Uuid::now_v7());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        Self {
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            _abstract: UnixListener::bind_addr(&address).unwrap(),
            name,
        }
    }

    fn acts(&self, directory: &Path, process: i32) -> Vec<Act> {
        let secret = directory.join("secret");
        vec![
            Act::ReadFile(secret.clone()),
            Act::AppendFile(secret.clone()),
            Act::CutFile(secret.clone()),
            Act::SetMode(secret),
            Act::CreateFile(directory.join("new")),
            Act::RemoveFile(directory.join("second")),
            Act::ConnectTcp(self.tcp.local_addr().unwrap()),
            Act::ConnectAbstract(self.name.clone()),
            Act::Process(process, Reach::Signal),
        ]
    }
}

fn fill(directory: &Path) {
    fs::create_dir(directory).unwrap();
    for name in ["secret", "second"] {
        put(&directory.join(name), CANARY).unwrap();
    }
}

/// Tries all acts outside, where each works, and in a cell, where none may.
fn all_is_held(bench: &Bench, version: u32) {
    let targets = Targets::new();
    let [control, target] = ["control", "target"].map(|name| bench.outside().join(name));
    fill(&control);
    fill(&target);
    let victim = bench.victim().unwrap();
    let outside = bench.plain(&targets.acts(&control, victim.number())).unwrap();
    assert!(outside.iter().all(Answer::worked), "the control: {outside:?}");
    let acts = targets.acts(&target, victim.number());
    let (enforced, inside) = bench.confined(&acts).unwrap_or_else(|fault| panic!("{fault}"));
    for (act, answer) in acts.iter().zip(inside) {
        assert!(!answer.worked(), "{act:?} under version {version}");
    }
    for name in ["secret", "second"] {
        assert_eq!(fs::read_to_string(target.join(name)).unwrap(), CANARY, "{name}");
    }
    assert!(!target.join("new").exists());
    // It is told, in words and in the records.
    assert_eq!(enforced.landlock_abi, version);
    let capped = (version < NEWEST).then_some(NEWEST);
    assert_eq!(enforced.landlock_capped_from.is_some(), capped.is_some(), "{enforced}");
    assert_eq!(enforced.to_string().contains("capped, the kernel has"), capped.is_some());
    let record = serde_json::to_value(&enforced).unwrap();
    assert_eq!(record["landlock_capped_from"].is_u64(), capped.is_some(), "{record}");
}

#[test]
fn a_view_holds_what_an_older_version_lacks() {
    for version in 1..=NEWEST {
        all_is_held(&bench().with_landlock_at_most(version), version);
    }
}

#[test]
fn without_a_view_the_filter_holds_it_from_version_3_and_older_ones_are_refused() {
    for version in 1..=NEWEST {
        let bench = bench().with_landlock_at_most(version).without_namespaces();
        if version >= TRUNCATE_SINCE {
            all_is_held(&bench, version);
            continue;
        }
        // Even where the policy accepts what is lost: content outside is never given up.
        let spec = SandboxSpec { degraded: Degraded::Allow, ..bench.script("touch ran") };
        let failed = bench.run(&spec).unwrap_err();
        assert_eq!(failed.step.name(), "landlock", "{failed}");
        assert!(failed.to_string().contains("the cutting of files"), "{failed}");
        assert!(!bench.workspace().join("ran").exists());
    }
}

#[test]
fn the_self_test_of_the_cell_holds_with_every_version() {
    let probes: Vec<Probe> =
        PROBES.into_iter().filter(|probe| [4, 5, 7].contains(&probe.guarantee)).collect();
    for version in 1..=NEWEST {
        let report = Report::of(&bench().with_landlock_at_most(version), &probes);
        assert!(!report.failed(), "{version}\n{report}");
        assert!(
            [4, 5, 7].iter().all(|number| report.held(*number) == Some(Held::Pass)),
            "{report}"
        );
        if version >= TRUNCATE_SINCE {
            let bench = bench().with_landlock_at_most(version).without_namespaces();
            let report = Report::of(&bench, &probes);
            assert!(!report.failed(), "{version}\n{report}");
            assert_eq!(report.held(4), Some(Held::NotSupported), "{report}");
        }
    }
}

#[test]
fn version_1_refuses_to_rename_between_directories_and_later_ones_allow_it() {
    for version in [1, 2] {
        let bench = bench().with_landlock_at_most(version);
        fs::create_dir(bench.workspace().join("a")).unwrap();
        put(&bench.workspace().join("f"), "x").unwrap();
        let act = Act::Rename(bench.workspace().join("f"), bench.workspace().join("a/f"));
        let (_, answers) = bench.confined(&[act]).unwrap();
        let expected = if version == 1 { libc::EXDEV } else { 0 };
        assert_eq!(answers[0].errno, expected, "{version}: {answers:?}");
    }
}

#[test]
fn a_spec_that_needs_more_than_there_is_starts_nothing() {
    let bench = bench();
    let spec = |at_least, at_most| SandboxSpec {
        landlock: LandlockVersions { at_least, at_most },
        ..bench.script("touch ran")
    };
    for (at_least, at_most) in [(4, Some(3)), (NEWEST, Some(1)), (u32::MAX, None)] {
        let failed = bench.run(&spec(at_least, at_most)).unwrap_err();
        assert_eq!(failed.step.name(), "landlock", "{failed}");
        assert!(failed.to_string().contains(&format!("{at_least} is needed")), "{failed}");
        assert!(!bench.workspace().join("ran").exists());
    }
    drop(bench.run(&spec(3, Some(3))).unwrap());
    assert!(bench.workspace().join("ran").exists(), "the control");
}

#[test]
fn an_older_version_can_be_asked_for_and_never_a_newer_one() {
    let bench = bench().with_landlock_at_most(u32::MAX);
    let (enforced, _) = bench.confined(&[Act::ListEnvironment]).unwrap();
    assert!(enforced.landlock_abi >= NEWEST && enforced.landlock_capped_from.is_none());
}
