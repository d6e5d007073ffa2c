//! `sed`: enough of its language to tell a script that runs or opens something from one that only edits
//! text. What is not understood counts as code.

use super::{Invoked, shells};
use crate::call::effects::{Access, PathOrigin, UnresolvedReason};
use crate::call::shell::meaning::fields::Field;
use crate::call::shell::meaning::walk::{Analysis, Walked};

/// The scripts of `sed` or `awk` on a command line: those of `-e`, else the first operand.
pub(super) struct Scripts<'call> {
    pub(super) scripts: Vec<&'call Field>,
    /// A script comes from a file or is named in a way that is not read here.
    elsewhere: bool,
}

pub(super) fn scripts<'call>(
    fields: &'call [Field],
    code: &[&str],
    files: &[&str],
    values: &[&str],
) -> Scripts<'call> {
    let mut found = Scripts { scripts: Vec::new(), elsewhere: false };
    let mut first_operand = None;
    let mut index = 0;
    while let Some(field) = fields.get(index) {
        index += 1;
        let text = field.prefix();
        if code.contains(&text) {
            found.scripts.extend(fields.get(index));
            index += 1;
        } else if files.contains(&text) {
            found.elsewhere = true;
            index += 1;
        } else if values.contains(&text) {
            index += 1;
        } else if text == "--" {
            first_operand = first_operand.or_else(|| fields.get(index));
            break;
        } else if text.starts_with('-') && text.len() > 1 {
            found.elsewhere |=
                attached(text, code) || files.iter().any(|option| text.starts_with(option));
        } else {
            first_operand = first_operand.or(Some(field));
        }
    }
    if found.scripts.is_empty() && !found.elsewhere {
        found.scripts.extend(first_operand);
    }
    found
}

/// `-es/a/b/`, `--expression=…`, or a cluster that ends in `e`.
fn attached(text: &str, code: &[&str]) -> bool {
    code.iter().any(|option| text.starts_with(option))
        || (!text.starts_with("--") && text.ends_with('e'))
}

pub(super) fn sed(analysis: &mut Analysis, invoked: &Invoked<'_>) -> Walked {
    let code = ["-e", "--expression", "-ne", "-Ee", "-re", "-nEe", "-nre"];
    let found = scripts(invoked.arguments, &code, &["-f", "--file"], &["-l", "--line-length"]);
    if found.elsewhere {
        let expression = invoked
            .arguments
            .iter()
            .any(|field| attached(field.prefix(), &code) && !field.prefix().starts_with("-i"));
        if expression {
            analysis.inline_code(invoked.index, "sed script");
        }
        return Ok(());
    }
    for field in found.scripts {
        let read = field.exact().and_then(sed_script);
        let Some(Sed { files, commands, runs_input, .. }) = read else {
            analysis.inline_code(invoked.index, "sed script");
            continue;
        };
        if runs_input || !commands.is_empty() {
            analysis.inline_code(invoked.index, "sed script");
        }
        if runs_input {
            analysis.unresolved(UnresolvedReason::CodeWord, &field.text, field.span);
        }
        for command in commands {
            shells::code(analysis, invoked, &command, field.span)?;
        }
        for (name, access) in files {
            let file = Field::known(&name, field.span);
            let origin = PathOrigin::ProgramArgument { program: "sed".to_owned() };
            analysis.path(&file, access, origin);
        }
    }
    Ok(())
}

/// A position in a sed script.
struct Sed<'script> {
    rest: std::iter::Peekable<std::str::Chars<'script>>,
    /// What it reads and writes.
    files: Vec<(String, Access)>,
    /// What it runs.
    commands: Vec<String>,
    /// It runs the text that it edits.
    runs_input: bool,
}

/// What a script does besides editing; `None` if it is not understood.
fn sed_script(script: &str) -> Option<Sed<'_>> {
    let rest = script.chars().peekable();
    let mut sed = Sed { rest, files: Vec::new(), commands: Vec::new(), runs_input: false };
    loop {
        while sed.rest.next_if(|character| character.is_whitespace() || *character == ';').is_some()
        {
        }
        if sed.rest.peek().is_none() {
            return Some(sed);
        }
        sed.command()?;
    }
}

