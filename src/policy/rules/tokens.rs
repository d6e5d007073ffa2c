//! Patterns over the arguments of a command: tokens in order, options anywhere.
//!
//! An allow is exact: every argument must be named. A deny or ask is loose: options may stand
//! between the tokens, and whatever follows is meant too.

use super::super::file::located::TokenText;
use super::{Fit, LazyRegex, PatternError};
use crate::call::effects::Word;

/// What one argument must be.
#[derive(Debug, Clone)]
pub enum Token {
    /// One of these words.
    Words(Vec<String>),
    /// Any one word.
    Any,
    /// Any number of words.
    Rest,
    /// A word that the expression matches as a whole; with `unknown` also one that is not known, by
    /// the way it is written.
    Regex {
        /// The expression.
        regex: LazyRegex,
        /// Whether unknown words are matched by their text.
        unknown: bool,
    },
}

impl Token {
    /// Compiles what was written. An expression of a built-in policy is compiled when it is needed.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(text: &TokenText, is_built_in: bool) -> Result<Self, PatternError> {
        match text {
            TokenText::Regex { regex, unknown } => {
                let compile = || LazyRegex::checked(regex);
                let regex = if is_built_in { LazyRegex::trusted(regex) } else { compile()? };
                Ok(Self::Regex { regex, unknown: *unknown })
            }
            TokenText::Words(words) => match words.as_slice() {
                [] => Err(("empty-pattern", "the list of alternatives is empty".into(), None)),
                [word] if word == "*" => Ok(Self::Any),
                [word] if word == "**" => Ok(Self::Rest),
                words => words
                    .iter()
                    .try_for_each(|word| check_word(word))
                    .map(|()| Self::Words(words.to_vec())),
            },
        }
    }

    fn fit(&self, word: &Word, loose: bool) -> Fit {
        match (self, word) {
            (Self::Any | Self::Rest, _) => Fit::Yes,
            (Self::Words(words), Word::Known(value)) => yes_if(words.contains(value)),
            (Self::Words(words), Word::Unknown { prefix, .. }) => {
                let possible = words.iter().any(|word| word.starts_with(prefix.as_str()));
                if possible { Fit::Maybe } else { Fit::No }
            }
            (Self::Regex { regex, .. }, Word::Known(value)) => yes_if(regex.is_match(value, loose)),
            (Self::Regex { regex, unknown }, Word::Unknown { text, .. }) => {
                yes_if(*unknown && regex.is_match(text, loose))
            }
        }
    }
}

const fn yes_if(condition: bool) -> Fit {
    if condition { Fit::Yes } else { Fit::No }
}

fn check_word(word: &str) -> Result<(), PatternError> {
    if word.is_empty() {
        return Err(("empty-pattern", "the token is empty".into(), None));
    }
    if word.contains(char::is_whitespace) {
        let tokens: Vec<String> =
            word.split_whitespace().map(|part| format!("\"{part}\"")).collect();
        let message = format!("`{word}` holds a space: a token is one word");
        let help = format!("write one token for each word: {}", tokens.join(", "));
        return Err(("space-in-token", message, Some(help)));
    }
    if word == "*" || word == "**" {
        let message = format!("`{word}` may not stand in a list of alternatives");
        return Err(("bad-pattern", message, None));
    }
    Ok(())
}

/// Whether the arguments are what the tokens say. `loose` is for deny and ask.
#[must_use]
pub fn fit_tokens(tokens: &[Token], arguments: &[Word], loose: bool) -> Fit {
    // Row `i` holds, for each position of `tokens`, how well the rest of the arguments from `i`
    // on fits the rest of the tokens; rows are filled from the end.
    let needed = tokens.iter().filter(|token| !matches!(token, Token::Rest)).count();
    if needed > arguments.len() {
        return Fit::No;
    }
    let width = tokens.len() + 1;
    let mut short = [Fit::No; 3 * SHORT_ROW];
    let mut long = Vec::new();
    let rows = if width <= SHORT_ROW {
        short.as_mut_slice()
    } else {
        long.resize(3 * width, Fit::No);
        long.as_mut_slice()
    };
    let (mut row, rest) = rows.split_at_mut(rows.len() / 3);
    let (mut next, mut after_next) = rest.split_at_mut(rest.len() / 2);
    for index in (0..=arguments.len()).rev() {
        fill_row(row, tokens, arguments.get(index), loose, (next, after_next));
        std::mem::swap(&mut after_next, &mut next);
        std::mem::swap(&mut next, &mut row);
    }
    next.first().copied().unwrap_or(Fit::No)
}

/// Cells of a row that needs no memory of its own: nearly every rule has fewer tokens.
const SHORT_ROW: usize = 12;

