//! Verdicts laid out as one classic-BPF program: check of the architecture, a balanced search tree
//! over ranges of call numbers, then one block for every different check of arguments.
//!
//! INVARIANT: a path of the tree to a fixed verdict loads nothing but the architecture and the
//! number; that is the form whose result the kernel caches.

use super::rules::{ABSENT, Answer, Check, Test, Verdict};
use crate::sandbox::sys;
use rustix::fd::OwnedFd;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;

/// Instructions that the kernel takes in one program (`BPF_MAXINSNS`).
const INSTRUCTIONS_MAX: usize = 4_096;
/// Offset of the call number in `struct seccomp_data`.
const NUMBER_OFFSET: u32 = 0;
/// Offset of the architecture.
const ARCHITECTURE_OFFSET: u32 = 4;
/// Offset of the first argument; each is 8 bytes, low half first on both architectures.
const ARGUMENTS_OFFSET: u32 = 16;

/// `AUDIT_ARCH_X86_64`.
#[cfg(target_arch = "x86_64")]
pub(super) const ARCHITECTURE: u32 = 0xC000_003E;
/// `AUDIT_ARCH_AARCH64`.
#[cfg(target_arch = "aarch64")]
pub(super) const ARCHITECTURE: u32 = 0xC000_00B7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the system-call table knows x86_64 and aarch64 only");

// The instruction codes that are used, as `linux/bpf_common.h` composes them.
pub(super) const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
pub(super) const AND: u16 = 0x54; // BPF_ALU | BPF_AND | BPF_K
pub(super) const JUMP: u16 = 0x05; // BPF_JMP | BPF_JA
pub(super) const IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
pub(super) const IF_AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
pub(super) const IF_ANY_BIT: u16 = 0x45; // BPF_JMP | BPF_JSET | BPF_K
pub(super) const RETURN: u16 = 0x06; // BPF_RET | BPF_K

/// `SECCOMP_RET_KILL_PROCESS`.
pub(super) const KILL: u32 = 0x8000_0000;
/// `SECCOMP_RET_ERRNO`, without the error number.
pub(super) const FAIL: u32 = 0x0005_0000;
/// `SECCOMP_RET_ALLOW`.
pub(super) const ALLOW: u32 = 0x7fff_0000;

/// `SECCOMP_RET_USER_NOTIF`.
pub(super) const ATTEND: u32 = 0x7fc0_0000;

/// The program is longer than the kernel takes, or a jump in it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system-call filter is too large")]
pub struct FilterTooLarge;

/// One instruction of a classic-BPF program. Serialised as one number: code, the two jumps and the
/// operand, from high to low.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "u64", from = "u64")]
pub struct Instruction {
    pub(super) code: u16,
    pub(super) if_true: u8,
    pub(super) if_false: u8,
    pub(super) operand: u32,
}

impl From<Instruction> for u64 {
    fn from(instruction: Instruction) -> Self {
        (Self::from(instruction.code) << 48)
            | (Self::from(instruction.if_true) << 40)
            | (Self::from(instruction.if_false) << 32)
            | Self::from(instruction.operand)
    }
}

impl From<u64> for Instruction {
    fn from(packed: u64) -> Self {
        let [code_high, code_low, if_true, if_false, operand @ ..] = packed.to_be_bytes();
        Self {
            code: u16::from_be_bytes([code_high, code_low]),
            if_true,
            if_false,
            operand: u32::from_be_bytes(operand),
        }
    }
}

/// A built filter, ready to be handed to the child and installed there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Filter {
    instructions: Vec<Instruction>,
}

impl Filter {
    /// The program.
    #[must_use]
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// Puts the filter over the calling thread, for good; every process and thread that it starts
    /// later inherits it. `no_new_privs` must be set, without which an unprivileged caller may not.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn install(&self) -> io::Result<()> {
        sys::install_filter(&mut self.for_kernel())
    }

    /// As `install`; calls that the attendant is to answer come out of the returned descriptor.
    ///
    /// # Errors
    /// What the kernel answered.
    pub(in crate::sandbox) fn install_attended(&self) -> io::Result<OwnedFd> {
        sys::install_with_listener(&mut self.for_kernel())
    }

    fn for_kernel(&self) -> Vec<libc::sock_filter> {
        let convert = |instruction: &Instruction| libc::sock_filter {
            code: instruction.code,
            jt: instruction.if_true,
            jf: instruction.if_false,
            k: instruction.operand,
        };
        self.instructions.iter().map(convert).collect()
    }
}

/// Lays `verdicts` out; a number that is not in them is absent. The x32 numbers of x86_64 carry bit
/// 30 and so lie above every number of the table: absent too.
pub(super) fn compile(verdicts: &BTreeMap<u32, Verdict>) -> Result<Filter, FilterTooLarge> {
    let ranges = ranges(verdicts);
    let checks = distinct_checks(&ranges);
    let tree = tree(&ranges, &checks)?;
    let blocks = checks.iter().map(|check| block(check)).collect::<Result<Vec<_>, _>>()?;
    let mut instructions = vec![
        instruction(LOAD, ARCHITECTURE_OFFSET),
        Instruction { code: IF_EQUAL, if_true: 1, if_false: 0, operand: ARCHITECTURE },
        instruction(RETURN, KILL),
        instruction(LOAD, NUMBER_OFFSET),
    ];
    instructions.extend(link(tree, &blocks)?);
    instructions.extend(blocks.into_iter().flatten());
    if instructions.len() > INSTRUCTIONS_MAX {
        return Err(FilterTooLarge);
    }
    Ok(Filter { instructions })
}

