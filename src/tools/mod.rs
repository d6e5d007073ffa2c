//! What tools do: each approved call becomes a confined child and a bounded outcome.

pub mod definitions;
pub mod execute;
mod job_calls;
pub mod jobs;
pub mod memory;
pub mod plan;
pub mod render;
pub mod toolbox;
pub mod worker;
