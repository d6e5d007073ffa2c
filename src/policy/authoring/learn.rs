//! From calls that were approved to a policy file that allows them: exact where little was seen,
//! generalised by program and by directory where several calls agree, and each line with the records
//! that it came from. Nothing here reads a log or decides a call.
//!
//! What is generalised, and no further: the arguments of a program behind the same first word, if at
//! least [`AGREEING_MIN`] different calls share it; files of one directory, if at least as many of them
//! were used in the same way. A program that runs whatever it is told, and a command that carries code,
//! are taken word by word.

use super::lint::is_runner;
use crate::base::paths::is_within;
use crate::base::pattern::escape;
use crate::call::effects::Access;
use crate::policy::paths::{DEVICE_PATHS, SYSTEM_PATHS};
use crate::policy::rules::globs::Places;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Different calls, or files, that must agree before what they have in common stands for all like them.
const AGREEING_MIN: usize = 3;

/// Records that are named at one line; the first ones say enough.
const CITED_MAX: usize = 8;

/// One call that was approved.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// Where it is recorded: `2e8e711f:14`.
    pub record: String,
    /// What it ran.
    pub programs: Vec<ObservedProgram>,
    /// What it touched.
    pub paths: Vec<(Access, PathBuf)>,
    /// What it named: host and port.
    pub hosts: Vec<(String, Option<u16>)>,
}

/// One program of a call.
#[derive(Debug, Clone)]
pub struct ObservedProgram {
    /// As the shell looked it up.
    pub program: String,
    /// Its arguments; `None` for one whose value was not known.
    pub arguments: Vec<Option<String>>,
    /// Whether an argument was code.
    pub carries_code: bool,
}

/// Records, in the order of the logs.
type Cited = Vec<String>;

/// The policy file, as text.
#[must_use]
pub fn learn(observed: &[Observed], places: &Places) -> String {
    let mut text = String::from(
        "# Allows what was approved, and nothing else. Read it before you use it: each line names the records\n\
         # that it came from.\nversion = 1\ndescription = \"learned from approved calls\"\nextends = [\"base\"]\n",
    );
    paths(&mut text, observed, places);
    text.push_str("\n[command]\ndefault = \"ask\"\n");
    for (number, rule) in command_rules(observed).iter().enumerate() {
        rule.write(&mut text, number + 1, places);
    }
    hosts(&mut text, observed);
    text
}

fn cite(cited: &Cited) -> String {
    let shown = cited.get(..cited.len().min(CITED_MAX)).unwrap_or(cited).join(", ");
    let more = cited.len().saturating_sub(CITED_MAX);
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

fn add(cited: &mut Cited, record: &str) {
    if cited.last().is_none_or(|last| last != record) {
        cited.push(record.to_owned());
    }
}

// ---- commands ------------------------------------------------------------------------------------

/// The arguments of a rule.
#[derive(Debug, PartialEq, Eq)]
enum Arguments {
    Exactly(Vec<Option<String>>),
    BehindFirst(String),
}

#[derive(Debug)]
struct LearnedCommand {
    program: String,
    arguments: Arguments,
    code: bool,
    cited: Cited,
}

/// Arguments of calls, and where they are recorded.
type Called<'o> = (&'o [Option<String>], Cited);

