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

/// The splitter's state between two pieces. Each byte is looked at a bounded number of times, however
/// the text is cut and whatever it holds.
#[derive(Debug)]
pub(crate) struct ThinkSplitter {
    state: State,
    /// What is not yet told apart; all before `cursor` is.
    pending: String,
    cursor: usize,
    /// In a kept-back block: bytes after `cursor` that hold no end of the block.
    searched: usize,
    /// White space before anything else: text, unless a block follows.
    lead: String,
    code: CodeTracker,
    text: String,
    thinking: String,
    seen_open: bool,
    /// Length of `text` before the first `</think>` that has its line to itself.
    lone_close: Option<usize>,
    /// Whether white space is to be dropped: a block has just closed and no answer precedes it.
    trim_next: bool,
}

impl ThinkSplitter {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Start,
            pending: String::new(),
            cursor: 0,
            searched: 0,
            lead: String::new(),
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
        self.pending.drain(..self.cursor);
        self.cursor = 0;
        parts
    }

    /// Ends the text: gives the rest, then the whole answer and the whole thinking.
    pub(crate) fn finish(mut self) -> (Vec<Part>, String, String) {
        let mut parts = Vec::new();
        let rest = std::mem::take(&mut self.pending);
        match self.state {
            State::Start => {
                self.emit_lead(&mut parts);
                self.emit_text(&rest, &mut parts);
            }
            State::Text => self.emit_text(&rest, &mut parts),
            State::Thinking => self.emit_thinking(&rest, &mut parts),
            State::Held => self.emit_text(&format!("{OPEN}{rest}"), &mut parts),
        }
        if let Some(length) = self.lone_close.filter(|_| !self.seen_open) {
            let after = self.text.split_off(length);
            self.thinking = std::mem::take(&mut self.text);
            let answer = after.trim_start().strip_prefix(CLOSE).unwrap_or(&after);
            answer.trim_start().clone_into(&mut self.text);
        }
        (parts, self.text, self.thinking)
    }

    fn rest(&self) -> &str {
        self.pending.get(self.cursor..).unwrap_or("")
    }

    /// Moves on by `bytes` and gives what was passed.
    fn take(&mut self, bytes: usize) -> String {
        let taken = self.rest().get(..bytes).unwrap_or("").to_owned();
        self.cursor += bytes;
        taken
    }

    /// Does one step; `false` when more text is needed.
    fn step(&mut self, parts: &mut Vec<Part>) -> bool {
        match self.state {
            State::Start => self.step_start(parts),
            State::Text => self.step_text(parts),
            State::Thinking => self.step_thinking(parts),
            State::Held => self.step_held(parts),
        }
    }

    fn step_start(&mut self, parts: &mut Vec<Part>) -> bool {
        let space = self.rest().len() - self.rest().trim_start().len();
        let space = self.take(space);
        self.lead.push_str(&space);
        if self.rest().starts_with(OPEN) {
            self.cursor += OPEN.len();
            self.lead.clear();
            self.seen_open = true;
            self.state = State::Thinking;
            return true;
        }
        if OPEN.starts_with(self.rest()) {
            return false;
        }
        self.emit_lead(parts);
        self.state = State::Text;
        true
    }

    fn step_text(&mut self, parts: &mut Vec<Part>) -> bool {
        if self.trim_next {
            self.cursor += self.rest().len() - self.rest().trim_start().len();
            if self.rest().is_empty() {
                return false;
            }
            self.trim_next = false;
        }
        let found = self.rest().find('<');
        let before = self.take(found.unwrap_or_else(|| self.rest().len()));
        self.emit_text(&before, parts);
        found.is_some() && self.step_tag(parts)
    }

    /// The rest starts with `<`.
    fn step_tag(&mut self, parts: &mut Vec<Part>) -> bool {
        if !self.code.in_code() {
            if self.rest().starts_with(OPEN) {
                self.cursor += OPEN.len();
                let opens = self.text.trim().is_empty();
                self.seen_open = true;
                self.searched = 0;
                self.state = if opens { State::Thinking } else { State::Held };
                return true;
            }
            if self.rest().starts_with(CLOSE) {
                return self.step_lone_close(parts);
            }
            if OPEN.starts_with(self.rest()) || CLOSE.starts_with(self.rest()) {
                return false;
            }
        }
        let bracket = self.take(1);
        self.emit_text(&bracket, parts);
        true
    }

    /// The rest starts with a `</think>` that nothing opened.
    fn step_lone_close(&mut self, parts: &mut Vec<Part>) -> bool {
        let alone = self.text.is_empty() || self.text.ends_with('\n');
        if alone && !self.seen_open && self.lone_close.is_none() {
            match self.rest().as_bytes().get(CLOSE.len()) {
                // What follows decides; at the end of the text the tag stays text.
                None => return false,
                Some(b'\n' | b'\r') => self.lone_close = Some(self.text.len()),
                Some(_) => {}
            }
        }
        let tag = self.take(CLOSE.len());
        self.emit_text(&tag, parts);
        true
    }

    fn step_thinking(&mut self, parts: &mut Vec<Part>) -> bool {
        let found = self.rest().find(CLOSE);
        let certain =
            found.unwrap_or_else(|| self.rest().len() - partial_suffix(self.rest(), CLOSE));
        let thinking = self.take(certain);
        self.emit_thinking(&thinking, parts);
        if found.is_some() {
            self.close_block();
        }
        found.is_some()
    }

    fn step_held(&mut self, parts: &mut Vec<Part>) -> bool {
        let Some(found) = self.rest().get(self.searched..).and_then(|rest| rest.find(CLOSE)) else {
            self.searched = self.rest().len() - partial_suffix(self.rest(), CLOSE);
            return false;
        };
        let thinking = self.take(self.searched + found);
        self.emit_thinking(&thinking, parts);
        self.close_block();
        true
    }

    fn close_block(&mut self) {
        self.cursor += CLOSE.len();
        self.state = State::Text;
        self.trim_next = self.text.trim().is_empty();
    }

    fn emit_lead(&mut self, parts: &mut Vec<Part>) {
        let lead = std::mem::take(&mut self.lead);
        self.emit_text(&lead, parts);
    }

    fn emit_text(&mut self, text: &str, parts: &mut Vec<Part>) {
        if text.is_empty() {
            return;
        }
        self.code.follow(text);
        self.text.push_str(text);
        match parts.last_mut() {
            Some(Part::Text(last)) => last.push_str(text),
            Some(Part::Thinking(_)) | None => parts.push(Part::Text(text.to_owned())),
        }
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
    fn hostile_text_takes_no_longer_than_its_length() {
        let start = std::time::Instant::now();
        for unit in ["<", " ", "<think", "</think>", "`<", "<think></think>"] {
            for head in ["", "x <think>"] {
                let whole = format!("{head}{}", unit.repeat(50_000));
                split(&[&whole]);
                let pieces: Vec<&str> =
                    std::iter::once(head).chain((0..50_000).map(|_| unit)).collect();
                assert_eq!(split(&pieces), split(&[&whole]), "{unit}");
            }
        }
        assert!(start.elapsed() < std::time::Duration::from_secs(10), "{:?}", start.elapsed());
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
