//! A parser to be tried.

/// One parser.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, which is that of its folder below `corpus/`.
    pub name: &'static str,
    /// Tries bytes; panics where the parser is wrong.
    pub run: fn(&[u8]),
    /// What to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
}
