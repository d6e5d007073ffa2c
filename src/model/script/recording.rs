//! The file of a recorded run: one script line for each attempt, written as soon as the attempt is
//! over. It is made new, so that no earlier file is lost and no link is followed.

use super::record::script_line;
use crate::model::error::ModelError;
use crate::model::message::Answer;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A script that is being written.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    file: Mutex<File>,
}

/// A recording that could not be made or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot record to `{}`: {source}", path.display())]
pub struct RecordingError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub source: std::io::Error,
}

impl Recording {
    /// Makes the file with mode 0600; one that exists is an error.
    ///
    /// # Errors
    /// [`RecordingError`].
    pub fn create(path: &Path) -> Result<Self, RecordingError> {
        let opened = File::options().write(true).create_new(true).mode(0o600).open(path);
        let file = opened.map_err(|source| RecordingError { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), file: Mutex::new(file) })
    }

    /// Adds the line of one attempt of `agent`; an attempt that a script cannot repeat adds nothing.
    ///
    /// # Errors
    /// [`RecordingError`].
    pub fn note(
        &self,
        agent: &str,
        result: &Result<Answer, ModelError>,
    ) -> Result<(), RecordingError> {
        let Some(mut line) = script_line(agent, result) else { return Ok(()) };
        line.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes())
            .map_err(|source| RecordingError { path: self.path.clone(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_lines_and_an_earlier_file_is_kept() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("run.jsonl");
        let recording = Recording::create(&path).unwrap();
        recording.note("main", &Err(ModelError::CutStream)).unwrap();
        recording.note("main", &Err(ModelError::Aborted)).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"cut\":true}\n");
        let again = Recording::create(&path).unwrap_err().to_string();
        assert!(again.contains("run.jsonl"), "{again}");
    }
}
