//! Background jobs as the loop sees them: their starts and ends go into the records from here, and an end
//! that the model has not seen is put before it like any other background result.
//!
//! What a job printed is not put there: it is a tool's output, and reaches the model as the result of a
//! call alone.

use super::background::{BackgroundResult, Producer};
use super::calls::outcome_record;
use super::events::Event;
use super::{Agent, Fault};
use crate::audit::record::Body;
use crate::base::ids::Id;
use crate::session::{Extension, JobEnded, JobStarted};
use crate::tools::jobs::{EndedJob, JobName};
use std::sync::Arc;

/// How a job ended that outlived its process.
const LOST: &str = "is gone";

impl Agent {
    /// A job has begun; that stands in the transaction of its call's result.
    pub(super) fn note_job(&mut self, started: &Id, job: JobName) {
        let JobName { name, label, .. } = job;
        let fact = JobStarted { tool_started_id: started.clone(), job: name, label };
        self.parts.journal.note_with_next(Extension::JobStarted(fact));
    }

    /// Writes down the jobs that have ended, and has the model told of those that it has not seen end.
    pub(super) fn settle_jobs(&mut self) -> Result<(), Fault> {
        self.note_lost_jobs();
        for ended in self.parts.toolbox.jobs.take_ended() {
            self.settle_job(&ended)?;
        }
        Ok(())
    }

    /// The outcome follows the effect: in the log it is that of the call that began the job.
    fn settle_job(&mut self, ended: &EndedJob) -> Result<(), Fault> {
        let EndedJob { job, outcome, told, unread_bytes } = ended;
        let mut record = outcome_record(&job.call, outcome);
        record.result = None;
        record.truncated |= *unread_bytes > 0;
        let duration_ms = record.duration_ms;
        self.parts.log.append(&Body::Outcome(Box::new(record))).map(drop)?;
        let how = outcome.exit.to_string();
        self.parts.journal.note_with_next(Extension::JobEnded(JobEnded {
            job: job.name.clone(),
            outcome: how.clone(),
            output_bytes: outcome.stdout_bytes,
            duration_ms,
        }));
        if let Some(outputs) = self.parts.toolbox.outputs.as_ref().filter(|_| !outcome.truncated) {
            outputs.forget(&job.call);
        }
        self.tell(Event::JobEnded {
            call: job.call.clone(),
            job: job.name.clone(),
            outcome: how.clone(),
            output_bytes: outcome.stdout_bytes,
            duration_ms,
        });
        if !told {
            let unread = match unread_bytes {
                0 => "All of its output has been read.".to_owned(),
                bytes => format!("{bytes} bytes of its output are unread: see job_output."),
            };
            self.put_before_model(&job.name, &job.label, how, unread + &outcome.text);
        }
        Ok(())
    }

    /// Jobs of an earlier process ended with it. The fact that says so goes with the message that tells
    /// the model.
    fn note_lost_jobs(&mut self) {
        let state = self.parts.journal.state();
        let lost = state.lost_jobs().filter(|job| !self.parts.toolbox.jobs.knows(&job.started.job));
        for job in lost.map(|job| job.started.clone()).collect::<Vec<_>>() {
            self.parts.journal.note_with_next(Extension::JobEnded(JobEnded {
                job: job.job.clone(),
                outcome: LOST.to_owned(),
                output_bytes: 0,
                duration_ms: 0,
            }));
            let text = "It ended with the process that ran this session; what it had done by then is not \
                        known. Begin it again if it is needed.";
            self.put_before_model(&job.job, &job.label, LOST.to_owned(), text.to_owned());
        }
    }

    fn put_before_model(&self, name: &str, label: &str, outcome: String, text: String) {
        self.parts.background.push(BackgroundResult {
            producer: Producer::Job { name: name.to_owned() },
            label: label.to_owned(),
            outcome,
            text,
        });
    }

    /// Jobs end with the run: none of them lives when this returns, and each end is written down.
    pub(super) async fn end_jobs(&mut self) -> Result<(), Fault> {
        let toolbox = Arc::clone(&self.parts.toolbox);
        let ended = tokio::task::spawn_blocking(move || toolbox.jobs.end_all()).await;
        ended.map_err(|_panicked| Fault::LostCall)?;
        self.settle_jobs()
    }
}
