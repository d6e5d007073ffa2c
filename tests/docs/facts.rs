//! What the program has, the pages name: exit codes, commands, flags, tools, policies. And the other
//! way round: a command that a page names is one that the program understands.

use super::markdown::{blocks, page, pages, root, spans};
use clap::CommandFactory as _;
use clap::error::ErrorKind;
use std::fs;
use stoplog::base::exit::Exit;
use stoplog::call::request::ToolName;
use stoplog::cli::args::Cli;
use stoplog::policy::{BUILT_IN_NAMES, built_in};
use stoplog::run::policies::{by_name, load_sources};

const COMMAND_LINE: &str = "docs/command-line.md";

/// The exit codes that scripts rely on. A new variant stops the build here.
fn codes() -> Vec<u8> {
    let listed = |exit: Exit| match exit {
        Exit::Done
        | Exit::Fault
        | Exit::Usage
        | Exit::Denied
        | Exit::IterationLimit
        | Exit::Model
        | Exit::TruncatedOrEmpty
        | Exit::Budget
        | Exit::Loop
        | Exit::Sandbox
        | Exit::Policy
        | Exit::Record
        | Exit::Session
        | Exit::Interrupted
        | Exit::Terminated => Some(exit.code()),
        Exit::Command(_) => None,
    };
    let all = [
        Exit::Done,
        Exit::Fault,
        Exit::Usage,
        Exit::Denied,
        Exit::IterationLimit,
        Exit::Model,
        Exit::TruncatedOrEmpty,
        Exit::Budget,
        Exit::Loop,
        Exit::Sandbox,
        Exit::Policy,
        Exit::Record,
        Exit::Session,
        Exit::Interrupted,
        Exit::Terminated,
    ];
    all.into_iter().filter_map(listed).collect()
}

/// Whether a table of `text` has a cell with this code.
fn in_a_table(text: &str, code: u8) -> bool {
    text.lines().any(|line| line.split('|').any(|cell| cell.trim() == code.to_string()))
}

/// Whether a list like `0 done · 130 / 143 interrupted` has this code.
fn in_a_list(text: &str, code: u8) -> bool {
    text.split(|c: char| !c.is_alphanumeric()).any(|word| word == code.to_string())
}

#[test]
fn every_exit_code_is_documented() {
    let help = Cli::command().render_long_help().to_string();
    let help = help.split("Exit codes:").nth(1).unwrap();
    for code in codes() {
        assert!(in_a_table(&page("README.md"), code), "README.md lacks exit code {code}");
        assert!(in_a_table(&page(COMMAND_LINE), code), "{COMMAND_LINE} lacks exit code {code}");
        assert!(in_a_list(help, code), "--help lacks exit code {code}");
    }
    assert!(!in_a_table(&page("README.md"), 99) && !in_a_list(help, 99), "the check can fail");
}

/// The full names of all commands, and all long flags.
fn commands_and_flags() -> (Vec<String>, Vec<String>) {
    let (mut commands, mut flags) = (Vec::new(), Vec::new());
    let mut pending = vec![(String::new(), Cli::command())];
    while let Some((name, command)) = pending.pop() {
        flags.extend(command.get_arguments().filter_map(|flag| flag.get_long()).map(str::to_owned));
        let below: Vec<_> = command.get_subcommands().cloned().collect();
        if below.is_empty() {
            commands.push(name.trim().to_owned());
        }
        let named = |below: clap::Command| (format!("{name} {}", below.get_name()), below);
        pending.extend(below.into_iter().map(named));
    }
    flags.sort();
    flags.dedup();
    (commands, flags)
}

/// Whether a code span of the page holds `words`, as whole words at its beginning.
fn is_named(page: &str, words: &str) -> bool {
    let fits = |span: &String| {
        span.strip_prefix(words)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-'))
    };
    spans(page).iter().any(fits)
}

#[test]
fn every_command_and_flag_is_on_the_page_of_the_command_line() {
    let text = page(COMMAND_LINE);
    let (commands, flags) = commands_and_flags();
    assert!(commands.len() > 15 && flags.len() > 20, "the walk found them");
    let flags = flags.iter().map(|flag| format!("--{flag}"));
    let lacking: Vec<String> =
        commands.into_iter().chain(flags).filter(|words| !is_named(&text, words)).collect();
    assert!(lacking.is_empty(), "{COMMAND_LINE} lacks {lacking:?}");
    assert!(
        !is_named(&text, "--tool-of-nobody") && !is_named(&text, "--too"),
        "the check can fail"
    );
}

/// The words of a command as a shell would split it, comment left out; quotes only group.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut started) = (Vec::new(), String::new(), None, false);
    for character in line.chars() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '\'' | '"') => (quote, started) = (Some(character), true),
            (None, '#') if !started => break,
            (None, ' ') => {
                if started {
                    words.push(std::mem::take(&mut word));
                }
                started = false;
            }
            (Some(_) | None, _) => {
                word.push(character);
                started = true;
            }
        }
    }
    if started {
        words.push(word);
    }
    words
}

