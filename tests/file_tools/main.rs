//! The file tools as the child runs them: one job in, one reply out, on a real file system.
//!
//! Each refusal is shown beside a control in which the same act, done naively or without the
//! obstacle, succeeds.

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod edit;
#[cfg(test)]
mod read;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod search;
#[cfg(test)]
mod write;
