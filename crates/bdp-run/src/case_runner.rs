//! One case, from its hosts to its record.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use bdp_agent::expect_answer;
use bdp_agent::remote::{Agents, Pending};
use bdp_lab::fidelity::{Bounds, judge as judge_fidelity};
use bdp_lab::watch::{Watch, Watched};
use bdp_lab::{AgentCommand, Captures, Driver, LinkOutcome, Testbed, testbed::DeviceReading};
use bdp_model::caveat::WindowShortfall;
use bdp_model::flow::LAB_SAMPLE_INTERVAL;
use bdp_model::link::Loss;
use bdp_model::method::WindowMechanism;
use bdp_model::record::{Environment, Fidelity, FlowRecord, RECORD_SCHEMA, Record, RttReport, WindowReport};
use bdp_model::route::Route;
use bdp_model::scenario::{CaseSpec, FlowSpec, HostSpec, LinkSpec, ProbeKind};
use bdp_model::segment;
use bdp_model::stats::median;
use bdp_model::units::{ByteCount, Nanos, Rate};

use bdp_sys::clock;
use bdp_sys::process::{self, HostCpu};
use bdp_sys::sysctl;
use bdp_wire::control::{Answer, FlowOrder, ProbeOrder, Probed, Received, Request, Role, Sent, StreamSource};
use bdp_wire::datagram::DatagramOrder;

use crate::calibrate::{Calibration, Calibrator, Conditions, Delivered, fits};
use crate::capture::CaptureOrder;
use crate::pair::Pair;
use crate::window::{self, Means};
use crate::{RunError, observe, verdict};

/// From one probe to the next while the flows run: a hundred a second where the links carry them with ease and lose nothing, twenty
/// elsewhere.
const LOADED_PROBE_INTERVALS: [Nanos; 2] = [Nanos::millis(10), Nanos::millis(50)];
/// Links with this rate or more carry a hundred probes a second, 82 bytes each on Ethernet, in 0.2 % of their time.
const EASY_RATE: Rate = Rate::mbps(33);
/// From one probe to the next before the flows start.
pub(crate) const IDLE_PROBE_INTERVAL: Nanos = Nanos::millis(20);
/// How often idle links are probed until the round trip is what it should be.
const IDLE_TRIES: u32 = 3;
/// How long connections and first bytes are waited for, beside what the path itself needs.
const PATIENCE: Nanos = Nanos::secs(20);
/// UDP header and payload of a probe.
const PROBE_UDP_BYTES: u64 = 8 + bdp_wire::probe::PROBE_BYTES as u64;
/// Of a probe flow all probes.
const ALWAYS: Range<u64> = 0..u64::MAX;
/// Sysctls that are read back into the record.
const RECORDED_SYSCTLS: [&str; 8] = [
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_adv_win_scale",
];

/// Runs cases.
#[derive(Debug)]
pub struct CaseRunner {
    command: AgentCommand,
    calibrator: Calibrator,
    capture: Option<CaptureOrder>,
    /// Cases that run now.
    running: AtomicU32,
}

/// What a flow's two ends saw of it.
pub(crate) type Ends = (Received, Sent);

/// Both ends of each flow, and each probe flow under load.
type Outcomes = (Vec<Ends>, Vec<Probed>);

/// What was measured, before it is judged.
struct Measured {
    probed: Vec<PairProbed>,
    /// When the flows could start, by the machine's monotonic clock.
    begun_at_ns: u64,
    flows: Vec<Ends>,
    sysctls: BTreeMap<String, BTreeMap<String, String>>,
    outcomes: Vec<LinkOutcome>,
    watched: Watched,
    host_cpu: (f64, f64),
    privilege: String,
}

impl CaseRunner {
    /// Hosts are made by `command`.
    pub fn new(command: AgentCommand) -> Self {
        Self { command, calibrator: Calibrator::default(), capture: None, running: AtomicU32::new(0) }
    }

    /// As it is, but capturing as ordered.
    pub fn capturing(self, order: Option<CaptureOrder>) -> Self {
        Self { capture: order, ..self }
    }

