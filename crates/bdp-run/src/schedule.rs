//! Which case runs when and beside what; what was INVALID runs again; each record is durable before the next case.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use bdp_lab::{Driver, Pace};
use bdp_model::record::Record;
use bdp_model::scenario::CaseSpec;
use bdp_model::units::Nanos;
use bdp_store::Store;

use crate::window::{self, Means};
use crate::{Conductor, RunError};

/// Attempts at a case until it is given up as INVALID.
pub const ATTEMPTS: u32 = 4;
/// Below this round trip a case runs alone: a wake-up late by 100 us would be felt.
const SHORTEST_SHARED_RTT: Nanos = Nanos::millis(20);
/// Segments a second, both directions, that one sharing driver carries beside the hosts it serves.
const SHARED_SEGMENTS_PER_SECOND: f64 = 32_000.0;
/// More cases than these side by side bring nothing on any machine.
const MOST_JOBS: usize = 256;

/// How to run.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Cases side by side; `None` as many as stay faithful, 1 each alone with a spinning driver.
    pub jobs: Option<usize>,
}

/// What a run reports as it goes.
#[derive(Debug)]
pub enum Event<'a> {
    /// So many cases are to come, which take about this long.
    Planned {
        /// Cases that are not settled yet.
        cases: usize,
        /// Estimate.
        time: Duration,
    },
    /// A case begins.
    Started {
        /// Its key.
        key: &'a str,
        /// From 1.
        attempt: u32,
    },
    /// A case ended and its record is durable.
    Ended {
        /// The record.
        record: &'a Record,
        /// Whether no further attempt follows.
        settled: bool,
        /// Estimate of what is left.
        left: Duration,
    },
}

/// Where records go.
pub struct Keep<'a> {
    /// The store.
    pub store: &'a mut dyn Store,
    /// The run within it.
    pub run: String,
}

