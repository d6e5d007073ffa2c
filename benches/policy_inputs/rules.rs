//! A rule set of a given size: rules over commands with a few over paths between them, as a long
//! policy of a company has them. The same list is written for the other engines.

/// What one rule says.
#[derive(Debug, Clone)]
pub(crate) enum Rule {
    /// A program and the words that its first argument may be.
    Command {
        /// Its number.
        id: usize,
        /// `deny`, `ask` or `allow`.
        decision: &'static str,
        /// The program.
        program: String,
        /// The first argument.
        first: [String; 2],
    },
    /// A directory that may not be written.
    Path {
        /// Its number.
        id: usize,
        /// The directory, absolute.
        directory: String,
    },
}

/// Programs of the ordinary commands, so that some rules do concern them.
const COMMON: [&str; 12] =
    ["git", "cargo", "python3", "make", "find", "grep", "ls", "rm", "cp", "sed", "gcc", "timeout"];

/// `count` rules.
#[must_use]
pub(crate) fn rules(count: usize) -> Vec<Rule> {
    (0..count).map(rule).collect()
}

fn rule(id: usize) -> Rule {
    if id % 5 == 4 {
        return Rule::Path { id, directory: format!("/srv/project{id}/private") };
    }
    let program =
        COMMON.get(id).map_or_else(|| format!("program{id}"), |common| (*common).to_owned());
    let decision = ["deny", "ask", "allow"].get(id % 3).copied().unwrap_or("deny");
    Rule::Command { id, decision, program, first: [format!("push{id}"), format!("publish{id}")] }
}

/// The rules as a policy file of ours.
#[must_use]
pub(crate) fn policy_text(count: usize) -> String {
    let mut text = String::from(
        "version = 1\n[path]\ndefault = \"allow\"\n[command]\ndefault = \"allow\"\n\
         unresolved = \"allow\"\n[network]\nmode = \"off\"\ndefault = \"allow\"\n",
    );
    for rule in rules(count) {
        text.push_str(&match rule {
            Rule::Command { id, decision, program, first: [one, other] } => format!(
                "[[command.rule]]\nid = \"r{id}\"\ndecision = \"{decision}\"\nreason = \"measured\"\n\
                 program = \"{program}\"\ntokens = [[\"{one}\", \"{other}\"], \"**\"]\n"
            ),
            Rule::Path { id, directory } => format!(
                "[[path.rule]]\nid = \"r{id}\"\ndecision = \"deny\"\nreason = \"measured\"\n\
                 access = [\"write\"]\npaths = [\"{directory}/**\"]\n"
            ),
        });
    }
    text
}
