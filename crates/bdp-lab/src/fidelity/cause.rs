//! Who took the processors of a case that is INVALID, and what to do about it.

use super::observation::Observation;

/// A host whose threads used so much of what it could is full.
const FULL: f64 = 0.85;
/// Taken by a hypervisor: worth a word.
const STOLEN: f64 = 0.02;
/// Programs that together took so much of a processor are worth a word.
const TAKEN: f64 = 0.05;

/// What was seen, in the order of what one can do about it.
pub(super) fn of(seen: &Observation) -> String {
    let mut found = Vec::new();
    let taken: f64 = seen.watched.others.iter().map(|other| other.processors).sum();
    if taken >= TAKEN {
        let named: Vec<String> = seen
            .watched
            .others
            .iter()
            .take(2)
            .map(|other| format!("{} (process {})", other.name, other.process))
            .collect();
        found.push(format!(
            "{} took {taken:.1} of {} processors: run when {} ended",
            named.join(" and "),
            seen.cpus,
            if seen.watched.others.len() == 1 { "it has" } else { "they have" }
        ));
    }
    let (busy, stolen) = seen.host_cpu;
    if stolen >= STOLEN {
        found.push(format!("the hypervisor took {:.0} % of the processors", stolen * 100.0));
    }
    if seen.shared {
        found.push("other cases ran beside it: --jobs 1 runs each alone".to_owned());
    }
    // One processor is the driver's, where there are more.
    let room = f64::from(seen.cpus.max(2) - 1);
    let running: f64 = seen.watched.hosts.iter().map(|host| host.running).sum();
    if running / room >= FULL {
        found.push(format!(
            "its own hosts used {:.0} % of the processors left to them: a lower rate, fewer streams or more processors help",
            running / room * 100.0
        ));
    }
    if found.is_empty() && busy >= 0.95 {
        found.push("the processors were busy throughout: run when the machine is quieter".to_owned());
    }
    if found.is_empty() {
        found.push(
            "unknown; neither another program nor a hypervisor was seen to take the processors".to_owned(),
        );
    }
    found.join("; ")
}