    /// Runs a case on links that `driver` moves. The record says what happened, whatever happened; an error is one
    /// that every other case would meet too.
    pub fn run(&self, case: &CaseSpec, attempt: u32, driver: &Driver) -> Result<Record, RunError> {
        let started_unix_ms = clock::unix_ms();
        let started = clock::monotonic_ns();
        let mut beside = self.running.fetch_add(1, Ordering::Relaxed) > 0;
        let mut captures = None;
        let outcome = Plan::make(case).and_then(|plan| {
            let calibrations =
                (0..case.flows.len()).map(|i| self.calibration(&plan, i)).collect::<Result<Vec<_>, _>>()?;
            let mut links = window::clamp_links(case, &plan.means);
            if let Some(order) = &self.capture {
                captures = order.open(case, attempt, &mut links, driver)?;
            }
            let measured = self.measure(&plan, &links, &calibrations, attempt, driver, captures.as_ref())?;
            Ok((plan, calibrations, measured))
        });
        beside |= self.running.fetch_sub(1, Ordering::Relaxed) > 1;
        // Of a case that failed too: they may tell why.
        let captures = captures.map_or_else(Vec::new, Captures::finish);
        let mut environment = Environment {
            bdp: env!("CARGO_PKG_VERSION").to_owned(),
            kernel: process::kernel_release(),
            arch: std::env::consts::ARCH.to_owned(),
            cpus: process::online_cpus(),
            started_unix_ms,
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

    fn calibration(&self, plan: &Plan, flow: usize) -> Result<Option<Calibration>, RunError> {
        let Means::Receiver { target_bytes } = plan.means[flow] else { return Ok(None) };
        let spec = &plan.case.flows[flow];
        let sysctls = |name: &str| {
            plan.hosts.iter().find(|h| h.name == name).map_or_else(BTreeMap::new, |h| h.sysctls.clone())
        };
        let route = Route::of(plan.case, spec);
        let last = route.as_ref().and_then(Route::last);
        let delivery = last.map_or(Delivered::Segments, |(link, direction)| Delivered::over(link, direction));
        let conditions = Conditions {
            target_bytes,
            delivery,
            mss_bytes: segment::planned_mss(plan.case, spec),
            mss_option: spec.mss,
            mtu: route.map_or(1500, |route| route.mtu()),
            family: plan.case.family,
            receiver_sysctls: sysctls(&spec.to),
            sender_sysctls: sysctls(&spec.from),
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
    ) -> Result<Measured, RunError> {
        let case = plan.case;
        // Another attempt is another sample: the same draws would meet the same fate.
        let seed = case.seed.wrapping_add(u64::from(attempt - 1));
        let (mut testbed, streams) =
            Testbed::build(&self.command, driver, case.family, &plan.hosts, links, seed, captures)?;
        let agents = Agents::new(case.hosts.iter().map(|h| h.name.clone()).zip(streams))?;
        let mut session = Session { case, agents };
        let cpu_before = HostCpu::read();
        let echoes = session.start_echoes(&testbed)?;
        let idle = session.probe_idle(&echoes)?;
        let begun_at_ns = clock::monotonic_ns();
        let watch = Watch::start(testbed.processes());
        let (flows, loaded) = session.run_flows(&testbed, calibrations, &echoes)?;
        let watched = watch.finish();
        let probed = echoes
            .into_iter()
            .zip(idle)
            .zip(loaded)
            .map(|((echo, idle), loaded)| PairProbed { pair: echo.pair, idle, loaded })
            .collect();
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
        let privilege = testbed.privilege().to_owned();
        Ok(Measured { probed, begun_at_ns, flows, sysctls, outcomes, watched, host_cpu, privilege })
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
        let rtt_of = |flow: &FlowSpec, counted: &Range<u64>| {
            let probed = measured.probed.iter().find(|p| p.pair.joins(flow));
            probed.map(|p| p.rtt_ns(case, counted)).unwrap_or_default()
        };
        let mut seen = observe::seen(case, &measured.probed, &measured.flows, &measured.outcomes);
        let flows: Vec<FlowRecord> = case
            .flows
            .iter()
            .zip(&plan.means)
            .zip(calibrations)
            .zip(measured.flows)
            .map(|(((spec, means), calibration), (received, sent))| {
                let start_ns = received
                    .first_byte_at_ns
                    .map_or(spec.start.as_ns(), |at| at.saturating_sub(measured.begun_at_ns));
                let rtt_ns = rtt_of(spec, &received.counted_within().unwrap_or_default());
                let record = flow_record(case, spec, *means, *calibration, received, sent);
                FlowRecord { start_ns, rtt_ns, ..record }
            })
            .collect();
        let first = flows.first().map(|flow| flow.rtt_ns.clone()).unwrap_or_default();
        let counted = case.flows.iter().zip(&flows).filter(|(spec, _)| !spec.background);
        let goodput = (!flows.is_empty()).then(|| counted.map(|(_, flow)| flow.goodput_bps).sum());
        let expected = verdict::expected(case, &plan.means, &flows);
        seen.watched = measured.watched;
        seen.host_cpu = measured.host_cpu;
        seen.cpus = environment.cpus;
        seen.shared = beside;
        let fidelity = judge_fidelity(seen, &Bounds::default());
        environment.privilege = measured.privilege;
        environment.sysctls = measured.sysctls;
        let mut expectation = verdict::judge(&case.expect, goodput, expected.as_ref().map(|e| e.0));
        if let (Some(e), false) = (&mut expectation, fidelity.valid) {
            e.met = None;
        }
        let mut record = Record {
            valid: fidelity.valid,
            fidelity,
            goodput_bps: goodput,
            expected_bps: expected.as_ref().map(|e| e.0),
            expected_by: expected.map(|e| e.1),
            expectation,
            rtt_idle_ns: first.idle.map(|r| r.min),
            rtt_ns: first,
            window: flows.first().map(|f| f.window.clone()).unwrap_or_default(),
            flows,
            ..blank(case, attempt, environment)
        };
        verdict::explain_flows(&mut record);
        record
    }
}

/// A case with the means of its windows and the hosts as they will be.
struct Plan<'a> {
    case: &'a CaseSpec,
    means: Vec<Means>,
    hosts: Vec<HostSpec>,
}

impl<'a> Plan<'a> {
    fn make(case: &'a CaseSpec) -> Result<Self, RunError> {
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
                    case.flows.iter().filter(|f| f.from == host.name).filter_map(|f| f.window).max();
                let mut sysctls = default_sysctls(largest.map_or(0, |w| w.as_bytes()));
                sysctls.extend(host.sysctls.clone());
                HostSpec { sysctls, ..host.clone() }
            })
            .collect();
        Ok(Self { case, means, hosts })
    }
}

