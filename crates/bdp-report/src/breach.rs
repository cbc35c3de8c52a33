//! Why an attempt is INVALID, in words.

use bdp_model::record::Fidelity;
use bdp_model::record::breach::{Breach, Cause, Delayed, HarmSeen, Place};
use bdp_model::units::Nanos;

use crate::number::percent;

/// Returns all violated bounds and the cause, in one line; empty if none was violated.
pub fn why_invalid(fidelity: &Fidelity) -> String {
    let broken = why_broken(fidelity);
    match causes(&[fidelity]) {
        Some(causes) => format!("{broken}. Cause: {causes}"),
        None => broken,
    }
}

/// Returns all violated bounds.
pub(crate) fn why_broken(fidelity: &Fidelity) -> String {
    fidelity.broken.iter().map(text).collect::<Vec<_>>().join("; ")
}

/// Returns the causes of the violations of some attempts and what to do about them, each once; if a cause has several
/// figures, the largest.
pub(crate) fn causes(of: &[&Fidelity]) -> Option<String> {
    let mut once: Vec<Cause> = Vec::new();
    for cause in of.iter().flat_map(|fidelity| &fidelity.cause) {
        match once.iter_mut().find(|known| is_alike(known, cause)) {
            Some(known) if amount(cause) > amount(known) => *known = cause.clone(),
            Some(_) => {}
            None => once.push(cause.clone()),
        }
    }
    if once.len() > 1 {
        once.retain(|cause| *cause != Cause::Unknown);
    }
    (!once.is_empty()).then(|| once.iter().map(cause_text).collect::<Vec<_>>().join("; "))
}

