//! What is varied, as it is typed: `4K..64M`, `1,2,10`, `reno,cubic`.

use bdp_model::ByteCount;
use bdp_model::curve::{log_spaced, usual_points};
use bdp_run::sweep::{Parameter, Setting, Varied};

/// Most values of one parameter.
const MOST: usize = 1000;

/// The option.
pub fn option(parameter: Parameter) -> String {
    format!("--{}", parameter.name())
}

/// The parameter of a scenario.
pub const fn path(parameter: Parameter) -> &'static str {
    match parameter {
        Parameter::Window => "flow.window",
        Parameter::Streams => "flow.streams",
        Parameter::Length => "flow.length",
        Parameter::Mss => "flow.mss",
        Parameter::Congestion => "flow.congestion",
    }
}

/// Smallest and largest value, and an example.
const fn bounds(parameter: Parameter) -> (u64, u64, &'static str) {
    match parameter {
        Parameter::Window => (1, 1 << 30, "4K..64M"),
        Parameter::Streams => (1, 10_000, "1..64"),
        Parameter::Length => (1, 64 << 20, "4K..1M"),
        Parameter::Mss => (88, 65_495, "536..8960"),
        Parameter::Congestion => (0, 0, "reno,cubic,bbr"),
    }
}

/// Reads values separated by commas, each one value or a range `A..B` of `points` by factors. The error is one line.
pub fn read(parameter: Parameter, text: &str, points: Option<usize>) -> Result<Varied, String> {
    let mut values: Vec<Setting> = Vec::new();
    for part in text.split(',').map(str::trim) {
        match part.split_once("..") {
            Some((from, to)) if parameter != Parameter::Congestion => {
                let (from, to) = (item(parameter, from.trim())?, item(parameter, to.trim())?);
                let (low, high) = (from.number, to.number);
                if low >= high {
                    let (option, example) = (option(parameter), bounds(parameter).2);
                    return Err(format!(
                        "{option} {part}: a range goes from a smaller to a larger value, such as {example}"
                    ));
                }
                let points = points.unwrap_or_else(|| usual_points(low, high));
                values.extend(log_spaced(low, high, points).into_iter().map(|number| match number {
                    n if n == low => from.clone(),
                    n if n == high => to.clone(),
                    number => Setting { text: number.to_string(), number },
                }));
            }
            _ => values.push(item(parameter, part)?),
        }
    }
    let mut kept: Vec<Setting> = Vec::new();
    for value in values {
        let known = |k: &Setting| {
            if parameter == Parameter::Congestion { k.text == value.text } else { k.number == value.number }
        };
        if !kept.iter().any(known) {
            kept.push(value);
        }
    }
    if kept.len() > MOST {
        return Err(format!("{} has {} values; {MOST} at most", option(parameter), kept.len()));
    }
    Ok(Varied { parameter, values: kept })
}

/// The values as text.
pub fn texts(varied: &Varied) -> Vec<String> {
    varied.values.iter().map(|v| v.text.clone()).collect()
}

fn item(parameter: Parameter, text: &str) -> Result<Setting, String> {
    let (least, most, example) = bounds(parameter);
    let option = option(parameter);
    if parameter == Parameter::Congestion {
        let plain =
            !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        return match plain {
            true => Ok(Setting { text: text.to_owned(), number: 0 }),
            false => Err(format!("{option} '{text}': a name is expected, such as {example}")),
        };
    }
    let number = match parameter {
        Parameter::Window | Parameter::Length => {
            text.parse::<ByteCount>().map(ByteCount::as_bytes).map_err(|e| e.to_string())
        }
        _ => text.parse::<u64>().map_err(|_| format!("'{text}' is not a whole number")),
    };
    match number {
        Ok(number) if (least..=most).contains(&number) => Ok(Setting { text: text.to_owned(), number }),
        Ok(_) => Err(format!("{option} {text}: out of range, {least} to {most}")),
        Err(error) => {
            Err(format!("{option}: {error}; values are listed, or given as a range such as {example}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Parameter, texts};

    fn read(parameter: Parameter, text: &str, points: Option<usize>) -> Result<String, String> {
        super::read(parameter, text, points).map(|v| texts(&v).join(" "))
    }

    #[test]
    fn lists_and_ranges_keep_their_ends_as_typed() {
        for (parameter, text, points, expected) in [
            (Parameter::Window, "4K..64K", None, "4K 8192 16384 32768 64K"),
            (Parameter::Window, "4K..1M", Some(3), "4K 65536 1M"),
            (Parameter::Window, "319kB, 64K,64KiB", None, "319kB 64K"),
            (Parameter::Window, "1000,4K..16K", Some(2), "1000 4K 16K"),
            (Parameter::Streams, "1..8", None, "1 2 3 5 8"),
            (Parameter::Mss, "536..8960", None, "536 941 1654 2904 5101 8960"),
            (Parameter::Congestion, "reno,cubic,reno", None, "reno cubic"),
        ] {
            assert_eq!(read(parameter, text, points).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(super::read(Parameter::Window, "4K..64M", None).unwrap().values.len(), 15);
    }

    #[test]
    fn mistakes_name_the_option_and_show_what_is_right() {
        for (parameter, text, part) in [
            (Parameter::Window, "64K..4K", "--window 64K..4K: a range goes from a smaller"),
            (Parameter::Window, "4K..x", "'x' is not a size"),
            (Parameter::Window, "", "--window: '' is not a size"),
            (Parameter::Window, "2G", "--window 2G: out of range"),
            (Parameter::Streams, "0..4", "--streams 0: out of range, 1 to 10000"),
            (
                Parameter::Streams,
                "1.5",
                "'1.5' is not a whole number; values are listed, or given as a range such as 1..64",
            ),
            (Parameter::Congestion, "a..b", "--congestion 'a..b': a name is expected"),
        ] {
            let error = read(parameter, text, None).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
