//! Runs one case, from its hosts to its record.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use bdp_agent::remote::Agents;
use bdp_lab::fidelity::{Bounds, judge as judge_fidelity};
use bdp_lab::watch::{Watch, Watched};
use bdp_lab::{
    AgentCommand, CapturePace, Captures, Driver, LinkOutcome, Pace, Testbed, testbed::DeviceReading,
};
use bdp_model::case::route::Route;
use bdp_model::case::stack::{Clock, Stack};
use bdp_model::case::traffic::{Traffic, TrafficRecord};
use bdp_model::case::{CaseFlow, CaseSpec, HostSpec, LinkSpec, segment};
use bdp_model::flow::method::Privilege;
use bdp_model::measurement::host_counters::HostCounters;
use bdp_model::record::{Environment, FlowRecord, GuestReport, Record};
use bdp_model::tuning::setting::Setting;

use bdp_sys::clock;
use bdp_sys::process::{self, HostCpu};
use bdp_wire::control::Exchanged;

use crate::case::calibrate::{Calibration, Calibrator, Conditions, Delivered};
use crate::case::capture::CaptureOrder;
use crate::case::pair::Ends;
use crate::case::probing::PairProbed;
use crate::case::record::{blank, failed, flow_record};
use crate::case::session::{Outcomes, Session};
use crate::case::stepped::Grounds;
use crate::case::window::{self, Means};
use crate::case::{observe, stepped, verdict};
use crate::guest::calls;
use crate::{Result, RunError};

/// Runs cases.
#[derive(Debug)]
pub struct CaseRunner {
    command: AgentCommand,
    calibrator: Calibrator,
    capture: Option<CaptureOrder>,
    /// Number of running cases.
    running: AtomicU32,
    /// The clock of its machine: this one's or a guest's.
    clock: Clock,
}

/// A case, and its progress until it is judged.
type Planned<'a> = (Plan<'a>, Vec<Option<Calibration>>, Measured);

/// The measured results, before they are judged.
struct Measured {
    probed: Vec<PairProbed>,
    /// When the flows could start, by the machine's monotonic clock.
    begun_at_ns: u64,
    flows: Vec<Ends>,
    counters: BTreeMap<String, HostCounters>,
    sysctls: BTreeMap<String, BTreeMap<String, String>>,
    outcomes: Vec<LinkOutcome>,
    watched: Watched,
    host_cpu: (f64, f64),
    privilege: Privilege,
    guest: Option<GuestReport>,
    /// Versions of stacks other than kernels, by host.
    stacks: BTreeMap<String, String>,
    /// Requests and responses, by the index of their traffic entry.
    exchanged: BTreeMap<u32, Exchanged>,
}

/// Returns the seed of an attempt. Each attempt is a new sample: the same draws would have the same result.
fn draws_of(case: &CaseSpec, attempt: u32) -> u64 {
    case.seed.wrapping_add(u64::from(attempt - 1))
}

impl CaseRunner {
    /// Creates a runner whose hosts are created by `command`.
    pub fn new(command: AgentCommand) -> Self {
        Self {
            command,
            calibrator: Calibrator::new(Pace::Share),
            capture: None,
            running: AtomicU32::new(0),
            clock: Clock::Real,
        }
    }

    /// Like [`CaseRunner::new`], for a guest, whose clock stands still while anything runs.
    pub fn in_guest(command: AgentCommand) -> Self {
        Self { calibrator: Calibrator::new(Pace::Virtual), clock: Clock::Virtual, ..Self::new(command) }
    }

    /// Returns the runner with captures as ordered.
    pub fn capturing(self, order: Option<CaptureOrder>) -> Self {
        Self { capture: order, ..self }
    }

    /// Runs a case on links that `driver` moves. The record also covers failures; an error is one that would affect
    /// every other case too.
    pub fn run(&self, case: &CaseSpec, attempt: u32, driver: &Driver) -> Result<Record> {
        if case.traffic.is_empty() {
            return self.run_flows(case, attempt, driver);
        }
        let record = self.run_flows(&case.with_transfers(), attempt, driver)?;
        Ok(Record { case: case.clone(), ..record })
    }

    /// Runs every flow of a case, transfers among them.
    fn run_flows(&self, case: &CaseSpec, attempt: u32, driver: &Driver) -> Result<Record> {
        self.run_with(case, attempt, |captures| {
            let plan = Plan::make(case)?;
            let calibrations =
                (0..case.flows.len()).map(|i| self.calibration(&plan, i)).collect::<Result<Vec<_>, _>>()?;
            let mut links = window::clamp_links(case, &plan.means);
            if let Some(order) = &self.capture {
                *captures =
                    order.open(case, attempt, &mut links, CapturePace::Machine(driver.host_cpus()))?;
            }
            let measured = self.measure(&plan, &links, &calibrations, attempt, driver, captures.as_ref())?;
            Ok((plan, calibrations, measured))
        })
    }

