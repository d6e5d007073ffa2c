//! The loop with scripted models: what a run does when answers are empty, cut, wrong, repeated, too
//! long or late. Names in comments are rows of the founding documents' checklist.

mod budgets;
mod compaction;
mod ending;
mod rig;
mod waiting;