/// Buffers that every host of the lab starts from, whatever this machine's own are, so that a scenario means the same
/// everywhere. The sender's never binds before the window asked for does.
fn default_sysctls(largest_window: u64) -> BTreeMap<String, String> {
    let send = (4 * largest_window).max(4 << 20);
    BTreeMap::from([
        ("net.ipv4.tcp_rmem".to_owned(), "4096 131072 6291456".to_owned()),
        ("net.ipv4.tcp_wmem".to_owned(), format!("4096 16384 {send}")),
    ])
}

/// The agents of a case and what they are asked in turn.
struct Session<'a> {
    case: &'a CaseSpec,
    agents: Agents,
}

/// A pair of hosts and where its probes are answered.
struct Echo {
    pair: Pair,
    to: std::net::SocketAddr,
}

/// What was probed between two hosts.
pub(crate) struct PairProbed {
    pub(crate) pair: Pair,
    /// Each probe before the flows started.
    pub(crate) idle: Probed,
    /// Each probe beside them.
    pub(crate) loaded: Probed,
}

impl PairProbed {
    /// Before the flows, and while one of them counted: under load are the probes that were sent then.
    fn rtt_ns(&self, case: &CaseSpec, counted: &Range<u64>) -> RttReport {
        let patience = probe_patience(case);
        RttReport::of_probes(self.idle.outcomes(&ALWAYS, patience), self.loaded.outcomes(counted, patience))
    }
}