    /// Runs a case on stacks that run in steps. In a guest, if one of them is its kernel, programs of other stacks
    /// are found in the machine's root at `root`.
    pub fn run_in_steps(&self, case: &CaseSpec, attempt: u32, root: Option<&Path>) -> Result<Record> {
        self.run_with(case, attempt, |captures| {
            let plan = Plan::make(case)?;
            let mut links = window::clamp_links(case, &plan.means);
            if let Some(order) = &self.capture {
                *captures = order.open(case, attempt, &mut links, CapturePace::Number)?;
            }
            let seed = draws_of(case, attempt);
            let grounds =
                Grounds { hosts: &plan.hosts, links: &links, seed, captures: captures.as_ref(), root };
            let stepped = stepped::measure(case, &plan.means, &grounds)?;
            let calibrations = vec![None; case.flows.len()];
            let guest = GuestReport {
                emulated_ns: stepped.emulated_ns,
                segments: calls::segments_of(&stepped.flows),
                ..GuestReport::default()
            };
            let measured = Measured {
                probed: stepped.probed,
                begun_at_ns: stepped.begun_at_ns,
                flows: stepped.flows,
                counters: BTreeMap::new(),
                sysctls: BTreeMap::new(),
                outcomes: stepped.outcomes,
                watched: Watched::default(),
                host_cpu: (0.0, 0.0),
                privilege: Privilege::Unknown,
                guest: Some(guest),
                stacks: stepped.versions,
                exchanged: BTreeMap::new(),
            };
            Ok((plan, calibrations, measured))
        })
    }