impl Sed<'_> {
    fn blanks(&mut self) {
        while self.rest.next_if(|character| matches!(character, ' ' | '\t')).is_some() {}
    }

    fn command(&mut self) -> Option<()> {
        self.address()?;
        self.blanks();
        if self.rest.next_if_eq(&',').is_some() {
            self.blanks();
            self.address()?;
            self.blanks();
        }
        while self.rest.next_if(|character| matches!(character, '!' | ' ')).is_some() {}
        match self.rest.next()? {
            '#' | ':' | 'a' | 'i' | 'c' => self.line(),
            'r' | 'R' => self.file(Access::Read),
            'w' | 'W' => self.file(Access::Write),
            'b' | 't' | 'T' | 'q' | 'Q' | 'l' | 'L' | 'v' => {
                while self
                    .rest
                    .next_if(|character| !matches!(character, ';' | '\n' | '}'))
                    .is_some()
                {}
            }
            's' => return self.substitute(),
            'y' => {
                let delimiter = self.rest.next()?;
                self.until(delimiter)?;
                self.until(delimiter)?;
            }
            '{' | '}' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x'
            | 'z' | 'F' => {}
            'e' => self.run(),
            // What else there is, is not known.
            _ => return None,
        }
        Some(())
    }

    fn address(&mut self) -> Option<()> {
        match self.rest.peek() {
            Some('/') => {
                self.rest.next();
                self.until('/')?;
            }
            Some('\\') => {
                self.rest.next();
                let delimiter = self.rest.next()?;
                self.until(delimiter)?;
            }
            Some(character)
                if character.is_ascii_digit() || matches!(character, '$' | '+' | '~') =>
            {
                self.rest.next();
                while self
                    .rest
                    .next_if(|character| character.is_ascii_digit() || *character == '~')
                    .is_some()
                {}
                return Some(());
            }
            Some(_) | None => return Some(()),
        }
        while self.rest.next_if(|character| matches!(character, 'I' | 'M')).is_some() {}
        Some(())
    }

    /// Reads over a part that ends in `delimiter`.
    fn until(&mut self, delimiter: char) -> Option<()> {
        let mut bracket = false;
        loop {
            match self.rest.next()? {
                '\\' => {
                    self.rest.next()?;
                }
                '[' => bracket = true,
                ']' => bracket = false,
                // Inside brackets the delimiter may or may not end the part: not followed.
                character if character == delimiter && bracket => return None,
                character if character == delimiter => return Some(()),
                _ => {}
            }
        }
    }

    fn substitute(&mut self) -> Option<()> {
        let delimiter = self.rest.next().filter(|delimiter| !matches!(delimiter, '\n' | '\\'))?;
        self.until(delimiter)?;
        self.replacement(delimiter)?;
        loop {
            match self.rest.peek() {
                Some('g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9') => {
                    self.rest.next();
                }
                Some('w') => {
                    self.rest.next();
                    self.file(Access::Write);
                    return Some(());
                }
                Some('e') => {
                    self.rest.next();
                    self.runs_input = true;
                }
                Some(_) | None => return Some(()),
            }
        }
    }

    fn replacement(&mut self, delimiter: char) -> Option<()> {
        loop {
            match self.rest.next()? {
                '\\' => {
                    self.rest.next()?;
                }
                character if character == delimiter => return Some(()),
                _ => {}
            }
        }
    }

    /// Text up to the end of the line, over lines that are continued.
    fn line(&mut self) {
        while let Some(character) = self.rest.next() {
            match character {
                '\\' => {
                    self.rest.next();
                }
                '\n' => return,
                _ => {}
            }
        }
    }

    fn file(&mut self, access: Access) {
        let name = self.rest_of_line();
        self.files.push((name, access));
    }

    /// `e COMMAND`, or `e` alone for the text that is edited.
    fn run(&mut self) {
        let command = self.rest_of_line();
        if command.is_empty() {
            self.runs_input = true;
        } else {
            self.commands.push(command);
        }
    }

    fn rest_of_line(&mut self) -> String {
        self.blanks();
        let mut text = String::new();
        while let Some(character) = self.rest.next_if(|character| *character != '\n') {
            text.push(character);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sed_scripts_that_only_edit_are_told_from_those_that_run_or_open() {
        for script in [
            "s/a/b/",
            "s/a/b/g",
            "1,5p",
            "/x/d",
            "$!N;s/\\n/ /",
            "s|a|b|gI",
            "/a/,/b/{s/c/d/;p}",
            "y/abc/def/",
            "1i\\\ntext e",
            "s/\\/e/x/",
            "5q",
            "$d",
            "s/^[ \\t]*//",
            "/^#/!s/a/b/2p",
            "1~2d",
            ":a;N;$!ba;s/\\n/,/g",
        ] {
            let sed = sed_script(script).unwrap();
            let runs = sed.runs_input || !sed.commands.is_empty();
            assert!(sed.files.is_empty() && !runs, "{script}");
        }
        for script in ["s/a/b/e", "s/.*/canary/ge", "e", "$!e"] {
            assert!(sed_script(script).unwrap().runs_input, "{script}");
        }
        for script in ["1e canary", "1!e  canary", "/a/,/b/{e canary\n}"] {
            assert_eq!(sed_script(script).unwrap().commands, ["canary"], "{script}");
        }
        for script in ["s/a/b", "k"] {
            assert!(sed_script(script).is_none(), "{script}");
        }
        let files = sed_script("/x/w /out\ns/a/b/w f").unwrap().files;
        assert_eq!(files, [("/out".to_owned(), Access::Write), ("f".to_owned(), Access::Write)]);
        let files = sed_script("r /etc/passwd").unwrap().files;
        assert_eq!(files, [("/etc/passwd".to_owned(), Access::Read)]);
    }
}