impl Session<'_> {
    /// Of the probes between a pair of hosts: behind those of the flows.
    fn probe_number(&self, pair: u32) -> u32 {
        self.case.flows.len() as u32 + pair
    }

    fn start_echoes(&mut self, testbed: &Testbed) -> Result<Vec<Echo>, RunError> {
        let mut echoes = Vec::new();
        for pair in Pair::all(self.case) {
            let address = route(testbed, &pair.from, &pair.to)?.1;
            let request = Request::Echo { address: (address, 0).into(), kind: self.case.probe };
            let answer = self.agents.call(&pair.to, request, PATIENCE.to_duration())?;
            let port = expect_answer!(answer, Answer::Listening { port } => port)?;
            echoes.push(Echo { pair, to: (address, port).into() });
        }
        Ok(echoes)
    }

    /// Starts a probe flow for each pair, evenly spread over the interval, so that none waits behind another's probe.
    fn start_probes(
        &mut self,
        echoes: &[Echo],
        interval: Nanos,
        duration: Nanos,
    ) -> Result<Vec<Pending>, RunError> {
        let mut probing = Vec::new();
        for (echo, i) in echoes.iter().zip(0u32..) {
            let order = Request::Probe(ProbeOrder {
                flow: self.probe_number(i),
                kind: self.case.probe,
                to: echo.to,
                offset: Nanos(interval.as_ns() * u64::from(i) / echoes.len() as u64),
                interval,
                duration,
                patience: probe_patience(self.case),
            });
            probing.push(self.agents.ask(&echo.pair.from, order)?);
        }
        Ok(probing)
    }

    fn fetch_probes(
        &mut self,
        probing: Vec<Pending>,
        deadline: std::time::Duration,
    ) -> Result<Vec<Probed>, RunError> {
        let mut probed = Vec::new();
        for pending in probing {
            let answer = self.agents.fetch(pending, deadline)?;
            probed.push(expect_answer!(answer, Answer::Probed(p) => p)?);
        }
        Ok(probed)
    }

    /// Probes the idle links, once more where the machine was disturbed meanwhile: that costs less than the case would.
    fn probe_idle(&mut self, echoes: &[Echo]) -> Result<Vec<Probed>, RunError> {
        let deadline = (self.case.idle + probe_patience(self.case) + PATIENCE).to_duration();
        for _ in 1..IDLE_TRIES {
            let probing = self.start_probes(echoes, IDLE_PROBE_INTERVAL, self.case.idle)?;
            let probed = self.fetch_probes(probing, deadline)?;
            if echoes
                .iter()
                .zip(&probed)
                .all(|(echo, probed)| observe::idle_is_plausible(self.case, &echo.pair, probed))
            {
                return Ok(probed);
            }
        }
        let probing = self.start_probes(echoes, IDLE_PROBE_INTERVAL, self.case.idle)?;
        self.fetch_probes(probing, deadline)
    }

    fn run_flows(
        &mut self,
        testbed: &Testbed,
        calibrations: &[Option<Calibration>],
        echoes: &[Echo],
    ) -> Result<Outcomes, RunError> {
        let flows = &self.case.flows;
        let last_end = flows.iter().map(|f| f.start + f.duration).max().unwrap_or_default();
        // A receiver has to see the first byte, run its time and answer; a sender ends by the receiver's reset.
        let deadline = (last_end + PATIENCE + PATIENCE + PATIENCE).to_duration();
        let mut listening = Vec::new();
        for ((flow, calibration), number) in flows.iter().zip(calibrations).zip(0..) {
            let address = route(testbed, &flow.from, &flow.to)?.1;
            let source = StreamSource::Listen {
                address: (address, 0).into(),
                patience: flow.start + PATIENCE,
                tcp_rmem_bytes: calibration.map(|c| c.buffer_bytes),
            };
            let order = Request::Prepare(Box::new(order(flow, number, Role::Receive, source)));
            let answer = self.agents.call(&flow.to, order, deadline)?;
            listening.push(expect_answer!(answer, Answer::Listening { port } => (address, port))?);
        }
        let mut collecting: Vec<Pending> = Vec::new();
        let mut sending: Vec<Pending> = Vec::new();
        for ((flow, &to), number) in flows.iter().zip(&listening).zip(0..) {
            collecting.push(self.agents.ask(&flow.to, Request::Collect { flow: number })?);
            let source = StreamSource::Connect { to: to.into(), start: flow.start, patience: PATIENCE };
            let order = Request::Prepare(Box::new(order(flow, number, Role::Send, source)));
            let _prepared = self.agents.ask(&flow.from, order)?;
            let _begun = self.agents.ask(&flow.from, Request::Begin { flow: number })?;
            sending.push(self.agents.ask(&flow.from, Request::Collect { flow: number })?);
        }
        // Until they are stopped: a flow's time begins with its first byte, however late that comes.
        let probing = self.start_probes(echoes, loaded_probe_interval(self.case), last_end + PATIENCE)?;
        let mut received = Vec::new();
        for pending in collecting {
            let answer = self.agents.fetch(pending, deadline)?;
            received.push(expect_answer!(answer, Answer::Received(r) => r)?);
        }
        let mut stopping = Vec::new();
        for (flow, number) in flows.iter().zip(0..) {
            stopping.push(self.agents.ask(&flow.from, Request::Stop { flow: number })?);
        }
        for (echo, i) in echoes.iter().zip(0..) {
            let stop = Request::Stop { flow: self.probe_number(i) };
            stopping.push(self.agents.ask(&echo.pair.from, stop)?);
        }
        for pending in stopping {
            self.agents.fetch(pending, deadline)?;
        }
        let mut outcome = Vec::new();
        for ((flow, pending), received) in flows.iter().zip(sending).zip(received) {
            check_counted(flow, &received)?;
            let answer = self.agents.fetch(pending, deadline)?;
            outcome.push((received, expect_answer!(answer, Answer::Sent(s) => s)?));
        }
        Ok((outcome, self.fetch_probes(probing, deadline)?))
    }

    fn read_sysctls(&mut self) -> Result<BTreeMap<String, BTreeMap<String, String>>, RunError> {
        let names: Vec<String> = RECORDED_SYSCTLS.iter().map(|&n| n.to_owned()).collect();
        let mut all = BTreeMap::new();
        for host in &self.case.hosts {
            let mut names = names.clone();
            names.extend(host.sysctls.keys().cloned());
            let answer =
                self.agents.call(&host.name, Request::ReadSysctls { names }, PATIENCE.to_duration())?;
            all.insert(host.name.clone(), expect_answer!(answer, Answer::Sysctls(values) => values)?);
        }
        let own = ["net.core.rmem_max", "net.core.wmem_max"];
        let own = own.into_iter().filter_map(|n| sysctl::read(n).ok().map(|v| (n.to_owned(), v))).collect();
        all.insert("machine".to_owned(), own);
        Ok(all)
    }

    fn read_device(&mut self, host: &str, device: &str) -> Result<DeviceReading, RunError> {
        let request = Request::ReadCounters { device: device.to_owned() };
        let answer = self.agents.call(host, request, PATIENCE.to_duration())?;
        Ok(expect_answer!(
            answer,
            Answer::Counters { rx_packets, tx_packets, tx_dropped, .. } =>
                DeviceReading { rx_packets, tx_packets, tx_dropped }
        )?)
    }
}

