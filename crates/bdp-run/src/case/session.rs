//! Requests to the agents of a case, in order: echoes, probes of idle links, flows with probes, readings.

use std::collections::{BTreeMap, BTreeSet};

use bdp_agent::expect_answer;
use bdp_agent::remote::{Agents, Pending};
use bdp_lab::Testbed;
use bdp_lab::testbed::DeviceReading;
use bdp_model::case::traffic::{self, Pattern};
use bdp_model::case::{CaseFlow, CaseSpec};
use bdp_model::measurement::host_counters::HostCounters;
use bdp_model::tuning::setting::Setting;
use bdp_model::units::{ByteCount, Nanos};
use bdp_sys::sysctl;
use bdp_wire::control::{
    Answer, ExchangeOrder, Exchanged, FlowOrder, ProbeOrder, Probed, Received, Request, Role, Sent,
    StreamSource,
};

use crate::case::calibrate::Calibration;
use crate::case::observe;
use crate::case::pair::{Ends, Pair};
use crate::case::probing::{IDLE_PROBE_INTERVAL, PairTimes, loaded_probe_interval, probe_patience};
use crate::{Result, RunError};

/// How often idle links are probed until the round trip is as expected.
const IDLE_TRIES: u32 = 3;
/// How long connections and first bytes are awaited, in addition to what the path needs.
const PATIENCE: Nanos = Nanos::secs(20);
/// Sysctls that are read back into the record.
const RECORDED_SYSCTLS: [Setting; 8] = [
    Setting::TcpRmem,
    Setting::TcpWmem,
    Setting::TcpWindowScaling,
    Setting::TcpModerateRcvbuf,
    Setting::TcpTimestamps,
    Setting::TcpSack,
    Setting::TcpNoMetricsSave,
    Setting::TcpAdvWinScale,
];

/// Results of a case's flows.
pub(crate) struct Outcomes {
    /// Both ends' reports of each flow.
    pub(crate) flows: Vec<Ends>,
    /// Each probe flow under load.
    pub(crate) loaded: Vec<Probed>,
    /// Requests and responses, by the index of their traffic entry.
    pub(crate) exchanged: BTreeMap<u32, Exchanged>,
}

/// The agents of a case, and the sequence of requests to them.
pub(crate) struct Session<'a> {
    pub(crate) case: &'a CaseSpec,
    pub(crate) agents: Agents,
}

/// A pair of hosts, and the address that answers its probes.
pub(crate) struct Echo {
    pub(crate) pair: Pair,
    to: std::net::SocketAddr,
}

