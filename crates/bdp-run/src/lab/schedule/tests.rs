use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use bdp_lab::LabError;
use bdp_model::case::stack::Clock;
use bdp_model::case::{CaseFlow, Expect, Family, HostSpec, LinkSpec, WHOLE_PACKETS};
use bdp_model::flow::window::WindowBytes;
use bdp_model::link::{DirectionConfig, LinkConfig};
use bdp_model::record::Environment;
use bdp_model::units::{Nanos, Rate};

use bdp_store::{
    Error as StoreError, NewRun, Page, RunInfo, StoredDocument, StoredMeasurement, StoredRecord,
};

use super::*;
use crate::case::record::blank;
use crate::lab::stage::Ended;

fn case(rtt: Nanos, rate: Rate, window: Option<u64>) -> CaseSpec {
    let direction = DirectionConfig { rate: Some(rate), delay: Nanos(rtt.as_ns() / 2), ..Default::default() };
    let host = |name: &str| HostSpec { name: name.to_owned(), ..Default::default() };
    let mut flow = CaseFlow::between("near", "far", "reno");
    flow.spec.window = window.and_then(WindowBytes::new);
    flow.spec.duration = Nanos::secs(1);
    flow.spec.omit = Nanos::ZERO;
    CaseSpec {
        scenario: "test".to_owned(),
        title: String::new(),
        params: Default::default(),
        set: Default::default(),
        repetition: 1,
        seed: 1,
        clock: Clock::Real,
        family: Family::Ipv4,
        hosts: vec![host("near"), host("far")],
        links: vec![LinkSpec {
            between: ["near".to_owned(), "far".to_owned()],
            config: LinkConfig { forward: direction.clone(), reverse: direction, ..Default::default() },
            capture: [false; 2],
            capture_snap: WHOLE_PACKETS,
            profile: None,
            netem: [None; 2],
        }],
        traffic: Vec::new(),
        flows: vec![flow],
        idle: Nanos::millis(100),
        probe: Default::default(),
        expect: Expect::default(),
        published_bps: None,
        published_rows: Vec::new(),
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
    let mut cases = vec![case(Nanos::millis(100), Rate::mbps(2), None); 50];
    cases.push(case(Nanos::millis(2), Rate::mbps(1000), None));
    cases.extend(vec![case(Nanos::millis(100), Rate::mbps(2), None); 50]);
    let mut schedule = Schedule::new(&cases, &HashSet::new(), &RunOptions::default());
    let mut started = 0;
    while let Some(turn) = schedule.next_that_fits(Duration::ZERO) {
        assert_ne!(turn.demand, Demand::Alone);
        schedule.running.insert(started, turn);
        started += 1;
    }
    assert_eq!(started, 100);
    schedule.running.clear();
    assert_eq!(schedule.next_that_fits(Duration::ZERO).unwrap().demand, Demand::Alone);
}

#[test]
fn a_block_is_over_before_the_next_begins() {
    // Of each repetition a demanding case and two that run side by side; the first of the second block is demanding.
    let repeated = |repetition, rtt| CaseSpec { repetition, ..case(rtt, Rate::mbps(2), None) };
    let (demanding, slow) = (Nanos::millis(2), Nanos::millis(100));
    let cases: Vec<CaseSpec> = [(1, slow), (1, demanding), (1, slow), (2, demanding), (2, slow), (2, slow)]
        .map(|(repetition, rtt)| repeated(repetition, rtt))
        .into();
    let log = Log::default();
    let mut stage = Script {
        now: Duration::ZERO,
        fates: Box::new(|_, _| Valid),
        running: Vec::new(),
        log: Arc::clone(&log),
    };
    let schedule = Schedule::new(&cases, &HashSet::new(), &RunOptions::default());
    schedule.run_pending(&mut stage, None, &mut |_| {}).1.unwrap();
    let expected = [
        "begin #1.1 at 0",
        "begin #1.1 at 0",
        "begin #1.1 at 2 alone",
        "begin #2.1 at 4 alone",
        "begin #2.1 at 6",
        "begin #2.1 at 6",
    ];
    assert_eq!(*log.lock().unwrap(), expected);
}

/// A stage that is cancelled once this many attempts have begun.
struct CancelledAfter(usize, Script);

impl Stage for CancelledAfter {
    fn now(&self) -> Duration {
        self.1.now()
    }

    fn begin(&mut self, ticket: u64, turn: &Turn) {
        self.1.begin(ticket, turn);
    }

    fn next_end(&mut self, longest: Option<Duration>) -> Option<Ended> {
        self.1.next_end(longest)
    }

    fn is_cancelled(&self) -> bool {
        self.1.log.lock().unwrap().len() >= self.0
    }
}

#[test]
fn a_cancelled_run_ends_its_cases_and_begins_no_other() {
    let cases: Vec<CaseSpec> = (1..=5)
        .map(|repetition| CaseSpec { repetition, ..case(Nanos::millis(2), Rate::mbps(1), None) })
        .collect();
    let log = Log::default();
    let script = Script {
        now: Duration::ZERO,
        fates: Box::new(|_, _| Valid),
        running: Vec::new(),
        log: Arc::clone(&log),
    };
    let schedule = Schedule::new(&cases, &HashSet::new(), &RunOptions::default());
    let (records, outcome) = schedule.run_pending(&mut CancelledAfter(2, script), None, &mut |_| {});
    assert_eq!((records.len(), log.lock().unwrap().len()), (2, 2));
    assert!(outcome.unwrap_err().is_cancelled());
}

#[test]
fn settled_cases_are_left_out() {
    let cases = [case(Nanos::millis(40), Rate::mbps(1), None)];
    let settled = HashSet::from([key(&cases[0])]);
    assert_eq!(Schedule::new(&cases, &settled, &RunOptions::default()).left(), 0);
}

/// What became of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Valid,
    Invalid,
    Failed,
    /// No host can be made here.
    NoLab,
}
use Fate::{Failed, Invalid, NoLab, Valid};

