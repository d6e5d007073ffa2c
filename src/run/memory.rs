//! What the runs of one conversation remember of each other beside the session file: answers of the
//! person, and files that the model has seen. It ends with the process.

use crate::chain::approvals::Approvals;
use crate::tools::memory::FileMemory;

/// Shared by the runs of one conversation; a single run has one of its own.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    /// Calls that were approved until the program ends.
    pub approvals: Approvals,
    /// Files whose content the model has seen, and files that were made.
    pub files: FileMemory,
}
