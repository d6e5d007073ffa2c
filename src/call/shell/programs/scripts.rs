//! `sed` and `awk`: enough of their languages to tell a script that runs or opens something from one
//! that only edits text. What is not understood counts as code.

use super::Invoked;
use crate::call::effects::{Access, PathOrigin};
use crate::call::shell::meaning::fields::Field;
use crate::call::shell::meaning::walk::{Analysis, Walked};

/// The scripts of `sed` or `awk` on a command line: those of `-e`, else the first operand.
struct Scripts<'call> {
    scripts: Vec<&'call Field>,
    /// A script comes from a file or is named in a way that is not read here.
    elsewhere: bool,
}

fn scripts<'call>(
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
        let read = field.exact().and_then(sed_files);
        let Some(files) = read else {
            analysis.inline_code(invoked.index, "sed script");
            continue;
        };
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
    files: Vec<(String, Access)>,
}

/// The files a script reads and writes; `None` if it runs something or is not understood.
fn sed_files(script: &str) -> Option<Vec<(String, Access)>> {
    let mut sed = Sed { rest: script.chars().peekable(), files: Vec::new() };
    loop {
        while sed.rest.next_if(|character| character.is_whitespace() || *character == ';').is_some()
        {
        }
        if sed.rest.peek().is_none() {
            return Some(sed.files);
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
            // `e` runs a command; what else there is, is not known.
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
                Some('e') => return None,
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
        self.blanks();
        let mut name = String::new();
        while let Some(character) = self.rest.next_if(|character| *character != '\n') {
            name.push(character);
        }
        self.files.push((name, access));
    }
}

pub(super) fn awk(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let found = scripts(
        invoked.arguments,
        &["-e", "--source"],
        &["-f", "--file", "-E", "--exec", "-i", "--include", "-l", "--load"],
        &["-F", "-v", "--field-separator", "--assign"],
    );
    let attached = invoked.arguments.iter().any(|field| {
        field.prefix().starts_with("--source=")
            || field.prefix().starts_with("-l")
            || field.prefix().starts_with("--load")
    });
    let doubtful = found.scripts.iter().any(|field| field.exact().is_none_or(awk_runs));
    if doubtful || attached {
        analysis.inline_code(invoked.index, "awk program");
    }
}

/// Whether an awk program could run a command or open a connection.
fn awk_runs(program: &str) -> bool {
    let Some(code) = awk_code(program) else { return true };
    let pipe = code.replace("||", "").contains('|');
    pipe || code.contains("system")
        || code.contains('@')
        || ["/inet/", "/inet4/", "/inet6/"].iter().any(|path| program.contains(path))
}

/// The program without its strings, regular expressions and comments; `None` if one does not end.
fn awk_code(program: &str) -> Option<String> {
    let mut code = String::new();
    let mut characters = program.chars();
    // Whether a slash here would start a regular expression.
    let mut operand_expected = true;
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                skip_delimited(&mut characters, '"')?;
                operand_expected = false;
            }
            '/' if operand_expected => {
                skip_delimited(&mut characters, '/')?;
                operand_expected = false;
            }
            '#' => {
                let _comment = characters.by_ref().find(|character| *character == '\n');
                code.push('\n');
            }
            _ => {
                code.push(character);
                if !character.is_whitespace() || character == '\n' {
                    operand_expected = !(character.is_alphanumeric()
                        || matches!(character, '_' | ')' | ']' | '$'));
                }
            }
        }
    }
    Some(code)
}

fn skip_delimited(characters: &mut std::str::Chars<'_>, delimiter: char) -> Option<()> {
    loop {
        match characters.next()? {
            '\\' => {
                characters.next()?;
            }
            character if character == delimiter => return Some(()),
            _ => {}
        }
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
            assert_eq!(sed_files(script).map(|files| files.len()), Some(0), "{script}");
        }
        for script in ["1e canary", "s/a/b/e", "s/.*/canary/ge", "e", "1!e x", "s/a/b", "k"] {
            assert!(sed_files(script).is_none(), "{script}");
        }
        let files = sed_files("/x/w /out\ns/a/b/w f").unwrap();
        assert_eq!(files, [("/out".to_owned(), Access::Write), ("f".to_owned(), Access::Write)]);
        assert_eq!(sed_files("r /etc/passwd").unwrap(), [("/etc/passwd".to_owned(), Access::Read)]);
    }

    #[test]
    fn awk_programs_that_run_are_told_from_those_that_compute() {
        for program in [
            "{print $1}",
            "/a|b/ {print}",
            "$1 > 5 || $2 < 3",
            "BEGIN{print \"a | b\"}",
            "{print $1/$2}",
            "!seen[$0]++",
            "NR==1 # a | b",
        ] {
            assert!(!awk_runs(program), "{program}");
        }
        for program in [
            "BEGIN{system(\"x\")}",
            "BEGIN{print \"x\" | \"canary\"}",
            "BEGIN{\"date\" | getline d}",
            "@load \"x\"",
            "BEGIN{f=\"system\"; @f(\"x\")}",
            "BEGIN{print \"x\" |& \"/inet/tcp/0/h/80\"}",
            "BEGIN{\"unterminated}",
        ] {
            assert!(awk_runs(program), "{program}");
        }
    }
}
