//! What is varied, as it is typed: `4K..64M`, `1,2,10`, `reno,cubic`.

use bdp_model::ByteCount;
use bdp_model::curve::{log_spaced, usual_points};

/// Most values of one parameter.
const MOST: usize = 1000;

/// A parameter that can be varied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Window,
    Streams,
    Length,
    Mss,
    Congestion,
}

/// A parameter and its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Varied {
    pub kind: Kind,
    /// In ascending order of the range, or as listed.
    pub values: Vec<Item>,
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// As typed, or as a number where it was calculated.
    pub text: String,
    /// Bytes or a count; 0 of a word.
    pub number: u64,
}

impl Kind {
    /// The option.
    pub const fn option(self) -> &'static str {
        match self {
            Self::Window => "--window",
            Self::Streams => "--streams",
            Self::Length => "--length",
            Self::Mss => "--mss",
            Self::Congestion => "--congestion",
        }
    }

    /// The option without its dashes, which names the parameter of a measurement.
    pub fn name(self) -> &'static str {
        self.option().trim_start_matches('-')
    }

    /// The parameter of a scenario.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Window => "flow.window",
            Self::Streams => "flow.streams",
            Self::Length => "flow.length",
            Self::Mss => "flow.mss",
            Self::Congestion => "flow.congestion",
        }
    }

    /// Smallest and largest value, and an example.
    const fn bounds(self) -> (u64, u64, &'static str) {
        match self {
            Self::Window => (1, 1 << 30, "4K..64M"),
            Self::Streams => (1, 10_000, "1..64"),
            Self::Length => (1, 64 << 20, "4K..1M"),
            Self::Mss => (88, 65_495, "536..8960"),
            Self::Congestion => (0, 0, "reno,cubic,bbr"),
        }
    }
}

impl Varied {
    /// Reads values separated by commas, each one value or a range `A..B` of `points` by factors. The error is one line.
    pub fn read(kind: Kind, text: &str, points: Option<usize>) -> Result<Self, String> {
        let mut values: Vec<Item> = Vec::new();
        for part in text.split(',').map(str::trim) {
            match part.split_once("..") {
                Some((from, to)) if kind != Kind::Congestion => {
                    let (from, to) = (item(kind, from.trim())?, item(kind, to.trim())?);
                    let (low, high) = (from.number, to.number);
                    if low >= high {
                        let (option, example) = (kind.option(), kind.bounds().2);
                        return Err(format!(
                            "{option} {part}: a range goes from a smaller to a larger value, such as {example}"
                        ));
                    }
                    let points = points.unwrap_or_else(|| usual_points(low, high));
                    values.extend(log_spaced(low, high, points).into_iter().map(|number| match number {
                        n if n == low => from.clone(),
                        n if n == high => to.clone(),
                        number => Item { text: number.to_string(), number },
                    }));
                }
                _ => values.push(item(kind, part)?),
            }
        }
        let mut kept: Vec<Item> = Vec::new();
        for value in values {
            let known = |k: &Item| {
                if kind == Kind::Congestion { k.text == value.text } else { k.number == value.number }
            };
            if !kept.iter().any(known) {
                kept.push(value);
            }
        }
        if kept.len() > MOST {
            return Err(format!("{} has {} values; {MOST} at most", kind.option(), kept.len()));
        }
        Ok(Self { kind, values: kept })
    }

    /// The values as text.
    pub fn texts(&self) -> Vec<String> {
        self.values.iter().map(|v| v.text.clone()).collect()
    }
}

fn item(kind: Kind, text: &str) -> Result<Item, String> {
    let (least, most, example) = kind.bounds();
    let option = kind.option();
    if kind == Kind::Congestion {
        let plain =
            !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        return match plain {
            true => Ok(Item { text: text.to_owned(), number: 0 }),
            false => Err(format!("{option} '{text}': a name is expected, such as {example}")),
        };
    }
    let number = match kind {
        Kind::Window | Kind::Length => {
            text.parse::<ByteCount>().map(ByteCount::as_bytes).map_err(|e| e.to_string())
        }
        _ => text.parse::<u64>().map_err(|_| format!("'{text}' is not a whole number")),
    };
    match number {
        Ok(number) if (least..=most).contains(&number) => Ok(Item { text: text.to_owned(), number }),
        Ok(_) => Err(format!("{option} {text}: out of range, {least} to {most}")),
        Err(error) => {
            Err(format!("{option}: {error}; values are listed, or given as a range such as {example}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: Kind, text: &str, points: Option<usize>) -> Result<String, String> {
        Varied::read(kind, text, points).map(|v| v.texts().join(" "))
    }

    #[test]
    fn lists_and_ranges_keep_their_ends_as_typed() {
        for (kind, text, points, expected) in [
            (Kind::Window, "4K..64K", None, "4K 8192 16384 32768 64K"),
            (Kind::Window, "4K..1M", Some(3), "4K 65536 1M"),
            (Kind::Window, "319kB, 64K,64KiB", None, "319kB 64K"),
            (Kind::Window, "1000,4K..16K", Some(2), "1000 4K 16K"),
            (Kind::Streams, "1..8", None, "1 2 3 5 8"),
            (Kind::Mss, "536..8960", None, "536 941 1654 2904 5101 8960"),
            (Kind::Congestion, "reno,cubic,reno", None, "reno cubic"),
        ] {
            assert_eq!(read(kind, text, points).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(Varied::read(Kind::Window, "4K..64M", None).unwrap().values.len(), 15);
    }

    #[test]
    fn mistakes_name_the_option_and_show_what_is_right() {
        for (kind, text, part) in [
            (Kind::Window, "64K..4K", "--window 64K..4K: a range goes from a smaller"),
            (Kind::Window, "4K..x", "'x' is not a size"),
            (Kind::Window, "", "--window: '' is not a size"),
            (Kind::Window, "2G", "--window 2G: out of range"),
            (Kind::Streams, "0..4", "--streams 0: out of range, 1 to 10000"),
            (
                Kind::Streams,
                "1.5",
                "'1.5' is not a whole number; values are listed, or given as a range such as 1..64",
            ),
            (Kind::Congestion, "a..b", "--congestion 'a..b': a name is expected"),
        ] {
            let error = read(kind, text, None).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
