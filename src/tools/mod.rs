//! What tools do: each approved call becomes a confined child and a bounded outcome.
