//! The background jobs of one run: cells that nobody waits for.
//!
//! A job is a cell like that of any other call, watched by a thread of its own. The table knows the jobs'
//! names, what is kept of their output and how they ended. It decides nothing and writes no record: the
//! loop takes the ends from here and writes them down. With the table all jobs end.

use super::execute::{Outcome, of_job_end};
use crate::audit::record::Exit as RecordedExit;
use crate::base::ids::Id;
use crate::base::limits::{JOBS_AT_ONCE_MAX, JOBS_PER_RUN_MAX};
use crate::sandbox::{Cancel, LiveOutput, Piece, Running};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Time between looks at the wish to stop while output is waited for.
const CANCEL_LOOK: Duration = Duration::from_millis(100);

/// A job as the records name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobName {
    /// What the model calls it: `job-1`, `job-2`, …, never twice in a session.
    pub name: String,
    /// The call that started it.
    pub call: Id,
    /// The beginning of its command, for a person and the model.
    pub label: String,
}

/// A job that has ended.
#[derive(Debug, Clone)]
pub struct EndedJob {
    /// Which one.
    pub job: JobName,
    /// How it ended; its text is one sentence.
    pub outcome: Outcome,
    /// Whether the model has been told.
    pub told: bool,
    /// Bytes of its output that the model has not read.
    pub unread_bytes: u64,
}

/// What one look at a job gave.
#[derive(Debug)]
pub struct Look {
    /// The call that started it.
    pub call: Id,
    /// The offset that was looked at.
    pub asked: u64,
    /// What is kept of its output from there on.
    pub piece: Piece,
    /// How long it has run, or ran.
    pub ran: Duration,
    /// How it ended, if it did; then the piece knows the whole length.
    pub end: Option<Outcome>,
}

#[derive(Debug)]
struct Job {
    job: JobName,
    output: LiveOutput,
    started: Instant,
    cancel: Cancel,
    killed: Arc<AtomicBool>,
    end: Arc<OnceLock<Outcome>>,
    /// Up to where the model has read.
    read_to: u64,
    told: bool,
    taken: bool,
}

impl Job {
    fn is_running(&self) -> bool {
        self.end.get().is_none()
    }
}

#[derive(Debug, Default)]
struct Table {
    jobs: Vec<Job>,
    /// Cells that are being made.
    starting: usize,
}

/// The jobs of one run.
#[derive(Debug)]
pub struct Jobs {
    /// Jobs that earlier processes of the session started.
    earlier: usize,
    at_once: u64,
    table: Mutex<Table>,
}

impl Jobs {
    /// A table for a session in which `earlier` jobs were started before. `at_once` is the policy's word
    /// on how many may run at the same time.
    #[must_use]
    pub fn new(earlier: usize, at_once: Option<u64>) -> Self {
        let at_once = at_once.map_or(JOBS_AT_ONCE_MAX, |most| most.min(JOBS_AT_ONCE_MAX));
        Self { earlier, at_once, table: Mutex::default() }
    }