    fn run_with<'a>(
        &self,
        case: &'a CaseSpec,
        attempt: u32,
        work: impl FnOnce(&mut Option<Captures>) -> Result<Planned<'a>>,
    ) -> Result<Record> {
        let started_unix_ms = clock::unix_ms();
        let started = clock::monotonic_ns();
        let mut beside = self.running.fetch_add(1, Ordering::Relaxed) > 0;
        let mut captures = None;
        let outcome = work(&mut captures);
        beside |= self.running.fetch_sub(1, Ordering::Relaxed) > 1;
        // Also for a failed case: its captures may show why.
        let captures = captures.map_or_else(Vec::new, Captures::finish);
        let mut environment = Environment {
            bdp: env!("CARGO_PKG_VERSION").to_owned(),
            kernel: process::kernel_release(),
            arch: std::env::consts::ARCH.to_owned(),
            cpus: process::online_cpus(),
            started_unix_ms,
            clock: case.clock,
            stack: case.stack().filter(|stack| **stack != Stack::Machine).map(ToString::to_string),
            ..Default::default()
        };
        environment.took_ms = (clock::monotonic_ns() - started) / 1_000_000;
        match outcome {
            Ok((plan, calibrations, measured)) => {
                let record = self.record(&plan, &calibrations, attempt, beside, measured, environment);
                Ok(Record { captures, ..record })
            }
            Err(error @ RunError::Lab(bdp_lab::LabError::Permission { .. })) => Err(error),
            Err(error) => Ok(Record { captures, ..failed(case, attempt, &error, environment) }),
        }
    }

    fn calibration(&self, plan: &Plan, index: usize) -> Result<Option<Calibration>> {
        let Means::Receiver { target_bytes } = plan.means[index] else { return Ok(None) };
        let flow = &plan.case.flows[index];
        let sysctls = |name: &str| {
            plan.hosts.iter().find(|h| h.name == name).map_or_else(BTreeMap::new, |h| h.sysctls.clone())
        };
        let route = Route::of(plan.case, flow);
        let last = route.as_ref().and_then(Route::last);
        let delivery = last.map_or(Delivered::Segments, |(link, direction)| Delivered::over(link, direction));
        let conditions = Conditions {
            target_bytes,
            delivery,
            mss_bytes: segment::planned_mss(plan.case, flow),
            mss_option: flow.spec.mss,
            mtu: route.map_or(1500, |route| route.mtu()),
            family: plan.case.family,
            receiver_sysctls: sysctls(&flow.to),
            sender_sysctls: sysctls(&flow.from),
        };
        self.calibrator.find(&self.command, &conditions).map(Some)
    }

    fn measure(
        &self,
        plan: &Plan,
        links: &[LinkSpec],
        calibrations: &[Option<Calibration>],
        attempt: u32,
        driver: &Driver,
        captures: Option<&Captures>,
    ) -> Result<Measured> {
        let case = plan.case;
        let seed = draws_of(case, attempt);
        let (mut testbed, streams) =
            Testbed::build(&self.command, driver, case.family, &plan.hosts, links, seed, captures)?;
        let agents = Agents::new(case.hosts.iter().map(|h| h.name.clone()).zip(streams))?;
        let mut session = Session { case, agents };
        let cpu_before = HostCpu::read();
        let echoes = session.start_echoes(&testbed)?;
        let idle = session.probe_idle(&echoes)?;
        let begun_at_ns = clock::monotonic_ns() + case.ready_after().as_ns();
        testbed.start_clock(begun_at_ns)?;
        // In a guest nothing but its hosts uses the processor, and their work takes no time.
        let watch = self.clock.is_real().then(|| Watch::start(testbed.processes()));
        let calls_before = calls::so_far();
        let Outcomes { flows, loaded, exchanged } = session.run_flows(&testbed, calibrations, &echoes)?;
        let calls = calls::so_far().zip(calls_before).map(|(after, before)| after - before);
        let watched = watch.map(Watch::finish).unwrap_or_default();
        let probed = echoes
            .into_iter()
            .zip(idle)
            .zip(loaded)
            .map(|((echo, idle), loaded)| PairProbed { pair: echo.pair, idle, loaded })
            .collect();
        let counters = session.read_counters()?;
        let sysctls = session.read_sysctls()?;
        let mut outcomes = testbed.disconnect()?;
        let host_cpu = HostCpu::read().since(cpu_before);
        for outcome in &mut outcomes {
            let mut readings = [DeviceReading::default(); 2];
            for (reading, (host, device)) in readings.iter_mut().zip(outcome.ports()) {
                *reading = session.read_device(host, device)?;
            }
            outcome.hold_against(readings);
        }
        let privilege = testbed.privilege();
        let guest = (!self.clock.is_real()).then(|| GuestReport {
            emulated_ns: clock::monotonic_ns(),
            system_calls: calls,
            segments: calls::segments_of(&flows),
            wall: Default::default(),
        });
        let stacks = BTreeMap::new();
        Ok(Measured {
            probed,
            begun_at_ns,
            flows,
            counters,
            sysctls,
            outcomes,
            watched,
            host_cpu,
            privilege,
            guest,
            stacks,
            exchanged,
        })
    }

    fn record(
        &self,
        plan: &Plan,
        calibrations: &[Option<Calibration>],
        attempt: u32,
        beside: bool,
        measured: Measured,
        mut environment: Environment,
    ) -> Record {
        let case = plan.case;
        let rtt_of = |flow: &CaseFlow, counted: &Range<u64>| {
            let probed = measured.probed.iter().find(|p| p.pair.joins(flow));
            probed.map(|p| p.rtt_ns(case, counted)).unwrap_or_default()
        };
        let probes = measured.probed.iter().map(|pair| pair.series(case, measured.begun_at_ns)).collect();
        let mut seen = observe::seen(case, &measured.probed, &measured.flows, &measured.outcomes);
        let mut flows: Vec<FlowRecord> = case
            .flows
            .iter()
            .zip(&plan.means)
            .zip(calibrations)
            .zip(measured.flows)
            .map(|(((spec, means), calibration), ends)| {
                let received = &ends.0;
                let start_ns = received
                    .first_byte_at_ns
                    .map_or(spec.start.as_ns(), |at| at.saturating_sub(measured.begun_at_ns));
                let rtt_ns = rtt_of(spec, &received.counted_within().unwrap_or_default());
                flow_record(case, spec, *means, *calibration, ends, (start_ns, rtt_ns))
            })
            .collect();
        let transfers = flows.split_off(case.flows.iter().filter(|flow| flow.transfer.is_none()).count());
        let traffic = traffic_records(case, &transfers, measured.exchanged);
        let whole = || measured.probed.first().map(|probed| probed.rtt_ns(case, &(0..u64::MAX)));
        let first = flows.first().map(|flow| flow.rtt_ns.clone()).or_else(whole).unwrap_or_default();
        let counted = case.flows.iter().zip(&flows).filter(|(spec, _)| !spec.background);
        let goodput = traffic_goodput(case, &flows, &traffic)
            .or((!flows.is_empty()).then(|| counted.map(|(_, flow)| flow.goodput_bps).sum()));
        // No model predicts what many short transfers leave to a flow.
        let expected = if traffic.is_empty() { verdict::expected(case, &plan.means, &flows) } else { None };
        seen.watched = measured.watched;
        seen.host_cpu = measured.host_cpu;
        seen.cpus = environment.cpus;
        seen.still = !case.clock.is_real();
        seen.shared = beside;
        let fidelity = judge_fidelity(seen, &Bounds::default());
        environment.privilege = measured.privilege;
        environment.guest = measured.guest;
        environment.stacks = measured.stacks;
        environment.sysctls = measured.sysctls;
        let mut expectation = verdict::judge(&case.expect, goodput, expected.as_ref());
        if let (Some(e), false) = (&mut expectation, fidelity.valid) {
            e.met = None;
        }
        let mut record = Record {
            valid: fidelity.valid,
            fidelity,
            goodput_bps: goodput,
            expected_bps: expected.as_ref().map(|e| e.bps),
            expected_least_bps: expected.as_ref().and_then(|e| e.range_from_bps()),
            expected_by: expected.map(|e| e.by),
            expectation,
            rtt_idle_ns: first.idle.map(|r| r.min),
            rtt_ns: first,
            window: flows.first().map(|f| f.window.clone()).unwrap_or_default(),
            flows,
            traffic,
            probes,
            counters: measured.counters,
            ..blank(case, attempt, environment)
        };
        crate::measure::explain::record(&mut record);
        record
    }
}

