//! Work in nanobits.

/// Work of one bit.
const WORK_PER_BIT: u128 = 1_000_000_000;

/// Work of this many bits.
pub(crate) fn work(bits: u64) -> u128 {
    u128::from(bits) * WORK_PER_BIT
}

/// Work of this many bytes.
pub(crate) fn work_of_bytes(bytes: u64) -> u128 {
    u128::from(bytes) * 8 * WORK_PER_BIT
}
