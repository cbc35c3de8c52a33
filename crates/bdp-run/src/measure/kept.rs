//! A stored run between two machines.

use bdp_model::measurement::labels::Labels;
use bdp_store::{NewRun, RunKind, Store, StoredMeasurement};
use bdp_sys::clock;

/// The user's name for a run, and its labels.
pub(crate) type Called<'a> = (Option<&'a str>, &'a Labels);

/// Environment variable with a guest program's start time by the host machine's clock, in milliseconds since 1970.
pub(crate) const OUTSIDE: &str = "BDP_OUTSIDE_UNIX_MS";

/// Returns how far the host machine's clock is ahead of a moment: 0 except in a guest, which has its own clock.
fn ahead_ms(outside: Option<&str>, own_unix_ms: u64) -> u64 {
    let outside: Option<u64> = outside.and_then(|text| text.parse().ok());
    outside.map_or(0, |outside| outside.saturating_sub(own_unix_ms))
}

/// Stored with its first measurement: a run that could not even begin is not worth listing.
pub(crate) struct KeptRun<'a> {
    store: Option<&'a mut dyn Store>,
    new: NewRun,
    id: Option<String>,
    /// Offset of the host machine's clock, by which runs are listed, to the guest's.
    ahead_ms: u64,
}

impl<'a> KeptRun<'a> {
    /// Prepares a run of measurements to `host`; nothing is stored without a store.
    pub(crate) fn new(
        store: Option<&'a mut dyn Store>,
        kind: RunKind,
        host: &str,
        (label, labels): Called<'_>,
        command: &str,
    ) -> Self {
        let new = NewRun {
            kind,
            label: label.map(str::to_owned),
            labels: labels.clone(),
            scenario: host.to_owned(),
            command: command.to_owned(),
            bdp: env!("CARGO_PKG_VERSION").to_owned(),
            ..NewRun::default()
        };
        Self { store, new, id: None, ahead_ms: 0 }
    }

    /// Returns the id, once the run is stored.
    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Sets the planned number of measurements in total.
    pub(crate) fn plan(&mut self, measurements: usize) -> bdp_store::Result<()> {
        self.new.planned = u32::try_from(measurements).unwrap_or(u32::MAX);
        match (&self.id, &mut self.store) {
            (Some(id), Some(store)) => store.replan(id, self.new.planned),
            _ => Ok(()),
        }
    }

    /// Makes a measurement durable.
    pub(crate) fn append(&mut self, made: &StoredMeasurement) -> bdp_store::Result<()> {
        let Some(store) = &mut self.store else { return Ok(()) };
        let id = match &self.id {
            Some(id) => id,
            None => {
                let own = made.measurement.started_unix_ms;
                self.ahead_ms = ahead_ms(std::env::var(OUTSIDE).ok().as_deref(), own);
                self.new.started_unix_ms = own.saturating_add(self.ahead_ms);
                self.id.insert(store.begin_run(&self.new)?)
            }
        };
        store.append_measurement(id, made)
    }

    /// Marks the run as completed.
    pub(crate) fn finish(&mut self) -> bdp_store::Result<()> {
        match (&self.id, &mut self.store) {
            (Some(id), Some(store)) => store.finish_run(id, clock::unix_ms().saturating_add(self.ahead_ms)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_s_clock_is_brought_forward_to_the_outside_and_no_other_is_moved() {
        assert_eq!(ahead_ms(None, 5), 0);
        assert_eq!(ahead_ms(Some("1767225600000"), 1_000), 1_767_225_599_000);
        // It was handed down to a program outside, or is none.
        assert_eq!(ahead_ms(Some("1767225600000"), 1_767_225_600_001), 0);
        assert_eq!(ahead_ms(Some("soon"), 5), 0);
    }
}
