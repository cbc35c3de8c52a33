//! How a flow's bytes reach the kernel, on which processors, and whether they arrive unchanged.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::names;

/// Requested way for a sender to pass its bytes to the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Zerocopy {
    /// `write`, which copies the bytes.
    Off,
    /// The fastest of the methods that a sender tries at the start.
    #[default]
    Auto,
    /// `sendfile` from memory.
    Sendfile,
    /// Pages of the process spliced through a pipe.
    Splice,
    /// `MSG_ZEROCOPY`, with completions from the error queue.
    Msg,
}

names!(Zerocopy: Off = "off", Auto = "auto", Sendfile = "sendfile", Splice = "splice", Msg = "msg");

impl Zerocopy {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Off, Self::Auto, Self::Sendfile, Self::Splice, Self::Msg];
}

/// Results of a receiver that verifies every byte.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PayloadCheck {
    /// Bytes verified.
    pub checked_bytes: u64,
    /// Bytes that were wrong.
    pub wrong_bytes: u64,
    /// The first wrong byte, in the first stream with one.
    pub first_wrong: Option<WrongByte>,
}

/// Position of a wrong byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WrongByte {
    /// The stream, in order of connection, from 0.
    pub stream: u32,
    /// Offset in that stream, bytes.
    pub offset: u64,
}

impl PayloadCheck {
    /// Adds both; the first wrong byte is that of the lower stream.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            checked_bytes: self.checked_bytes + other.checked_bytes,
            wrong_bytes: self.wrong_bytes + other.wrong_bytes,
            first_wrong: match (self.first_wrong, other.first_wrong) {
                (Some(a), Some(b)) => Some(if b.stream < a.stream { b } else { a }),
                (a, b) => a.or(b),
            },
        }
    }
}

/// Processors that threads are pinned to, in the order of assignment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct CpuList(Vec<u32>);

/// Most processors in a list, and the highest number of one.
const MOST_CPUS: u32 = 1024;

impl CpuList {
    /// Returns their numbers.
    pub fn numbers(&self) -> &[u32] {
        &self.0
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, number) in self.0.iter().enumerate() {
            write!(f, "{}{number}", if i > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

impl FromStr for CpuList {
    type Err = String;

    /// Parses numbers and ranges separated by commas: `0`, `2-3`, `0,4-7`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "'{text}' is not a list of processors; give numbers below {MOST_CPUS}, for example 0 or 0,4-7"
            )
        };
        let number = |digits: &str| {
            let digit_only = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            digits.parse().ok().filter(|&n: &u32| digit_only && n < MOST_CPUS).ok_or_else(wrong)
        };
        let mut numbers = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last || numbers.len() + (last - first) as usize >= MOST_CPUS as usize {
                return Err(wrong());
            }
            numbers.extend(first..=last);
        }
        Ok(Self(numbers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_numbers_and_ranges() {
        for (text, numbers) in [("0", vec![0]), ("3,0-2", vec![3, 0, 1, 2]), ("7-7", vec![7])] {
            assert_eq!(text.parse::<CpuList>().unwrap().numbers(), numbers, "{text}");
        }
        for wrong in ["", ",", "1,", "-1", "2-1", "1-", "a", "1024", "0-1024", "0 ", "+1", "0-1023,0"] {
            assert!(wrong.parse::<CpuList>().is_err(), "{wrong}");
        }
        assert_eq!("3,0-2".parse::<CpuList>().unwrap().to_string(), "3,0,1,2");
    }

    #[test]
    fn checks_of_streams_add_up() {
        let check = |stream| PayloadCheck {
            checked_bytes: 100,
            wrong_bytes: 2,
            first_wrong: Some(WrongByte { stream, offset: 9 }),
        };
        let both = check(3).and(check(1)).and(PayloadCheck { checked_bytes: 5, ..Default::default() });
        assert_eq!((both.checked_bytes, both.wrong_bytes), (205, 4));
        assert_eq!(both.first_wrong, Some(WrongByte { stream: 1, offset: 9 }));
    }
}
