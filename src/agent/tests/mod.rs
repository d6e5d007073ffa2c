//! The loop with scripted models: what a run does when answers are empty, cut, wrong, repeated, too
//! long or late. Names in comments are rows of the founding documents' checklist.

#![expect(
    clippy::disallowed_methods,
    clippy::wildcard_enum_match_arm,
    clippy::type_complexity,
    reason = "a rig writes its own files and looks at the events it asks for"
)]

mod compaction;
mod ending;
mod rig;
mod waiting;
