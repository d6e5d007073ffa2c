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

    /// Takes one line; what it completes is given back.
    pub(super) fn feed(&mut self, line: &str) -> Option<Typed> {
        if self.is_empty() {
            if line.trim().is_empty() {
                return None;
            }
            if let Some(command) = command(line) {
                return Some(Typed::Command(command));
            }
        }
        if line.trim_start().starts_with(FENCE) {
            self.fenced = !self.fenced;
        }
        let joined = if self.fenced { None } else { line.strip_suffix('\\') };
        self.goes_on = joined.is_some();
        self.lines.push(joined.unwrap_or(line).to_owned());
        if self.fenced || self.goes_on { None } else { Some(Typed::Message(self.take())) }
    }

    /// The lines so far as a message: at the end of the input nothing can complete it.
    pub(super) fn take(&mut self) -> String {
        let mut lines = std::mem::take(self).lines;
        let is_fence = |line: Option<&String>| line.is_some_and(|line| line.trim() == FENCE);
        // Fences around the whole message only held it together.
        let fences = lines.iter().filter(|line| line.trim_start().starts_with(FENCE)).count();
        if fences == 2 && is_fence(lines.first()) && is_fence(lines.last()) {
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

fn command(line: &str) -> Option<Command> {
    let word = line.trim().strip_prefix('/').filter(|word| !word.starts_with('/'))?;
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
