//! Formatting of numbers in tables.

pub(crate) use bdp_model::units::asked_size;
use bdp_model::units::{format_percent, in_binary_unit};

/// Formats three significant digits, without exponents, with trailing zeros so that decimals align: `941`,
/// `10.0`, `5.57`, `0.0500`. A dash if it is not a number.
pub(crate) fn three_digits(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    // Rounding determines the number of decimals: 9.996 is 10.0, not 10.00.
    let exponent =
        format!("{:.2e}", value.abs()).split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0i32);
    let decimals = usize::try_from(2 - exponent).unwrap_or(0);
    format!("{value:.decimals$}")
}

/// Formats a ratio as a percentage: `100 %`, `9.3 %`, `0.033 %`. A dash if it is not a number.
pub(crate) fn percent(share: f64) -> String {
    if share.is_finite() { format_percent(share) } else { "-".to_owned() }
}

/// Formats a loss ratio, with enough digits to differ from zero.
pub(crate) fn loss(ratio: f64) -> String {
    match ratio * 100.0 {
        0.0 => "0 %".to_owned(),
        percent if percent < 0.001 => "< 0.001 %".to_owned(),
        percent => format!("{} %", three_digits(percent)),
    }
}

/// Formats a size with three significant digits: `63.6 KiB`.
pub(crate) fn size(bytes: f64) -> String {
    let (value, unit) = in_binary_unit(bytes);
    if unit == "B" { format!("{value:.0} B") } else { format!("{} {unit}", three_digits(value)) }
}

/// Unit of the rates in a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateUnit {
    /// Name, as in the heading.
    pub name: &'static str,
    /// Size of the unit, bit/s.
    pub bps: f64,
}

impl RateUnit {
    /// Returns the unit for the letter of iperf3's `-f`: lower case for bits with SI prefixes, upper case for bytes with IEC prefixes.
    pub fn of_letter(letter: char) -> Option<Self> {
        const KIB: f64 = 8.0 * 1024.0;
        let (name, bps) = match letter {
            'k' => ("kbit/s", 1e3),
            'm' => ("Mbit/s", 1e6),
            'g' => ("Gbit/s", 1e9),
            't' => ("Tbit/s", 1e12),
            'K' => ("KiB/s", KIB),
            'M' => ("MiB/s", KIB * 1024.0),
            'G' => ("GiB/s", KIB * 1024.0 * 1024.0),
            'T' => ("TiB/s", KIB * 1024.0 * 1024.0 * 1024.0),
            _ => return None,
        };
        Some(Self { name, bps })
    }

    /// Returns Mbit/s, or kbit/s if no rate reaches 1 Mbit/s.
    pub fn fitting(rates_bps: impl IntoIterator<Item = f64>) -> Self {
        let largest = rates_bps.into_iter().filter(|r| r.is_finite()).fold(0.0, f64::max);
        if largest > 0.0 && largest < 1e6 {
            Self { name: "kbit/s", bps: 1e3 }
        } else {
            Self { name: "Mbit/s", bps: 1e6 }
        }
    }

    /// Like [`RateUnit::fitting`], but Gbit/s if every rate reaches 1 Gbit/s.
    pub fn spacious(rates_bps: impl IntoIterator<Item = f64>) -> Self {
        let rates: Vec<f64> = rates_bps.into_iter().filter(|r| r.is_finite()).collect();
        if !rates.is_empty() && rates.iter().all(|&r| r >= 1e9) {
            Self { name: "Gbit/s", bps: 1e9 }
        } else {
            Self::fitting(rates)
        }
    }

    /// Formats a rate in this unit with three digits.
    pub fn format(self, bps: f64) -> String {
        three_digits(bps / self.bps)
    }
}

/// Formats a rate with its unit.
pub(crate) fn rate(bps: f64) -> String {
    let unit = RateUnit::spacious(std::iter::once(bps));
    format!("{} {}", unit.format(bps), unit.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_significant_digits() {
        for (value, text) in [
            (941.48, "941"),
            (999.6, "1000"),
            (99.96, "100"),
            (9.996, "10.0"),
            (10.0, "10.0"),
            (5.569, "5.57"),
            (0.05, "0.0500"),
            (0.0, "0"),
            (12_345.6, "12346"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(three_digits(value), text);
        }
    }

    #[test]
    fn sizes_do_not_reach_1024_of_a_unit() {
        assert_eq!(size(1023.0), "1023 B");
        assert_eq!(size(1024.0), "1.00 KiB");
        assert_eq!(size(1_048_575.0), "1.00 MiB");
        assert_eq!(size(65_160.0), "63.6 KiB");
    }

    #[test]
    fn small_rates_get_the_smaller_unit() {
        assert_eq!(RateUnit::fitting([50e3, 999e3]).name, "kbit/s");
        assert_eq!(RateUnit::fitting([50e3, 941e6]).name, "Mbit/s");
        assert_eq!(RateUnit::fitting([]).name, "Mbit/s");
        assert_eq!(RateUnit::fitting([50e3]).format(50e3), "50.0");
    }
}