/// What happened, in order: `begin #1.1 at 0`, `keep #1.1 settled`.
type Log = Arc<Mutex<Vec<String>>>;

/// A stage where every attempt takes two seconds of a clock that runs only while somebody waits.
struct Script {
    now: Duration,
    fates: Box<dyn Fn(u32, u32) -> Fate>,
    running: Vec<(Duration, u64, Turn)>,
    log: Log,
}

impl Stage for Script {
    fn now(&self) -> Duration {
        self.now
    }

    fn begin(&mut self, ticket: u64, turn: &Turn) {
        let alone = if turn.demand == Demand::Alone { " alone" } else { "" };
        let (case, attempt, at) = (turn.case.repetition, turn.attempt, self.now.as_secs_f64());
        self.log.lock().unwrap().push(format!("begin #{case}.{attempt} at {at}{alone}"));
        self.running.push((self.now + Duration::from_secs(2), ticket, turn.clone()));
    }

    fn next_end(&mut self, longest: Option<Duration>) -> Option<Ended> {
        let until = longest.map(|l| self.now + l);
        let next = self.running.iter().map(|(end, ..)| *end).min();
        match (next, until) {
            (None, None) => panic!("nothing runs and nothing is to come: the wait has no end"),
            (Some(end), until) if until.is_none_or(|u| end <= u) => self.now = end,
            (_, until) => {
                self.now = until?;
                return None;
            }
        }
        let index = self.running.iter().position(|(end, ..)| *end == self.now)?;
        let (_, ticket, turn) = self.running.remove(index);
        let record = blank(&turn.case, turn.attempt, Environment::default());
        Some((
            ticket,
            match (self.fates)(turn.case.repetition, turn.attempt) {
                Valid => Ok(Record { valid: true, goodput_bps: Some(1e6), ..record }),
                Invalid => Ok(record),
                Failed => Ok(Record { error: Some("it broke".to_owned()), ..record }),
                NoLab => Err(RunError::Lab(LabError::Permission { cause: "unshare".to_owned() })),
            },
        ))
    }
}

/// A store that notes what it is given, until it is full.
struct Ledger {
    room: usize,
    log: Log,
}

impl Store for Ledger {
    fn append(&mut self, _: &str, key: &str, record: &Record, settled: bool) -> bdp_store::Result<()> {
        if self.room == 0 {
            return Err(StoreError::Full { path: "ledger".into() });
        }
        self.room -= 1;
        let case = key.rsplit('#').next().unwrap_or_default();
        let settled = if settled { " settled" } else { "" };
        self.log.lock().unwrap().push(format!("keep #{case}.{}{settled}", record.attempt));
        Ok(())
    }