/// Returns the results of each traffic entry's transfers, which follow the flows.
fn traffic_records(
    case: &CaseSpec,
    transfers: &[FlowRecord],
    mut exchanged: BTreeMap<u32, Exchanged>,
) -> Vec<TrafficRecord> {
    let asked = case.flows.iter().filter(|flow| flow.transfer.is_some());
    let all: Vec<_> = asked.zip(transfers).collect();
    let of = |(traffic, place): (&Traffic, u32)| {
        if let Some(Exchanged { took_ns, unfinished, received_bytes }) = exchanged.remove(&place) {
            return TrafficRecord::of_exchanges(traffic, took_ns, unfinished, received_bytes);
        }
        TrafficRecord::of(traffic, all.iter().copied().filter(|(asked, _)| asked.transfer == Some(place)))
    };
    case.traffic.iter().zip(0..).map(of).collect()
}

/// Returns the goodput of a case with nothing but traffic: that of all transfers, in the time in which they began.
fn traffic_goodput(case: &CaseSpec, flows: &[FlowRecord], traffic: &[TrafficRecord]) -> Option<f64> {
    let from = case.traffic.iter().map(|traffic| traffic.start).min()?;
    let to = case.traffic.iter().map(|traffic| traffic.start + traffic.duration).max()?;
    let bytes: u64 = traffic.iter().map(|traffic| traffic.received_bytes).sum();
    flows.is_empty().then(|| bytes as f64 * 8.0 / (to - from).as_secs_f64())
}

/// A case with the means of its windows and the hosts as they will be.
struct Plan<'a> {
    case: &'a CaseSpec,
    means: Vec<Means>,
    hosts: Vec<HostSpec>,
}

impl<'a> Plan<'a> {
    fn make(case: &'a CaseSpec) -> Result<Self> {
        let means = case
            .flows
            .iter()
            .map(|flow| window::choose(case, flow))
            .collect::<Result<Vec<_>, _>>()
            .map_err(RunError::Case)?;
        window::check_together(case, &means).map_err(RunError::Case)?;
        let hosts = case
            .hosts
            .iter()
            .map(|host| {
                let largest =
                    case.flows.iter().filter(|f| f.from == host.name).filter_map(|f| f.spec.window).max();
                let mut sysctls = default_sysctls(largest.map_or(0, |w| w.as_bytes()));
                sysctls.extend(host.all_sysctls());
                HostSpec { sysctls, ..host.clone() }
            })
            .collect();
        Ok(Self { case, means, hosts })
    }
}

/// Returns the buffers that every host of the lab starts from, regardless of this machine's own, so that a scenario
/// means the same everywhere. The sender's buffer never limits before the requested window does.
pub(crate) fn default_sysctls(largest_window: u64) -> BTreeMap<String, String> {
    let send = (4 * largest_window).max(4 << 20);
    BTreeMap::from([
        (Setting::TcpRmem.into(), "4096 131072 6291456".to_owned()),
        (Setting::TcpWmem.into(), format!("4096 16384 {send}")),
    ])
}