fn fill_row(
    row: &mut [Fit],
    tokens: &[Token],
    argument: Option<&Word>,
    loose: bool,
    (next, after_next): (&[Fit], &[Fit]),
) {
    let get = |row: &[Fit], at: usize| row.get(at).copied().unwrap_or(Fit::No);
    let end = if argument.is_none() || loose { Fit::Yes } else { Fit::No };
    set(row, tokens.len(), end);
    for (at, token) in tokens.iter().enumerate().rev() {
        let mut fit = Fit::No;
        if let Token::Rest = token {
            fit = get(row, at + 1).max(if argument.is_some() { get(next, at) } else { Fit::No });
        } else if let Some(word) = argument {
            fit = token.fit(word, loose).min(get(next, at + 1));
        }
        if loose && argument.is_some_and(is_option) {
            // The option may take a value, which is skipped with it.
            fit = fit.max(get(next, at)).max(get(after_next, at));
        }
        set(row, at, fit);
    }
}

fn set(row: &mut [Fit], at: usize, fit: Fit) {
    if let Some(cell) = row.get_mut(at) {
        *cell = fit;
    }
}

fn is_option(word: &Word) -> bool {
    let text = match word {
        Word::Known(value) => value,
        Word::Unknown { prefix, .. } => prefix,
    };
    text.len() > 1 && text.starts_with(['-', '+'])
}

/// Checks one spelling of an option.
///
/// # Errors
/// What is wrong with it.
pub fn check_flag(flag: &str) -> Result<(), PatternError> {
    check_word(flag)?;
    if flag.len() < 2 || !flag.starts_with('-') {
        let message = format!("`{flag}` is not an option");
        return Err(("bad-pattern", message, Some("options begin with `-`".into())));
    }
    Ok(())
}

/// Whether one of the spellings of an option is among the arguments.
#[must_use]
pub fn has_flag(spellings: &[String], arguments: &[Word], loose: bool) -> bool {
    arguments
        .iter()
        .map_while(|word| (word.known() != Some("--")).then_some(word))
        .filter_map(Word::known)
        .any(|argument| spellings.iter().any(|flag| is_flag(flag, argument, loose)))
}

/// Whether an argument is (or holds) an option. `-rf` holds `-r`; `--force=x` is `--force`; a long
/// option may be cut short, which only a loose rule believes.
#[must_use]
pub fn is_flag(flag: &str, argument: &str, loose: bool) -> bool {
    if argument == flag {
        return true;
    }
    if flag.starts_with("--") {
        let name = argument.split('=').next().unwrap_or(argument);
        let shortened = loose && name.len() > 4 && name.starts_with("--") && flag.starts_with(name);
        return name == flag || shortened;
    }
    let mut letters = flag.chars().skip(1);
    let (Some(letter), None) = (letters.next(), letters.next()) else { return false };
    argument.strip_prefix('-').is_some_and(|group| {
        !group.starts_with('-')
            && group.chars().take_while(char::is_ascii_alphanumeric).any(|found| found == letter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Word> {
        text.split_whitespace()
            .map(|word| match word.strip_prefix('$') {
                None => Word::Known(word.to_owned()),
                Some(_) => Word::Unknown { text: word.to_owned(), prefix: String::new() },
            })
            .collect()
    }

    fn tokens(list: &[&[&str]]) -> Vec<Token> {
        list.iter()
            .map(|words| {
                let words = words.iter().map(|word| (*word).to_owned()).collect();
                Token::new(&TokenText::Words(words), false).unwrap()
            })
            .collect()
    }

    #[test]
    fn an_allow_names_every_argument_and_a_deny_only_what_it_means() {
        let push: &[&[&str]] = &[&["push"]];
        let read: &[&[&str]] = &[&["status", "log"], &["**"]];
        for (pattern, arguments, exact, loose) in [
            (push, "push", Fit::Yes, Fit::Yes),
            (push, "push origin", Fit::No, Fit::Yes),
            (push, "-C dir push origin", Fit::No, Fit::Yes),
            (push, "--no-pager push", Fit::No, Fit::Yes),
            (push, "commit -m push", Fit::No, Fit::No),
            (push, "$X origin", Fit::No, Fit::Maybe),
            (read, "status", Fit::Yes, Fit::Yes),
            (read, "log --oneline -5", Fit::Yes, Fit::Yes),
            (read, "status-stash", Fit::No, Fit::No),
            (&[&["**"], &["x"], &["**"]], "a b x c", Fit::Yes, Fit::Yes),
            (&[&["*"], &["x"]], "a x", Fit::Yes, Fit::Yes),
            (&[], "", Fit::Yes, Fit::Yes),
            (&[], "a", Fit::No, Fit::Yes),
        ] {
            let pattern = tokens(pattern);
            assert_eq!(fit_tokens(&pattern, &words(arguments), false), exact, "exact {arguments}");
            assert_eq!(fit_tokens(&pattern, &words(arguments), true), loose, "loose {arguments}");
        }
    }

    #[test]
    fn options_are_found_in_every_spelling() {
        for (flag, argument, expected) in [
            ("-r", "-rf", true),
            ("-f", "-rf", true),
            ("-x", "-rf", false),
            ("-r", "--recursive", false),
            ("--force", "--force=yes", true),
            ("--force", "--force-with-lease", false),
            ("--recursive", "--recurs", true),
            ("-delete", "-delete", true),
            ("-delete", "-d", false),
        ] {
            assert_eq!(is_flag(flag, argument, true), expected, "{flag} {argument}");
        }
        assert!(!has_flag(&["-f".to_owned()], &words("-- -f"), true));
    }
}