    fn begin_run(&mut self, _: &NewRun) -> bdp_store::Result<String> {
        unreachable!()
    }
    fn replan(&mut self, _: &str, _: u32) -> bdp_store::Result<()> {
        unimplemented!()
    }
    fn finish_run(&mut self, _: &str, _: u64) -> bdp_store::Result<()> {
        unreachable!()
    }
    fn remove_run(&mut self, _: &str) -> bdp_store::Result<()> {
        unreachable!()
    }
    fn atomically(
        &mut self,
        _: &mut dyn FnMut(&mut dyn Store) -> bdp_store::Result<bool>,
    ) -> bdp_store::Result<()> {
        unreachable!()
    }
    fn runs(&self, _: &Page) -> bdp_store::Result<Vec<RunInfo>> {
        unreachable!()
    }
    fn count_runs(&self) -> bdp_store::Result<u64> {
        unreachable!()
    }
    fn run(&self, _: &str) -> bdp_store::Result<RunInfo> {
        unreachable!()
    }
    fn scenario_text(&self, _: &str) -> bdp_store::Result<String> {
        unreachable!()
    }
    fn each_record(
        &self,
        _: &str,
        _: &mut dyn FnMut(StoredRecord) -> ControlFlow<()>,
    ) -> bdp_store::Result<()> {
        unreachable!()
    }
    fn append_document(&mut self, _: &str, _: &StoredDocument) -> bdp_store::Result<()> {
        unreachable!()
    }
    fn documents(&self, _: &str) -> bdp_store::Result<Vec<StoredDocument>> {
        unreachable!()
    }
    fn append_measurement(&mut self, _: &str, _: &StoredMeasurement) -> bdp_store::Result<()> {
        unreachable!()
    }
    fn each_measurement(
        &self,
        _: &str,
        _: &mut dyn FnMut(StoredMeasurement) -> ControlFlow<()>,
    ) -> bdp_store::Result<()> {
        unreachable!()
    }
    fn settled_keys(&self, _: &str) -> bdp_store::Result<HashSet<String>> {
        unreachable!()
    }
    fn unfinished(&self, _: &str, _: &str) -> bdp_store::Result<Option<RunInfo>> {
        unreachable!()
    }
}

/// A run of so many cases that fit side by side.
struct Trial {
    cases: u32,
    options: RunOptions,
    room: usize,
    clock: Clock,
}

impl Trial {
    fn of(cases: u32) -> Self {
        Self { cases, options: RunOptions::default(), room: usize::MAX, clock: Clock::Real }
    }

    /// Runs it; gives what happened, and what came back.
    fn run(
        self,
        fates: impl Fn(u32, u32) -> Fate + 'static,
    ) -> (Vec<String>, Vec<Record>, Result<(), RunError>) {
        let cases: Vec<CaseSpec> = (1..=self.cases)
            .map(|repetition| CaseSpec {
                repetition,
                clock: self.clock,
                ..case(Nanos::millis(100), Rate::mbps(2), None)
            })
            .collect();
        let log = Log::default();
        let mut stage = Script {
            now: Duration::ZERO,
            fates: Box::new(fates),
            running: Vec::new(),
            log: Arc::clone(&log),
        };
        let mut ledger = Ledger { room: self.room, log: Arc::clone(&log) };
        let mut keep = Keep { store: &mut ledger, run: "a1b2".to_owned() };
        let schedule = Schedule::new(&cases, &HashSet::new(), &self.options);
        let (records, outcome) = schedule.run_pending(&mut stage, Some(&mut keep), &mut |_| {});
        let log = log.lock().unwrap().clone();
        (log, records, outcome)
    }
}

#[test]
fn an_invalid_case_is_repeated_after_growing_pauses_up_to_the_limit() {
    let (log, records, outcome) = Trial::of(1).run(|_, _| Invalid);
    outcome.unwrap();
    let expected = [
        "begin #1.1 at 0",
        "keep #1.1",
        // Each takes two seconds; the pauses between are one, two and four.
        "begin #1.2 at 3",
        "keep #1.2",
        "begin #1.3 at 7 alone",
        "keep #1.3",
        "begin #1.4 at 13 alone",
        "keep #1.4 settled",
    ];
    assert_eq!(log, expected);
    assert_eq!(records.iter().map(|r| r.attempt).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(records.iter().all(|r| !r.valid));
}

#[test]
fn a_valid_repetition_settles_the_case_and_others_run_meanwhile() {
    let (log, records, outcome) =
        Trial::of(3).run(|case, attempt| if case == 2 && attempt < 3 { Invalid } else { Valid });
    outcome.unwrap();
    let expected = [
        "begin #1.1 at 0",
        "begin #2.1 at 0",
        "begin #3.1 at 0",
        "keep #1.1 settled",
        "keep #2.1",
        "keep #3.1 settled",
        "begin #2.2 at 3",
        "keep #2.2",
        "begin #2.3 at 7 alone",
        "keep #2.3 settled",
    ];
    assert_eq!(log, expected);
    assert_eq!(records.iter().filter(|r| r.valid).count(), 3);
}

#[test]
fn a_case_runs_in_the_pause_of_another() {
    let trial = Trial { options: RunOptions { jobs: Some(1), ..Default::default() }, ..Trial::of(2) };
    let (log, ..) = trial.run(|case, attempt| if (case, attempt) == (1, 1) { Invalid } else { Valid });
    let expected = [
        "begin #1.1 at 0 alone",
        "keep #1.1",
        "begin #2.1 at 2 alone",
        "keep #2.1 settled",
        "begin #1.2 at 4 alone",
        "keep #1.2 settled",
    ];
    assert_eq!(log, expected);
}

#[test]
fn pauses_stop_growing() {
    let attempts = Some(10);
    let trial = Trial { options: RunOptions { attempts, ..Default::default() }, ..Trial::of(1) };
    let (log, ..) = trial.run(|_, _| Invalid);
    let begins: Vec<f64> =
        log.iter().filter_map(|l| l.split_once(" at ")?.1.split(' ').next()?.parse().ok()).collect();
    let pauses: Vec<f64> = begins.windows(2).map(|w| w[1] - w[0] - 2.0).collect();
    assert_eq!(pauses, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]);
}