    /// Keeps a place for one more job.
    ///
    /// # Errors
    /// A sentence for the model if there may be no more.
    pub fn reserve(&self) -> Result<Place<'_>, String> {
        let mut table = self.lock();
        let running = table.jobs.iter().filter(|job| job.is_running()).count() + table.starting;
        if self.at_once == 0 {
            return Err("the policy allows no background jobs (`limits.jobs`)".to_owned());
        }
        if running as u64 >= self.at_once {
            return Err(format!(
                "{running} background jobs are running, and no more may; end one with job_kill, or \
                 wait for an end with job_output"
            ));
        }
        if table.jobs.len() + table.starting >= JOBS_PER_RUN_MAX {
            return Err(format!(
                "this run has started {JOBS_PER_RUN_MAX} background jobs, and may start no more"
            ));
        }
        table.starting += 1;
        Ok(Place { jobs: self })
    }

    /// Looks at the output of `name` from `offset` on, or from where the last look stopped, and waits at
    /// most `wait` if there is none yet and the job runs.
    ///
    /// # Errors
    /// A sentence for the model if there is no such job.
    pub fn look(
        &self,
        name: &str,
        offset: Option<u64>,
        wait: Duration,
        stop: &Cancel,
    ) -> Result<Look, String> {
        let (output, end, started, asked, call) = self.with(name, |job| {
            let asked = offset.unwrap_or(job.read_to);
            (job.output.clone(), Arc::clone(&job.end), job.started, asked, job.job.call.clone())
        })?;
        wait_for(&output, asked, wait, stop);
        // In this order: what is seen ended has all of its output.
        let end = end.get().cloned();
        let piece = output.piece(asked, usize::MAX);
        let ran = end.as_ref().map_or_else(|| started.elapsed(), |end| end.duration);
        Ok(Look { call, asked, piece, ran, end })
    }

    /// Notes up to where the model has read `name`, and whether it was told of the end.
    pub fn note_read(&self, name: &str, read_to: u64, told: bool) {
        // A job that was just looked at is known.
        self.with(name, |job| {
            job.read_to = read_to;
            job.told |= told;
        })
        .ok();
    }

    /// Ends `name` and waits until nothing of it lives.
    ///
    /// # Errors
    /// A sentence for the model if there is no such job, or it had ended.
    pub fn kill(&self, name: &str) -> Result<Outcome, String> {
        let (output, end) = self.with(name, |job| {
            if !job.is_running() {
                return Err(format!("`{}` has ended already; job_output says how", job.job.name));
            }
            job.told = true;
            job.killed.store(true, Ordering::SeqCst);
            job.cancel.cancel();
            Ok((job.output.clone(), Arc::clone(&job.end)))
        })??;
        Ok(wait_for_end(&output, &end))
    }

    /// The jobs that have ended since this was last asked, in the order of their starts.
    pub fn take_ended(&self) -> Vec<EndedJob> {
        let mut table = self.lock();
        let ended = table.jobs.iter_mut().filter(|job| !job.taken);
        let ended = ended.filter_map(|job| {
            let outcome = job.end.get()?.clone();
            job.taken = true;
            let total_bytes = job.output.piece(u64::MAX, 0).total_bytes;
            let unread_bytes = total_bytes.saturating_sub(job.read_to);
            Some(EndedJob { job: job.job.clone(), outcome, told: job.told, unread_bytes })
        });
        ended.collect()
    }

    /// Whether the job of this name was started here.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        self.lock().jobs.iter().any(|job| job.job.name == name)
    }

    /// Ends every job and waits until nothing of them lives. Blocks the calling thread.
    pub fn end_all(&self) {
        let table = self.lock();
        table.jobs.iter().for_each(|job| job.cancel.cancel());
        for job in &table.jobs {
            drop(wait_for_end(&job.output, &job.end));
        }
    }

    fn with<T>(&self, name: &str, act: impl FnOnce(&mut Job) -> T) -> Result<T, String> {
        let mut table = self.lock();
        match table.jobs.iter_mut().find(|job| job.job.name == name) {
            Some(job) => Ok(act(job)),
            None => Err(self.unknown(&table, name)),
        }
    }

    /// Why there is no job of this name.
    fn unknown(&self, table: &Table, name: &str) -> String {
        if (1..=self.earlier).any(|number| name_of(number) == name) {
            return format!(
                "`{name}` is gone: it ended with the process that ran the session then"
            );
        }
        let state = |job: &Job| if job.is_running() { "running" } else { "ended" };
        let known = table.jobs.iter().map(|job| format!("{} ({})", job.job.name, state(job)));
        let known: Vec<String> = known.collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let name = crate::base::text::escape(crate::base::text::prefix(name, 100));
        format!("there is no background job `{name}`; those of this session: {known}")
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // No step that could fail leaves the table in between.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.end_all();
    }
}

/// Room for one more job, until it is filled or dropped.
#[derive(Debug)]
pub struct Place<'j> {
    jobs: &'j Jobs,
}

impl Place<'_> {
    /// Watches `running` from now on, and gives it its name.
    ///
    /// # Errors
    /// The system's, if it gives no thread; the cell has ended then.
    pub fn fill(self, running: Running, call: Id, label: String) -> std::io::Result<JobName> {
        let (output, cancel) = (running.output(), Cancel::new());
        let killed = Arc::new(AtomicBool::new(false));
        let watch = Watch { output: output.clone(), end: Arc::new(OnceLock::new()) };
        let end = Arc::clone(&watch.end);
        let (for_thread, was_killed) = (cancel.clone(), Arc::clone(&killed));
        let body = move || {
            let finished = running.wait(&for_thread);
            let mut ended = of_job_end(&finished);
            if ended.exit == RecordedExit::Cancelled && was_killed.load(Ordering::SeqCst) {
                ended.exit = RecordedExit::Killed;
            }
            watch.end.get_or_init(|| ended);
        };
        drop(std::thread::Builder::new().name("job".to_owned()).spawn(body)?);
        let mut table = self.jobs.lock();
        let job = JobName { name: name_of(self.jobs.earlier + table.jobs.len() + 1), call, label };
        table.jobs.push(Job {
            job: job.clone(),
            output,
            started: Instant::now(),
            cancel,
            killed,
            end,
            read_to: 0,
            told: false,
            taken: false,
        });
        Ok(job)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut table = self.jobs.lock();
        table.starting = table.starting.saturating_sub(1);
    }
}

fn name_of(number: usize) -> String {
    format!("job-{number}")
}

/// Tells that a job has ended, when its thread does: a thread that panics has dropped the cell, which
/// ended it, and what it did is then not known.
struct Watch {
    output: LiveOutput,
    end: Arc<OnceLock<Outcome>>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end.get_or_init(|| Outcome::failed(RecordedExit::Interrupted));
        self.output.end();
    }
}

/// Waits until nothing of a job lives.
fn wait_for_end(output: &LiveOutput, end: &OnceLock<Outcome>) -> Outcome {
    loop {
        // No output is this long: only the end is waited for.
        let _ended = output.wait(u64::MAX, CANCEL_LOOK);
        if let Some(end) = end.get() {
            return end.clone();
        }
    }
}

fn wait_for(output: &LiveOutput, offset: u64, wait: Duration, stop: &Cancel) {
    let until = Instant::now() + wait;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if output.wait(offset, left.min(CANCEL_LOOK)) || stop.is_cancelled() || left.is_zero() {
            return;
        }
    }
}
