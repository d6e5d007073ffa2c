//! Any text is answered without a panic, every place lies inside the text, and a text over the bound
//! is refused as a whole.

#![no_main]

use libfuzzer_sys::fuzz_target;
use stoplog::base::limits::SHELL_BYTES_MAX;
use stoplog::call::shell::{ShellContext, analyse};

fuzz_target!(|script: &str| {
    let context = ShellContext { cwd: "/w".into(), home: Some("/h".into()), ..Default::default() };
    let effects = analyse(script, &context);
    for command in &effects.commands {
        assert!(command.span.start <= command.span.end && command.span.end <= script.len());
    }
    for unresolved in &effects.unresolved {
        assert!(unresolved.text.len() <= 200);
    }
    if script.len() > SHELL_BYTES_MAX {
        assert!(effects.commands.is_empty() && !effects.unresolved.is_empty());
    }
});
