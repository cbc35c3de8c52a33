//! What the page asks for, by the ways of the command line.

use std::cell::RefCell;
use std::sync::atomic::AtomicBool;

use bdp_model::tuning::Plan;
use bdp_report::tuning::change_line;
use bdp_run::job::context::Context;
use bdp_run::job::{Ended, Job};
use bdp_run::{Event, Question};
use bdp_store::{SqliteStore, Store};
use bdp_sys::device;
use bdp_web::{Asked, Captures, Host, JobResult, Order, Refused, RefusedBy, RunSelection};
use serde_json::{Value, json};

use super::form;
use super::history::History;
use super::orders::Orders;
use super::refused::refused;
use super::what_if::Wish;
use crate::found::{Found, by_id};
use crate::output::tame;
use crate::store::{self, StoreArgs, refuse};
use crate::tune::places;
use crate::{guest, report, show};

/// The page's requests, by the ways of the command line.
pub struct CommandLine {
    orders: Orders,
    history: History,
    /// Why nothing is stored, if so.
    unstored: Option<String>,
}

impl CommandLine {
    /// By these orders. `unstored`: why nothing is stored, if so.
    pub fn new(orders: Orders, unstored: Option<String>) -> Self {
        Self { orders, history: History::default(), unstored }
    }

    fn store(&self) -> &StoreArgs {
        &self.orders.store
    }

    fn stored(&self) -> Result<Option<SqliteStore>, Refused> {
        self.store().open_to_read().map_err(|error| refused(&error))
    }

    fn found(&self, run: &str) -> Result<Found, Refused> {
        let store = self.stored()?;
        let store = store.ok_or_else(|| Refused::new(RefusedBy::Missing, "no run is stored yet"))?;
        by_id(run, &store).map_err(|error| refused(&error))
    }

    fn run_job(
        &self,
        job: &Job,
        watch: &mut dyn FnMut(Event<'_>, Value),
        answer: &mut dyn FnMut(Value) -> bool,
        cancel: &AtomicBool,
    ) -> anyhow::Result<Ended> {
        let mut store = match self.unstored {
            None => self.store().open()?,
            Some(_) => None,
        };
        let mut world = match job {
            Job::Fix(_) => Some(places::world(None)?),
            _ => None,
        };
        // A question is told with the words of the plan that it belongs to.
        let plan: RefCell<Option<Plan>> = RefCell::default();
        let mut watch = |event: Event<'_>| {
            if let Event::Plan { plan: made } = &event {
                plan.replace(Some(made.clone().into_owned()));
            }
            let told = told(&event, plan.borrow().as_ref());
            watch(event, told);
        };
        let mut answer = |asked: &Question<'_>| answer(question(asked, plan.borrow().as_ref()));
        let context = Context {
            world: world.as_mut(),
            answer: Some(&mut answer),
            ..Context::new(&guest::commands, &mut watch, cancel).storing(store::of_job(&mut store))
        };
        Ok(job.run(context))
    }
}

/// An event as its readers get it.
fn told(event: &Event<'_>, plan: Option<&Plan>) -> Value {
    let mut document = event.to_json();
    match event {
        // With its findings in words, which the page shows even if nothing is stored.
        Event::MeasurementEnded { measurement, .. } => {
            document["measurement"] = bdp_report::measurement_json(measurement);
        }
        Event::Question { question: asked } => document["question"] = question(asked, plan),
        _ => {}
    }
    document
}

/// A question with its words.
fn question(asked: &Question<'_>, plan: Option<&Plan>) -> Value {
    let mut document = json!(asked);
    document["words"] = match (asked, plan) {
        (Question::Apply { change }, Some(plan)) => json!(format!("apply {}?", change_line(plan, change))),
        (Question::Apply { .. }, None) => Value::Null,
        (Question::Keep, _) => json!("keep it?"),
    };
    document
}

impl Host for CommandLine {
    fn about(&self) -> Result<Value, Refused> {
        let hosts = match self.stored()? {
            Some(store) => self.history.hosts(&store).map_err(|error| refused(&error))?,
            None => Vec::new(),
        };
        let path = self.store().path().ok().flatten();
        Ok(json!({
            "bdp": env!("CARGO_PKG_VERSION"),
            "host": device::host_name(),
            "store": path.map(|path| path.to_string_lossy().into_owned()),
            "store_option": self.store().option(),
            "unstored": self.unstored,
            "hosts": hosts,
        }))
    }

    fn commands(&self) -> Value {
        let root = (self.orders.parser.root)();
        form::JOBS.iter().map(|name| form::command(&root, name)).collect()
    }

    fn job(&self, order: Order, captures: &Captures) -> Result<Asked, Refused> {
        self.orders.job(order, captures)
    }

    fn answer(&self, order: Order) -> Result<Value, Refused> {
        self.orders.answer(order)
    }

    fn what_if(&self, wish: Value) -> Result<Value, Refused> {
        Wish::read(wish).and_then(|wish| wish.answer(self.store())).map_err(|error| refused(&error))
    }

    fn what_if_in_lab(&self, wish: Value) -> Result<Value, Refused> {
        Wish::read(wish).and_then(|wish| wish.in_lab(self.store())).map_err(|error| refused(&error))
    }

    fn run(
        &self,
        asked: Asked,
        watch: &mut dyn FnMut(Event<'_>, Value),
        answer: &mut dyn FnMut(Value) -> bool,
        cancel: &AtomicBool,
    ) -> JobResult {
        match self.run_job(&asked.job, watch, answer, cancel) {
            Ok(ended) => JobResult { document: (asked.document)(&ended), outcome: ended.outcome() },
            Err(error) => JobResult::failed(tame(&format!("{error:#}"))),
        }
    }

    fn runs(&self, selection: &RunSelection, cancel: &AtomicBool) -> Result<Value, Refused> {
        match self.stored()? {
            Some(store) => self.history.page(&store, selection, cancel).map_err(|error| refused(&error)),
            None => Ok(json!({ "runs": [], "more": false })),
        }
    }

    fn run_document(&self, run: &str) -> Result<String, Refused> {
        Ok(show::document(self.found(run)?))
    }

    fn report(&self, run: &str) -> Result<String, Refused> {
        let found = self.found(run)?;
        Ok(report::page(&found, &found.about(self.store().given().as_deref())))
    }

    fn csv(&self, run: &str) -> Result<String, Refused> {
        Ok(report::csv(&self.found(run)?))
    }

    fn remove(&self, run: &str) -> Result<(), Refused> {
        let opened = self.store().open().map_err(|error| refused(&error))?;
        let mut store = opened.ok_or_else(|| Refused::new(RefusedBy::Missing, "no run is stored here"))?;
        let id = store.run(run).map_err(|error| refused(&refuse(error)))?.id;
        store.remove_run(&id).map_err(|error| refused(&refuse(error)))
    }
}
