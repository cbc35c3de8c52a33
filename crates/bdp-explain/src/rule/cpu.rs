//! The processor of an end: its thread is runnable all the time, and does not wait for the network.
//!
//! A thread that sends or receives runs, is runnable, or waits for its socket. One that hardly waits for its socket limits the
//! transfer, whatever keeps it from running: its own work, the quota of its control group, a hypervisor, or other programs. Linux counts
//! the time of a thread that a quota holds back as runnable.

use bdp_model::facts::{End, Facts};
use bdp_model::finding::fact::{self, Share};
use bdp_model::finding::threshold::{
    BUSY_THREAD, LONG_ENOUGH, PROCESSOR_WANTED, STOLEN, THROTTLED, THROTTLED_ALONE,
};
use bdp_model::finding::{Action, Cause, Confidence, Evidence, Finding, Limit, Place, Remedy};
use bdp_model::measurement::ends::Task;

use crate::observed;
use crate::setting::{TestSetting, name_of};

/// Share of the time from which a thread never waits for the network.
const WANTED_ALWAYS: f64 = 0.9;

/// An end's demand for its processor.
struct Demand<'a> {
    task: Task,
    end: &'a End,
    /// Processor time / time.
    ran: f64,
    /// Runnable time / time; `None` if the kernel does not count it.
    waited: Option<f64>,
}

impl<'a> Demand<'a> {
    fn of(facts: &'a Facts, task: Task) -> Self {
        let (end, ran) = match task {
            Task::Sending => (&facts.sender, facts.sender_thread()),
            Task::Receiving => (&facts.receiver, facts.receiver_thread()),
        };
        Self { task, end, ran, waited: facts.waited_for_processor(task) }
    }

    /// Share of the time in which the thread was running or runnable.
    fn wanted(&self) -> f64 {
        (self.ran + self.waited.unwrap_or(0.0)).min(1.0)
    }

    fn cause(&self) -> Option<Cause> {
        let throttled = self.end.throttled().unwrap_or(0.0);
        let wants = self.waited.is_some() && self.wanted() >= PROCESSOR_WANTED;
        if throttled >= THROTTLED_ALONE && self.waited.is_none() || throttled >= THROTTLED && wants {
            return Some(Cause::Throttled);
        }
        // Time taken by a hypervisor counts as running or runnable time.
        if wants && self.end.steal().is_some_and(|steal| steal >= STOLEN) {
            return Some(Cause::Stolen);
        }
        match self.ran >= BUSY_THREAD {
            true => Some(Cause::ThreadFull),
            false => wants.then_some(Cause::ProcessorShared),
        }
    }
}

/// Claims the limit if a thread of an end needs its processor all the time.
pub fn judge(facts: &Facts) -> Option<Finding> {
    if facts.duration_ns < LONG_ENOUGH.as_ns() {
        return None;
    }
    let (sending, receiving) = (Demand::of(facts, Task::Sending), Demand::of(facts, Task::Receiving));
    let held_back = |demand: &Demand| demand.end.throttled().unwrap_or(0.0);
    let both = [(sending.cause(), sending), (receiving.cause(), receiving)];
    let (cause, demand) = both
        .into_iter()
        .filter_map(|(cause, demand)| Some((cause?, demand)))
        // If both ends do, a quota was set on purpose; otherwise the end with the higher demand.
        .max_by(|(_, a), (_, b)| {
            (held_back(a) >= THROTTLED)
                .cmp(&(held_back(b) >= THROTTLED))
                .then(a.wanted().total_cmp(&b.wanted()))
        })?;
    let name = &demand.end.name;
    let place = match demand.task {
        Task::Sending => Place::sender(name),
        Task::Receiving => Place::receiver(name),
    };
    let confidence = match () {
        () if demand.wanted() >= WANTED_ALWAYS => Confidence::High,
        () if demand.waited.is_some() => Confidence::Medium,
        () => Confidence::Low,
    };
    let finding = Finding::new(Limit::Cpu, place, confidence)
        .cause(cause)
        .evidence(reason(&demand, cause))
        .evidence(ready(&demand, cause))
        .evidence((cause == Cause::ThreadFull).then(|| observed::busy_thread((demand.task, demand.ran))))
        .remedy(remedy(facts, cause).host(name));
    Some(finding)
}

/// What keeps the thread from running, as counted by the host.
fn reason(demand: &Demand, cause: Cause) -> Option<Evidence> {
    let name = &demand.end.name;
    match cause {
        Cause::Throttled => {
            let least = if demand.waited.is_some() { THROTTLED } else { THROTTLED_ALONE };
            Some(Evidence::share(fact::Throttled, demand.end.throttled()?).at_least(least).on(name))
        }
        Cause::Stolen => Some(Evidence::share(fact::Stolen, demand.end.steal()?).at_least(STOLEN).on(name)),
        _ => None,
    }
}

/// How long it was running and runnable; for a thread that runs all the time only the former.
fn ready(demand: &Demand, cause: Cause) -> Option<Evidence> {
    demand.waited.filter(|_| cause != Cause::ThreadFull)?;
    let (ran, wanted) = (Share(demand.ran), demand.wanted());
    let evidence = match demand.task {
        Task::Sending => Evidence::share(fact::SendingThreadReady { ran }, wanted),
        Task::Receiving => Evidence::share(fact::ReceivingThreadReady { ran }, wanted),
    };
    Some(evidence.at_least(PROCESSOR_WANTED).on(&demand.end.name))
}

fn remedy(facts: &Facts, cause: Cause) -> Remedy {
    match cause {
        Cause::Throttled => Remedy::new(Action::RaiseQuota),
        Cause::Stolen => Remedy::new(Action::MoveMachine),
        Cause::ProcessorShared => Remedy::new(Action::QuieterHost),
        _ => Remedy::new(Action::MoreStreams).setting(name_of(facts, TestSetting::Streams)),
    }
}
