use std::borrow::Cow;
use std::collections::BTreeMap;

use bdp_agent::ping::PingProgress;
use bdp_flow::session::error::SessionError;
use bdp_flow::session::progress::{ArrivalReading, Progress, Stage};
use bdp_model::capture::{CaptureSummary, ReadCapture};
use bdp_model::finding::Limit;
use bdp_model::flow::payload::PayloadCheck;
use bdp_model::measurement::ends::End;
use bdp_model::measurement::expectation::Expectation;
use bdp_model::measurement::labels::{Label, Labels};
use bdp_model::measurement::{Direction, MeasureRequest};
use bdp_model::probes::hops::{PathRequest, Phase, ProbeProtocol};
use bdp_model::probes::ping::{Fate, PingRequest, Sample};
use bdp_model::sweep::run_comparison::{Metric, Outcomes};
use bdp_model::tuning::{
    Change, PLAN_SCHEMA, Plan, PlanHost, PlanPath, REHEARSAL_SCHEMA, Reason, Target, Verification,
};
use bdp_model::units::Nanos;
use bdp_model::watch::{WatchInterval, WatchTarget};
use bdp_scenario::{PlanOptions, Scenario, find};
use bdp_sys::tcp_info::TcpInfo;

use super::*;
use crate::compare::{ComparePlan, RunFigures};
use crate::measure::baseline::Baseline;
use crate::measure::session::Credentials;
use crate::pcap::{LivePlan, Source};
use crate::sweep::{Setting, Variable, Varied};
use crate::tuning::measured_path::MeasuredPath;
use crate::watch::WatchPlan;
use crate::{Event, Journals, Question};

fn jobs() -> [Job; 12] {
    let credentials = Credentials { token: Some("secret".to_owned()), login: None };
    let request = MeasureRequest::to("ams1");
    let command = "bdp".to_owned();
    let values = vec![Setting { text: "64K".to_owned(), number: 65_536 }];
    let varied = vec![Varied { parameter: Variable::Window, values }];
    let (name, text) = find("s3-30k").unwrap();
    let scenario = Scenario::parse(name, text).unwrap();
    let cases = scenario.plan(&PlanOptions::default()).unwrap();
    let measured = Measurement { repetition: 1, ..Measurement::of(&request) };
    let path = MeasuredPath {
        run: Some("7f3a".to_owned()),
        is_stored: true,
        measurement: measured.clone(),
        others: vec![measured.clone()],
        rate_bps: Some(1e9),
    };
    let live = LivePlan { interface: "eth0".to_owned(), time: None, snap: 256, write: None };
    [
        Job::Pcap(Box::new(PcapPlan {
            sources: vec![
                Source::File("slow.pcapng".into()),
                Source::Named { file: "/proc/self/fd/7".into(), name: "fast.pcap".to_owned() },
                Source::Live(live),
            ],
            filter: "port 443".to_owned(),
            memory_bytes: 1 << 30,
            separate: false,
        })),
        Job::Twin(Box::new(TwinPlan {
            path: path.clone(),
            directions: vec![Direction::To],
            derive_only: false,
            runs: 3,
            seed: 7,
            command: command.clone(),
        })),
        Job::Rehearse(Box::new(RehearsePlan {
            path: path.clone(),
            plan: plan(),
            runs: 3,
            seed: 7,
            alone: false,
            command: command.clone(),
        })),
        Job::Verify(Box::new(VerifyPlan {
            path,
            rehearsal: Some(rehearsal()),
            credentials: credentials.clone(),
            command: command.clone(),
        })),
        Job::Fix(Box::new(FixPlan {
            request: request.clone(),
            credentials: credentials.clone(),
            tune_token: Some("secret".to_owned()),
            direction: None,
            rate_bps: None,
            runs: 3,
            alone: false,
            keep_for: Nanos::secs(600),
            asks_nothing: true,
            command: command.clone(),
        })),
        Job::Measure(Box::new(MeasurePlan {
            request: request.clone(),
            credentials: credentials.clone(),
            label: None,
            labels: [Label::new("site", "ams").unwrap()].into_iter().collect(),
            runs: 2,
            flood: true,
            expectations: vec!["to.goodput>=900M".parse().unwrap()],
            baseline: Some(Baseline { run: "7f3a".to_owned(), measurements: vec![measured] }),
            command: command.clone(),
        })),
        Job::Ping(Box::new(PingPlan {
            request: ping_request(),
            credentials: credentials.clone(),
            expectations: vec!["rtt.p95<=30ms".parse().unwrap()],
            keep: true,
        })),
        Job::Path(Box::new(PathPlan {
            request: PathRequest {
                host: "ams1".to_owned(),
                protocol: Some(ProbeProtocol::Tcp),
                ..PathRequest::default()
            },
            credentials: credentials.clone(),
            keep: false,
        })),
        Job::Sweep(Box::new(SweepPlan {
            request,
            credentials,
            varied,
            runs: 1,
            refine: true,
            seed: 7,
            label: None,
            labels: Labels::NONE,
            command: command.clone(),
        })),
        Job::Lab(Box::new(LabPlan::new(&[scenario], cases, 7, command))),
        Job::Compare(Box::new(compare_plan([5e6, 4e6]))),
        Job::Watch(WatchPlan {
            targets: vec![
                WatchTarget::Process(4242),
                WatchTarget::Port(443),
                WatchTarget::Host("ams1".to_owned(), None),
                WatchTarget::All,
            ],
            interval: Nanos::secs(1),
            samples_per_second: 10,
            duration: None,
        }),
    ]
}

