//! The policy chain: six stages in a fixed order, each of which can only subtract.
