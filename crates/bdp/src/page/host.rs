//! What the page asks for, by the ways of the command line.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use bdp_model::measurement::Direction;
use bdp_model::statistics::median;
use bdp_run::job::context::Context;
use bdp_run::job::{Job, Outcome};
use bdp_run::{Event, Question};
use bdp_store::{Page, RunInfo, RunKind, SqliteStore, Store};
use bdp_sys::device;
use bdp_web::{Asked, Host, Refused, RefusedBy, RunSelection};
use clap::parser::ValueSource;
use serde_json::{Value, json};

use super::form;
use super::parser::Parser;
use crate::exit::{Exit, Refusal};
use crate::found::by_id;
use crate::output::tame;
use crate::store::{self, StoreArgs, refuse};
use crate::{command_line, exit, guest, report, runs, show};

/// Most runs of one answer.
const MOST_RUNS: usize = 500;
/// Most runs that a search looks at.
const MOST_SEARCHED: usize = 20_000;
/// Hosts that the form proposes.
const MOST_HOSTS: usize = 10;

/// The page's requests, by the ways of the command line.
pub struct CommandLine {
    parser: Parser,
    store: StoreArgs,
    /// Of each finished run, what the list shows beside its description.
    briefs: Mutex<HashMap<String, Brief>>,
}

#[derive(Clone)]
struct Brief {
    host: String,
    goodput_bps: Value,
}

impl CommandLine {
    /// With the runs of this store.
    pub fn new(parser: Parser, store: StoreArgs) -> Self {
        Self { parser, store, briefs: Mutex::default() }
    }

    fn stored(&self) -> Result<Option<SqliteStore>, Refused> {
        self.store.open_to_read().map_err(|error| refused(&error))
    }

    fn store_of_runs(&self) -> Result<SqliteStore, Refused> {
        self.stored()?.ok_or_else(|| Refused::new(RefusedBy::Missing, "no run is stored yet"))
    }

    fn found(&self, run: &str) -> Result<crate::found::Found, Refused> {
        by_id(run, &self.store_of_runs()?).map_err(|error| refused(&error))
    }

    fn asked(&self, words: &[String]) -> anyhow::Result<Asked> {
        let (args, given) = (self.parser.measurement)(words)?;
        let typed = given.ids().map(clap::Id::as_str).find(|id| {
            form::is_of_a_terminal(id) && given.value_source(id) == Some(ValueSource::CommandLine)
        });
        if let Some(option) = typed {
            let name = option.replace('_', "-");
            return Err(exit::usage(format!("--{name} is for a terminal: leave it out here")));
        }
        let command = command_line::repeatable(words.iter().cloned());
        let mut plan = bdp_run::measure::MeasurePlan { command: command.clone(), ..args.plan()? };
        args.compare_with(&mut plan, &self.store)?;
        Ok(Asked { command, job: Job::Measure(Box::new(plan)) })
    }