fn change() -> Change {
    let (target, to) = (Target::sysctl("net.ipv4.tcp_rmem"), "4096 131072 33554432".to_owned());
    Change { end: End::Near, target, from: None, to, reason: Reason::Off, gain: None }
}

fn plan() -> Plan {
    Plan {
        schema: PLAN_SCHEMA.to_owned(),
        run: None,
        path: PlanPath::default(),
        near: PlanHost::default(),
        far: None,
        changes: vec![change()],
        alternatives: Vec::new(),
        programs: Vec::new(),
        refused: Vec::new(),
    }
}

fn verification() -> Verification {
    let nothing = Measurement::of(&MeasureRequest::to("ams1"));
    Verification::of(&nothing, &nothing, None)
}

fn rehearsal() -> Rehearsal {
    Rehearsal {
        schema: REHEARSAL_SCHEMA.to_owned(),
        bdp: "1.0.0".to_owned(),
        run: None,
        kernel: None,
        runs: 3,
        seed: 7,
        alone: false,
        repeats: Vec::new(),
        plan: plan(),
        variants: Vec::new(),
        choice: None,
    }
}

/// Two runs of six measurements each, with these rates.
fn compare_plan(rates: [f64; 2]) -> ComparePlan {
    let [a, b] = rates.map(|bps| {
        let (params, all) = (BTreeMap::new(), vec![measured(bps); 6]);
        let points = Outcomes::of_measurements(all.iter().map(|measurement| (&params, measurement)));
        RunFigures { run: "7f3a".to_owned(), points }
    });
    ComparePlan { a, b, judge: vec![Metric::GoodputBps], threshold: 0.05 }
}

#[test]
fn runs_of_one_point_each_are_compared_and_others_need_one_in_common() {
    let measurement = measured(5e6);
    let named = |name: &str, values: &[&str]| {
        let params: Vec<BTreeMap<String, Value>> =
            values.iter().map(|v| BTreeMap::from([(name.to_owned(), Value::from(*v))])).collect();
        let mut one_way = measurement.clone();
        one_way.directions.truncate(1);
        let points = Outcomes::of_measurements(params.iter().map(|params| (params, &one_way)));
        RunFigures { run: name.to_owned(), points }
    };
    let plan = |a, b| ComparePlan { a, b, judge: Vec::new(), threshold: 0.05 };
    let one = plan(named("window", &["64K"]), named("streams", &["2"])).run().unwrap();
    assert!(one.rows[0].point.ends_with("window=64K | to streams=2"), "{}", one.rows[0].point);
    let none = plan(named("window", &["64K", "128K"]), named("streams", &["2"])).run().unwrap_err();
    assert!(
        none.to_string().contains("window has 'to window=64K' and 1 more, streams has 'to streams=2'"),
        "{none}"
    );
}

