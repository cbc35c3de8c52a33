//! A session for measurements with a server.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use bdp_flow::background::Passed;
use bdp_flow::session::error::{Result, SessionError};
use bdp_flow::session::options::{self, PATIENCE};
use bdp_flow::session::peer::{Context, ForeignProber, Outcome, Peer, Polled, Probes};
use bdp_flow::session::reporter::{Reporter, SHORTEST_TICK};
use bdp_flow::session::{datagrams, dial, outcome};
use bdp_model::finding::caveat::Caveat;
use bdp_model::measurement::{Direction, DirectionResult, HostFacts, MeasureRequest, PathFacts};
use bdp_model::units::format_bps;
use bdp_sys::clock;
use bdp_sys::socket::{self, TcpOptions};
use bdp_sys::stamp::StampedSocket;
use bdp_sys::tcp_info::TcpInfo;
use bdp_wire::control::{Answer, Request};
use bdp_wire::session::{Kind, Ticket};

use super::control::{Control, Pending};
use super::dry::Dry;
use super::flow::{self, Flow};
use super::foreign::Foreign;
use super::interruption::Interruption;
use super::most::Most;
use super::path_mtu::{self, UDP_PATIENCE};
use super::prober::{Prober, Transport};

/// How long late probes are awaited after a flow.
const LATE_PROBES: Duration = Duration::from_secs(1);

/// A session that a server has admitted.
pub struct Session {
    control: Control,
    /// Round trip of the first connection, for timeouts.
    round_trip: Duration,
    prober: Option<Prober>,
    next_flow: u32,
    /// Path MTU discovered before flows of datagrams.
    path_mtu: path_mtu::Found,
    round: Round,
}

/// Flows that run at the same time.
#[derive(Default)]
struct Round {
    flows: Vec<Flow>,
    /// The pending requests for the server's reports.
    pending: Vec<Pending>,
    far: Vec<Option<Answer>>,
    since: Option<Instant>,
    /// When the flows had ended at this end.
    ended: Option<Instant>,
    interruption: Interruption,
    /// Whether anything gets through at all.
    dry: Dry,
}

impl Session {
    pub(super) fn new(control: Control, round_trip: Duration) -> Self {
        Self {
            control,
            round_trip,
            prober: None,
            next_flow: 1,
            path_mtu: path_mtu::Found::default(),
            round: Round::default(),
        }
    }
}

impl Peer for Session {
    fn open(&mut self, request: &MeasureRequest, context: &mut Context<'_>) -> Result<MeasureRequest> {
        let granted = grant(request, &self.control)?;
        context.note_local(self.local_ip());
        Ok(granted)
    }