fn command_rules(observed: &[Observed]) -> Vec<LearnedCommand> {
    let mut calls: BTreeMap<(&str, bool, &[Option<String>]), Cited> = BTreeMap::new();
    for call in observed {
        for one in &call.programs {
            let Some(program) = located(call, &one.program) else { continue };
            let key = (program, one.carries_code, one.arguments.as_slice());
            add(calls.entry(key).or_default(), &call.record);
        }
    }
    let mut behind: BTreeMap<(&str, &str), Vec<Called<'_>>> = BTreeMap::new();
    let mut rules = Vec::new();
    for ((program, code, arguments), cited) in calls {
        let first = arguments.first().and_then(Option::as_deref).filter(|word| is_verb(word));
        match first.filter(|_| !code && !is_runner(base_name(program))) {
            Some(first) => behind.entry((program, first)).or_default().push((arguments, cited)),
            None => rules.push(exactly(program, arguments, code, cited)),
        }
    }
    for ((program, first), calls) in behind {
        if calls.len() < AGREEING_MIN {
            rules.extend(
                calls.into_iter().map(|(words, cited)| exactly(program, words, false, cited)),
            );
            continue;
        }
        let mut cited = Cited::new();
        calls.iter().flat_map(|(_, cited)| cited).for_each(|record| add(&mut cited, record));
        let arguments = Arguments::BehindFirst(first.to_owned());
        rules.push(LearnedCommand { program: program.to_owned(), arguments, code: false, cited });
    }
    rules.sort_by(|left, right| left.program.cmp(&right.program));
    rules
}

fn exactly(program: &str, words: &[Option<String>], code: bool, cited: Cited) -> LearnedCommand {
    let arguments = Arguments::Exactly(words.to_vec());
    LearnedCommand { program: program.to_owned(), arguments, code, cited }
}

/// The program as a rule spells it: a relative one by the path that the call ran.
fn located<'o>(call: &'o Observed, program: &'o str) -> Option<&'o str> {
    if program.starts_with('/') || !program.contains('/') {
        return Some(program);
    }
    let name = Path::new(program).file_name();
    let ran = call
        .paths
        .iter()
        .find(|(access, path)| *access == Access::Execute && path.file_name() == name);
    ran.and_then(|(_, path)| path.to_str())
}

fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// `status`, `build-dep`: a word that says what to do, not on what.
fn is_verb(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_lowercase())
        && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
}

impl LearnedCommand {
    fn write(&self, text: &mut String, number: usize, places: &Places) {
        let tokens: Vec<String> = match &self.arguments {
            Arguments::Exactly(words) => words.iter().map(|word| token(word.as_deref())).collect(),
            Arguments::BehindFirst(first) => vec![token(Some(first)), quoted("**")],
        };
        let reason = format!("approved in {}", cite(&self.cited));
        let program =
            placed(Path::new(&self.program), places).unwrap_or_else(|| self.program.clone());
        let _written = write!(
            text,
            "\n[[command.rule]]\nid = \"learned-{number}\"\ndecision = \"allow\"\nreason = {}\nprogram = {}\ntokens = [{}]\n{}",
            quoted(&reason),
            quoted(&program),
            tokens.join(", "),
            if self.code { "code = true\n" } else { "" },
        );
    }
}

/// One argument as a token; of one that is not known, any.
fn token(word: Option<&str>) -> String {
    match word {
        None => quoted("*"),
        Some("") => "{ regex = \"()\" }".to_owned(),
        Some(word) if word.contains(char::is_whitespace) || matches!(word, "*" | "**") => {
            format!("{{ regex = {} }}", quoted(&regex::escape(word)))
        }
        Some(word) => quoted(word),
    }
}

/// A TOML string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            control if control.is_control() => {
                let _written = write!(quoted, "\\u{:04X}", u32::from(control));
            }
            plain => quoted.push(plain),
        }
    }
    quoted.push('"');
    quoted
}

// ---- paths and hosts -----------------------------------------------------------------------------

fn paths(text: &mut String, observed: &[Observed], places: &Places) {
    text.push_str("\n[path]\ndefault = \"deny\"\n");
    for (access, key) in
        [(Access::Read, "read"), (Access::Write, "write"), (Access::Execute, "execute")]
    {
        let mut used: BTreeMap<&Path, Cited> = BTreeMap::new();
        for call in observed {
            for (_, path) in call.paths.iter().filter(|(how, _)| *how == access) {
                if !is_everywhere(path, access) {
                    add(used.entry(path).or_default(), &call.record);
                }
            }
        }
        let _opened = writeln!(text, "{key} = [");
        for (pattern, cited) in generalised(&used, places) {
            let _line = writeln!(text, "  {}, # {}", quoted(&pattern), cite(&cited));
        }
        text.push_str("]\n");
    }
}

