//! Varied values as typed: `4K..64M`, `1,2,10`, `reno,cubic`.

use bdp_model::sweep::curve::{log_spaced, usual_points};
use bdp_model::sweep::parameter::{Kind, Parameter};
use bdp_run::sweep::{Setting, Variable, Varied};

/// Maximum number of values of one parameter.
const MOST: usize = 1000;

/// Option of the variable.
pub fn option(variable: Variable) -> String {
    format!("--{}", variable.name())
}

/// Path of the variable in a scenario.
pub fn path(variable: Variable) -> String {
    format!("flow.{}", variable.name())
}

const fn example(variable: Variable) -> &'static str {
    match variable {
        Variable::Window => "4K..64M",
        Variable::Streams => "1..64",
        Variable::Length => "4K..1M",
        Variable::Mss => "536..8960",
        Variable::Congestion => "reno,cubic,bbr",
    }
}

/// Parses values separated by commas, each one value or a geometric range `A..B` of `points` values. The error is one line.
pub fn read(variable: Variable, text: &str, points: Option<usize>) -> Result<Varied, String> {
    let mut values: Vec<Setting> = Vec::new();
    for part in text.split(',').map(str::trim) {
        match part.split_once("..") {
            Some((from, to)) if variable != Variable::Congestion => {
                let (from, to) = (item(variable, from.trim())?, item(variable, to.trim())?);
                let (low, high) = (from.number, to.number);
                if low >= high {
                    let (option, example) = (option(variable), example(variable));
                    return Err(format!(
                        "{option} {part}: a range must go from a smaller to a larger value, for example {example}"
                    ));
                }
                let points = points.unwrap_or_else(|| usual_points(low, high));
                values.extend(log_spaced(low, high, points).into_iter().map(|number| match number {
                    n if n == low => from.clone(),
                    n if n == high => to.clone(),
                    number => Setting { text: number.to_string(), number },
                }));
            }
            _ => values.push(item(variable, part)?),
        }
    }
    let mut kept: Vec<Setting> = Vec::new();
    for value in values {
        let known = |k: &Setting| {
            if variable == Variable::Congestion { k.text == value.text } else { k.number == value.number }
        };
        if !kept.iter().any(known) {
            kept.push(value);
        }
    }
    if kept.len() > MOST {
        return Err(format!("{} has {} values; {MOST} at most", option(variable), kept.len()));
    }
    Ok(Varied { parameter: variable, values: kept })
}

/// The values as text.
pub fn texts(varied: &Varied) -> Vec<String> {
    varied.values.iter().map(|v| v.text.clone()).collect()
}

fn item(variable: Variable, text: &str) -> Result<Setting, String> {
    let (option, example) = (option(variable), example(variable));
    let parameter = Parameter::at(variable.name());
    if parameter.kind == Kind::Word {
        let plain =
            !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        return match plain {
            true => Ok(Setting { text: text.to_owned(), number: 0 }),
            false => Err(format!("{option} '{text}': expected a name, for example {example}")),
        };
    }
    let Some(quantity) = parameter.read(text) else {
        let what = if parameter.kind == Kind::Size { "size" } else { "whole number" };
        return Err(format!(
            "{option}: '{text}' is not a {what}; give a list of values, or a range, for example {example}"
        ));
    };
    let range = parameter.range;
    // A float's exact integers extend far beyond every range.
    let number = quantity.value as u64;
    match quantity.value >= 0.0 && range.contains(&number) {
        true => Ok(Setting { text: text.to_owned(), number }),
        false => Err(format!("{option} {text}: out of range, {} to {}", range.start(), range.end())),
    }
}

#[cfg(test)]
mod tests {
    use super::{Variable, texts};

    fn read(parameter: Variable, text: &str, points: Option<usize>) -> Result<String, String> {
        super::read(parameter, text, points).map(|v| texts(&v).join(" "))
    }

    #[test]
    fn lists_and_ranges_keep_their_ends_as_typed() {
        for (parameter, text, points, expected) in [
            (Variable::Window, "4K..64K", None, "4K 8192 16384 32768 64K"),
            (Variable::Window, "4K..1M", Some(3), "4K 65536 1M"),
            (Variable::Window, "319kB, 64K,64KiB", None, "319kB 64K"),
            (Variable::Window, "1000,4K..16K", Some(2), "1000 4K 16K"),
            (Variable::Streams, "1..8", None, "1 2 3 5 8"),
            (Variable::Mss, "536..8960", None, "536 941 1654 2904 5101 8960"),
            (Variable::Congestion, "reno,cubic,reno", None, "reno cubic"),
        ] {
            assert_eq!(read(parameter, text, points).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(super::read(Variable::Window, "4K..64M", None).unwrap().values.len(), 15);
    }

    #[test]
    fn mistakes_name_the_option_and_show_what_is_right() {
        for (parameter, text, part) in [
            (Variable::Window, "64K..4K", "--window 64K..4K: a range must go from a smaller"),
            (Variable::Window, "4K..x", "'x' is not a size"),
            (Variable::Window, "", "--window: '' is not a size"),
            (Variable::Window, "2G", "--window 2G: out of range"),
            (Variable::Streams, "0..4", "--streams 0: out of range, 1 to 10000"),
            (
                Variable::Streams,
                "1.5",
                "'1.5' is not a whole number; give a list of values, or a range, for example 1..64",
            ),
            (Variable::Congestion, "a..b", "--congestion 'a..b': expected a name"),
        ] {
            let error = read(parameter, text, None).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
