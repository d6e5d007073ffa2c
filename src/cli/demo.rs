//! `demo`: what this machine can enforce.

use super::args::DemoArgs;
use super::{Context, Outcome};
use crate::base::exit::Exit;

/// `stoplog demo`
pub(super) fn demo(_context: &Context, _args: &DemoArgs) -> Outcome {
    Ok(Exit::Done)
}