/// Runs cases in the given order, save that cases which need the machine for themselves come last. Cases whose key is
/// in `settled` are left out. Every record goes to `keep` before another case starts in its place, and then to
/// `tell`; the records come back in order of completion. On an error what was measured is handed back beside it.
pub fn run(
    conductor: &Arc<Conductor>,
    cases: &[CaseSpec],
    settled: &HashSet<String>,
    options: &RunOptions,
    mut keep: Option<&mut Keep<'_>>,
    tell: &mut dyn FnMut(Event<'_>),
) -> (Vec<Record>, Result<(), RunError>) {
    let mut schedule = Schedule::new(cases, settled, options);
    tell(Event::Planned { cases: schedule.left(), time: schedule.time_left() });
    let mut records = Vec::new();
    let outcome = schedule.work_off(conductor, &mut keep, tell, &mut records);
    (records, outcome)
}

/// Names a case among those of all scenarios of a run.
pub fn key(case: &CaseSpec) -> String {
    format!("{} {}", case.scenario, case.key())
}

/// Tells plans apart: FNV-1a, 64 bits, over the cases as JSON, in natural order.
pub fn digest(cases: &[CaseSpec]) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for case in cases {
        // A case is plain data, which JSON can always hold.
        for byte in serde_json::to_vec(case).unwrap_or_default() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

/// How long these cases take when nothing goes wrong.
pub fn usual_time(cases: &[CaseSpec]) -> Duration {
    Schedule::new(cases, &HashSet::new(), &RunOptions::default()).time_left()
}

/// A case that waits, with its attempt and what it needs.
#[derive(Debug, Clone)]
struct Waiting {
    case: CaseSpec,
    attempt: u32,
    demand: Demand,
    /// Not before this moment.
    not_before: Instant,
}

/// What a case needs of the machine.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Demand {
    /// All of it, with a driver that spins.
    Alone,
    /// So many segments a second of the shared driver.
    Shared(f64),
}

impl Demand {
    /// By the path's round trip and by the most that the window lets through.
    fn of(case: &CaseSpec) -> Self {
        let rtt = case
            .links
            .iter()
            .map(|l| l.config.forward.delay + l.config.reverse.delay)
            .min()
            .unwrap_or_default();
        if rtt < SHORTEST_SHARED_RTT {
            return Self::Alone;
        }
        let mut segments = 0.0;
        for flow in &case.flows {
            let mss = window::planned_mss(case, flow) as f64;
            let by_rate = window::link_of(case, flow).and_then(|l| {
                let direction = if l.between[0] == flow.from { &l.config.forward } else { &l.config.reverse };
                direction.rate.map(|r| r.as_bps() as f64 / 8.0 / mss)
            });
            let unscaled = case.hosts.iter().any(|h| {
                h.name == flow.to && h.sysctls.get("net.ipv4.tcp_window_scaling").is_some_and(|v| v == "0")
            });
            let window = match window::choose(case, flow) {
                Ok(Means::Receiver { target_bytes }) => Some(target_bytes as f64),
                Ok(Means::Path { clamp_bytes }) => Some(f64::from(clamp_bytes)),
                _ => unscaled.then_some(65_535.0),
            };
            let by_window = window.map(|w| w * f64::from(flow.streams) / rtt.as_secs_f64() / mss);
            segments += by_rate.unwrap_or(f64::INFINITY).min(by_window.unwrap_or(f64::INFINITY));
        }
        // An acknowledgement for every other segment.
        let demand = segments * 1.5;
        if demand <= SHARED_SEGMENTS_PER_SECOND { Self::Shared(demand) } else { Self::Alone }
    }
}

struct Schedule {
    waiting: VecDeque<Waiting>,
    jobs: usize,
    running: HashMap<u64, Waiting>,
    next_ticket: u64,
    /// Errors that would meet every case alike end the run.
    fatal: Option<RunError>,
}

/// What a case's thread sends back.
type Ended = (u64, Result<Record, RunError>);

impl Schedule {
    fn new(cases: &[CaseSpec], settled: &HashSet<String>, options: &RunOptions) -> Self {
        let jobs = options.jobs.unwrap_or(MOST_JOBS).clamp(1, MOST_JOBS);
        let now = Instant::now();
        let mut waiting: Vec<Waiting> = cases
            .iter()
            .filter(|case| !settled.contains(&key(case)))
            .map(|case| {
                let demand = if jobs == 1 { Demand::Alone } else { Demand::of(case) };
                Waiting { case: case.clone(), attempt: 1, demand, not_before: now }
            })
            .collect();
        waiting.sort_by_key(|w| w.demand == Demand::Alone);
        Self { waiting: waiting.into(), jobs, running: HashMap::new(), next_ticket: 0, fatal: None }
    }

    fn left(&self) -> usize {
        self.waiting.len() + self.running.len()
    }

    /// Cases alone add up; cases side by side take as long as their demands fill the driver.
    fn time_left(&self) -> Duration {
        let mut alone = 0.0;
        let mut shared = 0.0;
        let mut longest: f64 = 0.0;
        for w in self.waiting.iter().chain(self.running.values()) {
            let time = usual_seconds(&w.case);
            match w.demand {
                Demand::Alone => alone += time,
                Demand::Shared(part) => {
                    let share = (part / SHARED_SEGMENTS_PER_SECOND).max(1.0 / self.jobs as f64);
                    shared += time * share;
                    longest = longest.max(time);
                }
            }
        }
        Duration::from_secs_f64(alone + shared.max(longest))
    }

    fn work_off(
        &mut self,
        conductor: &Arc<Conductor>,
        keep: &mut Option<&mut Keep<'_>>,
        tell: &mut dyn FnMut(Event<'_>),
        records: &mut Vec<Record>,
    ) -> Result<(), RunError> {
        let shared_driver = Arc::new(Driver::start(Pace::Share)?);
        let (done, ended) = channel::<Ended>();
        loop {
            if self.fatal.is_none() {
                self.start_what_fits(conductor, &shared_driver, &done, tell);
            }
            if self.running.is_empty() {
                if let Some(fatal) = self.fatal.take() {
                    return Err(fatal);
                }
                if self.waiting.is_empty() {
                    return Ok(());
                }
            }
            let (ticket, outcome) = match ended.recv_timeout(self.nap()) {
                Ok(ended) => ended,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            let Some(waiting) = self.running.remove(&ticket) else { continue };
            match outcome {
                Ok(record) => {
                    let settled = record.valid || record.error.is_some() || waiting.attempt >= ATTEMPTS;
                    let kept = keep.as_mut().map_or(Ok(()), |keep| {
                        keep.store.append(&keep.run, &key(&waiting.case), &record, settled)
                    });
                    if let Err(error) = kept {
                        self.fatal.get_or_insert(error.into());
                    }
                    if !settled && self.fatal.is_none() {
                        self.repeat(waiting);
                    }
                    tell(Event::Ended { record: &record, settled, left: self.time_left() });
                    records.push(record);
                }
                Err(error) => {
                    self.fatal.get_or_insert(error);
                }
            }
        }
    }

    /// Another attempt, later and alone: what disturbed the first may have been its neighbours.
    fn repeat(&mut self, waiting: Waiting) {
        let back_off = Duration::from_millis(500) * 2u32.pow(waiting.attempt);
        self.waiting.push_back(Waiting {
            attempt: waiting.attempt + 1,
            demand: Demand::Alone,
            not_before: Instant::now() + back_off,
            ..waiting
        });
    }

    fn start_what_fits(
        &mut self,
        conductor: &Arc<Conductor>,
        shared_driver: &Arc<Driver>,
        done: &Sender<Ended>,
        tell: &mut dyn FnMut(Event<'_>),
    ) {
        while let Some(waiting) = self.next_that_fits() {
            tell(Event::Started { key: &key(&waiting.case), attempt: waiting.attempt });
            let ticket = self.next_ticket;
            self.next_ticket += 1;
            self.running.insert(ticket, waiting.clone());
            let (conductor, shared, done) = (Arc::clone(conductor), Arc::clone(shared_driver), done.clone());
            thread::spawn(move || {
                let work = std::panic::AssertUnwindSafe(|| conduct(&conductor, &waiting, &shared));
                let outcome = std::panic::catch_unwind(work).unwrap_or_else(|_| {
                    Err(RunError::Case("a thread of bdp panicked; that is a bug".to_owned()))
                });
                // Nobody to tell means that the run was given up.
                let _ = done.send((ticket, outcome));
            });
        }
    }

    fn next_that_fits(&mut self) -> Option<Waiting> {
        if self.running.len() >= self.jobs || self.running.values().any(|w| w.demand == Demand::Alone) {
            return None;
        }
        let used: f64 =
            self.running.values().map(|w| if let Demand::Shared(part) = w.demand { part } else { 0.0 }).sum();
        let now = Instant::now();
        let index = self.waiting.iter().position(|w| {
            w.not_before <= now
                && match w.demand {
                    Demand::Alone => self.running.is_empty(),
                    Demand::Shared(part) => used == 0.0 || used + part <= SHARED_SEGMENTS_PER_SECOND,
                }
        })?;
        self.waiting.remove(index)
    }

    /// How long to wait for an end before looking at back-offs again.
    fn nap(&self) -> Duration {
        let now = Instant::now();
        let next = self
            .waiting
            .iter()
            .map(|w| w.not_before.saturating_duration_since(now))
            .filter(|d| !d.is_zero())
            .min();
        next.unwrap_or(Duration::from_secs(3600)).max(Duration::from_millis(1))
    }
}

fn conduct(conductor: &Conductor, waiting: &Waiting, shared: &Driver) -> Result<Record, RunError> {
    match waiting.demand {
        Demand::Shared(_) => conductor.conduct(&waiting.case, waiting.attempt, shared),
        Demand::Alone => {
            let own = Driver::start(Pace::Spin)?;
            conductor.conduct(&waiting.case, waiting.attempt, &own)
        }
    }
}

/// Seconds that a case takes when nothing goes wrong.
fn usual_seconds(case: &CaseSpec) -> f64 {
    let longest = case.flows.iter().map(|f| f.duration).max().unwrap_or_default();
    let rtt =
        case.links.iter().map(|l| l.config.forward.delay + l.config.reverse.delay).max().unwrap_or_default();
    let calibrating = case.flows.iter().filter(|f| f.window.is_some()).count() as f64 * 0.7;
    (case.idle + longest).as_secs_f64() + 6.0 * rtt.as_secs_f64() + calibrating + 0.3
}

#[cfg(test)]
mod tests {
    use bdp_model::link::{DirectionConfig, LinkConfig};
    use bdp_model::scenario::{Expect, Family, FlowSpec, HostSpec, LinkSpec, WindowMethod};
    use bdp_model::units::{ByteCount, Rate};

    use super::*;

    fn case(rtt: Nanos, rate: Rate, window: Option<u64>) -> CaseSpec {
        let direction =
            DirectionConfig { rate: Some(rate), delay: Nanos(rtt.as_ns() / 2), ..Default::default() };
        let host = |name: &str| HostSpec { name: name.to_owned(), sysctls: Default::default() };
        CaseSpec {
            scenario: "test".to_owned(),
            title: String::new(),
            params: Default::default(),
            repetition: 1,
            seed: 1,
            family: Family::Ipv4,
            hosts: vec![host("near"), host("far")],
            links: vec![LinkSpec {
                between: ["near".to_owned(), "far".to_owned()],
                config: LinkConfig { forward: direction.clone(), reverse: direction, mtu: 1500 },
            }],
            flows: vec![FlowSpec {
                from: "near".to_owned(),
                to: "far".to_owned(),
                window: window.map(ByteCount::bytes),
                window_method: WindowMethod::Auto,
                streams: 1,
                length: ByteCount::kib(128),
                mss: None,
                congestion: "reno".to_owned(),
                nodelay: false,
                duration: Nanos::secs(1),
                bytes: None,
                omit: Nanos::ZERO,
            }],
            idle: Nanos::millis(100),
            expect: Expect::default(),
            published_bps: None,
        }
    }

    #[test]
    fn short_paths_and_fast_flows_run_alone() {
        assert_eq!(Demand::of(&case(Nanos::millis(2), Rate::mbps(1), Some(3000))), Demand::Alone);
        assert_eq!(Demand::of(&case(Nanos::millis(40), Rate::mbps(1000), None)), Demand::Alone);
        assert!(
            matches!(Demand::of(&case(Nanos::millis(40), Rate::mbps(1000), Some(30_408))), Demand::Shared(d) if d < 1000.0)
        );
    }

    #[test]
    fn a_hundred_slow_cases_run_side_by_side_and_a_demanding_one_waits_for_them() {
        let mut cases = vec![case(Nanos::millis(2), Rate::mbps(1000), None)];
        cases.extend((0..100).map(|i| {
            let mut c = case(Nanos::millis(100), Rate::mbps(2), None);
            c.repetition = i + 2;
            c
        }));
        let mut schedule = Schedule::new(&cases, &HashSet::new(), &RunOptions::default());
        let mut started = 0;
        while let Some(waiting) = schedule.next_that_fits() {
            assert_ne!(waiting.demand, Demand::Alone);
            schedule.running.insert(started, waiting);
            started += 1;
        }
        assert_eq!(started, 100);
        schedule.running.clear();
        assert_eq!(schedule.next_that_fits().unwrap().demand, Demand::Alone);
    }

    #[test]
    fn settled_cases_are_left_out() {
        let cases = [case(Nanos::millis(40), Rate::mbps(1), None)];
        let settled = HashSet::from([key(&cases[0])]);
        assert_eq!(Schedule::new(&cases, &settled, &RunOptions::default()).left(), 0);
    }
}
