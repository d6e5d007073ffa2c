//! Which line is which record, and where the chain of links is broken.
//!
//! A line is identified by what it claims and by its neighbours, so that one edited byte is told as
//! one edited record and not as everything after it. INVARIANT: whatever is done to the bytes of a
//! log up to a known head gives at least one problem.

use super::facts::{Claim, Fact, Facts, Meaning};
use super::report::{Problem, ProblemKind};
use crate::audit::ledger::Head;
use crate::base::digest::Digest;
use std::collections::{BTreeMap, BTreeSet};

/// The lines in the order of their sequence numbers, and what is wrong with them.
#[derive(Debug, Default)]
pub(super) struct Chain {
    /// Sequence number to index of the line; one line each.
    places: BTreeMap<u64, usize>,
    /// Link of each record.
    links: BTreeMap<u64, (u64, Digest)>,
    altered: BTreeSet<u64>,
    problems: Vec<Problem>,
}

impl Chain {
    pub(super) fn report(
        &mut self,
        kind: ProblemKind,
        sequence: Option<u64>,
        line: Option<u64>,
        sentence: String,
    ) {
        self.altered.extend(sequence);
        self.problems.push(Problem { kind, sequence, line, sentence });
    }

    /// The records in order, each once.
    pub(super) fn records<'a>(
        &'a self,
        facts: &'a Facts,
    ) -> impl DoubleEndedIterator<Item = (u64, &'a Fact)> {
        self.places
            .iter()
            .filter_map(|(sequence, index)| facts.lines.get(*index).map(|fact| (*sequence, fact)))
    }

    pub(super) fn last<'a>(&'a self, facts: &'a Facts) -> Option<(u64, &'a Fact)> {
        self.records(facts).next_back()
    }

    /// After a run that ended at `records` nobody opened the log again.
    pub(super) fn check_nothing_follows(&mut self, records: u64, facts: &Facts) {
        let Some((sequence, fact)) = self.records(facts).find(|(found, _)| *found > records) else {
            return;
        };
        let line = fact.line;
        let sentence = format!(
            "record {sequence} and what follows was appended after the session had ended at {records}"
        );
        self.report(ProblemKind::Appended, Some(sequence), Some(line), sentence);
    }

    /// Problems in the order of the lines.
    pub(super) fn into_problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| (problem.sequence.is_none(), problem.sequence));
        self.problems
    }
}

/// Finds every record's line and checks that each holds the link of the one before.
pub(super) fn check(facts: &Facts, heads: &[Head]) -> Chain {
    let mut chain = Chain::default();
    let candidates = number_lines(facts, heads, &mut chain);
    choose_lines(facts, heads, candidates, &mut chain);
    report_missing_numbers(&mut chain);
    report_order(facts, &mut chain);
    chain.links = chain.records(facts).map(|(at, fact)| (at, (fact.line, fact.link))).collect();
    check_links(facts, heads, &mut chain);
    chain
}

/// Gives each line a sequence number: its own claim, unless the link says that only the claim was
/// edited. A line that cannot be read takes the place at which it stands if nobody else claims it.
fn number_lines(facts: &Facts, heads: &[Head], chain: &mut Chain) -> BTreeMap<u64, Vec<usize>> {
    let mut candidates: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    let mut before = Head::EMPTY;
    for (index, fact) in facts.lines.iter().enumerate() {
        let expected = before.records.saturating_add(1);
        let sequence = match &fact.claim {
            Ok(claim) if claim.sequence == expected => expected,
            Ok(claim) if claim.previous == before.link => {
                let found = claim.sequence;
                let sentence = format!("record {expected} was edited: it says that it is {found}");
                chain.report(ProblemKind::Edited, Some(expected), Some(fact.line), sentence);
                expected
            }
            Ok(claim) => claim.sequence,
            Err(problem) => {
                let next = facts.lines.get(index + 1).and_then(Fact::claimed_sequence);
                let is_complete = heads.last().is_some_and(|head| head.records < expected);
                let is_last = index + 1 == facts.lines.len();
                if next == Some(expected) || (is_last && is_complete) {
                    let sentence = format!("line {} is no record: {problem}", fact.line);
                    chain.report(ProblemKind::Inserted, None, Some(fact.line), sentence);
                    continue;
                }
                let sentence = format!("record {expected} was edited: {problem}");
                chain.report(ProblemKind::Edited, Some(expected), Some(fact.line), sentence);
                expected
            }
        };
        candidates.entry(sequence).or_default().push(index);
        before = Head { records: sequence, link: fact.link };
    }
    candidates
}

