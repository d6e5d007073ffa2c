//! Applies our own facts. None touches what a version 2 reader computes.

use super::Reducer;
use super::corruption::{Fault, require};
use super::index::IdUse;
use crate::base::dollars::Dollars;
use crate::base::ids::Id;
use crate::session::facts::extension::{
    Extension, Injected, JobEnded, JobStarted, SubAgentFinished, SubAgentStarted,
};
use crate::session::facts::message::Message;
use crate::session::state::{Job, SubAgent};

impl Reducer {
    pub(super) fn apply_extension(&mut self, extension: &Extension) -> Result<IdUse, Fault> {
        require(self.state.header.is_extended(), || {
            Fault::fact("the header declares no extension")
        })?;
        match extension {
            Extension::RunContext(context) => {
                self.index.unfinished(&context.operation_id)?;
                self.state.extension.run_contexts.push(context.clone());
            }
            Extension::Thinking(thinking) => {
                let answer = self.message(&thinking.assistant_entry_id);
                require(matches!(answer, Some(Message::Assistant(_))), || {
                    Fault::reference("`assistantEntryId` is not an answer")
                })?;
                self.state.extension.thinking.push(thinking.clone());
            }
            Extension::Denial(denial) => {
                let start = self.index.ids.get(&denial.tool_started_id);
                require(matches!(start, Some(IdUse::ToolStart(_))), || {
                    Fault::reference("`toolStartedId` is not the start of a tool")
                })?;
                self.state.extension.denials.push(denial.clone());
                self.state.spend(|spent| spent.calls = spent.calls.saturating_sub(1));
            }
            Extension::Iteration(iteration) => {
                self.index.operation(&iteration.operation_id)?;
                require(self.index.ids.get(&iteration.step_id) == Some(&IdUse::Step), || {
                    Fault::reference("`stepId` is not a step")
                })?;
                self.state.extension.iterations.push(iteration.clone());
                self.state.spend(|spent| spent.duration_ms += iteration.duration_ms);
            }
            Extension::Injected(injected) => self.inject(injected)?,
            Extension::SubAgentStarted(started) => self.start_sub_agent(started)?,
            Extension::SubAgentFinished(finished) => self.finish_sub_agent(finished)?,
            Extension::Cost(cost) => {
                self.index.operation(&cost.operation_id)?;
                let cost = Dollars::from_millionths(cost.millionths);
                self.state.spend(|spent| spent.cost = spent.cost.plus(cost));
            }
            Extension::JobStarted(started) => self.start_job(started)?,
            Extension::JobEnded(ended) => self.end_job(ended)?,
            Extension::FinalStatistics(statistics) => {
                let (_, info) = self.index.operation(&statistics.operation_id)?;
                require(info.finished, || Fault::transition("the operation is not finished"))?;
                self.state.extension.finals.push(statistics.clone());
            }
        }
        Ok(IdUse::Fact)
    }

    fn inject(&mut self, injected: &Injected) -> Result<(), Fault> {
        let message = self.message(&injected.entry_id);
        require(matches!(message, Some(Message::User(_))), || {
            Fault::reference("`entryId` is not a user message")
        })?;
        for run_id in &injected.run_ids {
            let agent = self.sub_agent(run_id)?;
            require(agent.finished.is_some() && !agent.delivered, || {
                Fault::transition(format!("sub-agent `{run_id}` has no result to deliver"))
            })?;
            agent.delivered = true;
        }
        self.state.extension.injected.push(injected.clone());
        Ok(())
    }

    fn start_sub_agent(&mut self, started: &SubAgentStarted) -> Result<(), Fault> {
        self.index.unfinished(&started.operation_id)?;
        let known = self.sub_agent(&started.run_id).is_ok();
        require(!known, || Fault::transition("the sub-agent has started already"))?;
        let agent = SubAgent { started: started.clone(), finished: None, delivered: false };
        self.state.extension.sub_agents.push(agent);
        Ok(())
    }

    fn finish_sub_agent(&mut self, finished: &SubAgentFinished) -> Result<(), Fault> {
        let agent = self.sub_agent(&finished.run_id)?;
        require(agent.finished.is_none(), || {
            Fault::transition("the sub-agent has finished already")
        })?;
        agent.finished = Some(finished.clone());
        Ok(())
    }

    fn start_job(&mut self, started: &JobStarted) -> Result<(), Fault> {
        let start = self.index.ids.get(&started.tool_started_id);
        require(matches!(start, Some(IdUse::ToolStart(_))), || {
            Fault::reference("`toolStartedId` is not the start of a tool")
        })?;
        let jobs = &mut self.state.extension.jobs;
        let known = jobs.iter().any(|job| job.started.job == started.job);
        require(!known, || Fault::transition("there is a job of this name already"))?;
        jobs.push(Job { started: started.clone(), ended: None });
        Ok(())
    }

    fn end_job(&mut self, ended: &JobEnded) -> Result<(), Fault> {
        let jobs = self.state.extension.jobs.iter_mut();
        let job = jobs.rev().find(|job| job.started.job == ended.job);
        let job = job.ok_or_else(|| Fault::reference(format!("`{}` is no job", ended.job)))?;
        require(job.ended.is_none(), || Fault::transition("the job has ended already"))?;
        job.ended = Some(ended.clone());
        Ok(())
    }

    fn sub_agent(&mut self, run_id: &Id) -> Result<&mut SubAgent, Fault> {
        let agents = &mut self.state.extension.sub_agents;
        agents
            .iter_mut()
            .rfind(|agent| agent.started.run_id == *run_id)
            .ok_or_else(|| Fault::reference(format!("`{run_id}` is not a sub-agent")))
    }
}
