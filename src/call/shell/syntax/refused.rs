//! Whether and where bash certainly refuses a line as a whole: an open quote, a redirection without a target, a
//! parenthesis where none can stand. Placeholders (`find . -user <name>`) and forgotten quotes are
//! what people and models send, and bash's own message teaches best.
//!
//! A line of its own reading, apart from the parser: that one refuses much that bash takes, so its
//! refusal says nothing. Here everything that is not plain is left undecided. Bash reads a whole line
//! before it runs any of it, so one line that is refused runs nothing.

use super::parser::is_reserved;

/// Where bash finds the error for which it runs nothing of `script`, its only line. `None` says nothing.
pub(crate) fn refused_at(script: &str) -> Option<usize> {
    let line = script.trim_end_matches('\n');
    let plain = !line.contains(['\n', '\0', '\r', '`', '#'])
        && !["$(", "${", "$[", "$'", "$\"", "<<", "<(", ">(", "(("]
            .iter()
            .any(|spelling| line.contains(spelling))
        && !has_subscript(line)
        && !line.split([' ', '\t', ';', '|', '&', '(', ')']).any(is_reserved);
    let mut reader = Reader { rest: line, words: 0, in_word: false, before: ' ' };
    if plain { reader.error().map(|rest| line.len() - rest) } else { None }
}

/// Whether a name stands right before a `[`: bash may read everything up to the `]`, blanks and
/// operators included, as the subscript of one word.
fn has_subscript(line: &str) -> bool {
    let before = line.match_indices('[').filter_map(|(at, _)| line.get(..at)?.chars().next_back());
    before.into_iter().any(|character| character.is_ascii_alphanumeric() || character == '_')
}

struct Reader<'l> {
    rest: &'l str,
    /// Words of the command so far, the one that is being read included.
    words: usize,
    in_word: bool,
    /// The character before, if it stands outside quotes.
    before: char,
}

impl Reader<'_> {
    /// The length of the text from the error on.
    fn error(&mut self) -> Option<usize> {
        loop {
            let rest = self.rest.len();
            let character = self.next()?;
            let error = match character {
                '\\' => self.next().is_none().then_some(false),
                '\'' => self.quoted('\'').then_some(true),
                '"' => self.quoted('"').then_some(true),
                '<' | '>' => self.redirection(),
                '(' => Some(self.parenthesis()),
                // Every one that could be closed has ended the reading.
                ')' => Some(true),
                _ => None,
            };
            if let Some(is_error) = error {
                return is_error.then_some(rest);
            }
            self.count(character);
        }
    }

    fn next(&mut self) -> Option<char> {
        let character = self.rest.chars().next()?;
        self.rest = self.rest.get(character.len_utf8()..).unwrap_or("");
        Some(character)
    }

    /// Reads to the end of a quoted part. True if there is none.
    fn quoted(&mut self, quote: char) -> bool {
        while let Some(character) = self.next() {
            if character == '\\' && quote == '"' {
                self.next();
            } else if character == quote {
                return false;
            }
        }
        true
    }

    /// Reads an operator; what follows must be a word.
    fn redirection(&mut self) -> Option<bool> {
        self.rest = self.rest.trim_start_matches(['<', '>', '&', '|']);
        self.rest = self.rest.trim_start_matches([' ', '\t']);
        match self.rest.chars().next() {
            None | Some(';' | '|' | '&' | ')' | '<' | '>') => Some(true),
            Some('(') => Some(false),
            Some(_) => None,
        }
    }

    /// Behind two words it is an error; before it may open a subshell, a function or an array.
    fn parenthesis(&self) -> bool {
        self.words >= 2 && !matches!(self.before, '?' | '*' | '+' | '@' | '!' | '$' | '=')
    }

    fn count(&mut self, character: char) {
        self.before = character;
        match character {
            ' ' | '\t' => self.in_word = false,
            ';' | '|' | '&' => (self.in_word, self.words) = (false, 0),
            _ if !self.in_word => (self.in_word, self.words) = (true, self.words + 1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_bash_refuses_is_told_and_what_it_may_take_is_not() {
        for (line, expected) in [
            ("echo 'open", true),
            ("rg \"find . -delete", true),
            ("find . -user <name>", true),
            ("cd a; ls <dir> | wc", true),
            ("find . ( -name x -o -name y ) -print", true),
            ("grep -l 'main(' \\( x", false),
            ("ls a )", true),
            ("touch x; echo \"a", true),
            ("f (", false),
            ("a;{ f () { ls; }; }", false),
            ("! f () { ls; }", false),
            ("f() { ls; }", false),
            ("( ls a )", false),
            ("a=(x y)", false),
            ("declare -a a=(x y)", false),
            ("ls !(a)", false),
            ("ls a > b", false),
            ("ls 2>&1", false),
            ("ls >| x", false),
            ("echo it\\'s", false),
            ("echo a # it's", false),
            ("cat <<A'", false),
            ("touch x\necho 'open", false),
            ("case x in a) ls;; esac", false),
            ("echo `echo '`", false),
            ("a[b a b(]; touch x", false),
            ("a[ b c ( ]; touch x", false),
            ("[ a = b ( ]", true),
            ("grep [ab] 'open", true),
            ("", false),
        ] {
            assert_eq!(refused_at(line).is_some(), expected, "{line:?}");
        }
        assert_eq!(refused_at("rm -rf a 'b"), Some(9));
        assert_eq!(refused_at("find . -user <b>"), Some(15));
        assert_eq!(refused_at("find . ( -name b )"), Some(7));
    }
}
