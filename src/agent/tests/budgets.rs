//! What a run has spent, across the processes that it took.

use super::rig::{Rig, script_model};
use crate::agent::events::FinishReason;
use crate::agent::settings::Budget;
use crate::base::dollars::Dollars;
use crate::model::Price;
use crate::session::{Cost, Counters, Extension, IterationStatistics, NewAnswer, ToolOutcome};
use serde_json::Map;
use std::time::Duration;

/// A crash in the midst of a run must not give it its budgets anew.
#[test]
fn what_an_earlier_process_of_the_run_spent_counts_for_every_budget() {
    type Change = fn(&mut Budget);
    let changes: [(Change, FinishReason); 5] = [
        (|budget| budget.iterations = 2, FinishReason::MaxIterations),
        (|budget| budget.tokens = Some(200), FinishReason::Budget),
        (|budget| budget.cost = Some(Dollars::from_millionths(200)), FinishReason::Budget),
        (|budget| budget.tool_calls = Some(2), FinishReason::Budget),
        (|budget| budget.time = Some(Duration::from_secs(200)), FinishReason::Budget),
    ];
    for (change, reason) in changes {
        for (turns, expected) in [(1, FinishReason::Stop), (2, reason)] {
            let mut rig = Rig::new();
            rig.price =
                Some(Price { input: 1.0, output: 1.0, cache_read: None, cache_write: None });
            change(&mut rig.budget);
            leave_behind(&mut rig, turns);
            let ran = rig.resume("{\"text\":\"done\"}");
            assert_eq!(ran.result.finish_reason, expected, "after {turns} turns: {reason:?}");
        }
        let mut rig = Rig::new();
        change(&mut rig.budget);
        leave_behind(&mut rig, 2);
        rig.resume("{\"text\":\"done\"}");
        let ran = rig.run("a further task", "{\"text\":\"done\"}");
        assert_eq!(ran.result.finish_reason, FinishReason::Stop, "a further run begins at nothing");
    }
}

/// A journal that ends after so many turns of one call, each of 100 tokens and 100 seconds.
fn leave_behind(rig: &mut Rig, turns: u64) {
    let (mut agent, _events) = rig.agent(script_model("{\"text\":\"never asked\"}"));
    let snapshot = agent.parts.settings.snapshot.clone();
    let contract = agent.parts.settings.contracts[0].clone();
    let journal = &mut agent.parts.journal;
    let operation_id = journal.begin_run("go", None).unwrap();
    for iteration in 1..=turns {
        let step_id = journal.step_attempt(&snapshot).unwrap().step_id;
        journal.note_with_next(Extension::Cost(Cost {
            operation_id: operation_id.clone(),
            millionths: 100,
        }));
        let usage = Counters { input: 90, output: 10, ..Counters::default() };
        let call = (String::new(), contract.name.clone(), "{}".to_owned());
        let answer = NewAnswer { tool_calls: vec![call], usage, ..NewAnswer::default() };
        let places = journal.assistant_settled(answer).unwrap();
        let started = journal.tool_started(&places[0], Map::new(), &contract).unwrap();
        let text = iteration.to_string();
        journal.tool_result(&started, ToolOutcome::Success, text, Counters::default()).unwrap();
        journal
            .note(Extension::Iteration(IterationStatistics {
                operation_id: operation_id.clone(),
                step_id,
                iteration,
                executed: 1,
                denied: 0,
                duration_ms: 100_000,
            }))
            .unwrap();
    }
}
