//! `doctor`: what this machine can enforce.

use super::args::DoctorArgs;
use super::{Context, Outcome};
use crate::base::exit::Exit;

/// `stoplog doctor`
pub(super) fn doctor(_context: &Context, _args: &DoctorArgs) -> Outcome {
    Ok(Exit::Done)
}
