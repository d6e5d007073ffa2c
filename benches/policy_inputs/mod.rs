//! What the measurements of the policy have in common: rule sets of any size, ordinary commands, and
//! the largest accepted scripts of every form that could be slow.

mod rules;
mod slow;

pub(crate) use rules::policy_text;
pub(crate) use slow::{regex_rules, slow_scripts};

/// Commands as agents send them.
pub(crate) const TYPICAL: [&str; 10] = [
    "ls -la",
    "git log --format='%h; %s' | head -20",
    "cd sub && FOO=1 cargo test 2>&1 | tail -5",
    "grep -rn 'fn main' src --include=*.rs | wc -l",
    "sed -n '1,40p' src/main.rs",
    "python3 -m pytest -q tests/test_a.py",
    "find . -name '*.rs' -exec wc -l {} +",
    "mkdir -p out && cp README.md out/ && rm -f out/old.txt",
    "for f in src/*.c; do gcc -c \"$f\" -o \"out/$(basename \"$f\" .c).o\"; done",
    "timeout 60 make -j4 check > build.log 2>&1 || tail -n 50 build.log",
];
