//! What the shipped policy `workspace` answers on commands that were written down before anybody looked
//! what it answers: a developer's day, which it allows, and acts that no agent should do unasked.

#[cfg(test)]
mod answers;