/// Where several lines claim one number, the genuine one is that which the next record or a head
/// confirms.
fn choose_lines(
    facts: &Facts,
    heads: &[Head],
    candidates: BTreeMap<u64, Vec<usize>>,
    chain: &mut Chain,
) {
    for (sequence, indices) in &candidates {
        let next = sequence.checked_add(1).and_then(|next| candidates.get(&next));
        let is_confirmed = |index: &&usize| {
            let Some(fact) = facts.lines.get(**index) else { return false };
            let by_next = next.into_iter().flatten().filter_map(|index| facts.lines.get(*index));
            by_next.filter_map(Fact::claimed_previous).any(|previous| previous == fact.link)
                || heads.contains(&Head { records: *sequence, link: fact.link })
        };
        let chosen = indices.iter().find(is_confirmed).or_else(|| indices.first());
        let Some(chosen) = chosen.copied() else { continue };
        chain.places.insert(*sequence, chosen);
        for index in indices.iter().filter(|index| **index != chosen) {
            report_surplus(facts, (*sequence, chosen, *index), chain);
        }
    }
}

fn report_surplus(facts: &Facts, at: (u64, usize, usize), chain: &mut Chain) {
    let (sequence, chosen, surplus) = at;
    let (Some(genuine), Some(fact)) = (facts.lines.get(chosen), facts.lines.get(surplus)) else {
        return;
    };
    let line = fact.line;
    if fact.link == genuine.link {
        let sentence = format!("line {line} repeats record {sequence}");
        chain.report(ProblemKind::Duplicated, Some(sequence), Some(line), sentence);
    } else {
        let sentence = format!(
            "line {line} says that it is record {sequence}, which stands on line {}",
            genuine.line
        );
        chain.report(ProblemKind::Inserted, Some(sequence), Some(line), sentence);
    }
}

fn report_missing_numbers(chain: &mut Chain) {
    let mut expected = 1_u64;
    let mut missing = Vec::new();
    for sequence in chain.places.keys() {
        if *sequence > expected {
            missing.push((expected, *sequence - 1));
        }
        expected = sequence.saturating_add(1);
    }
    for (first, last) in missing {
        let sentence = if first == last {
            format!("record {first} was removed")
        } else {
            format!("records {first} to {last} were removed")
        };
        chain.report(ProblemKind::Removed, Some(first), None, sentence);
    }
    if let Some(zero) = chain.places.remove(&0) {
        let line = u64::try_from(zero).unwrap_or(u64::MAX).saturating_add(1);
        let sentence = format!("line {line} says that it is record 0; records count from 1");
        chain.report(ProblemKind::Inserted, None, Some(line), sentence);
    }
}

fn report_order(facts: &Facts, chain: &mut Chain) {
    let mut by_line: Vec<_> = chain.places.iter().map(|(at, index)| (*index, *at)).collect();
    by_line.sort_unstable();
    let mut highest = 0_u64;
    for (index, sequence) in by_line {
        let line = facts.lines.get(index).map(|fact| fact.line);
        if sequence < highest {
            let sentence = format!("record {sequence} stands after record {highest}");
            chain.report(ProblemKind::Reordered, Some(sequence), line, sentence);
        }
        highest = highest.max(sequence);
    }
}