impl Session<'_> {
    /// Returns the number of the probes between a pair of hosts: after those of the flows.
    fn probe_number(&self, pair: u32) -> u32 {
        self.case.flows.len() as u32 + pair
    }

    pub(crate) fn start_echoes(&mut self, testbed: &Testbed) -> Result<Vec<Echo>> {
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

    /// Starts a probe flow for each pair, at times that depend on its place and how many there are.
    fn start_probes(
        &mut self,
        echoes: &[Echo],
        interval: Nanos,
        times: fn(&CaseSpec, usize, usize) -> PairTimes,
        duration: Nanos,
    ) -> Result<Vec<Pending>> {
        let mut probing = Vec::new();
        for (echo, i) in echoes.iter().zip(0u32..) {
            let PairTimes { offset, jitter, seed } = times(self.case, i as usize, echoes.len());
            let order = Request::Probe(ProbeOrder {
                flow: self.probe_number(i),
                kind: self.case.probe,
                to: echo.to,
                offset,
                interval,
                jitter,
                seed,
                duration,
                patience: probe_patience(self.case),
            });
            probing.push(self.agents.ask(&echo.pair.from, order)?);
        }
        Ok(probing)
    }

    fn fetch_probes(&mut self, probing: Vec<Pending>, deadline: std::time::Duration) -> Result<Vec<Probed>> {
        let mut probed = Vec::new();
        for pending in probing {
            let answer = self.agents.fetch(pending, deadline)?;
            probed.push(expect_answer!(answer, Answer::Probed(p) => p)?);
        }
        Ok(probed)
    }

    /// Probes the idle links, and once more if the machine was disturbed meanwhile, which is cheaper than repeating
    /// the case.
    pub(crate) fn probe_idle(&mut self, echoes: &[Echo]) -> Result<Vec<Probed>> {
        let deadline = (self.case.idle + probe_patience(self.case) + PATIENCE).to_duration();
        for _ in 1..IDLE_TRIES {
            let probing = self.start_probes(echoes, IDLE_PROBE_INTERVAL, PairTimes::idle, self.case.idle)?;
            let probed = self.fetch_probes(probing, deadline)?;
            if echoes
                .iter()
                .zip(&probed)
                .all(|(echo, probed)| observe::idle_is_plausible(self.case, &echo.pair, probed))
            {
                return Ok(probed);
            }
        }
        let probing = self.start_probes(echoes, IDLE_PROBE_INTERVAL, PairTimes::idle, self.case.idle)?;
        self.fetch_probes(probing, deadline)
    }

    pub(crate) fn run_flows(
        &mut self,
        testbed: &Testbed,
        calibrations: &[Option<Calibration>],
        echoes: &[Echo],
    ) -> Result<Outcomes> {
        let flows = &self.case.flows;
        let of_traffic = self.case.traffic.iter().map(|t| t.start + t.duration);
        let last_end = flows.iter().map(|f| f.span().end).chain(of_traffic).max().unwrap_or_default();
        // A receiver has to see the first byte, run its time and answer; a sender ends by the receiver's reset.
        let ready = self.case.ready_after();
        let deadline = (ready + last_end + PATIENCE + PATIENCE + PATIENCE).to_duration();
        let listening = self.prepare_receivers(testbed, calibrations, ready, deadline)?;
        let exchanging = self.start_exchanges(testbed, ready, deadline)?;
        let mut collecting: Vec<Pending> = Vec::new();
        let mut sending: Vec<Pending> = Vec::new();
        for ((flow, &to), number) in flows.iter().zip(&listening).zip(0..) {
            collecting.push(self.collect(flow, &flow.to, number)?);
            let source =
                StreamSource::Connect { to: to.into(), start: ready + flow.start, patience: PATIENCE };
            let order = Request::Prepare(Box::new(order(flow, number, Role::Send, source)));
            let prepared = self.agents.ask(&flow.from, order)?;
            let begun = self.agents.ask(&flow.from, Request::Begin { flow: number })?;
            if flow.transfer.is_some() {
                // Many unread answers would fill the stream, and block further requests.
                self.agents.fetch(prepared, deadline)?;
                self.agents.fetch(begun, deadline)?;
            }
            sending.push(self.collect(flow, &flow.from, number)?);
        }
        // Until they are stopped: a flow's time begins with its first byte, however late that arrives.
        let interval = loaded_probe_interval(self.case);
        let probing = self.start_probes(echoes, interval, PairTimes::loaded, ready + last_end + PATIENCE)?;
        let mut received = Vec::new();
        for pending in collecting {
            let answer = self.agents.fetch(pending, deadline)?;
            received.push(match answer {
                // A transfer without a connection.
                Answer::Failed { .. } => Received::default(),
                answer => expect_answer!(answer, Answer::Received(r) => r)?,
            });
        }
        let mut exchanged = BTreeMap::new();
        for (place, pending) in exchanging {
            let answer = self.agents.fetch(pending, deadline)?;
            exchanged.insert(place, expect_answer!(answer, Answer::Exchanged(e) => e)?);
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
            let sent = match answer {
                Answer::Failed { .. } => Sent::default(),
                answer => expect_answer!(answer, Answer::Sent(s) => s)?,
            };
            outcome.push((received, sent));
        }
        Ok(Outcomes { flows: outcome, loaded: self.fetch_probes(probing, deadline)?, exchanged })
    }

    /// Has the receiver of each flow listen.
    fn prepare_receivers(
        &mut self,
        testbed: &Testbed,
        calibrations: &[Option<Calibration>],
        ready: Nanos,
        deadline: std::time::Duration,
    ) -> Result<Vec<(std::net::IpAddr, u16)>> {
        let mut listening = Vec::new();
        for ((flow, calibration), number) in self.case.flows.iter().zip(calibrations).zip(0..) {
            let address = route(testbed, &flow.from, &flow.to)?.1;
            let source = StreamSource::Listen {
                address: (address, 0).into(),
                patience: ready + flow.start + PATIENCE,
                tcp_rmem_bytes: calibration.map(|c| c.buffer_bytes),
            };
            let order = Request::Prepare(Box::new(order(flow, number, Role::Receive, source)));
            let answer = self.agents.call(&flow.to, order, deadline)?;
            listening.push(expect_answer!(answer, Answer::Listening { port } => (address, port))?);
        }
        Ok(listening)
    }

    /// Asks for a flow's outcome. A transfer may fail: on a full path not every connection is established.
    fn collect(&mut self, flow: &CaseFlow, host: &str, number: u32) -> Result<Pending> {
        let request = Request::Collect { flow: number };
        Ok(match flow.transfer {
            Some(_) => self.agents.try_to_ask(host, request)?,
            None => self.agents.ask(host, request)?,
        })
    }

    /// Starts the clients of all request-response traffic, when their time comes.
    fn start_exchanges(
        &mut self,
        testbed: &Testbed,
        ready: Nanos,
        deadline: std::time::Duration,
    ) -> Result<Vec<(u32, Pending)>> {
        let mut exchanging = Vec::new();
        for (traffic, place) in self.case.traffic.iter().zip(0..) {
            if !matches!(traffic.pattern, Pattern::RequestResponse { .. }) {
                continue;
            }
            let address = route(testbed, &traffic.to, &traffic.from)?.1;
            let request =
                Request::Respond { address: (address, 0).into(), congestion: traffic.congestion.clone() };
            let answer = self.agents.call(&traffic.from, request, deadline)?;
            let port = expect_answer!(answer, Answer::Listening { port } => port)?;
            let order = ExchangeOrder {
                traffic: traffic.clone(),
                seed: self.case.seed,
                place,
                to: (address, port).into(),
                start: ready + traffic.start,
                patience: traffic::PATIENCE,
            };
            let pending = self.agents.ask(&traffic.to, Request::Exchange(Box::new(order)))?;
            exchanging.push((place, pending));
        }
        Ok(exchanging)
    }

    pub(crate) fn read_sysctls(&mut self) -> Result<BTreeMap<String, BTreeMap<String, String>>> {
        let names: Vec<String> = RECORDED_SYSCTLS.map(String::from).to_vec();
        let mut all = BTreeMap::new();
        for host in &self.case.hosts {
            let mut names = names.clone();
            names.extend(host.sysctls.keys().cloned());
            let answer =
                self.agents.call(&host.name, Request::ReadSysctls { names }, PATIENCE.to_duration())?;
            all.insert(host.name.clone(), expect_answer!(answer, Answer::Sysctls(values) => values)?);
        }
        let own = [Setting::RmemMax, Setting::WmemMax];
        let own = own.into_iter().filter_map(|s| Some((s.into(), sysctl::read(s.name).ok()?))).collect();
        all.insert("machine".to_owned(), own);
        Ok(all)
    }

    /// Reads the counters of the hosts at the ends of flows.
    pub(crate) fn read_counters(&mut self) -> Result<BTreeMap<String, HostCounters>> {
        let ends: BTreeSet<&str> = self.case.flows.iter().flat_map(|flow| [&*flow.from, &*flow.to]).collect();
        let mut all = BTreeMap::new();
        for host in ends {
            let answer = self.agents.call(host, Request::HostCounters, PATIENCE.to_duration())?;
            let counters = expect_answer!(answer, Answer::HostCounters(counters) => *counters)?;
            all.insert(host.to_owned(), counters);
        }
        Ok(all)
    }

    pub(crate) fn read_device(&mut self, host: &str, device: &str) -> Result<DeviceReading> {
        let request = Request::ReadCounters { device: device.to_owned() };
        let answer = self.agents.call(host, request, PATIENCE.to_duration())?;
        Ok(expect_answer!(
            answer,
            Answer::Counters { rx_packets, tx_packets, tx_dropped, .. } =>
                DeviceReading { rx_packets, tx_packets, tx_dropped }
        )?)
    }
}

