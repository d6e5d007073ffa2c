//! Tells thinking from answer in a text that carries both.
//!
//! A block `<think>…</think>` is thinking wherever it stands outside code; inside inline code and
//! fenced blocks the tags are text. A block that is never closed is thinking if the text begins with
//! it, and otherwise text, so that no answer is lost. Some servers swallow the opening tag: a first
//! `</think>` that has its line to itself makes what precedes it thinking. The text may arrive in any
//! pieces; the result is the same.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// A piece of the text, told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Answer text.
    Text(String),
    /// Thinking.
    Thinking(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing but white space so far.
    Start,
    /// Answer text.
    Text,
    /// In a block that opened the text: passed on as it comes.
    Thinking,
    /// In a block further down: kept back until it closes.
    Held,
}

/// The splitter's state between two pieces.
#[derive(Debug)]
pub(crate) struct ThinkSplitter {
    state: State,
    pending: String,
    code: CodeTracker,
    text: String,
    thinking: String,
    seen_open: bool,
    /// Length of `text` before the first `</think>` that has its line to itself.
    lone_close: Option<usize>,
    /// Whether line ends are to be dropped: a block has just closed and no answer precedes it.
    trim_next: bool,
}

impl ThinkSplitter {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Start,
            pending: String::new(),
            code: CodeTracker::default(),
            text: String::new(),
            thinking: String::new(),
            seen_open: false,
            lone_close: None,
            trim_next: false,
        }
    }

    /// Takes the next piece and gives what is certain by now.
    pub(crate) fn push(&mut self, piece: &str) -> Vec<Part> {
        self.pending.push_str(piece);
        let mut parts = Vec::new();
        while self.step(&mut parts) {}
        parts
    }

    /// Ends the text: gives the rest, then the whole answer and the whole thinking.
    pub(crate) fn finish(mut self) -> (Vec<Part>, String, String) {
        let mut parts = Vec::new();
        let rest = std::mem::take(&mut self.pending);
        match self.state {
            State::Start | State::Text => self.emit_text(&rest, &mut parts),
            State::Thinking => self.emit_thinking(&rest, &mut parts),
            State::Held => self.emit_text(&format!("{OPEN}{rest}"), &mut parts),
        }
        if let Some(length) = self.lone_close.filter(|_| !self.seen_open) {
            let after = self.text.split_off(length);
            self.thinking = std::mem::take(&mut self.text);
            self.text =
                after.trim_start().strip_prefix(CLOSE).unwrap_or(&after).trim_start().to_owned();
        }
        (parts, self.text, self.thinking)
    }

    /// Does one step; `false` when more text is needed.
    fn step(&mut self, parts: &mut Vec<Part>) -> bool {
        match self.state {
            State::Start => self.step_start(),
            State::Text => self.step_text(parts),
            State::Thinking | State::Held => self.step_block(parts),
        }
    }

    fn step_start(&mut self) -> bool {
        let trimmed = self.pending.trim_start();
        if let Some(rest) = trimmed.strip_prefix(OPEN) {
            self.pending = rest.to_owned();
            self.seen_open = true;
            self.state = State::Thinking;
            return true;
        }
        if OPEN.starts_with(trimmed) {
            return false;
        }
        self.state = State::Text;
        true
    }

    fn step_text(&mut self, parts: &mut Vec<Part>) -> bool {
        if self.trim_next {
            let trimmed = self.pending.trim_start().to_owned();
            self.pending = trimmed;
            if self.pending.is_empty() {
                return false;
            }
            self.trim_next = false;
        }
        let Some(at) = self.pending.find('<') else {
            let all = std::mem::take(&mut self.pending);
            self.emit_text(&all, parts);
            return false;
        };
        let rest = self.pending.split_off(at);
        let before = std::mem::replace(&mut self.pending, rest);
        self.emit_text(&before, parts);
        self.step_tag(parts)
    }

    /// `pending` starts with `<`.
    fn step_tag(&mut self, parts: &mut Vec<Part>) -> bool {
        if !self.code.in_code() {
            if let Some(rest) = self.pending.strip_prefix(OPEN) {
                self.pending = rest.to_owned();
                let opens = self.text.trim().is_empty();
                self.seen_open = true;
                self.state = if opens { State::Thinking } else { State::Held };
                return true;
            }
            if let Some(rest) = self.pending.strip_prefix(CLOSE) {
                return self.step_lone_close(rest.to_owned(), parts);
            }
            if OPEN.starts_with(self.pending.as_str()) || CLOSE.starts_with(self.pending.as_str()) {
                return false;
            }
        }
        self.pending.remove(0);
        self.emit_text("<", parts);
        true
    }

    /// `pending` starts with a `</think>` that nothing opened; `rest` follows it.
    fn step_lone_close(&mut self, rest: String, parts: &mut Vec<Part>) -> bool {
        let alone = self.text.is_empty() || self.text.ends_with('\n');
        if alone && !self.seen_open && self.lone_close.is_none() {
            if rest.is_empty() {
                // What follows decides; at the end of the text the tag stays text.
                return false;
            }
            if rest.starts_with(['\n', '\r']) {
                self.lone_close = Some(self.text.len());
            }
        }
        self.pending = rest;
        self.emit_text(CLOSE, parts);
        true
    }

    fn step_block(&mut self, parts: &mut Vec<Part>) -> bool {
        if let Some(at) = self.pending.find(CLOSE) {
            let rest = self.pending.split_off(at + CLOSE.len());
            let mut block = std::mem::replace(&mut self.pending, rest);
            block.truncate(at);
            self.emit_thinking(&block, parts);
            self.state = State::Text;
            self.trim_next = self.text.trim().is_empty();
            return true;
        }
        if self.state == State::Thinking {
            let keep = partial_suffix(&self.pending, CLOSE);
            let rest = self.pending.split_off(self.pending.len() - keep);
            let certain = std::mem::replace(&mut self.pending, rest);
            self.emit_thinking(&certain, parts);
        }
        false
    }

    fn emit_text(&mut self, text: &str, parts: &mut Vec<Part>) {
        if text.is_empty() {
            return;
        }
        self.code.follow(text);
        self.text.push_str(text);
        parts.push(Part::Text(text.to_owned()));
    }

    fn emit_thinking(&mut self, text: &str, parts: &mut Vec<Part>) {
        if text.is_empty() {
            return;
        }
        self.thinking.push_str(text);
        parts.push(Part::Thinking(text.to_owned()));
    }
}