#[test]
fn the_limit_may_be_one_attempt() {
    let attempts = Some(1);
    let trial = Trial { options: RunOptions { attempts, ..Default::default() }, ..Trial::of(1) };
    let (log, ..) = trial.run(|_, _| Invalid);
    assert_eq!(log, ["begin #1.1 at 0", "keep #1.1 settled"]);
}

#[test]
fn what_is_invalid_by_the_virtual_clock_would_be_so_again() {
    let (log, ..) = Trial { clock: Clock::Virtual, ..Trial::of(1) }.run(|_, _| Invalid);
    assert_eq!(log[1..], ["keep #1 by the virtual clock.1 settled"]);
}

#[test]
fn a_failed_case_is_not_repeated_and_the_run_goes_on() {
    let trial = Trial { options: RunOptions { jobs: Some(1), ..Default::default() }, ..Trial::of(2) };
    let (log, records, outcome) = trial.run(|case, _| if case == 1 { Failed } else { Valid });
    outcome.unwrap();
    assert_eq!(log[1..], ["keep #1.1 settled", "begin #2.1 at 2 alone", "keep #2.1 settled"]);
    assert_eq!(records.len(), 2);
}

#[test]
fn attempts_of_an_earlier_start_count() {
    let first = key(&case(Nanos::millis(100), Rate::mbps(2), None));
    let made = HashMap::from([(first, 2)]);
    let trial = Trial { options: RunOptions { made, ..Default::default() }, ..Trial::of(2) };
    let (log, ..) = trial.run(|case, _| if case == 1 { Invalid } else { Valid });
    let expected = [
        "begin #2.1 at 0",
        "keep #2.1 settled",
        "begin #1.3 at 2 alone",
        "keep #1.3",
        "begin #1.4 at 8 alone",
        "keep #1.4 settled",
    ];
    assert_eq!(log, expected);
}

#[test]
fn a_full_store_ends_the_run_and_loses_nothing_that_was_measured() {
    let options = RunOptions { jobs: Some(2), ..Default::default() };
    let trial = Trial { options, room: 3, ..Trial::of(8) };
    let (log, records, outcome) = trial.run(|_, _| Valid);
    assert!(matches!(outcome, Err(RunError::Store(StoreError::Full { .. }))), "{outcome:?}");
    let kept = log.iter().filter(|l| l.starts_with("keep")).count();
    let begun = log.iter().filter(|l| l.starts_with("begin")).count();
    // The case beside the one that found no room runs to its end; none begins after it.
    assert_eq!((kept, begun), (3, 5), "{log:?}");
    assert_eq!(records.len(), begun, "what was measured and not kept is handed back too");
}

#[test]
fn no_lab_here_ends_the_run_with_what_was_measured() {
    let options = RunOptions { jobs: Some(2), ..Default::default() };
    let trial = Trial { options, ..Trial::of(6) };
    let (log, records, outcome) = trial.run(|case, _| if case == 3 { NoLab } else { Valid });
    assert!(matches!(outcome, Err(RunError::Lab(LabError::Permission { .. }))), "{outcome:?}");
    assert_eq!(records.len(), 3, "{log:?}");
    assert!(!log.iter().any(|l| l.starts_with("begin #5")), "{log:?}");
}
