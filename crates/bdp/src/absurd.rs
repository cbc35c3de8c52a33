//! Implausible values: a number without a unit is in the base unit, 50 is fifty seconds and 100 one hundred
//! bit/s. They are accepted as typed, with a note.

use bdp_model::case::CaseSpec;
use bdp_model::units::{Nanos, Rate};

use crate::output;

/// Longer than any path but those of deep space.
const LONG: Nanos = Nanos::secs(10);
/// No link is so slow.
const SLOW_BPS: u64 = 1_000;

/// Notes an implausible round trip or delay.
pub fn note_time(name: &str, time: Nanos) {
    if let Some(note) = of_time(name, time) {
        output::note(&note);
    }
}

/// Notes an implausible rate.
pub fn note_rate(name: &str, rate: Option<Rate>) {
    if let Some(note) = rate.and_then(|rate| of_rate(name, rate)) {
        output::note(&note);
    }
}

/// Notes each implausible value of the links of these cases, once.
pub fn note_links(cases: &[CaseSpec]) {
    for note in of_links(cases) {
        output::note(&note);
    }
}

fn of_links(cases: &[CaseSpec]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for link in cases.iter().flat_map(|case| &case.links) {
        let name = |what: &str| format!("{what} of the link {}", link.between.join(" - "));
        for direction in [&link.config.forward, &link.config.reverse] {
            let rate = direction.rate.and_then(|rate| of_rate(&name("rate"), rate));
            let found = rate.into_iter().chain(of_time(&name("delay"), direction.delay));
            for note in found {
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
    }
    notes
}

fn of_time(name: &str, time: Nanos) -> Option<String> {
    let seconds = time.as_secs_f64();
    (time >= LONG).then(|| {
        format!("NOTE  {name}: {time} is unusually long for a path; a number without a unit is in seconds, write {seconds} ms as '{seconds}ms'")
    })
}

fn of_rate(name: &str, rate: Rate) -> Option<String> {
    let bps = rate.as_bps();
    (1..SLOW_BPS).contains(&bps).then(|| {
        format!("NOTE  {name}: {rate} is unusually slow for a link; a number without a unit is in bit/s, write {bps} Mbit/s as '{bps}M'")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_without_its_unit_is_noted_where_it_makes_no_sense() {
        let note = of_time("--rtt", Nanos::secs(50)).unwrap();
        assert!(
            note.contains("--rtt: 50 s is unusually long") && note.ends_with("write 50 ms as '50ms'"),
            "{note}"
        );
        let note = of_rate("rate", Rate::bps(100)).unwrap();
        assert!(
            note.contains("rate: 100 bit/s is unusually slow")
                && note.ends_with("write 100 Mbit/s as '100M'"),
            "{note}"
        );
        for usual in [Nanos::millis(50), Nanos::secs(3), Nanos::ZERO] {
            assert_eq!(of_time("--rtt", usual), None);
        }
        for usual in [0, 9_600, 100_000_000] {
            assert_eq!(of_rate("rate", Rate::bps(usual)), None);
        }
    }
}