fn ping_request() -> PingRequest {
    PingRequest {
        host: "ams1".to_owned(),
        port: 443,
        count: Some(10),
        interval: Nanos::millis(200),
        warm_up: 1,
        patience: Nanos::secs(3),
        stamps: true,
        ..PingRequest::default()
    }
}

fn progress() -> Progress {
    let info = TcpInfo { rtt_ns: Some(25_000_000), total_retrans: Some(3), ..TcpInfo::default() };
    Progress {
        stage: Stage::Direction(Direction::To),
        elapsed: Nanos::millis(1500),
        total: Nanos::secs(10),
        span: Some(Nanos::millis(100)),
        goodput_bps: vec![(Direction::To, 94.5e6)],
        stream_goodput_bps: vec![(Direction::To, vec![94.5e6])],
        sender_infos: vec![(Direction::To, vec![info])],
        arrivals: vec![(Direction::From, vec![ArrivalReading { sent: 9, received: 8, jitter_ns: 7 }])],
        datagram_bytes: Some(1400),
        is_last: false,
        rtt_ns: Some(26_000_000),
    }
}

fn events() -> Vec<Event<'static>> {
    let run = || Cow::Borrowed("7f3a");
    let key = || Cow::Borrowed("window=64K");
    let measurement = || Cow::Owned(Measurement::of(&MeasureRequest::to("ams1")));
    let sample = |number, outcome| Sample { number, due_ns: 1, sent_ns: 2, outcome };
    vec![
        Event::Resumed { run: run(), done: 3, planned: 9 },
        Event::Hops { phase: Phase::Idle, hops: 5 },
        Event::NothingToResume,
        Event::Entered { run: Some(run()), done: 3, planned: 9 },
        Event::Planned { cases: 6, time: Nanos::secs(90) },
        Event::CaseStarted { key: key(), attempt: 2 },
        Event::CaseEnded {
            record: Cow::Owned(record(true, None, Some(true))),
            settled: true,
            left: Nanos::secs(80),
        },
        Event::Progress { repetition: 1, progress: Cow::Owned(progress()) },
        Event::Progress {
            repetition: 1,
            progress: Cow::Owned(Progress {
                stage: Stage::Experiment(Direction::To, [Limit::PathRate, Limit::ReceiveWindow]),
                ..progress()
            }),
        },
        Event::MeasurementEnded { run: None, measurement: measurement() },
        Event::PointEnded { key: key(), done: 1, planned: 2, measurement: measurement() },
        Event::Probes {
            progress: Cow::Owned(PingProgress {
                sent: 4,
                received: 3,
                rtt_ns: Some(25_000_000),
                elapsed: Nanos::secs(1),
                settled: vec![
                    sample(0, Fate::Answered(25_000_000)),
                    sample(1, Fate::Lost),
                    sample(2, Fate::Refused),
                    sample(3, Fate::Unreachable),
                ],
            }),
        },
        Event::Capturing { interface: Cow::Borrowed("eth0"), time: Some(Nanos::secs(30)) },
        Event::Stage { stage: crate::Stage::Capacity, streams: Some(8) },
        Event::Plan { plan: Cow::Owned(plan()) },
        Event::NotRehearsed { why: Cow::Borrowed("no guest boots here") },
        Event::Rehearsed { rehearsal: Cow::Owned(rehearsal()) },
        Event::LeftToOwner { changes: 1 },
        Event::Question { question: Question::Apply { change: Cow::Owned(change()) } },
        Event::Question { question: Question::Keep },
        Event::NothingApplied,
        Event::Applied { journals: Journals { near: Some(1), far: None } },
        Event::Verified { verification: Cow::Owned(verification()) },
        Event::Kept,
        Event::PutBack { settings: 2 },
        Event::NotPutBack { why: Cow::Borrowed("unreachable") },
        Event::Sockets {
            interval: Cow::Owned(WatchInterval {
                at_ns: 1_000_000_000,
                took_ns: 1_000_000_000,
                samples: 10,
                incomplete: 0,
                sockets: Vec::new(),
                unexplained: 0,
                notes: vec!["process 4242 (rsync) ended".to_owned()],
            }),
        },
    ]
}