/// Whether every cell has it.
fn is_everywhere(path: &Path, access: Access) -> bool {
    let below = |patterns: &[&str]| {
        patterns.iter().any(|pattern| {
            is_within(path, Path::new(pattern.strip_suffix("/**").unwrap_or(pattern)))
        })
    };
    below(&DEVICE_PATHS) || access != Access::Write && below(&SYSTEM_PATHS)
}

/// Patterns that cover the paths: a directory stands for files of it where enough were used.
fn generalised(used: &BTreeMap<&Path, Cited>, places: &Places) -> BTreeMap<String, Cited> {
    let mut by_directory: BTreeMap<&Path, Vec<(&Path, &Cited)>> = BTreeMap::new();
    for (path, cited) in used {
        by_directory.entry(path.parent().unwrap_or(path)).or_default().push((path, cited));
    }
    let wide: BTreeSet<&Path> = by_directory
        .iter()
        .filter(|(directory, files)| {
            files.len() >= AGREEING_MIN && directory.components().count() > 2
        })
        .map(|(directory, _)| *directory)
        .collect();
    let mut patterns: BTreeMap<String, Cited> = BTreeMap::new();
    for (path, cited) in used {
        let around = path.ancestors().filter(|directory| wide.contains(directory)).last();
        let pattern = match around {
            Some(directory) => placed(directory, places).map(|directory| format!("{directory}/**")),
            None => placed(path, places),
        };
        let Some(pattern) = pattern else { continue };
        let all = patterns.entry(pattern).or_default();
        cited.iter().for_each(|record| add(all, record));
    }
    patterns
}

/// A path as a pattern, with the placeholder in front that fits best. `None` for a path that no allow
/// can spell.
fn placed(path: &Path, places: &Places) -> Option<String> {
    if !path.is_absolute() {
        return None;
    }
    let known = [
        ("{workspace}", Some(places.workspace.as_path())),
        ("{tmp}", Some(places.tmp.as_path())),
        ("{home}", places.home.as_deref()),
    ];
    let place = known.into_iter().find_map(|(name, place)| {
        let rest = path.strip_prefix(place?).ok()?;
        Some((name, rest))
    });
    let (front, rest) = place.map_or(("", path), |(name, rest)| (name, rest));
    let rest = rest.to_str()?;
    // What has a meaning in patterns cannot be granted by name.
    let is_plain = escape(rest) == rest && !rest.contains(char::is_control);
    let joined = match (front, rest) {
        ("", rest) => rest.to_owned(),
        (front, "") => front.to_owned(),
        (front, rest) => format!("{front}/{rest}"),
    };
    is_plain.then_some(joined)
}

