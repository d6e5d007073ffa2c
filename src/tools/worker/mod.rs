//! The file tools: what runs inside the confined child.
//!
//! One job in, one reply out, both JSON. The worker opens everything beneath held directories of
//! the job's roots, one name at a time, and so keeps its bounds even where no kernel layer does. It
//! knows no policy and no sandbox: what may be touched is plain data in the job.

mod beneath;
mod edit;
mod find;
mod grep;
pub mod job;
mod node;
mod protect;
mod read;
pub mod reply;
pub mod shown;
mod walk;
mod write;

use beneath::Places;
use job::{FileJob, FileRequest};
use reply::{Done, JobError, JobReply};
use std::io::Write;
use std::time::{Duration, Instant};

/// Runs one file job and writes its reply. Returns 0 if a reply was written, whatever it says, and
/// 1 if the job could not be understood or the reply not be written.
pub fn serve(job: &[u8], out: &mut dyn Write) -> i32 {
    let reply = match serde_json::from_slice::<FileJob>(job) {
        Ok(job) => run(&job),
        Err(_malformed) => return 1,
    };
    let written = serde_json::to_vec(&reply)
        .map_err(std::io::Error::from)
        .and_then(|bytes| out.write_all(&bytes))
        .and_then(|()| out.flush());
    i32::from(written.is_err())
}

/// Runs one file job.
#[must_use]
pub fn run(job: &FileJob) -> JobReply {
    match perform(job) {
        Ok(done) => JobReply::Done(done),
        Err(error) => JobReply::Failed(error),
    }
}

fn perform(job: &FileJob) -> Result<Done, JobError> {
    let places = Places::new(job)?;
    let clock = Stopwatch::start(job.limits.time_ms);
    match &job.request {
        FileRequest::Edit(arguments) => edit::edit(job, &places, arguments).map(Done::Edited),
        FileRequest::Glob(arguments) => find::glob(job, &places, arguments, &clock),
        FileRequest::Grep(arguments) => grep::grep(job, &places, arguments, &clock),
        FileRequest::List(arguments) => find::list(job, &places, arguments, &clock),
        FileRequest::Read(arguments) => read::read(job, &places, arguments, &clock).map(Done::Read),
        FileRequest::Write(arguments) => write::write(job, &places, arguments).map(Done::Written),
    }
}

/// The time limit of one job.
#[derive(Debug, Clone, Copy)]
struct Stopwatch {
    started: Instant,
    limit: Duration,
}

impl Stopwatch {
    fn start(limit_ms: u64) -> Self {
        Self { started: Instant::now(), limit: Duration::from_millis(limit_ms) }
    }

    fn is_over(&self) -> bool {
        self.started.elapsed() >= self.limit
    }
}
