//! Which programs took the processors of an INVALID case, and the remedy.

use bdp_model::finding::threshold::STEAL_BLAMED;
use bdp_model::record::breach::Cause;

use super::observation::Observation;

/// Share of its processor time from which a host is saturated.
const FULL: f64 = 0.85;
/// Share of a processor from which other programs together are mentioned.
const TAKEN: f64 = 0.05;

/// Causes that were seen, the most easily fixed first.
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
    // One processor is the driver's, if there are several.
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