/// Returns the order for the agent at one end of a flow.
fn order(flow: &CaseFlow, number: u32, role: Role, source: StreamSource) -> FlowOrder {
    let mut order = FlowOrder::of(number, role, source, &flow.spec);
    // Means of its own bring it about.
    order.spec.window = None;
    if role == Role::Send {
        // Only the receiver knows when the first byte arrived.
        order.spec.omit = Nanos::ZERO;
    }
    order
}

/// A flow that ended within its omitted beginning has no goodput, nor has one whose bytes arrived all at once.
fn check_counted(flow: &CaseFlow, received: &Received) -> Result<()> {
    if flow.transfer.is_some() {
        return Ok(());
    }
    if received.counted_ns() > 0 {
        if flow.spec.bytes.is_some() && received.counted_bytes() == 0 {
            return Err(RunError::Case(format!(
                "the {} from '{}' to '{}' arrived in one read, too short to compute a rate; set more bytes",
                ByteCount::bytes(received.bytes),
                flow.from,
                flow.to
            )));
        }
        return Ok(());
    }
    Err(RunError::Case(format!(
        "the flow from '{}' to '{}' ended after {}, within the omitted {}, so nothing was measured; set a \
         smaller omit, or more bytes",
        flow.from,
        flow.to,
        Nanos(received.duration_ns),
        flow.spec.omit
    )))
}

fn route(testbed: &Testbed, from: &str, to: &str) -> Result<(std::net::IpAddr, std::net::IpAddr)> {
    let addresses = testbed.route(from, to);
    let addresses =
        addresses.ok_or_else(|| RunError::Case(format!("no path from host '{from}' to host '{to}'")))?;
    testbed.expect_traffic(from, to)?;
    Ok(addresses)
}