/// What the agent at one end of a flow is to do.
fn order(spec: &FlowSpec, number: u32, role: Role, source: StreamSource) -> FlowOrder {
    let sends = role == Role::Send;
    let datagrams = spec.udp.map(|udp| DatagramOrder {
        payload_bytes: Some(udp.datagram_bytes),
        rate_bps: Some(udp.rate.as_bps()),
        dont_fragment: false,
        path_mtu: None,
    });
    FlowOrder {
        streams: spec.streams,
        // Only the receiver knows when the first byte came.
        omit: if sends { Nanos::ZERO } else { spec.omit },
        interval: LAB_SAMPLE_INTERVAL,
        bytes: spec.bytes.filter(|_| sends).map(|b| b.as_bytes()),
        length_bytes: spec.length.as_bytes(),
        mss: spec.mss,
        congestion: Some(spec.congestion.clone()).filter(|_| sends),
        nodelay: spec.nodelay,
        datagrams,
        // Bytes are copied: that keeps what a case costs the same on every kernel.
        ..FlowOrder::plain(number, role, source, spec.duration)
    }
}

/// How long after a probe its answer may come. One that the link lost is waited for all that time. A connection is
/// given time for two more SYNs, which Linux sends after one second and after three.
fn probe_patience(case: &CaseSpec) -> Nanos {
    let longest = Pair::all(case).iter().filter_map(|pair| configured_rtt(case, pair)).max();
    let rtt = longest.unwrap_or_default();
    let more = match case.probe {
        ProbeKind::Udp => Nanos::secs(2),
        ProbeKind::TcpConnect => Nanos::secs(5),
    };
    rtt + rtt + more
}