/// Bytes at the end of `text` that may be the beginning of `tag`.
fn partial_suffix(text: &str, tag: &str) -> usize {
    (1..tag.len())
        .rev()
        .find(|length| tag.get(..*length).is_some_and(|head| text.ends_with(head)))
        .unwrap_or(0)
}

/// Follows Markdown just far enough to know whether a place is inside code: fenced blocks, and
/// inline spans that end at the latest with their line.
#[derive(Debug, Default)]
struct CodeTracker {
    fence: Option<(char, usize)>,
    span: Option<usize>,
    run: Option<(char, usize)>,
    /// Whether only spaces precede on this line.
    indented: bool,
    started: bool,
    /// A run of fence characters began this line.
    line_run: bool,
}

impl CodeTracker {
    fn in_code(&self) -> bool {
        if self.fence.is_some() || self.opening_fence() {
            return true;
        }
        // A run of backticks that ends here opens or closes a span.
        match (self.span, self.run) {
            (None, run) => run.is_some_and(|(mark, _)| mark == '`'),
            (Some(length), Some(('`', run))) => run != length,
            (Some(_), _) => true,
        }
    }

    fn opening_fence(&self) -> bool {
        self.line_run && self.run.is_some_and(|(_, length)| length >= 3)
    }

    fn follow(&mut self, text: &str) {
        for character in text.chars() {
            self.take(character);
        }
    }

    fn take(&mut self, character: char) {
        let at_line_start = !self.started || self.indented;
        if matches!(character, '`' | '~') {
            self.take_mark(character, at_line_start);
            return;
        }
        self.end_run();
        if character == '\n' {
            self.span = None;
            self.started = false;
            self.indented = false;
            self.line_run = false;
        } else {
            self.started = true;
            self.indented = at_line_start && character == ' ';
        }
    }

    fn take_mark(&mut self, mark: char, at_line_start: bool) {
        match &mut self.run {
            Some((current, length)) if *current == mark => *length += 1,
            _ => {
                self.end_run();
                self.line_run = at_line_start;
                self.run = Some((mark, 1));
            }
        }
        self.started = true;
        self.indented = false;
    }

