//! The session journal: durable facts, the fold over them, and the plan for recovery.