/// A flow that ended within its omit has no goodput, nor one whose bytes came all at once.
fn check_counted(flow: &FlowSpec, received: &Received) -> Result<(), RunError> {
    if received.counted_ns() > 0 {
        if flow.bytes.is_some() && received.counted_bytes() == 0 {
            return Err(RunError::Case(format!(
                "the {} from '{}' to '{}' came in one piece, and no time is left to tell a rate by; set more bytes",
                ByteCount::bytes(received.bytes),
                flow.from,
                flow.to
            )));
        }
        return Ok(());
    }
    Err(RunError::Case(format!(
        "the flow from '{}' to '{}' ended after {}, within the omit of {}, and nothing is left to count; set a \
         smaller omit, or more bytes",
        flow.from,
        flow.to,
        Nanos(received.duration_ns),
        flow.omit
    )))
}

fn route(testbed: &Testbed, from: &str, to: &str) -> Result<(std::net::IpAddr, std::net::IpAddr), RunError> {
    testbed.route(from, to).ok_or_else(|| RunError::Case(format!("no way from host '{from}' to host '{to}'")))
}

fn flow_record(
    case: &CaseSpec,
    spec: &FlowSpec,
    means: Means,
    calibration: Option<Calibration>,
    received: Received,
    sent: Sent,
) -> FlowRecord {
    let window = match spec.udp {
        // Datagrams have no window.
        Some(_) => WindowReport { method: WindowMechanism::None, ..Default::default() },
        None => window_report(case, spec, means, calibration, &received, &sent),
    };
    let asked = spec.udp.map(|udp| udp.rate.as_bps() as f64 * f64::from(spec.streams));
    // All hosts of the lab have one clock.
    let udp = bdp_flow::datagram::outcome::report(asked, &received, &sent, Some((0, 0)));
    FlowRecord {
        from: spec.from.clone(),
        to: spec.to.clone(),
        start_ns: spec.start.as_ns(),
        rtt_ns: RttReport::default(),
        goodput_bps: received.goodput_bps(),
        received_bytes: received.bytes,
        duration_ns: received.duration_ns,
        omit_ns: received.counted_from.at_ns,
        stream_goodput_bps: received.stream_goodput_bps(),
        retransmits: sent.retransmits,
        congestion_control: sent.congestion,
        mss_bytes: sent.mss,
        window,
        sender_cpu: sent.cpu,
        receiver_cpu: received.cpu,
        received: received.samples,
        sent: sent.samples,
        udp,
        needless_retransmits: sent.needless_retransmits,
        send_buffer_bytes: sent.send_buffer_bytes,
        sender_thread_cpu: sent.thread_cpu,
        receiver_thread_cpu: received.thread_cpu,
        sender_window_scaling: sent.window_scaling,
        receiver_window_scaling: received.window_scaling,
        findings: Vec::new(),
    }
}

fn window_report(
    case: &CaseSpec,
    spec: &FlowSpec,
    means: Means,
    calibration: Option<Calibration>,
    received: &Received,
    sent: &Sent,
) -> WindowReport {
    let mut seen = sent.windows_seen(spec.omit);
    let on_the_wire = median(&mut seen).map(|w| w as u64);
    // Of a full segment: below one, senders shrink theirs.
    let mss = segment::planned_mss(case, spec);
    let target = match means {
        Means::Autotuned => None,
        Means::Receiver { target_bytes } => Some(target_bytes),
        Means::Path { clamp_bytes } => Some(u64::from(clamp_bytes)),
    };
    let reached = target.map(|target| on_the_wire.is_some_and(|seen| fits(seen, target, mss)));
    let note = (reached == Some(false)).then(|| match (on_the_wire, calibration) {
        (None, _) => WindowShortfall::NoneSeen,
        (Some(seen_bytes), Some(c)) if !fits(c.window_bytes, target.unwrap_or(0), mss) => {
            let (best_bytes, buffer_bytes) = (c.window_bytes, c.buffer_bytes);
            WindowShortfall::NotCalibrated { seen_bytes, best_bytes, buffer_bytes }
        }
        (Some(seen_bytes), Some(c)) => WindowShortfall::BelowTwin { seen_bytes, twin_bytes: c.window_bytes },
        (Some(seen_bytes), None) => WindowShortfall::BesideClamp { seen_bytes },
    });
    WindowReport {
        asked_bytes: spec.window.map(|w| w.as_bytes()),
        socket_buffer_bytes: received.receive_buffer_bytes,
        on_the_wire_bytes: on_the_wire,
        on_the_wire_max_bytes: seen.last().map(|&w| w as u64),
        method: match means {
            Means::Autotuned => WindowMechanism::Autotuned,
            Means::Receiver { .. } => WindowMechanism::TcpRmem,
            Means::Path { .. } => WindowMechanism::PathClamp,
        },
        reached,
        note,
    }
}

