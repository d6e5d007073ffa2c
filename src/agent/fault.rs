//! What stops a run from our own side: a record that could not be made durable, or a defect.

use crate::audit::AuditError;
use crate::model::RecordingError;
use crate::session::SessionError;

/// Our own failure. A refusal by policy and an error of a tool are ordinary values and not this.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The journal could not be written.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The audit log could not be written.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The recording of the run could not be written.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// A thread of a call ended without a result.
    #[error("a call's thread ended without a result; this is a defect")]
    LostCall,
}
