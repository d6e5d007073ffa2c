//! Which calls of one answer may run at the same time.
//!
//! Calls are taken in the model's order. A wave is the longest run of calls that do not touch what
//! another one of the wave changes; the next wave starts when all of it is done. So two edits of one
//! file both hold, in order, and reads go together.

use crate::base::paths::{is_within, normalise};
use crate::call::request::Request;
use std::path::{Path, PathBuf};

/// Calls that run at once: more would only queue for the processors.
const WAVE_MAX: usize = 8;

/// What a call uses and how.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Use {
    /// Looks at a path and everything below it.
    Looks(PathBuf),
    /// Changes one path.
    Changes(PathBuf),
    /// Looks at a background job, or ends it.
    Job,
    /// May change anything.
    Everything,
}

impl Use {
    fn of(request: &Request, workspace: &Path) -> Self {
        let at = |path: &str| normalise(workspace, Path::new(path));
        let under = |path: Option<&String>| path.map_or(workspace.to_owned(), |path| at(path));
        match request {
            Request::Bash(_) => Self::Everything,
            Request::JobKill(_) | Request::JobOutput(_) => Self::Job,
            Request::Edit(arguments) => Self::Changes(at(&arguments.path)),
            Request::Write(arguments) => Self::Changes(at(&arguments.path)),
            Request::Read(arguments) => Self::Looks(at(&arguments.path)),
            Request::List(arguments) => Self::Looks(under(arguments.path.as_ref())),
            Request::Glob(arguments) => Self::Looks(under(arguments.path.as_ref())),
            Request::Grep(arguments) => Self::Looks(under(arguments.path.as_ref())),
        }
    }

    /// A path that is changed may be a parent that is made on the way, so that either direction of
    /// "lies within" is a conflict.
    fn conflicts(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Everything, _) | (_, Self::Everything) => true,
            (Self::Job, Self::Job) => true,
            (Self::Looks(_), Self::Looks(_)) | (Self::Job, _) | (_, Self::Job) => false,
            (
                Self::Looks(left) | Self::Changes(left),
                Self::Looks(right) | Self::Changes(right),
            ) => is_within(left, right) || is_within(right, left),
        }
    }
}

/// How many of `requests`, from the first, form the next wave; at least one if there is any.
#[must_use]
pub(super) fn length(requests: &[&Request], workspace: &Path) -> usize {
    let mut taken: Vec<Use> = Vec::new();
    for request in requests.iter().take(WAVE_MAX) {
        let next = Use::of(request, workspace);
        if taken.iter().any(|earlier| earlier.conflicts(&next)) {
            break;
        }
        taken.push(next);
    }
    taken.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::request::ToolName;

    fn waves(calls: &[(&str, &str)]) -> Vec<usize> {
        let all = ToolName::ALL.into_iter().collect();
        let requests: Vec<Request> = calls
            .iter()
            .map(|(tool, arguments)| Request::parse(tool, arguments, &all).unwrap())
            .collect();
        let mut rest: Vec<&Request> = requests.iter().collect();
        let mut lengths = Vec::new();
        while !rest.is_empty() {
            let taken = length(&rest, Path::new("/w"));
            lengths.push(taken);
            rest.drain(..taken);
        }
        lengths
    }

    #[test]
    fn reads_go_together_and_changes_of_one_file_in_order() {
        let read = ("read", r#"{"path":"a"}"#);
        let grep = ("grep", r#"{"pattern":"x"}"#);
        let write_a = ("write", r#"{"path":"./a","content":""}"#);
        let write_b = ("write", r#"{"path":"b","content":""}"#);
        let bash = ("bash", r#"{"command":"true"}"#);
        let output = ("job_output", r#"{"job":"job-1","wait_ms":9}"#);
        let kill = ("job_kill", r#"{"job":"job-1"}"#);
        assert_eq!(waves(&[read, read, grep]), [3]);
        assert_eq!(waves(&[write_a, write_a]), [1, 1], "the same file in two spellings");
        assert_eq!(waves(&[write_a, write_b, read]), [2, 1]);
        assert_eq!(waves(&[bash, bash, read]), [1, 1, 1]);
        assert_eq!(waves(&[grep, write_b]), [1, 1], "a search sees the tree before the change");
        assert_eq!(waves(&[read; 10]), [8, 2]);
        assert_eq!(
            waves(&[output, read, write_b, kill, output]),
            [3, 1, 1],
            "a job's calls in order"
        );
        assert_eq!(waves(&[output, bash, output]), [1, 1, 1]);
    }

    #[test]
    fn a_file_and_a_path_through_it_conflict() {
        let file = ("write", r#"{"path":"a","content":""}"#);
        let below = ("write", r#"{"path":"a/b","content":""}"#);
        assert_eq!(waves(&[file, below]), [1, 1]);
    }
}