    fn end_run(&mut self) {
        let Some((mark, length)) = self.run.take() else { return };
        let opens_line = std::mem::take(&mut self.line_run);
        match self.fence {
            Some((fence, needed)) if opens_line && fence == mark && length >= needed => {
                self.fence = None
            }
            Some(_) => {}
            None if opens_line && length >= 3 => self.fence = Some((mark, length)),
            None if mark == '`' => {
                self.span = match self.span {
                    None => Some(length),
                    Some(open) if open == length => None,
                    Some(open) => Some(open),
                };
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(pieces: &[&str]) -> (String, String) {
        let mut splitter = ThinkSplitter::new();
        let mut parts: Vec<Part> = pieces.iter().flat_map(|piece| splitter.push(piece)).collect();
        let (rest, text, thinking) = splitter.finish();
        parts.extend(rest);
        if !text.is_empty() && thinking.is_empty() {
            let shown: String = parts
                .iter()
                .filter_map(|part| match part {
                    Part::Text(text) => Some(text.as_str()),
                    Part::Thinking(_) => None,
                })
                .collect();
            assert_eq!(shown, text, "what was shown is the answer");
        }
        (text, thinking)
    }

    const CASES: &[(&str, &str, &str)] = &[
        ("plain", "plain", ""),
        ("", "", ""),
        ("<think>a</think>b", "b", "a"),
        ("\n <think>\na\n</think>\n\nb\n", "b\n", "\na\n"),
        ("<think>a", "", "a"),
        ("<think></think>b", "b", ""),
        ("<think>a</think> <think>b</think> c", "c", "ab"),
        ("x <think>a</think> y", "x  y", "a"),
        ("x <think>a", "x <think>a", ""),
        ("x <thin", "x <thin", ""),
        ("<thinking>a", "<thinking>a", ""),
        ("a < b <= c", "a < b <= c", ""),
        ("use `<think>` and `</think>` tags", "use `<think>` and `</think>` tags", ""),
        ("``a ` <think>b</think>`` c", "``a ` <think>b</think>`` c", ""),
        ("one ` tick\n<think>a</think>b", "one ` tick\nb", "a"),
        ("```xml\n<think>a</think>\n```\nb", "```xml\n<think>a</think>\n```\nb", ""),
        ("~~~\n<think>a</think>\n~~~\n<think>b</think>c", "~~~\n<think>a</think>\n~~~\nc", "b"),
        ("<think>`x</think>```\n<think>\n```", "```\n<think>\n```", "`x"),
        ("a\n</think>\n\nb", "b", "a\n"),
        ("a </think> b", "a </think> b", ""),
        ("a\n</think> b", "a\n</think> b", ""),
        ("<think>a <think> b</think>c</think>", "c</think>", "a <think> b"),
        ("<think>漢</think>🙂", "🙂", "漢"),
    ];

    #[test]
    fn thinking_and_answer_are_told_apart() {
        for (whole, text, thinking) in CASES {
            assert_eq!(split(&[whole]), ((*text).into(), (*thinking).into()), "{whole:?}");
        }
    }

    #[test]
    fn every_cut_gives_the_same_result() {
        for (whole, text, thinking) in CASES {
            for (at, _) in whole.char_indices() {
                let (head, tail) = whole.split_at(at);
                let expected = ((*text).to_owned(), (*thinking).to_owned());
                assert_eq!(split(&[head, tail]), expected, "{whole:?} cut at {at}");
            }
            let single: Vec<String> = whole.chars().map(String::from).collect();
            let single: Vec<&str> = single.iter().map(String::as_str).collect();
            assert_eq!(
                split(&single),
                ((*text).into(), (*thinking).into()),
                "{whole:?} by character"
            );
        }
    }

    #[test]
    fn no_character_is_lost() {
        for (whole, _, _) in CASES {
            let (text, thinking) = split(&[whole]);
            let kept = |c: &char| c.is_alphanumeric();
            let mut before: Vec<char> = whole.chars().filter(kept).collect();
            let mut after: Vec<char> = format!("{text}{thinking}").chars().filter(kept).collect();
            let dropped = before.len() - after.len();
            assert_eq!(dropped % "think".len(), 0, "{whole:?}: only tags go");
            before.sort_unstable();
            after.sort_unstable();
            assert!(after.iter().all(|c| before.contains(c)));
        }
    }
}
