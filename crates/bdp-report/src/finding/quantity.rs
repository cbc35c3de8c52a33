//! Quantities formatted for sentences.

use bdp_model::units::{Nanos, format_bps, in_binary_unit};

pub(crate) use bdp_model::units::format_percent as percent;

/// Formats a size: `2.72 MiB`, `78.6 KiB`; three digits, or all integer digits.
pub(crate) fn size(bytes: f64) -> String {
    let (value, unit) = in_binary_unit(bytes.round().max(0.0));
    let decimals = if unit == "B" || value >= 99.95 { 0 } else { usize::from(value < 9.995) + 1 };
    let digits = format!("{value:.decimals$}");
    let digits = if decimals > 0 { digits.trim_end_matches('0').trim_end_matches('.') } else { &digits };
    format!("{digits} {unit}")
}

/// Formats a rate: `347 Mbit/s`; three digits, or all integer digits.
pub(crate) fn rate(bps: f64) -> String {
    let digits = if bps > 0.0 { 10f64.powf(bps.log10().floor() - 2.0) } else { 1.0 };
    format_bps((bps / digits).round() * digits)
}

/// Formats a time: `24.2 ms`.
pub(crate) fn time(nanos: Nanos) -> String {
    let digits = if nanos.0 > 0 { 10f64.powf((nanos.0 as f64).log10().floor() - 2.0) } else { 1.0 };
    Nanos(((nanos.0 as f64 / digits).round() * digits).round() as u64).to_string()
}

/// Formats a share of at most 100 %; any excess is noise between two measurements.
pub(crate) fn part(share: f64) -> String {
    if share > 1.0 { "all".to_owned() } else { percent(share) }
}

/// Formats a share that may be far below 1 %.
pub(crate) fn small_share(share: f64) -> String {
    match share * 1e6 {
        millionths if millionths < 1.0 => "fewer than 1 in a million".to_owned(),
        millionths if millionths < 1000.0 => format!("{millionths:.0} in a million"),
        _ => percent(share),
    }
}
