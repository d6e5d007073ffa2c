//! Wires one run together: configuration, policy, session, loop, signals.