/// The command lines of the program in a page, in spans and blocks. A span that begins with a group
/// of commands (`policy check`) is one too.
fn command_lines(text: &str) -> Vec<String> {
    let in_blocks =
        blocks(text).into_iter().filter(|block| block.language == "sh" || block.language == "text");
    let lines = in_blocks.flat_map(|block| block.lines);
    let lines = lines.map(|line| line.trim_start_matches("$ ").to_owned());
    let whole = |span: String| {
        let is_group =
            ["policy ", "audit ", "session "].iter().any(|group| span.starts_with(group));
        if is_group { format!("stoplog {span}") } else { span }
    };
    let all = lines.chain(spans(text).into_iter().map(whole));
    all.filter(|line| line.starts_with("stoplog ")).collect()
}

/// What the program says against a command line, if anything. Only words of the command line itself
/// count: what stands for something (`FILE`, `…`, `[ID]`) fits wherever a value may be.
fn objection(line: &str) -> Option<String> {
    let words = words(line);
    if words.get(1).is_some_and(|word| word.chars().all(|c| c.is_ascii_uppercase())) {
        return None;
    }
    let error = Cli::command().try_get_matches_from(words).err()?;
    // A command in running text may leave out what it needs.
    let incomplete = [
        ErrorKind::DisplayHelp,
        ErrorKind::DisplayVersion,
        ErrorKind::MissingRequiredArgument,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ];
    (!incomplete.contains(&error.kind())).then(|| format!("{line}: {error}"))
}

#[test]
fn every_command_that_a_page_names_is_understood() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (path, text) in pages() {
        let lines = command_lines(&text);
        seen += lines.len();
        let objections = lines.iter().filter_map(|line| objection(line));
        wrong.extend(objections.map(|problem| format!("{}: {problem}", path.display())));
    }
    assert!(seen > 20, "the pages name commands");
    assert!(wrong.is_empty(), "commands that the program does not know:\n{}", wrong.join("\n"));
}

#[test]
fn a_command_that_does_not_exist_is_seen() {
    assert!(objection("stoplog policy invent x").is_some());
    assert!(objection("stoplog run --no-such-flag 'x y'").is_some());
    assert!(objection("stoplog run --headless 'x y' # why").is_none());
    assert_eq!(
        command_lines("`policy check x`\n```sh\nstoplog man\nls\n```\n"),
        ["stoplog man", "stoplog policy check x"]
    );
    assert_eq!(words("a 'b c' \"d#\" e#f # g"), ["a", "b c", "d#", "e#f"]);
}

#[test]
fn every_tool_is_named() {
    for name in ["README.md", COMMAND_LINE] {
        for tool in ToolName::ALL {
            assert!(is_named(&page(name), tool.as_str()), "{name} lacks the tool `{tool}`");
        }
    }
}

#[test]
fn every_built_in_policy_is_a_file_and_named() {
    let mut files: Vec<String> = fs::read_dir(root().join("policies"))
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    files.sort();
    let mut names = BUILT_IN_NAMES.map(str::to_owned).to_vec();
    names.sort();
    assert_eq!(files, names, "policies/ holds the built-in policies and nothing else");
    for name in BUILT_IN_NAMES {
        assert_eq!(built_in(name), Some(page(&format!("policies/{name}.toml")).as_str()));
        assert!(is_named(&page("README.md"), name), "README.md lacks the policy `{name}`");
        load_sources(vec![by_name(name).unwrap()])
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn the_policies_of_the_examples_load() {
    let path = root().join("examples/ci/policy.toml");
    let source = by_name(path.to_str().unwrap()).unwrap();
    load_sources(vec![source]).unwrap_or_else(|error| panic!("{error}"));
}

/// Places of rules as they stand in shown output: `rule ID (policies/FILE:LINE)`.
fn rule_places(text: &str) -> Vec<(String, String, usize)> {
    let place = |rest: &str| {
        let (rule, rest) = rest.split_once([' ', ','])?;
        let (place, _) = rest.trim_start().trim_start_matches('(').split_once(')')?;
        let (file, line) = place.split_once(':')?;
        Some((rule.to_owned(), file.to_owned(), line.parse().ok()?))
    };
    text.split("rule ")
        .skip(1)
        .filter_map(place)
        .filter(|found| found.1.starts_with("policies/"))
        .collect()
}

#[test]
fn output_that_is_shown_names_rules_where_they_are() {
    let places = rule_places(&page("README.md"));
    assert!(places.len() >= 3, "{places:?}");
    for (rule, file, line) in places {
        let policy = page(&file);
        let written = policy.lines().nth(line - 1).unwrap_or_default();
        let key = rule.rsplit('.').next().unwrap();
        assert!(
            written.contains(key),
            "README.md: {rule} is not at {file}:{line}, where `{written}` is"
        );
    }
    let shown =
        "denied · rule a-b (policies/base.toml:9)\n(firewall, rule c.d, policies/ci.toml:13)";
    assert_eq!(rule_places(shown).len(), 2);
}
