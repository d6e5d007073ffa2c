//! Replacing exact text in a file.
//!
//! All edits are found in the content as it is, checked together, and written once. The content is
//! bytes: what no edit touches stays as it is, whatever its encoding and line ends.

mod nearest;
mod occurrences;
mod replace;

use super::beneath::Places;
use super::job::FileJob;
use super::reply::{Edited, JobError};
use super::{shown, write};
use crate::base::digest::Digest;
use crate::call::request::EditArguments;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Makes the edits that `arguments` name.
pub(super) fn edit(
    job: &FileJob,
    places: &Places<'_>,
    arguments: &EditArguments,
) -> Result<Edited, JobError> {
    let edits = arguments.replacements().map_err(|problem| JobError::BadArguments { problem })?;
    let place = places.to_write(&arguments.path)?;
    if place.node.is_none() {
        return Err(JobError::NotFound { path: shown::path(&place.real) });
    }
    let (file, facts) = place.open_file()?;
    write::check_target(job, &place, &facts)?;
    let content = whole_content(file, facts.bytes, job.limits.edit_bytes, &place.real)?;
    if job.known_content.is_some_and(|known| known != Digest::of(&content)) {
        return Err(JobError::Stale { path: shown::path(&place.real) });
    }
    let plan = replace::plan(&content, &edits, &shown::path(&place.real))?;
    let file = write::put(place, &plan.content)?;
    Ok(Edited { file, lines: plan.lines, crlf_adapted: plan.crlf_adapted })
}

fn whole_content(file: File, bytes: u64, limit: u64, real: &Path) -> Result<Vec<u8>, JobError> {
    let too_large = |bytes| JobError::TooLarge { path: shown::path(real), bytes, limit };
    if bytes > limit {
        return Err(too_large(bytes));
    }
    let mut content = Vec::new();
    file.take(limit + 1).read_to_end(&mut content).map_err(|error| JobError::Io {
        action: "read".to_owned(),
        path: shown::path(real),
        problem: error.to_string(),
    })?;
    if content.len() as u64 > limit { Err(too_large(content.len() as u64)) } else { Ok(content) }
}
