//! The loop: model, tool calls, results, again.