/// A stored measurement, but with this goodput.
fn measured(bps: f64) -> Measurement {
    let text = include_str!("../../../bdp-store/tests/it/measurement.json");
    let mut measurement: Measurement = serde_json::from_str(text).unwrap();
    for direction in &mut measurement.directions {
        direction.goodput_bps = bps;
        direction.payload_check = None;
    }
    measurement
}

fn ended(results: Results, result: Result<(), RunError>) -> Ended {
    let run = Some("7f3a".to_owned());
    let (judgements, comparisons) = (Vec::new(), Vec::new());
    Ended { run, results, judgements, comparisons, result, cancelled: false }
}

fn cancelled() -> Result<(), RunError> {
    Err(SessionError::Cancelled.into())
}

/// One of each ending.
fn outcomes() -> Vec<Outcome> {
    let request = MeasureRequest::to("ams1");
    let baseline = Baseline { run: "7f3a".to_owned(), measurements: vec![measured(2e8); 6] };
    let now = vec![measured(1e8); 6];
    let expected: Expectation = "to.goodput>=900M".parse().unwrap();
    let judgements = vec![expected.judge(&now)];
    let comparisons = baseline.compare(&now, &request);
    let mut corrupt = measured(1e8);
    let check = PayloadCheck { wrong_bytes: 1, ..PayloadCheck::default() };
    corrupt.directions[0].payload_check = Some(check);
    let corrupt = ended(Results::Measurements(vec![corrupt]), Ok(()));
    let done = || ended(Results::Measurements(now.clone()), Ok(()));
    let compared = |rates| ended(Results::Compared(Some(compare_plan(rates).run().unwrap())), Ok(()));
    let invalid = Results::Records(vec![record(false, None, None)]);
    let all = [
        (Ending::Done, done()),
        (Ending::Missed, Ended { judgements, ..done() }),
        (Ending::Missed, Ended { comparisons, ..done() }),
        (Ending::Missed, corrupt),
        (Ending::Missed, compared([5e6, 4e6])),
        (Ending::Done, compared([4e6, 5e6])),
        (Ending::Invalid, ended(invalid, Ok(()))),
        (Ending::Failed, ended(Results::Ping(None), Err(RunError::Unanswered("no answer".to_owned())))),
        (Ending::Missed, ended(Results::Rehearsed(Some(Box::new(rehearsal()))), Ok(()))),
        (Ending::Missed, ended(Results::Fixed(Some(Fixed::Missed)), Ok(()))),
        (Ending::Done, ended(Results::Fixed(Some(Fixed::Done)), Ok(()))),
        (Ending::Failed, ended(Results::Captures(Some(broken_captures())), Ok(()))),
        (Ending::Cancelled, Ended { cancelled: true, ..ended(Results::Fixed(None), cancelled()) }),
        (Ending::Cancelled, Ended { cancelled: true, ..ended(Results::Points(Vec::new()), Ok(())) }),
    ];
    all.into_iter()
        .map(|(ending, ended)| {
            assert_eq!(ended.ending(), ending);
            ended.outcome()
        })
        .collect()
}

/// A capture that ends in the middle of a packet.
fn broken_captures() -> Captures {
    let capture = ReadCapture {
        name: "slow.pcapng".to_owned(),
        summary: CaptureSummary::default(),
        flows: Vec::new(),
        broke: Some("cut short".to_owned()),
    };
    Captures { captures: vec![capture], pairs: Vec::new() }
}

/// The definition of this name in the schema of jobs, events and outcomes.
fn validator(name: &str) -> jsonschema::Validator {
    let mut schema: Value = serde_json::from_str(include_str!("../../../../docs/job.schema.json")).unwrap();
    schema.as_object_mut().unwrap().remove("oneOf");
    schema["$ref"] = format!("#/$defs/{name}").into();
    jsonschema::validator_for(&schema).unwrap()
}