/// Numbers from `start` to the next range share a verdict.
struct Range<'a> {
    start: u32,
    verdict: &'a Verdict,
}

const UNKNOWN: &Verdict = &Verdict::Fixed(ABSENT);

fn ranges(verdicts: &BTreeMap<u32, Verdict>) -> Vec<Range<'_>> {
    let mut ranges = vec![Range { start: 0, verdict: UNKNOWN }];
    let mut push = |start, verdict| {
        // Two entries for one start: the later one is the truth, the earlier an empty gap.
        if ranges.last().is_some_and(|last| last.start == start) {
            ranges.pop();
        }
        if ranges.last().is_none_or(|last| last.verdict != verdict) {
            ranges.push(Range { start, verdict });
        }
    };
    for (number, verdict) in verdicts {
        push(*number, verdict);
        push(number.saturating_add(1), UNKNOWN);
    }
    ranges
}

fn distinct_checks<'a>(ranges: &[Range<'a>]) -> Vec<&'a Check> {
    let mut checks: Vec<&Check> = Vec::new();
    for range in ranges {
        match range.verdict {
            Verdict::Checked(check) if !checks.contains(&check) => checks.push(check),
            Verdict::Checked(_) | Verdict::Fixed(_) => {}
        }
    }
    checks
}

/// A place of the tree: an instruction, or a jump to a block whose place is not known yet.
enum Slot {
    Ready(Instruction),
    ToBlock(usize),
}

fn tree(ranges: &[Range<'_>], checks: &[&Check]) -> Result<Vec<Slot>, FilterTooLarge> {
    let [first, rest @ ..] = ranges else { return Err(FilterTooLarge) };
    if rest.is_empty() {
        return Ok(vec![leaf(first.verdict, checks)?]);
    }
    let (left, right) = ranges.split_at(ranges.len() / 2);
    let boundary = right.first().map_or(u32::MAX, |range| range.start);
    let (left, right) = (tree(left, checks)?, tree(right, checks)?);
    let if_true = u8::try_from(left.len()).map_err(|_far| FilterTooLarge)?;
    let node = Instruction { code: IF_AT_LEAST, if_true, if_false: 0, operand: boundary };
    Ok(std::iter::once(Slot::Ready(node)).chain(left).chain(right).collect())
}

fn leaf(verdict: &Verdict, checks: &[&Check]) -> Result<Slot, FilterTooLarge> {
    match verdict {
        Verdict::Fixed(answer) => Ok(Slot::Ready(give(*answer))),
        Verdict::Checked(check) => {
            checks.iter().position(|known| known == &check).map(Slot::ToBlock).ok_or(FilterTooLarge)
        }
    }
}

/// Turns jumps to blocks into distances; the blocks follow the tree in order.
fn link(tree: Vec<Slot>, blocks: &[Vec<Instruction>]) -> Result<Vec<Instruction>, FilterTooLarge> {
    let length = tree.len();
    let link_one = |(place, slot): (usize, Slot)| match slot {
        Slot::Ready(instruction) => Ok(instruction),
        Slot::ToBlock(index) => {
            let before: usize = blocks.iter().take(index).map(Vec::len).sum();
            let distance = length.saturating_add(before).saturating_sub(place.saturating_add(1));
            let distance = u32::try_from(distance).map_err(|_far| FilterTooLarge)?;
            Ok(instruction(JUMP, distance))
        }
    };
    tree.into_iter().enumerate().map(link_one).collect()
}

/// One check: clause after clause, each test leaving for the next clause when it fails.
fn block(check: &Check) -> Result<Vec<Instruction>, FilterTooLarge> {
    let mut instructions = Vec::new();
    for clause in &check.clauses {
        // Built backwards, so that the way to the end of the clause is known at each test.
        let mut backwards = vec![give(check.matched)];
        for test in clause.iter().rev() {
            let to_next_clause = u8::try_from(backwards.len()).map_err(|_far| FilterTooLarge)?;
            backwards.extend(test_instructions(*test, to_next_clause).into_iter().rev());
        }
        instructions.extend(backwards.into_iter().rev());
    }
    instructions.push(give(check.otherwise));
    Ok(instructions)
}

fn test_instructions(test: Test, if_false: u8) -> Vec<Instruction> {
    let compare = |code, operand| Instruction { code, if_true: 0, if_false, operand };
    match test {
        Test::Low { argument, mask: u32::MAX, value } => {
            vec![load_argument(argument, 0), compare(IF_EQUAL, value)]
        }
        Test::Low { argument, mask, value } => {
            vec![load_argument(argument, 0), instruction(AND, mask), compare(IF_EQUAL, value)]
        }
        Test::High { argument, value } => {
            vec![load_argument(argument, 4), compare(IF_EQUAL, value)]
        }
        Test::AnyBit { argument, bits } => {
            vec![load_argument(argument, 0), compare(IF_ANY_BIT, bits)]
        }
    }
}

fn load_argument(argument: u8, half: u32) -> Instruction {
    instruction(LOAD, ARGUMENTS_OFFSET + 8 * u32::from(argument) + half)
}

const fn instruction(code: u16, operand: u32) -> Instruction {
    Instruction { code, if_true: 0, if_false: 0, operand }
}

fn give(answer: Answer) -> Instruction {
    match answer {
        Answer::Allow => instruction(RETURN, ALLOW),
        Answer::Fail(error) => instruction(RETURN, FAIL | u32::from(error)),
        Answer::Attend => instruction(RETURN, ATTEND),
    }
}