/// From one probe to the next while the flows of a case run.
pub(crate) fn loaded_probe_interval(case: &CaseSpec) -> Nanos {
    let mut directions = case.links.iter().flat_map(|link| [&link.config.forward, &link.config.reverse]);
    // Losses that count packets would hit probes in place of segments.
    let easy =
        directions.all(|d| d.rate.is_none_or(|rate| rate >= EASY_RATE) && matches!(d.loss, Loss::None));
    // A connection costs both hosts more than a datagram.
    LOADED_PROBE_INTERVALS[usize::from(!easy || case.probe != ProbeKind::Udp)]
}

/// The round trip that a probe finds on idle links: both delays and every serialisation.
pub(crate) fn configured_rtt(case: &CaseSpec, pair: &Pair) -> Option<Nanos> {
    let flow = case.flows.iter().find(|flow| pair.joins(flow))?;
    let (there, back) = probe_bytes(case, flow);
    Some(Route::between(case, &pair.from, &pair.to)?.round_trip(there, back))
}

/// The least that jitter can make of it.
pub(crate) fn least_rtt(case: &CaseSpec, pair: &Pair) -> Option<Nanos> {
    let flow = case.flows.iter().find(|flow| pair.joins(flow))?;
    let (there, back) = probe_bytes(case, flow);
    Some(Route::between(case, &pair.from, &pair.to)?.least_round_trip(there, back))
}

/// Bytes of a probe between a flow's hosts and of its answer, as IP packets.
pub(crate) fn probe_bytes(case: &CaseSpec, flow: &FlowSpec) -> (u64, u64) {
    let ip = segment::ip_header_bytes(case.family);
    if case.probe == ProbeKind::Udp {
        return (ip + PROBE_UDP_BYTES, ip + PROBE_UDP_BYTES);
    }
    // A SYN has what the host that sends it leaves on, its answer what both do. Linux puts the permission for SACK into the
    // padding of timestamps, where there are any; the segment size takes 4 bytes, timestamps 12, the scale and SACK 4 each.
    let options = |on: &dyn Fn(&str) -> bool| {
        let sack = on("tcp_sack") && !on("tcp_timestamps");
        4 + if on("tcp_timestamps") { 12 } else { 0 }
            + if on("tcp_window_scaling") { 4 } else { 0 }
            + if sack { 4 } else { 0 }
    };
    let both = ip + 20 + options(&|extension| segment::both_use(case, flow, extension));
    (both, both)
}

fn failed(case: &CaseSpec, attempt: u32, error: &RunError, environment: Environment) -> Record {
    let expectation = verdict::judge(&case.expect, None, None).map(|mut e| {
        e.met = None;
        e
    });
    Record { error: Some(error.to_string()), expectation, ..blank(case, attempt, environment) }
}

pub(crate) fn blank(case: &CaseSpec, attempt: u32, environment: Environment) -> Record {
    Record {
        schema: RECORD_SCHEMA.to_owned(),
        scenario: case.scenario.clone(),
        title: case.title.clone(),
        params: case.params.clone(),
        repetition: case.repetition,
        attempt,
        seed: case.seed,
        valid: false,
        fidelity: Fidelity::default(),
        goodput_bps: None,
        expected_bps: None,
        expected_by: None,
        published_bps: case.published_bps,
        expectation: None,
        rtt_idle_ns: None,
        rtt_ns: RttReport::default(),
        window: WindowReport {
            asked_bytes: case.flows.first().and_then(|f| f.window).map(|w| w.as_bytes()),
            ..Default::default()
        },
        flows: Vec::new(),
        captures: Vec::new(),
        error: None,
        environment,
        case: case.clone(),
    }
}
