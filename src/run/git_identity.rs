//! Who the user is to git: name and address from his own git settings, and nothing else of them.
//!
//! The settings of a user name helpers and may hold tokens, so no cell sees them; without the two
//! values no commit could be made. A file with them alone lies in the cell's home directory, where
//! the settings of a repository still come first.

use super::environment::Environment;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Bytes of a settings file that are read; what a person writes is far shorter.
const SETTINGS_BYTES_MAX: u64 = 256 * 1024;

/// The variable by which a policy says whether a cell may know who the user is.
pub(super) const PASSED_AS: &str = "GIT_AUTHOR_NAME";

/// Settings that hold the caller's name and address; `None` if he has told git neither. Files that
/// his settings include are not read.
pub(super) fn settings(environment: &Environment) -> Option<String> {
    let mut user = BTreeMap::new();
    // The later one has the last word, as in git.
    for path in places(environment) {
        user.extend(read(&path).iter().flat_map(|text| user_section(text)));
    }
    let lines = ["name", "email"].into_iter().filter_map(|key| {
        let value: &String = user.get(key)?;
        Some(format!("\t{key} = \"{}\"\n", value.replace('\\', r"\\").replace('"', "\\\"")))
    });
    let lines: String = lines.collect();
    (!lines.is_empty()).then(|| format!("[user]\n{lines}"))
}

fn places(environment: &Environment) -> Vec<PathBuf> {
    let home = environment.home();
    let own = environment.get("XDG_CONFIG_HOME").map(PathBuf::from);
    let own = own.filter(|path| path.is_absolute());
    let own = own.or_else(|| home.as_ref().map(|home| home.join(".config")));
    let first = own.map(|path| path.join("git/config"));
    first.into_iter().chain(home.map(|home| home.join(".gitconfig"))).collect()
}

fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    // A pipe would have to be waited for, so nothing but a file is opened.
    let facts = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file);
    let file = facts.and_then(|_| std::fs::File::open(path).ok())?;
    file.take(SETTINGS_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Keys and values of the sections `[user]`.
fn user_section(text: &str) -> Vec<(&'static str, String)> {
    let mut is_user = false;
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix('[') {
            let name = rest.split(']').next().unwrap_or_default();
            is_user = name.trim().eq_ignore_ascii_case("user");
            continue;
        }
        let Some((key, value)) = line.split_once('=').filter(|_| is_user) else { continue };
        let known =
            ["name", "email"].into_iter().find(|known| key.trim().eq_ignore_ascii_case(known));
        found.extend(known.zip(value_of(value.trim())));
    }
    found
}

/// A value without its quotes, escapes and comment; `None` for what a name cannot be.
fn value_of(written: &str) -> Option<String> {
    let mut value = String::new();
    let mut is_quoted = false;
    let mut characters = written.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => is_quoted = !is_quoted,
            '#' | ';' if !is_quoted => break,
            '\\' => value.push(characters.next().filter(|next| matches!(next, '"' | '\\'))?),
            plain => value.push(plain),
        }
    }
    let value = value.trim();
    let is_name = !is_quoted && !value.is_empty() && !value.contains(char::is_control);
    is_name.then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings_of(files: &[(&str, &str)]) -> Option<String> {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut file = std::fs::File::create(&path).unwrap();
            std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        }
        settings(&Environment::of([("HOME".into(), home.path().into())]))
    }

    #[test]
    fn name_and_address_are_taken_and_nothing_else() {
        let text = "[user]\n\tname = A \"B\\\"C\" # x\n email=a@b ; y\n\tsigningkey = K\n\
                    [credential]\n\thelper = store\n[user \"x\"]\n\tname = other\n[github]\n\ttoken = T\n";
        let expected = "[user]\n\tname = \"A B\\\"C\"\n\temail = \"a@b\"\n";
        assert_eq!(settings_of(&[(".gitconfig", text)]).unwrap(), expected);
    }

    #[test]
    fn the_file_in_the_home_directory_has_the_last_word() {
        let files = [
            (".config/git/config", "[User]\nName = first\nemail = f@x\n"),
            (".gitconfig", "[core]\npager = less\n[user]\nname = last\n"),
        ];
        let expected = "[user]\n\tname = \"last\"\n\temail = \"f@x\"\n";
        assert_eq!(settings_of(&files).unwrap(), expected);
    }

    #[test]
    fn what_is_no_name_is_left_out() {
        for text in ["", "[core]\nname = x\n", "[user]\nname = \"open\n", "[user]\nname = a\\nb\n"]
        {
            assert_eq!(settings_of(&[(".gitconfig", text)]), None, "{text:?}");
        }
        assert_eq!(settings_of(&[]), None);
    }
}
