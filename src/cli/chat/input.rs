//! From typed lines to messages and commands; pure.

/// What the person said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Typed {
    Message(String),
    Command(Command),
}

/// A word for the program instead of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    Policy,
    Session,
    Quit,
    Unknown(String),
}

/// Lines of a message that is not complete yet.
#[derive(Debug, Default)]
pub(super) struct Draft {
    lines: Vec<String>,
    fenced: bool,
    goes_on: bool,
}

const FENCE: &str = "```";

impl Draft {
    /// Whether nothing has been typed yet.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Takes what was typed, or pasted, before Enter; what it completes is given back.
    pub(super) fn feed(&mut self, typed: &str) -> Option<Typed> {
        if self.is_empty() {
            if typed.trim().is_empty() {
                return None;
            }
            if let Some(command) = command(typed) {
                return Some(Typed::Command(command));
            }
        }
        let (pasted, last) =
            typed.rsplit_once('\n').map_or((None, typed), |(pasted, last)| (Some(pasted), last));
        // Only at its end does a `\` ask for more; within a paste it is part of the text.
        for line in pasted.into_iter().flat_map(|pasted| pasted.split('\n')) {
            self.add(line);
        }
        let joined = if self.fenced || is_fence(last) { None } else { last.strip_suffix('\\') };
        self.goes_on = joined.is_some();
        self.add(joined.unwrap_or(last));
        if self.fenced || self.goes_on { None } else { Some(Typed::Message(self.take())) }
    }

    fn add(&mut self, line: &str) {
        self.fenced ^= is_fence(line);
        self.lines.push(line.to_owned());
    }

    /// The lines so far as a message: at the end of the input nothing can complete it.
    pub(super) fn take(&mut self) -> String {
        let mut lines = std::mem::take(self).lines;
        let is_bare = |line: Option<&String>| line.is_some_and(|line| line.trim() == FENCE);
        // Fences around the whole message only held it together.
        let fences = lines.iter().filter(|line| is_fence(line)).count();
        if fences == 2 && is_bare(lines.first()) && is_bare(lines.last()) {
            lines.pop();
            lines.remove(0);
        }
        let text = lines.join("\n");
        // `//` stands for a message that begins with `/`.
        match text.strip_prefix("//") {
            Some(rest) => format!("/{rest}"),
            None => text,
        }
    }
}

/// Whether the line begins or ends a text that is held together.
fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with(FENCE)
}

fn command(typed: &str) -> Option<Command> {
    let word = typed.trim().strip_prefix('/')?;
    let word = Some(word).filter(|word| !word.starts_with('/') && !word.contains('\n'))?;
    Some(match word {
        "help" | "?" => Command::Help,
        "policy" => Command::Policy,
        "session" => Command::Session,
        "quit" | "exit" => Command::Quit,
        other => Command::Unknown(format!("/{other}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(lines: &[&str]) -> Vec<Typed> {
        let mut draft = Draft::default();
        lines.iter().filter_map(|line| draft.feed(line)).collect()
    }

    fn message(text: &str) -> Typed {
        Typed::Message(text.to_owned())
    }

    #[test]
    fn a_message_ends_where_nothing_says_that_it_goes_on() {
        assert_eq!(feed(&["hello"]), [message("hello")]);
        assert_eq!(feed(&["", "  "]), []);
        assert_eq!(feed(&["one\\", "two\\", "three"]), [message("one\ntwo\nthree")]);
        assert_eq!(feed(&["```", "a\\", "", "/help", "```"]), [message("a\\\n\n/help")]);
        let code = ["look:\\", "```rust", "x", "```"];
        assert_eq!(feed(&code), [message("look:\n```rust\nx\n```")]);
        assert_eq!(feed(&["```", "never closed"]), []);
    }

    #[test]
    fn a_paste_is_one_message_whatever_its_lines_look_like() {
        let pasted = "```rust\nx\n```\nwhat is x?";
        assert_eq!(feed(&[pasted]), [message(pasted)]);
        let command = "curl \\\n  --head x";
        assert_eq!(feed(&[command]), [message(command)], "a `\\` within it is its own");
        assert_eq!(feed(&["a\nb\\", "c"]), [message("a\nb\nc")]);
        assert_eq!(feed(&["```\nopen", "rest", "```"]), [message("open\nrest")]);
        assert_eq!(feed(&["/etc/passwd\nis a file"]), [message("/etc/passwd\nis a file")]);
    }

    #[test]
    fn commands_are_single_lines_that_begin_with_a_slash() {
        let typed = feed(&["/help", " /quit ", "/policy", "/session", "/rm -rf", "//etc/fstab"]);
        let command = |command| Typed::Command(command);
        assert_eq!(
            typed,
            [
                command(Command::Help),
                command(Command::Quit),
                command(Command::Policy),
                command(Command::Session),
                command(Command::Unknown("/rm -rf".to_owned())),
                message("/etc/fstab"),
            ]
        );
    }
}
