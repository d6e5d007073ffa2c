//! `exec`: what this machine can enforce.

use super::args::ExecArgs;
use super::{Context, Outcome};
use crate::base::exit::Exit;

/// `stoplog exec`
pub(super) fn exec(_context: &Context, _args: ExecArgs) -> Outcome {
    Ok(Exit::Done)
}
