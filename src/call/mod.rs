//! What the model asked for, as typed values: the request, and the effects it would have.
//!
//! This module reads arguments and scripts. It never touches the disk, knows no policy and decides
//! nothing; what it does not understand it says so ([`effects::Unresolved`]).

pub mod effects;
pub mod effects_of;
pub mod request;
pub mod shell;

use crate::base::ids::Id;
use request::Request;

/// One request of the model, immutable. Anything that rewrites the arguments makes a new call, which
/// enters the policy chain at its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// Our own identifier, unique whatever the provider sent.
    pub id: Id,
    /// The provider's identifier, as given; not unique, perhaps empty.
    pub provider_id: String,
    /// Who asked: `main`, or the path of sub-agents that led to the call.
    pub origin: String,
    /// What is asked for.
    pub request: Request,
    /// The argument text exactly as the model sent it: what is hashed and logged.
    pub raw_arguments: String,
}