fn is_alike(a: &Cause, b: &Cause) -> bool {
    match (a, b) {
        (Cause::Text(a), Cause::Text(b)) => a == b,
        _ => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}

fn amount(cause: &Cause) -> f64 {
    match cause {
        Cause::Programs { processors, .. } => *processors,
        Cause::Hypervisor { share } | Cause::OwnHosts { share } => *share,
        _ => 0.0,
    }
}

/// Returns a violated bound with its measured value and limit.
pub(crate) fn text(breach: &Breach) -> String {
    match breach {
        Breach::LinkFailed { error } => error.clone(),
        Breach::NoAnswer { between } => {
            format!("{}no probe was answered: the round trip is unknown", of_pair(between))
        }
        Breach::IdleBelow { between, idle_ns, configured_ns } => format!(
            "{}idle RTT {} below the configured {}",
            of_pair(between),
            Nanos(*idle_ns),
            Nanos(*configured_ns)
        ),
        Breach::IdleAbove { between, excess_ns, configured_ns, bound_ns } => format!(
            "{}idle RTT at least {} above the configured {} (bound {})",
            of_pair(between),
            Nanos(*excess_ns),
            Nanos(*configured_ns),
            Nanos(*bound_ns)
        ),
        Breach::IdleBeyond { between, excess_ns, configured_ns, bound_ns } => format!(
            "{}half of the idle probes took {} or more beyond the links' {} (bound {})",
            of_pair(between),
            Nanos(*excess_ns),
            Nanos(*configured_ns),
            Nanos(*bound_ns)
        ),
        Breach::SentOfAsked { flow, share, bound } => {
            format!(
                "{flow}: its host sent {} of what was asked (bound {} off)",
                percent(*share),
                percent(*bound)
            )
        }
        Breach::Harm { flow, harm, bound, seen_by, beyond_ns, places } => format!(
            "{flow}: the emulation took about {} of its goodput (bound {}): {}",
            percent(*harm),
            percent(*bound),
            delay(*seen_by, *beyond_ns, places)
        ),
        Breach::NotConserved { link } => {
            format!("{link}: packets in do not equal packets out, dropped and queued")
        }
        Breach::DeviceDrops { link, packets } => format!("{link}: the TUN devices dropped {packets} packets"),
        Breach::ReleasedLate { link, late_ns } => {
            let late = Nanos(*late_ns);
            format!(
                "{link}: a packet left {late} late with the virtual clock: a bug in bdp, please report it"
            )
        }
        Breach::Rate { link, off, bound } => format!(
            "{link}: rate {:+.2} % off the configured one (bound {:.1} %)",
            off * 100.0,
            bound * 100.0
        ),
        Breach::Loss { link, achieved, configured } => {
            format!("{link}: loss {achieved:.4} instead of the configured {configured:.4}")
        }
        Breach::Text(text) => text.clone(),
    }
}

fn delay(seen_by: HarmSeen, beyond_ns: u64, places: &[Delayed]) -> String {
    let what = match seen_by {
        HarmSeen::Edges => return "packets were late when counting started or ended".to_owned(),
        HarmSeen::Probes => "probes",
        HarmSeen::Packets => "packets",
    };
    let places: Vec<String> = places
        .iter()
        .map(|Delayed { place, ns }| {
            let at = match place {
                Place::Sender => "before they were sent".to_owned(),
                Place::Host(name) => format!("unread in {name}"),
                Place::Routers => "in routers".to_owned(),
                Place::Emulator => "unread by the emulator".to_owned(),
                Place::Release => "released late".to_owned(),
            };
            format!("{} {at}", Nanos(*ns))
        })
        .collect();
    format!("{what} took {} per round trip beyond the links: {}", Nanos(beyond_ns), places.join(", "))
}

fn cause_text(cause: &Cause) -> String {
    match cause {
        Cause::Programs { named, count, processors, of } => {
            let names: Vec<String> =
                named.iter().map(|other| format!("{} (process {})", other.name, other.process)).collect();
            let ended = if *count == 1 { "it has ended" } else { "they have ended" };
            format!("{} took {processors:.1} of {of} processors: run when {ended}", names.join(" and "))
        }
        Cause::Hypervisor { share } => format!("the hypervisor took {} of the processors", percent(*share)),
        Cause::OtherCases => "other cases ran in parallel: use --jobs 1 to run each alone".to_owned(),
        Cause::OwnHosts { share } => format!(
            "its own hosts used {} of the processors left to them: use a lower rate, fewer streams or more processors",
            percent(*share)
        ),
        Cause::Busy => "the processors were busy throughout: run when the machine is quieter".to_owned(),
        Cause::Unknown => {
            "unknown; neither another program nor a hypervisor was seen to take the processors".to_owned()
        }
        Cause::Text(text) => text.clone(),
    }
}

fn of_pair(between: &Option<String>) -> String {
    between.as_ref().map_or_else(String::new, |ends| format!("between {ends}: "))
}

#[cfg(test)]
mod tests {
    use bdp_model::record::breach::OtherProgram;

    use super::*;

    #[test]
    fn every_bound_has_its_words() {
        let name = || "near->far".to_owned();
        let at = |place, ns| Delayed { place, ns };
        let harm = |seen_by, places| Breach::Harm {
            flow: name(),
            harm: 0.069,
            bound: 0.04,
            seen_by,
            beyond_ns: 3_020_000,
            places,
        };
        let packets = vec![at(Place::Emulator, 3_000_000)];
        let probes = vec![at(Place::Host("far".to_owned()), 2_000_000), at(Place::Release, 900_000)];
        for (breach, words) in [
            (Breach::LinkFailed { error: "unplugged".to_owned() }, "unplugged"),
            (Breach::NoAnswer { between: None }, "no probe was answered: the round trip is unknown"),
            (
                Breach::IdleBelow { between: None, idle_ns: 37_000_000, configured_ns: 40_000_000 },
                "idle RTT 37 ms below the configured 40 ms",
            ),
            (
                Breach::IdleAbove {
                    between: Some("h1 and h2".to_owned()),
                    excess_ns: 700_000,
                    configured_ns: 40_000_000,
                    bound_ns: 650_000,
                },
                "between h1 and h2: idle RTT at least 700 us above the configured 40 ms (bound 650 us)",
            ),
            (
                Breach::IdleBeyond {
                    between: None,
                    excess_ns: 3_350_000,
                    configured_ns: 2_550_000,
                    bound_ns: 427_500,
                },
                "half of the idle probes took 3.35 ms or more beyond the links' 2.55 ms (bound 427.5 us)",
            ),
            (
                Breach::ReleasedLate { link: "r1->r2".to_owned(), late_ns: 3 },
                "r1->r2: a packet left 3 ns late with the virtual clock: a bug in bdp, please report it",
            ),
            (
                Breach::SentOfAsked { flow: "h3->h4".to_owned(), share: 0.858, bound: 0.02 },
                "h3->h4: its host sent 86 % of what was asked (bound 2.0 % off)",
            ),
            (
                harm(HarmSeen::Packets, packets),
                "near->far: the emulation took about 6.9 % of its goodput (bound 4.0 %): packets took 3.02 ms per round \
                 trip beyond the links: 3 ms unread by the emulator",
            ),
            (
                harm(HarmSeen::Probes, probes),
                "near->far: the emulation took about 6.9 % of its goodput (bound 4.0 %): probes took 3.02 ms per round \
                 trip beyond the links: 2 ms unread in far, 900 us released late",
            ),
            (
                harm(HarmSeen::Edges, Vec::new()),
                "near->far: the emulation took about 6.9 % of its goodput (bound 4.0 %): packets were \
                 late when counting started or ended",
            ),
            (
                Breach::NotConserved { link: name() },
                "near->far: packets in do not equal packets out, dropped and queued",
            ),
            (
                Breach::DeviceDrops { link: name(), packets: 1 },
                "near->far: the TUN devices dropped 1 packets",
            ),
            (
                Breach::Rate { link: name(), off: 0.006, bound: 0.005 },
                "near->far: rate +0.60 % off the configured one (bound 0.5 %)",
            ),
            (
                Breach::Loss { link: name(), achieved: 0.002, configured: 0.0 },
                "near->far: loss 0.0020 instead of the configured 0.0000",
            ),
            (Breach::Text("3.1 % late".to_owned()), "3.1 % late"),
        ] {
            assert_eq!(text(&breach), words);
        }
    }

    #[test]
    fn the_cause_says_who_took_the_processors_and_what_to_do() {
        let other = |name: &str, process| OtherProgram { name: name.to_owned(), process, processors: 0.8 };
        let programs =
            |named: Vec<OtherProgram>| Cause::Programs { count: named.len(), named, processors: 1.6, of: 2 };
        let why = |cause: Vec<Cause>| {
            let broken = vec![Breach::Text("late".to_owned())];
            why_invalid(&Fidelity { broken, cause, ..Fidelity::default() })
        };
        assert_eq!(
            why(vec![
                programs(vec![other("rustc", 30), other("stress", 31)]),
                Cause::Hypervisor { share: 0.13 },
                Cause::OtherCases
            ]),
            "late. Cause: rustc (process 30) and stress (process 31) took 1.6 of 2 processors: run when they have ended; \
             the hypervisor took 13 % of the processors; other cases ran in parallel: use --jobs 1 to run each alone"
        );
        assert!(why(vec![programs(vec![other("rustc", 30)])]).ends_with("run when it has ended"));
        assert!(why(vec![Cause::OwnHosts { share: 1.0 }]).contains("its own hosts used 100 %"));
        assert!(why(vec![Cause::Unknown]).contains("Cause: unknown; neither"));
        assert_eq!(why(Vec::new()), "late");
        let of = |cause| Fidelity { cause, ..Fidelity::default() };
        let all = [
            of(vec![Cause::Unknown]),
            of(vec![Cause::Hypervisor { share: 0.02 }]),
            of(vec![Cause::Hypervisor { share: 0.3 }, Cause::OtherCases]),
            of(vec![Cause::OtherCases]),
        ];
        assert_eq!(
            causes(&all.iter().collect::<Vec<_>>()).unwrap(),
            "the hypervisor took 30 % of the processors; other cases ran in parallel: use --jobs 1 to run each alone"
        );
        assert_eq!(why_invalid(&Fidelity::default()), "");
    }
}
