//! Notices an agent that goes in circles: the same calls with the same results, again and again.
//!
//! A call is the hash of tool, arguments and *result*, so that polling something that changes is no
//! circle. First the model is told once; if it goes on, the run ends.

use crate::base::digest::Digest;
use std::collections::VecDeque;

/// Longest cycle that is noticed, in calls.
const CYCLE_MAX: usize = 5;

/// What to do about the calls so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Circling {
    /// Nothing.
    No,
    /// Tell the model, once.
    Nudge,
    /// End the run.
    Stop,
}

/// The last calls of a run.
#[derive(Debug)]
pub(super) struct CycleWatch {
    repetitions: usize,
    recent: VecDeque<Digest>,
    nudged: bool,
}

impl CycleWatch {
    /// A watch for which `repetitions` of a cycle make it a circle; 0 = it sees none.
    pub(super) fn new(repetitions: u32) -> Self {
        let repetitions = usize::try_from(repetitions).unwrap_or(usize::MAX);
        Self { repetitions, recent: VecDeque::new(), nudged: false }
    }

    /// Takes note of one finished call.
    pub(super) fn observe(&mut self, tool: &str, arguments: &str, result: &str) -> Circling {
        if self.repetitions == 0 {
            return Circling::No;
        }
        let mut bytes = Vec::with_capacity(tool.len() + arguments.len() + result.len() + 2);
        for part in [tool, arguments, result] {
            bytes.extend_from_slice(Digest::of(part.as_bytes()).as_bytes());
        }
        self.recent.push_back(Digest::of(&bytes));
        if self.recent.len() > CYCLE_MAX.saturating_mul(self.repetitions) {
            self.recent.pop_front();
        }
        if !(1..=CYCLE_MAX).any(|length| self.repeats(length)) {
            return Circling::No;
        }
        self.recent.clear();
        if std::mem::replace(&mut self.nudged, true) { Circling::Stop } else { Circling::Nudge }
    }

    /// Whether the last calls are the same `length` calls, as often as makes a circle.
    fn repeats(&self, length: usize) -> bool {
        let needed = length.saturating_mul(self.repetitions);
        let Some(start) = self.recent.len().checked_sub(needed) else { return false };
        let last = self.recent.iter().skip(start);
        let shifted = self.recent.iter().skip(start + length);
        last.zip(shifted).all(|(earlier, later)| earlier == later)
    }
}

/// What the model is told, once.
pub(super) const NUDGE: &str = "You have made the same calls with the same results several times in a row. \
    Repeating them will not change anything: try something else, or answer with what you know.";

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(watch: &mut CycleWatch, calls: &[&str]) -> Vec<Circling> {
        calls.iter().map(|call| watch.observe("bash", call, "same")).collect()
    }

    #[test]
    fn cycles_of_one_to_five_calls_are_noticed_after_three_rounds() {
        for length in 1..=5 {
            let mut watch = CycleWatch::new(3);
            let names: Vec<String> = (0..length * 3).map(|i| format!("c{}", i % length)).collect();
            let calls: Vec<&str> = names.iter().map(String::as_str).collect();
            let seen = feed(&mut watch, &calls);
            assert_eq!(seen.last(), Some(&Circling::Nudge), "length {length}");
            assert!(seen[..seen.len() - 1].iter().all(|c| *c == Circling::No));
            assert_eq!(feed(&mut watch, &calls).last(), Some(&Circling::Stop));
        }
    }

    #[test]
    fn a_watch_can_be_told_how_patient_it_is() {
        let calls = ["same"; 40];
        let stops = |repetitions| {
            let mut watch = CycleWatch::new(repetitions);
            feed(&mut watch, &calls).iter().position(|seen| *seen == Circling::Stop)
        };
        assert_eq!((stops(3), stops(15), stops(0)), (Some(5), Some(29), None));
    }

    #[test]
    fn polling_whose_result_changes_is_no_circle() {
        let mut watch = CycleWatch::new(3);
        for round in 0..50 {
            assert_eq!(watch.observe("bash", "date", &round.to_string()), Circling::No);
        }
    }

    #[test]
    fn different_calls_are_no_circle() {
        let mut watch = CycleWatch::new(3);
        let calls = ["a", "b", "a", "c", "a", "d", "a", "b", "a", "e"];
        assert!(feed(&mut watch, &calls).iter().all(|seen| *seen == Circling::No));
    }
}
