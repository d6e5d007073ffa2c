//! What the runs of one conversation know about files: which content the model has seen, and which
//! files they made. It ends with the process.

use super::worker::job::FileIdentity;
use crate::base::digest::Digest;
use crate::base::limits::{CREATED_FILES_MAX, SEEN_FILES_MAX};
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Seen and created files, the oldest forgotten first. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct FileMemory(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    seen: HashMap<PathBuf, Digest>,
    /// The paths of `seen`, the one seen first at the front.
    order: VecDeque<PathBuf>,
    created: VecDeque<FileIdentity>,
}

impl FileMemory {
    /// The content of `path` when the model last saw or wrote all of it.
    #[must_use]
    pub fn seen(&self, path: &Path) -> Option<Digest> {
        self.lock().seen.get(path).copied()
    }

    /// Files that were made.
    #[must_use]
    pub fn created(&self) -> Vec<FileIdentity> {
        self.lock().created.iter().copied().collect()
    }

    /// Notes that the model has seen `path` with this content.
    pub fn note_seen(&self, path: &Path, digest: Digest) {
        let mut known = self.lock();
        if known.seen.insert(path.to_owned(), digest).is_some() {
            return;
        }
        known.order.push_back(path.to_owned());
        if known.order.len() > SEEN_FILES_MAX
            && let Some(oldest) = known.order.pop_front()
        {
            known.seen.remove(&oldest);
        }
    }

    /// Notes that a file was made. One that is forgotten and has several names is refused, which is
    /// safe.
    pub fn note_created(&self, file: FileIdentity) {
        let mut known = self.lock();
        if known.created.len() >= CREATED_FILES_MAX {
            known.created.pop_front();
        }
        known.created.push_back(file);
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_what_was_seen_and_the_oldest_file_is_forgotten_first() {
        let memory = FileMemory::default();
        let shared = memory.clone();
        let path = |number: usize| PathBuf::from(format!("/w/{number}"));
        let (old, new) = (Digest::of(b"old"), Digest::of(b"new"));
        memory.note_seen(&path(0), old);
        memory.note_seen(&path(0), new);
        assert_eq!(shared.seen(&path(0)), Some(new), "the last content counts");
        (1..=SEEN_FILES_MAX).for_each(|number| memory.note_seen(&path(number), old));
        assert_eq!(shared.seen(&path(0)), None);
        assert_eq!(shared.seen(&path(1)), Some(old));
        assert_eq!(shared.seen(&path(SEEN_FILES_MAX)), Some(old));
    }
}
