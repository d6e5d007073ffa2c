//! What tools do: each approved call becomes a confined child and a bounded outcome.

pub mod definitions;
pub mod execute;
pub mod memory;
pub mod plan;
pub mod render;
pub mod toolbox;
pub mod worker;
