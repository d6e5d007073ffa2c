//! `awk`: enough of its language to find the commands that a program runs. Those that stand in it as
//! text are judged; where one is put together from data, it says so.

use super::scripts::scripts;
use super::{Invoked, shells};
use crate::call::effects::UnresolvedReason;
use crate::call::shell::meaning::walk::{Analysis, Walked};

pub(super) fn awk(analysis: &mut Analysis, invoked: &Invoked<'_>) -> Walked {
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
    if attached {
        analysis.inline_code(invoked.index, "awk program");
    }
    for field in found.scripts {
        let runs = field.exact().map_or(Runs::Unknown, awk_runs);
        if runs != Runs::These(Vec::new()) {
            analysis.inline_code(invoked.index, "awk program");
        }
        match runs {
            Runs::These(commands) => {
                for command in commands {
                    shells::code(analysis, invoked, &command, field.span)?;
                }
            }
            Runs::Unknown => {}
            Runs::Computed => {
                analysis.unresolved(UnresolvedReason::CodeWord, &field.text, field.span);
            }
        }
    }
    Ok(())
}

/// What an awk program runs.
#[derive(Debug, PartialEq, Eq)]
enum Runs {
    /// These commands and no others.
    These(Vec<String>),
    /// A command that is put together while it runs.
    Computed,
    /// The program is not understood, or opens connections or loads code.
    Unknown,
}

/// One part of a program.
#[derive(Debug, PartialEq, Eq)]
enum Token {
    /// A string; `None` where it holds more than plain characters.
    Text(Option<String>),
    /// `system`
    System,
    /// `getline`
    Getline,
    /// `|`, but not `||`
    Pipe,
    /// Any other character that is no blank.
    Other(char),
}

fn awk_runs(program: &str) -> Runs {
    let Some(tokens) = tokens(program) else { return Runs::Unknown };
    let is_foreign = tokens.contains(&Token::Other('@'))
        || ["/inet/", "/inet4/", "/inet6/"].iter().any(|path| program.contains(path));
    if is_foreign {
        return Runs::Unknown;
    }
    let mut commands = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let command = match token {
            Token::System => called_with(tokens.get(index + 1..).unwrap_or_default()),
            Token::Pipe => piped(&tokens, index),
            Token::Text(_) | Token::Getline | Token::Other(_) => continue,
        };
        match command {
            Some(command) => commands.push(command.to_owned()),
            None => return Runs::Computed,
        }
    }
    Runs::These(commands)
}

/// The one string in the parentheses behind `system`.
fn called_with(tokens: &[Token]) -> Option<&str> {
    match tokens {
        [Token::Other('('), Token::Text(Some(command)), Token::Other(')'), ..] => Some(command),
        _ => None,
    }
}

/// The string on the side of a pipe where the command stands, if nothing is joined to it.
fn piped(tokens: &[Token], index: usize) -> Option<&str> {
    let behind = tokens.get(index + 1..)?;
    if behind.first() == Some(&Token::Getline) {
        let (last, before) = tokens.get(..index)?.split_last()?;
        let begins = before.last().is_none_or(
            |token| matches!(token, Token::Other(character) if "{(;&|!\n".contains(*character)),
        );
        let Token::Text(Some(command)) = last else { return None };
        return begins.then_some(command.as_str());
    }
    match behind {
        [Token::Text(Some(command))] => Some(command),
        [Token::Text(Some(command)), Token::Other(end), ..] if "};\n".contains(*end) => {
            Some(command)
        }
        _ => None,
    }
}

