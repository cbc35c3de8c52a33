//! Who took the processors of a case that is INVALID, and what to do about it.

use bdp_model::breach::Cause;
use bdp_model::threshold::STEAL_BLAMED;

use super::observation::Observation;

/// A host whose threads used so much of what it could is full.
const FULL: f64 = 0.85;
/// Programs that together took so much of a processor are worth a word.
const TAKEN: f64 = 0.05;

/// What was seen, in the order of what one can do about it.
pub(super) fn of(seen: &Observation) -> Vec<Cause> {
    let mut found = Vec::new();
    let taken: f64 = seen.watched.others.iter().map(|other| other.processors).sum();
    if taken >= TAKEN {
        let others = &seen.watched.others;
        found.push(Cause::Programs {
            named: others.iter().take(2).cloned().collect(),
            count: others.len(),
            processors: taken,
            of: seen.cpus,
        });
    }
    let (busy, stolen) = seen.host_cpu;
    if stolen >= STEAL_BLAMED {
        found.push(Cause::Hypervisor { share: stolen });
    }
    if seen.shared {
        found.push(Cause::OtherCases);
    }
    // One processor is the driver's, where there are more.
    let room = f64::from(seen.cpus.max(2) - 1);
    let running: f64 = seen.watched.hosts.iter().map(|host| host.running).sum();
    if running / room >= FULL {
        found.push(Cause::OwnHosts { share: running / room });
    }
    if found.is_empty() && busy >= 0.95 {
        found.push(Cause::Busy);
    }
    if found.is_empty() {
        found.push(Cause::Unknown);
    }
    found
}
