//! The stored runs as the page lists them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use bdp_model::measurement::Direction;
use bdp_model::statistics::median;
use bdp_store::{Page, RunInfo, RunKind, SqliteStore, Store};
use bdp_web::RunSelection;
use serde_json::{Value, json};

use crate::exit;
use crate::runs;
use crate::store::refuse;

/// Most runs of one answer.
const MOST_RUNS: usize = 500;
/// Runs that a search looks at before it asks whether somebody still waits.
const AT_ONCE: usize = 500;
/// Hosts that the form proposes, of this many runs.
const MOST_HOSTS: usize = 10;
const OF_RUNS: usize = 100;

/// Lists the runs of a store.
#[derive(Default)]
pub struct History {
    /// Of each finished run, what the list shows beside its description.
    briefs: Mutex<HashMap<String, Brief>>,
}

#[derive(Clone)]
struct Brief {
    host: String,
    goodput_bps: Value,
}

impl History {
    /// A page of runs, newest first.
    pub fn page(
        &self,
        store: &SqliteStore,
        selection: &RunSelection,
        cancel: &AtomicBool,
    ) -> anyhow::Result<Value> {
        let most = selection.most.clamp(1, MOST_RUNS);
        let wanted = selection.search.trim().to_lowercase();
        let mut found: Vec<RunInfo> = Vec::new();
        let mut after = selection.before.clone();
        // One more than is shown tells whether there are more.
        while found.len() <= most {
            if cancel.load(Ordering::Relaxed) {
                return Err(exit::usage("nobody waits for this search any more"));
            }
            let limit = if wanted.is_empty() { most + 1 } else { AT_ONCE };
            let runs = store.runs(&Page { after, limit: Some(limit) }).map_err(refuse)?;
            let is_last = runs.len() < limit;
            after = runs.last().map(|run| run.id.clone());
            found.extend(runs.into_iter().filter(|run| fits(run, &wanted)));
            if is_last {
                break;
            }
        }
        let more = found.len() > most;
        found.truncate(most);
        let row = |run: &RunInfo| {
            let mut row = runs::row(run);
            row["goodput_bps"] = self.brief(run, store).map_or(Value::Null, |brief| brief.goodput_bps);
            row
        };
        Ok(json!({ "runs": found.iter().map(row).collect::<Vec<_>>(), "more": more }))
    }

    /// The hosts of the newest measurements.
    pub fn hosts(&self, store: &SqliteStore) -> anyhow::Result<Vec<String>> {
        let mut hosts: Vec<String> = Vec::new();
        for run in &store.runs(&Page::first(OF_RUNS)).map_err(refuse)? {
            let Some(brief) = self.brief(run, store) else { continue };
            if !hosts.contains(&brief.host) && hosts.len() < MOST_HOSTS {
                hosts.push(brief.host);
            }
        }
        Ok(hosts)
    }

    fn brief(&self, run: &RunInfo, store: &SqliteStore) -> Option<Brief> {
        if run.kind != RunKind::Measure {
            return None;
        }
        let briefs = || self.briefs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = briefs().get(&run.id) {
            return Some(known.clone());
        }
        let all = store.measurements(&run.id).ok()?;
        // The median of the repetitions, as in the summary of the run.
        let goodput = |way: Direction| {
            let directions = all.iter().flat_map(|kept| &kept.measurement.directions);
            let mut goodputs: Vec<f64> =
                directions.filter(|d| d.direction == way).map(|d| d.goodput_bps).collect();
            median(&mut goodputs)
        };
        let request = &all.first()?.measurement.request;
        let port = (request.port != bdp_model::measurement::PORT).then(|| format!(":{}", request.port));
        let brief = Brief {
            host: format!("{}{}", request.host, port.unwrap_or_default()),
            goodput_bps: json!({ "to": goodput(Direction::To), "from": goodput(Direction::From) }),
        };
        if run.finished_unix_ms.is_some() {
            briefs().insert(run.id.clone(), brief.clone());
        }
        Some(brief)
    }
}

fn fits(run: &RunInfo, wanted: &str) -> bool {
    let label = run.label.as_deref().unwrap_or_default();
    let labels = run.labels.to_string();
    let texts = [run.id.as_str(), &run.scenario, label, &labels, run.kind.name(), &run.command];
    wanted.is_empty() || texts.iter().any(|text| text.to_lowercase().contains(wanted))
}
