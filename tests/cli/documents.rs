//! Every command that stands in README.md is run as it stands there, in a copy of what it names, with
//! a home of its own. A block is one shell, so that a variable set in one line is known in the next; a
//! command must end with 0, or with the code that a comment `# exit N` behind it says. How commands are
//! run that a test cannot run as they stand is the lists below.

use super::rig::{Live, PROGRAM, Rig};
use super::scripted_http::{Reply, Server, Turn};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// The first words of commands that are not run, each with the reason.
const GIVEN: [(&str, &str); 6] = [
    ("git clone", "the clone is this one"),
    ("cargo build", "the program is built"),
    ("cargo install", "the program is built"),
    ("cargo test", "this is that command"),
    ("cargo bench", "a measurement, not a promise"),
    ("python3 benches/", "a measurement, not a promise"),
];

/// Commands that start the program under test, in other words.
const STARTS: [&str; 4] = [
    "cargo run --release --locked -- ",
    "cargo run --release -- ",
    "./target/release/stoplog ",
    "target/release/stoplog ",
];

/// Providers that a server of the test stands for.
const PROVIDERS: [&str; 4] = ["openai/", "openrouter/", "ollama/", "vllm/"];

/// A command of the page and the exit code that the page promises.
#[derive(Debug, PartialEq, Eq)]
struct Command {
    text: String,
    code: i32,
}

impl Command {
    fn of(line: &str) -> Self {
        let (text, comment) = line.split_once(" # ").unwrap_or((line, ""));
        let code = comment.split_once("exit ").and_then(|(_, code)| {
            code.split(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
        });
        Self { text: text.trim().to_owned(), code: code.unwrap_or(0) }
    }

    fn is_given(&self) -> bool {
        GIVEN.iter().any(|(words, _reason)| self.text.starts_with(words))
    }

    /// The command as the shell of the test is told it.
    fn runnable(&self, url: &str) -> String {
        let start = STARTS.iter().find_map(|words| self.text.strip_prefix(words));
        let own = start.map_or_else(|| self.text.clone(), |rest| format!("stoplog {rest}"));
        let is_live = PROVIDERS.iter().any(|name| own.contains(&format!("--model {name}")));
        if is_live && !own.contains("--base-url") {
            return own.replacen("--model ", &format!("--base-url {url} --model "), 1);
        }
        own
    }
}

/// The blocks of shell commands: lines behind `$ ` of a console, all lines of a script.
fn blocks(page: &str) -> Vec<Vec<Command>> {
    let mut found = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let joined = body.join("\n").replace("\\\n", " ");
        let block: Vec<Command> = joined
            .lines()
            .filter_map(|line| match language.trim() {
                "console" => line.strip_prefix("$ "),
                "sh" | "bash" | "shell" => Some(line),
                _other => None,
            })
            .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
            .map(Command::of)
            .collect();
        found.extend((!block.is_empty()).then_some(block));
    }
    found
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn commands_of_a_page_are_found_with_the_code_that_it_promises() {
    let page = "```console\n$ stoplog a \\\n    b\noutput\n$ cargo test --locked\n```\n```toml\nx = 1\n```\n\
        ```sh\n# comment\nstoplog c   # exit 10: denied\n```\n";
    let found = blocks(page);
    let texts: Vec<Vec<&str>> =
        found.iter().map(|block| block.iter().map(|one| one.text.as_str()).collect()).collect();
    assert_eq!(texts, [vec!["stoplog a      b", "cargo test --locked"], vec!["stoplog c"]]);
    assert!(found[0][1].is_given() && !found[0][0].is_given());
    assert_eq!((found[0][0].code, found[1][0].code), (0, 10));
    let live = Command::of("cargo run --release --locked -- run --model openai/x 'task'");
    assert_eq!(
        live.runnable("http://h"),
        "stoplog run --base-url http://h --model openai/x 'task'"
    );
}

#[test]
fn every_command_of_the_readme_runs_as_it_stands() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Ok(page) = fs::read_to_string(root.join("README.md")) else {
        println!("not shown: there is no README.md");
        return;
    };
    let rig = Rig::new();
    let here = rig.root().join("stoplog");
    for directory in ["examples", "policies", "docs"] {
        copy(&root.join(directory), &here.join(directory));
    }
    fs::write(here.join("README.md"), &page).unwrap();
    let programs = rig.root().join("bin");
    fs::create_dir(&programs).unwrap();
    symlink(PROGRAM, programs.join("stoplog")).unwrap();
    let server = Server::start(vec![Reply::chat_stream(&Turn::text("It is done.")); 40]);
    let all = blocks(&page);
    assert!(!all.is_empty(), "the page holds no command");
    for block in all {
        run(&rig, (&here, &programs), &block, &server.base_url());
    }
}

/// Runs a block in one shell, which writes down how each command ended.
fn run(rig: &Rig, (here, programs): (&Path, &Path), block: &[Command], url: &str) {
    let codes = rig.beside("codes", "");
    let ran: Vec<&Command> = block.iter().filter(|command| !command.is_given()).collect();
    let lines = ran
        .iter()
        .map(|command| format!("{}\nprintf '%s\\n' $? >> '{codes}'\n", command.runnable(url)));
    let script: String = lines.collect();
    let mut shell = rig.program("/bin/sh", &["-c", &script]);
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display());
    shell.current_dir(here).env("PATH", path);
    for key in ["OPENAI_API_KEY", "OPENROUTER_API_KEY", "ANTHROPIC_API_KEY"] {
        shell.env(key, "sk-of-this-test");
    }
    let done = Live::start(shell).end();
    let codes = fs::read_to_string(codes).unwrap();
    let found: Vec<i32> = codes.lines().map(|line| line.parse().unwrap()).collect();
    let expected: Vec<i32> = ran.iter().map(|command| command.code).collect();
    assert_eq!(found, expected, "{ran:#?}\n{}\n{}", done.stdout, done.stderr);
}