fn assert_valid(name: &str, document: &Value) {
    let errors: Vec<String> =
        validator(name).iter_errors(document).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{name}: {errors:?}\n{document:#}");
}

#[test]
fn an_event_goes_through_json_whole() {
    for event in events() {
        let document = event.to_json();
        assert_eq!(document["schema"], crate::EVENT_SCHEMA);
        assert_valid("event", &document);
        let carried: Value = serde_json::from_str(&document.to_string()).unwrap();
        assert_eq!(Event::from_json(carried).unwrap(), event);
    }
}

#[test]
fn an_outcome_goes_through_json_whole() {
    for outcome in outcomes() {
        let document = outcome.to_json();
        assert_valid("job_outcome", &document);
        let carried: Value = serde_json::from_str(&document.to_string()).unwrap();
        assert_eq!(Outcome::from_json(carried).unwrap(), outcome);
    }
}

#[test]
fn a_job_goes_through_json_whole_but_for_its_credentials() {
    for job in jobs() {
        let document = job.to_json();
        let text = document.to_string();
        assert_eq!(document["schema"], JOB_SCHEMA);
        assert_valid("job", &document);
        assert!(!text.contains("secret") && !text.contains("credentials"), "{text}");
        let carried = Job::from_json(serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(carried.to_json(), document);
    }
}

#[test]
fn a_job_of_another_version_is_refused() {
    let mut document = jobs()[0].to_json();
    document["schema"] = "bdp.job/2".into();
    let refused = Job::from_json(document).unwrap_err().to_string();
    assert_eq!(refused, "document of schema 'bdp.job/2'; expected bdp.job/1");
}

/// A record of one point, from a stored one.
fn record(valid: bool, error: Option<&str>, met: Option<bool>) -> Record {
    let text = include_str!("../../../bdp-store/tests/it/record.json");
    let mut record: Record = serde_json::from_str(text).unwrap();
    record.valid = valid;
    record.error = error.map(str::to_owned);
    if let Some(expectation) = &mut record.expectation {
        expectation.met = met;
    }
    record
}

#[test]
fn the_gravest_record_decides_the_ending() {
    let (kept, missed) = (record(true, None, Some(true)), record(true, None, Some(false)));
    let (invalid, failed) = (record(false, None, None), record(false, Some("it broke"), None));
    let ending = |records: &[&Record]| Ending::of(&records.iter().map(|&r| r.clone()).collect::<Vec<_>>());
    assert_eq!(ending(&[&kept]), Ending::Done);
    assert_eq!(ending(&[&kept, &missed]), Ending::Missed);
    assert_eq!(ending(&[&kept, &missed, &failed]), Ending::Failed);
    // An INVALID attempt beside a valid one of the same point was made good.
    assert_eq!(ending(&[&invalid, &kept]), Ending::Done);
    assert_eq!(ending(&[&invalid, &invalid]), Ending::Invalid);
    assert_eq!(ending(&[&invalid, &missed]), Ending::Missed);
    let elsewhere = Record { scenario: "another".to_owned(), ..kept.clone() };
    assert_eq!(ending(&[&invalid, &elsewhere]), Ending::Invalid);
    // What an INVALID attempt says of its expectation is not heard.
    assert_eq!(ending(&[&record(false, None, Some(false)), &kept]), Ending::Done);
}

/// As text is: noise ends in the parser of JSON, and a value of another kind at the job's own.
#[test]
fn damaged_jobs_are_read_or_refused() {
    fn each(value: &Value, at: &str, paths: &mut Vec<String>) {
        paths.push(at.to_owned());
        match value {
            Value::Object(members) => members.iter().for_each(|(k, v)| each(v, &format!("{at}/{k}"), paths)),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(i, v)| each(v, &format!("{at}/{i}"), paths))
            }
            _ => {}
        }
    }
    let (mut read, mut refused) = (0, 0);
    for job in jobs() {
        let document = job.to_json();
        let mut paths = Vec::new();
        each(&document, "", &mut paths);
        for path in paths {
            for with in ["null", "-1", "18446744073709551615", "1e308", "\"\"", "\"2G\"", "[]", "{}", "[[1]]"]
            {
                let mut changed = document.clone();
                *changed.pointer_mut(&path).unwrap() = serde_json::from_str(with).unwrap();
                match Job::from_json(changed) {
                    Ok(job) => {
                        job.to_json();
                        read += 1;
                    }
                    Err(error) => {
                        assert!(!error.to_string().is_empty());
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(read > 100 && refused > 100, "{read} read, {refused} refused");
}
