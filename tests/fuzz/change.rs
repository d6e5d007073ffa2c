//! How seeds are changed: a generator of numbers and a few ways to cut, join and disturb text.

#[path = "../support/shell_pieces.rs"]
mod shell_pieces;

use shell_pieces::SHELL_PIECES;

/// Pieces that mean something in a policy.
const POLICY_PIECES: &[&str] =
    &["[path]\n", "id = ", "= [", "\"{home}\"", "regex = ", "**", "[[command.rule]]\n"];

/// A generator with 64 bits of state (xorshift with a multiplication), which is plenty to vary tests.
#[derive(Debug)]
pub(crate) struct Changes(u64);

impl Changes {
    /// Each number gives one text, always the same.
    pub(crate) fn new(number: u64) -> Self {
        // Neighbours must not look alike.
        Self(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap() % bound.max(1)
    }

    /// A seed with one to eight changes.
    pub(crate) fn text(&mut self, seeds: &[String]) -> String {
        let mut text = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(8) {
            text = self.changed(&text, seeds);
        }
        text
    }

    fn changed(&mut self, text: &str, seeds: &[String]) -> String {
        let (from, to) = (self.place(text), self.place(text));
        let (from, to) = (from.min(to), from.max(to));
        let (head, middle, tail) = (&text[..from], &text[from..to], &text[to..]);
        match self.below(8) {
            0 => format!("{head}{tail}"),
            1 => format!("{head}{middle}{middle}{tail}"),
            2..=4 => format!("{head}{}{middle}{tail}", self.piece()),
            5 => {
                let piece = self.piece();
                format!("{head}{}{middle}{tail}", piece.repeat(1 + self.below(90)))
            }
            6 => {
                let other = &seeds[self.below(seeds.len())];
                let cut = self.place(other);
                format!("{head}{}", &other[cut..])
            }
            _ => format!("{head}{}{tail}", self.piece()),
        }
    }

    fn piece(&mut self) -> &'static str {
        let index = self.below(SHELL_PIECES.len() + POLICY_PIECES.len());
        SHELL_PIECES.iter().chain(POLICY_PIECES).nth(index).unwrap()
    }

    /// A place between two characters.
    fn place(&mut self, text: &str) -> usize {
        let mut at = self.below(text.len() + 1);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}
