//! The filter is judged by what its program answers: a small interpreter of classic BPF runs it on
//! system calls, refusing everything that the kernel's own check of such programs refuses.

mod calls;

use super::program::{
    ALLOW, AND, ARCHITECTURE, ATTEND, FAIL, IF_ANY_BIT, IF_AT_LEAST, IF_EQUAL, JUMP, KILL, LOAD,
    RETURN,
};
use super::rules::Rule;
use super::*;
use crate::sandbox::probe;
use std::collections::BTreeMap;

const EPERM: u32 = 1;
const ENOSYS: u32 = 38;
const EOPNOTSUPP: u32 = 95;
/// Longest program that a spec may give: what the kernel compiles at each launch stays short.
const INSTRUCTIONS_EXPECTED: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ruling {
    Allowed,
    Failed(u32),
    Killed,
    Attended,
}

/// A ruling, and whether it was reached without a look at the arguments.
struct Run {
    ruling: Ruling,
    constant: bool,
    steps: usize,
}

fn run(filter: &Filter, architecture: u32, number: u32, arguments: [u64; 6]) -> Run {
    let mut data = Vec::new();
    data.extend(number.to_le_bytes());
    data.extend(architecture.to_le_bytes());
    data.extend(0x7fff_dead_beef_u64.to_le_bytes());
    arguments.iter().for_each(|argument| data.extend(argument.to_le_bytes()));
    let (mut place, mut accumulator, mut constant) = (0_usize, 0_u32, true);
    for steps in 1.. {
        let now = filter.instructions()[place];
        place += 1;
        let mut branch =
            |taken| place += usize::from(if taken { now.if_true } else { now.if_false });
        match now.code {
            LOAD => {
                let at = now.operand as usize;
                assert!(at.is_multiple_of(4) && at + 4 <= data.len(), "load at {at}");
                constant &= at < 8;
                accumulator = u32::from_le_bytes(data[at..at + 4].try_into().unwrap());
            }
            AND => accumulator &= now.operand,
            JUMP => place += now.operand as usize,
            IF_EQUAL => branch(accumulator == now.operand),
            IF_AT_LEAST => branch(accumulator >= now.operand),
            IF_ANY_BIT => branch(accumulator & now.operand != 0),
            RETURN => return Run { ruling: ruling(now.operand), constant, steps },
            other => panic!("instruction code {other:#x}"),
        }
    }
    panic!("the program has no end")
}

fn ruling(value: u32) -> Ruling {
    match value {
        ALLOW => Ruling::Allowed,
        KILL => Ruling::Killed,
        ATTEND => Ruling::Attended,
        value if value & 0xffff_0000 == FAIL => Ruling::Failed(value & 0xffff),
        value => panic!("return value {value:#x}"),
    }
}

fn spec(program: ProgramKind, host_network: bool, layers: &[Layer]) -> FilterSpec {
    FilterSpec { program, host_network, layers: layers.iter().copied().collect() }
}

/// The usual cell, and the one on a machine that refuses namespaces.
fn full() -> FilterSpec {
    spec(ProgramKind::Foreign, false, &Layer::ALL)
}
fn bare() -> FilterSpec {
    spec(ProgramKind::Foreign, false, &[])
}

/// Every spec there can be.
fn every_spec() -> impl Iterator<Item = FilterSpec> {
    let kinds = [ProgramKind::Foreign, ProgramKind::FileJob];
    let hosts = [false, true];
    kinds.into_iter().flat_map(move |kind| {
        hosts.into_iter().flat_map(move |host| {
            (0..1_u32 << Layer::ALL.len()).map(move |set| {
                let chosen = Layer::ALL.into_iter().enumerate();
                let chosen = chosen.filter(|(place, _)| set & (1 << place) != 0);
                FilterSpec {
                    program: kind,
                    host_network: host,
                    layers: chosen.map(|(_, layer)| layer).collect(),
                }
            })
        })
    })
}

fn call(name: &str) -> u32 {
    let row = listing(&full()).into_iter().find(|listed| listed.call == name);
    row.unwrap_or_else(|| panic!("`{name}` is not in the table")).number
}

fn ask(spec: &FilterSpec, name: &str, arguments: &[u64]) -> Ruling {
    let mut registers = [0xdead_beef_0000_0000; 6];
    for (register, argument) in registers.iter_mut().zip(arguments) {
        *register = *argument;
    }
    run(&build(spec).unwrap(), ARCHITECTURE, call(name), registers).ruling
}

const ALLOWED: Ruling = Ruling::Allowed;
const DENIED: Ruling = Ruling::Failed(EPERM);
const MISSING: Ruling = Ruling::Failed(ENOSYS);

/// Calls that are refused and not tried, since the control would do harm.
const NOT_TRIED: [(&str, &str); 1] =
    [("SYS_vhangup", "it would take the terminal from whoever runs the tests as root")];

#[test]
fn a_call_that_is_refused_whatever_its_arguments_is_tried_beside_a_control() {
    let tried: Vec<i64> = probe::CALLS.iter().map(|call| call.number).collect();
    for row in table::rows().filter(|row| matches!(row.rule, Rule::Refuse | Rule::Absent)) {
        for call in row.calls {
            let left = NOT_TRIED.iter().any(|(name, _)| *name == call.name);
            let is_tried = tried.contains(&i64::from(call.number));
            assert!(is_tried != left, "{}: tried {is_tried}, left {left}", call.name);
        }
    }
}

