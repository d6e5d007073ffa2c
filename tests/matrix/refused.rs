//! What does not work in the cell, and says why.

use crate::rig::Place;

/// A terminal server would outlive its call; the rule says so instead of a fork that fails.
#[test]
fn a_terminal_server_is_refused_with_a_reason() {
    for command in ["tmux new -d", "screen -dm sleep 1", "tmux new-session -d -s x 'sleep 1'"] {
        let refused = Place::new().confined(&[], command);
        assert_eq!(refused.code, Some(10), "{command}: {refused:?}");
        assert!(refused.stderr.contains("outlives"), "{command}: {refused:?}");
    }
}

/// Not a terminal for one call either: programs see that there is none and say so.
#[test]
fn a_program_that_needs_a_terminal_says_that_there_is_none() {
    let ended = Place::new().confined(&[], "tty; test -t 0 || echo none; exec 3<> /dev/tty");
    assert_eq!(ended.stdout, "not a tty\nnone\n", "{ended:?}");
}