    fn run_job(
        &self,
        asked: Asked,
        watch: &mut dyn FnMut(Event<'_>),
        answer: &mut dyn FnMut(&Question<'_>) -> bool,
        cancel: &AtomicBool,
    ) -> anyhow::Result<Outcome> {
        let mut store = self.store.open()?;
        let context = Context {
            answer: Some(answer),
            ..Context::new(&guest::commands, watch, cancel).storing(store::of_job(&mut store))
        };
        Ok(asked.job.run(context).outcome())
    }

    /// What the list shows of a run beside its description.
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

    fn page_of_runs(&self, selection: &RunSelection) -> anyhow::Result<Value> {
        let most = selection.most.clamp(1, MOST_RUNS);
        let wanted = selection.search.trim().to_lowercase();
        let Some(store) = self.store.open_to_read()? else {
            return Ok(json!({ "runs": [], "more": false }));
        };
        let limit = if wanted.is_empty() { most + 1 } else { MOST_SEARCHED };
        let page = Page { after: selection.before.clone(), limit: Some(limit) };
        let fits = |run: &RunInfo| {
            let label = run.label.as_deref().unwrap_or_default();
            let labels = run.labels.to_string();
            let texts = [run.id.as_str(), &run.scenario, label, &labels, run.kind.name(), &run.command];
            wanted.is_empty() || texts.iter().any(|text| text.to_lowercase().contains(&wanted))
        };
        let mut found: Vec<RunInfo> = store.runs(&page).map_err(refuse)?.into_iter().filter(fits).collect();
        let more = found.len() > most;
        found.truncate(most);
        let row = |run: &RunInfo| {
            let mut row = runs::row(run);
            row["goodput_bps"] = self.brief(run, &store).map_or(Value::Null, |brief| brief.goodput_bps);
            row
        };
        Ok(json!({ "runs": found.iter().map(row).collect::<Vec<_>>(), "more": more }))
    }
}

impl Host for CommandLine {
    fn about(&self) -> Result<Value, Refused> {
        let mut hosts: Vec<String> = Vec::new();
        if let Some(store) = self.stored()? {
            let lately = store.runs(&Page::first(100)).map_err(|error| refused(&refuse(error)))?;
            for run in &lately {
                let Some(brief) = self.brief(run, &store) else { continue };
                if !hosts.contains(&brief.host) && hosts.len() < MOST_HOSTS {
                    hosts.push(brief.host);
                }
            }
        }
        let path = self.store.path().ok().flatten();
        Ok(json!({
            "bdp": env!("CARGO_PKG_VERSION"),
            "host": device::host_name(),
            "store": path.map(|path| path.to_string_lossy().into_owned()),
            "store_option": self.store.option(),
            "hosts": hosts,
        }))
    }

    fn event(&self, event: &Event<'_>) -> Value {
        let mut document = event.to_json();
        // With its findings in words, which the page shows even if nothing is stored.
        if let Event::MeasurementEnded { measurement, .. } = event {
            document["measurement"] = bdp_report::measurement_json(measurement);
        }
        document
    }

    fn commands(&self) -> Value {
        json!([form::command(&(self.parser.root)(), "measure")])
    }

    fn job(&self, words: &[String]) -> Result<Asked, Refused> {
        self.asked(words).map_err(|error| refused(&error))
    }

    fn run(
        &self,
        asked: Asked,
        watch: &mut dyn FnMut(Event<'_>),
        answer: &mut dyn FnMut(&Question<'_>) -> bool,
        cancel: &AtomicBool,
    ) -> Outcome {
        self.run_job(asked, watch, answer, cancel)
            .unwrap_or_else(|error| Outcome::failed(tame(&format!("{error:#}"))))
    }

    fn runs(&self, selection: &RunSelection) -> Result<Value, Refused> {
        self.page_of_runs(selection).map_err(|error| refused(&error))
    }

    fn run_document(&self, run: &str) -> Result<String, Refused> {
        Ok(show::document(self.found(run)?))
    }

    fn report(&self, run: &str) -> Result<String, Refused> {
        let found = self.found(run)?;
        Ok(report::page(&found, &found.about(self.store.given().as_deref())))
    }

    fn csv(&self, run: &str) -> Result<String, Refused> {
        Ok(report::csv(&self.found(run)?))
    }

    fn remove(&self, run: &str) -> Result<(), Refused> {
        let opened = self.store.open().map_err(|error| refused(&error))?;
        let mut store = opened.ok_or_else(|| Refused::new(RefusedBy::Missing, "no run is stored here"))?;
        let id = store.run(run).map_err(|error| refused(&refuse(error)))?.id;
        store.remove_run(&id).map_err(|error| refused(&refuse(error)))
    }
}

fn refused(error: &anyhow::Error) -> Refused {
    let kind = match error.downcast_ref::<Refusal>().map(|refusal| refusal.exit) {
        Some(Exit::Usage) => RefusedBy::Usage,
        Some(_) => RefusedBy::Environment,
        None => RefusedBy::Bug,
    };
    Refused::new(kind, tame(&format!("{error:#}")))
}
