//! A run between two machines as it is stored.

use bdp_store::{NewRun, RunKind, Store, StoredMeasurement};
use bdp_sys::clock;

use crate::measure::Called;

/// Entered with its first measurement: a run that could not even begin is nothing to list.
pub(crate) struct KeptRun<'a> {
    store: Option<&'a mut dyn Store>,
    new: NewRun,
    id: Option<String>,
}

impl<'a> KeptRun<'a> {
    /// Of measurements to `host`; nothing is kept where there is no store.
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
        Self { store, new, id: None }
    }

    /// The id, once it is entered.
    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Says how many measurements are planned, all told.
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
                self.new.started_unix_ms = made.measurement.started_unix_ms;
                self.id.insert(store.begin_run(&self.new)?)
            }
        };
        store.append_measurement(id, made)
    }

    /// Marks it as gone to its end.
    pub(crate) fn finish(&mut self) -> bdp_store::Result<()> {
        match (&self.id, &mut self.store) {
            (Some(id), Some(store)) => store.finish_run(id, clock::unix_ms()),
            _ => Ok(()),
        }
    }
}