fn hosts(text: &mut String, observed: &[Observed]) {
    let mut named: BTreeMap<(&str, Option<u16>), Cited> = BTreeMap::new();
    for call in observed {
        for (host, port) in &call.hosts {
            add(named.entry((host, *port)).or_default(), &call.record);
        }
    }
    for (number, ((host, port), cited)) in named.iter().enumerate() {
        let ports = port.map_or_else(String::new, |port| format!("ports = [{port}]\n"));
        let _rule = write!(
            text,
            "\n[[network.rule]]\nid = \"learned-host-{}\"\ndecision = \"allow\"\nreason = {}\nhost = {}\n{ports}",
            number + 1,
            quoted(&format!("named in {}", cite(cited))),
            quoted(host),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::shell::{ShellContext, analyse};
    use crate::policy::{Decision, Layer, PolicySource, Query, load};

    fn observed(scripts: &[&str]) -> Vec<Observed> {
        let each = scripts.iter().enumerate().map(|(number, script)| {
            let effects = effects(script);
            assert!(effects.unresolved.is_empty(), "{script}");
            let programs = effects.commands.iter().map(|command| ObservedProgram {
                program: command.program.known().unwrap().to_owned(),
                arguments: command
                    .arguments
                    .iter()
                    .map(|word| word.known().map(ToOwned::to_owned))
                    .collect(),
                carries_code: command.inline_code.is_some(),
            });
            let paths = effects.paths.iter().map(|path| (path.access, path.path.clone()));
            let hosts = effects.hosts.iter().map(|host| (host.host.clone(), host.port));
            Observed {
                record: format!("s:{number}"),
                programs: programs.collect(),
                paths: paths.collect(),
                hosts: hosts.collect(),
            }
        });
        each.collect()
    }

    fn effects(script: &str) -> crate::call::effects::Effects {
        let places = Places::example();
        let context =
            ShellContext { cwd: places.workspace, home: places.home, ..ShellContext::default() };
        analyse(script, &context)
    }

    fn decide(text: &str, script: &str) -> Decision {
        let source = PolicySource {
            name: "learned.toml".to_owned(),
            layer: Layer::Explicit,
            text: text.to_owned(),
        };
        let set = load(vec![source], &|_| None);
        let set = set.unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        let policy = set.bind(&Places::example()).unwrap();
        let query = Query {
            tool: "bash",
            role: None,
            effects: &effects(script),
            real_paths: &[],
            arguments: &serde_json::Value::Null,
            headless: false,
        };
        policy.judge(&query).decision
    }

    #[test]
    fn what_was_approved_is_allowed_and_little_else() {
        let approved = [
            "git status --short",
            "git log -3",
            "cat src/a.rs",
            "cp src/a.rs out/a.rs",
            "grep 'two words' \"\" src/b.rs; cat src/c.rs",
            "python3 -c 'print(1)'",
            "make test",
            "echo \"$HOME\" '*' > notes.txt",
            "./run.sh",
            "curl https://example.com/x",
            "cargo build; cargo build --release; cargo build -p a",
            "ls /usr/bin > /dev/null",
        ];
        let text = learn(&observed(&approved), &Places::example());
        for script in approved {
            // A host is named, and the cell has no network: that stays a denial of its own.
            assert_eq!(decide(&text, script), Decision::Allow, "{script}\n{text}");
        }
        for script in [
            "git push",
            "git status",
            "git log",
            "cat src/a.rs src/b.rs",
            "cat secret",
            "cp src/a.rs out/b.rs",
            "python3 -c 'print(2)'",
            "python3 x.py",
            "make clean",
            "echo x > other.txt",
            "./other.sh",
            "cargo publish",
            "curl https://example.org/x",
            "rm src/a.rs",
        ] {
            assert_ne!(decide(&text, script), Decision::Allow, "{script}\n{text}");
        }
        assert_eq!(decide(&text, "cargo build --workspace"), Decision::Allow, "three agree");
        assert!(text.contains("\"{workspace}/src/**\", # s:2, s:3, s:4"), "{text}");
        assert!(text.contains("approved in s:0"), "{text}");
    }

    #[test]
    fn no_call_gives_a_policy_that_allows_nothing() {
        let text = learn(&[], &Places::example());
        for script in ["ls", "cat a", "true"] {
            assert_ne!(decide(&text, script), Decision::Allow, "{script}");
        }
    }

    #[test]
    fn names_cannot_write_into_the_file() {
        let evil = "a\"]\ndefault = \"allow\"\n#";
        let call = Observed {
            record: "s:1".into(),
            programs: vec![ObservedProgram {
                program: "echo".into(),
                arguments: vec![Some(evil.into()), Some("\u{1b}[2J\u{7f}".into())],
                carries_code: false,
            }],
            paths: vec![(Access::Write, Path::new("/home/user/project").join(evil))],
            hosts: Vec::new(),
        };
        let text = learn(&[call], &Places::example());
        assert_ne!(decide(&text, "ls"), Decision::Allow, "{text}");
        assert!(!text.contains('\u{1b}') && !text.contains("\ndefault = \"allow\""), "{text}");
    }
}
