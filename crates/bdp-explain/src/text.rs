//! Quantities as sentences have them, and what a user changes by which name.

use bdp_model::ends::Task;
use bdp_model::facts::{End, Facts, Source};
use bdp_model::threshold::NOTICEABLE_DELAY;
use bdp_model::units::{Nanos, format_bps, in_binary_unit};

pub use bdp_model::units::format_percent as percent;

/// How evidence of a busy thread begins, by which a caveat of the same is recognised as said.
pub fn thread_used(task: Task) -> String {
    format!("a {} thread used", task.name())
}

/// Something that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// The window on the wire.
    Window,
    /// The rate of each stream.
    Rate,
    /// Parallel streams.
    Streams,
    /// Payload of a datagram.
    Datagram,
}

/// What changes a setting: the option of a measurement, the key of a scenario.
pub fn name_of(facts: &Facts, setting: Setting) -> &'static str {
    match (facts.source, setting) {
        (Source::Measured, Setting::Window) => "-w",
        (Source::Measured, Setting::Rate) => "-b",
        (Source::Measured, Setting::Streams) => "-P",
        (Source::Measured, Setting::Datagram) => "-l",
        (Source::Emulated, Setting::Window) => "flow.window",
        (Source::Emulated, Setting::Rate) => "flow.rate",
        (Source::Emulated, Setting::Streams) => "flow.streams",
        (Source::Emulated, Setting::Datagram) => "flow.datagram",
    }
}

/// What load adds at the 95th percentile, as a sentence; nothing where it adds less than one notices.
pub fn load_adds(facts: &Facts) -> Option<String> {
    let added = facts.rtt_added_p95().filter(|&added| added > NOTICEABLE_DELAY)?;
    Some(format!("load adds {} to the round trip at p95", time(added)))
}

/// A size as sentences have it: `2.72 MiB`, `78.6 KiB`; three digits, or as many as it has before its point.
pub fn size(bytes: f64) -> String {
    let (value, unit) = in_binary_unit(bytes.round().max(0.0));
    let decimals = if unit == "B" || value >= 99.95 { 0 } else { usize::from(value < 9.995) + 1 };
    let digits = format!("{value:.decimals$}");
    let digits = if decimals > 0 { digits.trim_end_matches('0').trim_end_matches('.') } else { &digits };
    format!("{digits} {unit}")
}

/// A rate as sentences have it: `347 Mbit/s`, three digits or as many as it has before its point.
pub fn rate(bps: f64) -> String {
    let digits = if bps > 0.0 { 10f64.powf(bps.log10().floor() - 2.0) } else { 1.0 };
    format_bps((bps / digits).round() * digits)
}

/// A time as sentences have it: `24.2 ms`.
pub fn time(nanos: Nanos) -> String {
    let digits = if nanos.0 > 0 { 10f64.powf((nanos.0 as f64).log10().floor() - 2.0) } else { 1.0 };
    Nanos(((nanos.0 as f64 / digits).round() * digits).round() as u64).to_string()
}

/// The last of the three numbers of `tcp_rmem` or `tcp_wmem`.
pub fn maximum(end: &End, sysctl: &str) -> Option<u64> {
    end.host.sysctls.get(sysctl)?.split_whitespace().nth(2)?.parse().ok()
}