/// The program without regular expressions and comments; `None` if something does not end.
fn tokens(program: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut characters = program.chars().peekable();
    // Whether a slash here would start a regular expression.
    let mut operand_expected = true;
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                tokens.push(Token::Text(string(&mut characters)?));
                operand_expected = false;
            }
            '/' if operand_expected => {
                skip_expression(&mut characters)?;
                tokens.push(Token::Other('/'));
                operand_expected = false;
            }
            '#' => {
                let _comment = characters.by_ref().find(|character| *character == '\n');
                tokens.push(Token::Other('\n'));
                operand_expected = true;
            }
            '\\' if characters.next_if_eq(&'\n').is_some() => {}
            '|' if characters.next_if_eq(&'|').is_some() => {
                tokens.push(Token::Other('|'));
                operand_expected = true;
            }
            '|' => {
                tokens.push(Token::Pipe);
                operand_expected = true;
            }
            letter if letter.is_alphabetic() || letter == '_' => {
                let mut name = String::from(letter);
                while let Some(more) =
                    characters.next_if(|next| next.is_alphanumeric() || *next == '_')
                {
                    name.push(more);
                }
                tokens.push(match name.as_str() {
                    "system" => Token::System,
                    "getline" => Token::Getline,
                    _ => Token::Other('a'),
                });
                operand_expected = false;
            }
            '\n' => {
                tokens.push(Token::Other('\n'));
                operand_expected = true;
            }
            blank if blank.is_whitespace() => {}
            other => {
                tokens.push(Token::Other(other));
                operand_expected = !(other.is_alphanumeric() || matches!(other, ')' | ']' | '$'));
            }
        }
    }
    Some(tokens)
}

type Characters<'p> = std::iter::Peekable<std::str::Chars<'p>>;

/// A string behind its first quote.
fn string(characters: &mut Characters<'_>) -> Option<Option<String>> {
    let mut text = Some(String::new());
    loop {
        match characters.next()? {
            '"' => return Some(text),
            '\\' => match characters.next()? {
                plain @ ('"' | '\\' | '/') => text.iter_mut().for_each(|text| text.push(plain)),
                _ => text = None,
            },
            plain => text.iter_mut().for_each(|text| text.push(plain)),
        }
    }
}

fn skip_expression(characters: &mut Characters<'_>) -> Option<()> {
    loop {
        match characters.next()? {
            '\\' => {
                characters.next()?;
            }
            '/' => return Some(()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_awk_programs_are_found() {
        for (program, commands) in [
            ("{print $1}", vec![]),
            ("/a|b/ {print}", vec![]),
            ("$1 > 5 || $2 < 3", vec![]),
            ("BEGIN{print \"a | b\"}", vec![]),
            ("{print $1/$2}", vec![]),
            ("!seen[$0]++", vec![]),
            ("NR==1 # a | b", vec![]),
            ("{ while ((getline line < \"a\") > 0) n++ }", vec![]),
            ("BEGIN{system(\"x y\")}", vec!["x y"]),
            ("BEGIN{print \"x\" | \"sort -u\"}", vec!["sort -u"]),
            ("BEGIN{\"date\" | getline d; close(\"date\")}", vec!["date"]),
            ("{ while ((\"a\" | getline l) > 0) print l | \"b\"; }", vec!["a", "b"]),
        ] {
            let commands = commands.into_iter().map(ToOwned::to_owned).collect();
            assert_eq!(awk_runs(program), Runs::These(commands), "{program}");
        }
        for program in [
            "{system($1)}",
            "{system(\"x \" $1)}",
            "{system (\"x\") \"y\" | getline}",
            "{c = \"x\"; c | getline d}",
            "{\"x \" $1 | getline d}",
            "{print | \"x \" $1}",
            "{print | c}",
            "{print |& \"x\"}",
            "{system(\"a\\x62\")}",
            "{f = system; print}",
        ] {
            assert_eq!(awk_runs(program), Runs::Computed, "{program}");
        }
        for program in [
            "@load \"x\"",
            "BEGIN{f=\"system\"; @f(\"x\")}",
            "BEGIN{print \"x\" |& \"/inet/tcp/0/h/80\"}",
            "BEGIN{\"unterminated}",
        ] {
            assert_eq!(awk_runs(program), Runs::Unknown, "{program}");
        }
    }
}
