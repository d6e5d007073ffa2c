//! What tools do: each approved call becomes a confined child and a bounded outcome.

pub mod definitions;
pub mod render;
pub mod worker;
