//! Inputs made of others: bits and bytes changed, parts taken out, doubled, put elsewhere, numbers made extreme.

/// Longest input.
const LONGEST: usize = 32 << 10;
/// Changes of one input, at most.
const MOST_CHANGES: u64 = 5;
/// What parsers trip over.
const WORDS: [&[u8]; 20] = [
    b"0",
    b"-1",
    b"18446744073709551615",
    b"18446744073709551616",
    b"1e308",
    b"-0",
    b"NaN",
    b"null",
    b"true",
    b"{}",
    b"[]",
    b"\"",
    b"\\u0000",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\0\0\0",
    b"\0",
    b"[[[[[[[[",
    b"\n",
    b"=",
];

/// The same inputs for the same seed.
#[derive(Debug)]
pub struct Mutator(u64);

impl Mutator {
    /// From a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Another input, of one of these and perhaps part of a second.
    pub fn mutate(&mut self, inputs: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = self.pick(inputs).cloned().unwrap_or_default();
        for _ in 0..=self.below(MOST_CHANGES) {
            self.change(&mut bytes, inputs);
        }
        bytes.truncate(LONGEST);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, inputs: &[Vec<u8>]) {
        let at = self.index(bytes.len() + 1);
        let end = (at + self.length()).min(bytes.len());
        match self.below(8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
            1 if at < bytes.len() => bytes[at] = self.next() as u8,
            2 => drop(bytes.drain(at..end)),
            3 => {
                let part = bytes[at..end].to_vec();
                let to = self.index(bytes.len() + 1);
                bytes.splice(to..to, part);
            }
            4 => bytes.truncate(at),
            5 => {
                let word = WORDS[self.index(WORDS.len())];
                let end = (at + self.index(word.len() + 1)).min(bytes.len());
                bytes.splice(at..end, word.iter().copied());
            }
            6 => {
                let other = self.pick(inputs).cloned().unwrap_or_default();
                let from = self.index(other.len() + 1);
                let to = (from + self.length()).min(other.len());
                bytes.splice(at..end, other[from..to].iter().copied());
            }
            _ => {
                // A digit instead of another keeps text what it is.
                if let Some(digit) = bytes[at..].iter_mut().find(|b| b.is_ascii_digit()) {
                    *digit = b'0' + self.below(10) as u8;
                }
            }
        }
    }

    fn pick<'a>(&mut self, inputs: &'a [Vec<u8>]) -> Option<&'a Vec<u8>> {
        inputs.get(self.index(inputs.len()))
    }

    /// Mostly short.
    fn length(&mut self) -> usize {
        let bits = self.below(9);
        self.index(1 << bits) + 1
    }

    fn index(&mut self, length: usize) -> usize {
        if length == 0 { 0 } else { self.below(length as u64) as usize }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// splitmix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }
}