#[test]
fn a_call_is_listed_once() {
    let mut seen = BTreeMap::new();
    for listed in listing(&full()) {
        assert!(!listed.reason.is_empty(), "{}", listed.call);
        assert_eq!(seen.insert(listed.number, listed.call), None, "{}", listed.call);
    }
    assert!(seen.len() > 300, "{} calls", seen.len());
}

#[test]
fn every_row_of_every_spec_is_answered_as_listed() {
    for spec in every_spec() {
        let filter = build(&spec).unwrap();
        for Listed { call, number, treatment, .. } in listing(&spec) {
            let result = run(&filter, ARCHITECTURE, number, [u64::MAX; 6]);
            let expected = match treatment {
                Treatment::Allowed => ALLOWED,
                Treatment::Refused => DENIED,
                Treatment::Attended => Ruling::Attended,
                Treatment::Absent => MISSING,
                Treatment::NotSupported => Ruling::Failed(EOPNOTSUPP),
                Treatment::ByArguments => {
                    assert!(!result.constant, "{call} under {spec:?}");
                    continue;
                }
            };
            assert_eq!(result.ruling, expected, "{call} under {spec:?}");
            assert!(result.constant, "{call} looks at arguments under {spec:?}");
        }
    }
}

#[test]
fn numbers_outside_the_table_are_absent() {
    let known: BTreeMap<u32, &str> =
        listing(&full()).into_iter().map(|listed| (listed.number, listed.call)).collect();
    for spec in [full(), bare()] {
        let filter = build(&spec).unwrap();
        for number in (0..1_024).chain([0x3fff_ffff, 0x7fff_ffff, u32::MAX]) {
            if !known.contains_key(&number) {
                let result = run(&filter, ARCHITECTURE, number, [0; 6]);
                assert_eq!((result.ruling, result.constant), (MISSING, true), "{number}");
            }
        }
    }
}

#[test]
fn x32_numbers_are_absent_and_other_architectures_are_killed() {
    let filter = build(&full()).unwrap();
    for number in [0, 1, 13, 59, 512, 520, 547] {
        let x32 = run(&filter, ARCHITECTURE, 0x4000_0000 | number, [0; 6]);
        assert_eq!(x32.ruling, MISSING, "x32 {number}");
        for architecture in [0x4000_0003, 0x4000_0028, 0xC000_00F3, 0, !ARCHITECTURE] {
            let other = run(&filter, architecture, number, [0; 6]);
            assert_eq!(other.ruling, Ruling::Killed, "{architecture:#x} {number}");
        }
    }
}

#[test]
fn programs_stay_short_and_their_paths_shorter() {
    for spec in every_spec() {
        let filter = build(&spec).unwrap();
        let length = filter.instructions().len();
        assert!(length <= INSTRUCTIONS_EXPECTED, "{length} instructions under {spec:?}");
        for listed in listing(&spec) {
            let result = run(&filter, ARCHITECTURE, listed.number, [u64::MAX; 6]);
            assert!(result.steps <= 80, "{} takes {} steps", listed.call, result.steps);
            if result.constant {
                assert!(result.steps <= 14, "{} takes {} steps", listed.call, result.steps);
            }
        }
    }
}

#[test]
fn a_filter_survives_the_way_to_the_child() {
    let filter = build(&full()).unwrap();
    let text = serde_json::to_string(&filter).unwrap();
    assert_eq!(serde_json::from_str::<Filter>(&text).unwrap(), filter);
}

/// Taking a layer away never allows a call that was refused.
#[test]
fn fewer_layers_never_allow_more() {
    let arguments: Vec<[u64; 6]> = [0, 1, 2, 8, 0x5412, 0o4755, u64::MAX]
        .into_iter()
        .flat_map(|value| [[value; 6], [1, value, 0, value, 0, 0]])
        .collect();
    for layer in Layer::ALL {
        let mut without = full();
        without.layers.remove(&layer);
        let alone = spec(ProgramKind::Foreign, false, &[layer]);
        for (more, fewer) in [(full(), without), (alone, bare())] {
            let (strong, weak) = (build(&more).unwrap(), build(&fewer).unwrap());
            for listed in listing(&more) {
                for arguments in &arguments {
                    let before = run(&strong, ARCHITECTURE, listed.number, *arguments).ruling;
                    let after = run(&weak, ARCHITECTURE, listed.number, *arguments).ruling;
                    let kept = before == ALLOWED || after != ALLOWED;
                    assert!(kept, "{} {arguments:x?} without {layer:?}", listed.call);
                }
            }
        }
    }
}

/// The kernel takes the program and answers as the interpreter does. The filter is on this one
/// thread only; the same acts work before it is installed.
#[test]
fn the_kernel_agrees() {
    use nix::errno::Errno;
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;
    let attempt = |file: &std::path::Path| {
        let network = socket(AddressFamily::Inet, SockType::Stream, SockFlag::empty(), None);
        let mode = set_permissions(file, Permissions::from_mode(0o600));
        let mode = mode.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap()));
        let read = std::fs::read(file).map(|bytes| bytes.len());
        (network.err(), mode.err(), read.unwrap())
    };
    let both = std::thread::spawn(move || {
        let file = tempfile::NamedTempFile::new().unwrap();
        let control = attempt(file.path());
        rustix::thread::set_no_new_privs(true).unwrap();
        build(&bare()).unwrap().install().unwrap();
        (control, attempt(file.path()))
    });
    let (control, confined) = both.join().unwrap();
    assert_eq!(control, (None, None, 0));
    assert_eq!(confined, (Some(Errno::EPERM), Some(Errno::EPERM), 0));
}