    fn start_probes(&mut self, request: &MeasureRequest, context: &mut Context<'_>) -> Result<Option<u64>> {
        let from = SocketAddr::from((self.local_ip(), 0));
        let device = request.bind_device.as_deref();
        let socket = socket::connect_udp(Some(from), self.control.address, device, request.spec.dscp)?;
        let socket = StampedSocket::over(socket)?;
        self.prober = Some(Prober::start(self.control.key, Transport::Udp(socket))?);
        // Far longer than the path takes, however long that is.
        let patience = self.udp_patience();
        let (began, since) = (clock::monotonic_ns(), Instant::now());
        while self.last_rtt().is_none() && since.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(10));
            context.reporter.check_cancel()?;
        }
        if self.last_rtt().is_some() {
            return Ok(Some(began));
        }
        self.fall_back_to_tcp(request, context)?;
        Ok(Some(clock::monotonic_ns()))
    }

    fn end_idle(&mut self, request: &MeasureRequest, until_ns: u64, context: &mut Context<'_>) -> Result<()> {
        self.await_answers(until_ns, self.udp_patience(), &context.reporter)?;
        if request.spec.udp.is_some() { self.discover_path_mtu(request, context) } else { Ok(()) }
    }

    fn begin(
        &mut self,
        request: &MeasureRequest,
        ways: &[Direction],
        context: &mut Context<'_>,
    ) -> Result<()> {
        // Earlier flows are over; their remains close here.
        self.round = Round::default();
        let mut flows = Vec::new();
        for &way in ways {
            flows.push(self.connect(request, way, context.reporter.cancel)?);
        }
        let mut pending = Vec::new();
        for flow in &mut flows {
            // A receiver reads before the sender may write.
            flow.start_receiving(request)?;
            pending.push(self.control.ask(Request::Begin { flow: flow.number })?);
        }
        for (flow, pending) in flows.iter_mut().zip(pending) {
            self.expect_done(pending, "stream setup", &context.reporter)?;
            flow.start_sending(request, self.path_mtu.mtu())?;
        }
        for flow in &flows {
            self.round.pending.push(self.control.ask(Request::Collect { flow: flow.number })?);
        }
        self.round.far = flows.iter().map(|_| None).collect();
        self.round.flows = flows;
        self.round.since = Some(Instant::now());
        // Arrived datagrams are counted at the end.
        self.round.dry = Dry::begun(request.spec.udp.is_none());
        Ok(())
    }

    fn poll(&mut self, request: &MeasureRequest, _: &mut Context<'_>) -> Result<Polled> {
        let (address, round) = (self.control.address, &mut self.round);
        let most = Most::of(request, round.since.map_or(Duration::ZERO, |since| since.elapsed()));
        self.control.expect_bytes(most.bytes());
        for ((flow, pending), far) in round.flows.iter().zip(&round.pending).zip(&mut round.far) {
            if far.is_none() {
                *far = self.control.poll(*pending, Duration::from_millis(10))?;
                if let Some(answer) = &*far {
                    most.check(answer).map_err(|what| SessionError::NotBdp { address, what })?;
                }
                if far.is_some() && flow.way == Direction::To {
                    flow.work.stop();
                }
            }
        }
        let over_here = round.flows.iter().all(|flow| flow.work.is_finished());
        if round.far.iter().all(Option::is_some) {
            if over_here {
                return Ok(Polled::Over);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        if let Some(flow) = round.flows.iter_mut().find(|f| f.work.has_failed()) {
            // Its own message is better than what the server makes of its silence.
            flow.work.finish().map_err(|error| SessionError::of_flow(error, address))?;
        }
        let probes = self.prober.as_ref();
        if round.dry.look(&round.flows, |within| probes.is_some_and(|p| p.answered(within))) {
            round.interruption.begin();
        }
        let datagrams = request.spec.udp.is_some();
        round.interruption.poll(&mut self.control, &round.flows, datagrams, self.round_trip)?;
        // Its end of a flow that is over here can't be far.
        let over = over_here.then(|| *round.ended.get_or_insert_with(Instant::now));
        let deadline = request.spec.duration.to_duration() + 3 * PATIENCE;
        if round.since.is_some_and(|since| since.elapsed() > deadline)
            || over.is_some_and(|ended| ended.elapsed() > PATIENCE)
        {
            return Err(SessionError::Silent { address, doing: "the end of a flow" });
        }
        Ok(Polled::Running)
    }

    fn moved(&mut self) -> Vec<(Direction, Passed)> {
        self.round.flows.iter_mut().map(|flow| (flow.way, flow.work.moved_since())).collect()
    }

    fn sender_infos(&self) -> Vec<(Direction, Vec<TcpInfo>)> {
        self.round.flows.iter().map(|flow| (flow.way, flow.work.sender_infos())).collect()
    }

    fn runs_experiments(&self) -> bool {
        true
    }

    fn grow(&mut self, request: &MeasureRequest, way: Direction, context: &mut Context<'_>) -> Result<bool> {
        let mut flow = match self.connect(request, way, context.reporter.cancel) {
            Ok(flow) => flow,
            // The server grants no more.
            Err(SessionError::Far { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        flow.start_receiving(request)?;
        let pending = self.control.ask(Request::Begin { flow: flow.number })?;
        self.expect_done(pending, "stream setup", &context.reporter)?;
        flow.start_sending(request, self.path_mtu.mtu())?;
        self.round.pending.push(self.control.ask(Request::Collect { flow: flow.number })?);
        self.round.far.push(None);
        self.round.flows.push(flow);
        Ok(true)
    }

    fn foreign_prober(&self, request: &MeasureRequest) -> Option<Arc<dyn ForeignProber>> {
        Some(Arc::new(Foreign::new(request, self.control.address, self.control.key)))
    }

    fn has_begun(&self) -> bool {
        self.round.flows.iter().any(|flow| flow.work.bytes() > 0)
    }

    fn interrupt(&mut self, _: &mut Context<'_>) -> Result<()> {
        self.round.interruption.begin();
        Ok(())
    }

    fn salvage(&mut self, request: &MeasureRequest) -> Vec<Outcome> {
        let flows = std::mem::take(&mut self.round).flows;
        flows.iter().for_each(|flow| flow.work.stop());
        flows.into_iter().filter_map(|flow| flow.near_alone(request)).collect()
    }

    fn finish(&mut self, _: &MeasureRequest, _: &mut Context<'_>) -> Result<Vec<Outcome>> {
        let address = self.control.address;
        let mut outcomes = Vec::new();
        for (flow, far) in self.round.flows.iter_mut().zip(self.round.far.drain(..)) {
            let near = flow.work.finish().map_err(|error| SessionError::of_flow(error, address))?;
            let outcome = far.and_then(|far| flow.outcome(near, far));
            let outcome = outcome.ok_or_else(|| self.control.out_of_turn())?;
            let outcome = self.round.dry.concluded(outcome);
            let caveats = datagrams::fragments(flow.way, &outcome.sent, address).into_iter().collect();
            outcomes.push(Outcome { caveats, sender_infos: flow.work.sender_infos(), ..outcome });
        }
        Ok(outcomes)
    }

    fn await_probes(&mut self, until_ns: u64, context: &mut Context<'_>) -> Result<()> {
        self.await_answers(until_ns, LATE_PROBES.max(2 * self.round_trip), &context.reporter)
    }

    fn probes(&self) -> Option<&dyn Probes> {
        self.prober.as_ref().map(|prober| prober as &dyn Probes)
    }

    fn note_path(&self, path: &mut PathFacts) {
        self.path_mtu.note(path);
    }

    fn explain(&self, error: SessionError, request: &MeasureRequest) -> SessionError {
        self.path_mtu.explain(error, request, self.control.address)
    }

    fn remote_facts(&mut self, _: &MeasureRequest) -> Result<HostFacts> {
        match self.control.call(Request::Facts, PATIENCE, "the exchange of host details")? {
            Answer::Facts(facts) => Ok(*facts),
            _ => Err(self.control.out_of_turn()),
        }
    }

    fn caveats(&self, directions: &[DirectionResult]) -> Vec<Caveat> {
        outcome::rate_caveat(directions, self.control.limits.rate).into_iter().collect()
    }
}

impl Session {
    fn local_ip(&self) -> IpAddr {
        self.control.local_address().map_or(IpAddr::from([0, 0, 0, 0]), |a| a.ip())
    }

    fn last_rtt(&self) -> Option<u64> {
        self.prober.as_ref().and_then(Probes::last_ns)
    }

    fn udp_patience(&self) -> Duration {
        UDP_PATIENCE.max(4 * self.round_trip)
    }

    /// Waits for late probes.
    fn await_answers(&self, until_ns: u64, patience: Duration, reporter: &Reporter<'_>) -> Result<()> {
        let since = Instant::now();
        let Some(prober) = &self.prober else { return Ok(()) };
        // Also covers a queue that delays answers longer than any path does.
        let patience = || patience.max(prober.patience().to_duration());
        while since.elapsed() < patience() && !prober.is_complete(until_ns) {
            std::thread::sleep(Duration::from_millis(5));
            reporter.check_cancel()?;
        }
        Ok(())
    }

    fn fall_back_to_tcp(&mut self, request: &MeasureRequest, context: &mut Context<'_>) -> Result<()> {
        let address = self.control.address;
        let options = TcpOptions {
            nodelay: true,
            dscp: request.spec.dscp,
            device: request.bind_device.clone(),
            ..Default::default()
        };
        let (mut stream, _) = dial::connect_any(&[address], request, &options, context.reporter.cancel)?;
        let ticket = Ticket { key: self.control.key, flow: 0, stream: 0 };
        let sent = stream.set_nonblocking(false).and_then(|()| {
            stream.set_write_timeout(Some(PATIENCE))?;
            std::io::Write::write_all(&mut stream, &ticket.encode(Kind::Probe))
        });
        sent.map_err(bdp_flow::error::FlowError::io("open a probe connection"))?;
        self.prober = Some(Prober::start(self.control.key, Transport::Tcp(stream))?);
        context.caveats.push(Caveat::ProbesOverTcp { port: address.port() });
        Ok(())
    }

    fn expect_done(&mut self, pending: Pending, doing: &'static str, reporter: &Reporter<'_>) -> Result<()> {
        // The server itself waits for 30 s and then says why.
        let since = Instant::now();
        loop {
            match self.control.poll(pending, SHORTEST_TICK)? {
                Some(Answer::Done) => return Ok(()),
                Some(_) => return Err(self.control.out_of_turn()),
                None if since.elapsed() > 3 * PATIENCE => {
                    return Err(SessionError::Silent { address: self.control.address, doing });
                }
                None => reporter.check_cancel()?,
            }
        }
    }

    /// Makes the server expect a flow, and opens its connections.
    fn connect(&mut self, request: &MeasureRequest, way: Direction, cancel: &AtomicBool) -> Result<Flow> {
        let number = self.next_flow;
        self.next_flow += 1;
        let mut order = flow::order(request, way, number);
        if let Some(datagrams) = &mut order.datagrams {
            datagrams.path_mtu = self.path_mtu.mtu();
        }
        match self.control.call(Request::Prepare(Box::new(order)), PATIENCE, "flow setup")? {
            Answer::Done => {}
            _ => return Err(self.control.out_of_turn()),
        }
        let address = self.control.address;
        // Each flow has its own ports: those of the previous one may linger.
        let first_port =
            request.client_port.map(|port| u32::from(port) + (number - 1) * request.spec.streams);
        let key = self.control.key;
        if request.spec.udp.is_some() {
            let (streams, clocks) =
                datagrams::connect(request, address, way, (key, number), first_port, cancel)?;
            return Ok(Flow::of_datagrams(way, number, streams, clocks));
        }
        let streams = dial::connect_all(
            address,
            request.spec.streams,
            request,
            first_port,
            &options::options(request, way),
            |stream, socket| show(socket, &Ticket { key, flow: number, stream }),
            cancel,
        )?;
        Ok(Flow::new(way, number, streams))
    }

    /// Has both ends' kernels learn the path's MTU.
    fn discover_path_mtu(&mut self, request: &MeasureRequest, context: &mut Context<'_>) -> Result<()> {
        let (address, key) = (self.control.address, self.control.key);
        // The round trip of the idle path, if probes have shown it.
        let idle = self.prober.as_ref().and_then(Probes::smallest_ns).map(Duration::from_nanos);
        let round_trip = idle.map_or(self.round_trip, |idle| idle.min(self.round_trip));
        self.path_mtu = path_mtu::discover(request, address, key, round_trip, context.reporter.cancel)?;
        context.caveats.extend(self.path_mtu.caveat(request, address));
        Ok(())
    }
}

/// Returns the request as far as the server grants it. If bytes end a direction, its duration is only a bound, and
/// yields.
fn grant(request: &MeasureRequest, control: &Control) -> Result<MeasureRequest> {
    let spec = &request.spec;
    let (address, limits) = (control.address, control.limits);
    if spec.duration > limits.duration && spec.bytes.is_none() {
        return Err(SessionError::Request(format!(
            "{address} allows at most {} per flow, {} requested; request less, or start 'bdp serve' there \
             with a larger --max-duration",
            limits.duration, spec.duration
        )));
    }
    if spec.streams > limits.streams {
        return Err(SessionError::Request(format!(
            "{address} allows at most {} streams, {} requested; request fewer, or start 'bdp serve' there \
             with a larger --max-streams",
            limits.streams, spec.streams
        )));
    }
    let mut granted = request.clone();
    granted.spec.duration = spec.duration.min(limits.duration);
    if let Some(udp) = &mut granted.spec.udp {
        let most = limits.rate.map_or(u64::MAX, |rate| rate.as_bps());
        let asked = u128::from(udp.rate_bps.unwrap_or(0)) * u128::from(spec.streams);
        if asked > u128::from(most) {
            return Err(SessionError::Request(format!(
                "{address} allows at most {} of UDP, {} requested; request less, or start 'bdp serve' \
                 there with a larger --max-rate",
                format_bps(most as f64),
                format_bps(asked as f64)
            )));
        }
        if most < u64::MAX {
            udp.rate_bps.get_or_insert(most / u64::from(spec.streams));
        }
    }
    Ok(granted)
}

/// A fresh connection takes a ticket at once: its buffer is empty.
fn show(mut stream: &TcpStream, ticket: &Ticket) -> std::io::Result<()> {
    std::io::Write::write_all(&mut stream, &ticket.encode(Kind::Data))
}