/// A link that does not fit means that the record before was edited, unless the record that holds
/// the link is itself not the one that its successor saw.
fn check_links(facts: &Facts, heads: &[Head], chain: &mut Chain) {
    let pairs: Vec<_> = chain
        .records(facts)
        .filter_map(|(sequence, fact)| fact.claimed_previous().map(|link| (sequence, link)))
        .collect();
    for (sequence, previous) in pairs {
        let before = sequence - 1;
        let Some((line, link)) = link_of(chain, before) else { continue };
        if link == previous || chain.altered.contains(&before) {
            continue;
        }
        let own_line = chain.links.get(&sequence).map(|(line, _)| *line);
        if before == 0 {
            let sentence = "record 1 was edited: it does not begin the chain".to_owned();
            chain.report(ProblemKind::Edited, Some(1), own_line, sentence);
        } else if is_confirmed(facts, heads, chain, sequence) == Some(false) {
            let sentence =
                format!("record {sequence} was edited: its link to record {before} is wrong");
            chain.report(ProblemKind::Edited, Some(sequence), own_line, sentence);
        } else {
            let sentence = format!("record {before} was edited: record {sequence} saw another");
            chain.report(ProblemKind::Edited, Some(before), Some(line), sentence);
        }
    }
}

fn link_of(chain: &Chain, sequence: u64) -> Option<(u64, Digest)> {
    if sequence == 0 {
        return Some((0, Digest::zero()));
    }
    chain.links.get(&sequence).copied()
}

/// Whether the record is the one that its successor, or a head, saw; `None` if neither exists.
fn is_confirmed(facts: &Facts, heads: &[Head], chain: &Chain, sequence: u64) -> Option<bool> {
    let (_, link) = link_of(chain, sequence)?;
    let next = sequence.checked_add(1).and_then(|next| chain.places.get(&next));
    let by_next = next.and_then(|index| facts.lines.get(*index)).and_then(Fact::claimed_previous);
    let seen = by_next
        .or_else(|| heads.iter().find(|head| head.records == sequence).map(|head| head.link))?;
    Some(seen == link)
}

/// What must hold between the words of records, whoever wrote them.
pub(super) fn check_meaning(facts: &Facts, chain: &mut Chain) {
    let mut found = Vec::new();
    let mut after_end = true;
    for (sequence, fact) in chain.records(facts) {
        if after_end && !fact.begins_run() {
            let sentence = format!("record {sequence} is outside of any run");
            found.push((ProblemKind::Appended, sequence, fact.line, sentence));
        }
        after_end = fact.is_end();
        if !checkpoint_fits(fact) {
            let sentence = format!("the checkpoint in record {sequence} is not of this place");
            found.push((ProblemKind::Edited, sequence, fact.line, sentence));
        }
    }
    for (kind, sequence, line, sentence) in found {
        chain.report(kind, Some(sequence), Some(line), sentence);
    }
}

fn checkpoint_fits(fact: &Fact) -> bool {
    match &fact.claim {
        Ok(Claim { sequence, previous, meaning: Meaning::Checkpoint(head) }) => {
            head.records.checked_add(1) == Some(*sequence) && head.link == *previous
        }
        Ok(_) | Err(_) => true,
    }
}

/// Holds the records against heads noted elsewhere: a log that was cut, or rewritten with all links
/// made anew, fits itself but not them.
pub(super) fn check_heads(heads: &[Head], chain: &mut Chain) {
    let last = chain.places.last_key_value().map_or(0, |(sequence, _)| *sequence);
    let mut good = 0_u64;
    for head in heads.iter().filter(|head| head.records > 0 && head.records <= last) {
        let Some((line, link)) = link_of(chain, head.records) else { continue };
        if link == head.link {
            good = head.records;
        } else if !chain.altered.contains(&head.records) {
            let sentence = format!(
                "record {} is not the one that was noted: it, or others after record {good}, was \
                 rewritten",
                head.records
            );
            chain.report(ProblemKind::Rewritten, Some(head.records), Some(line), sentence);
        }
    }
    if let Some(head) = heads.last().filter(|head| head.records > last) {
        let sentence = format!(
            "cut: records {} to {} are missing at the end",
            last.saturating_add(1),
            head.records
        );
        chain.report(ProblemKind::Cut, Some(last.saturating_add(1)), None, sentence);
    }
}
