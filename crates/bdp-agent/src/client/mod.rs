//! The end that asks: greets the server, probes, runs each direction, and puts together what came of it.

pub(crate) mod control;
mod flow;
mod interruption;
mod path_mtu;
mod prober;
mod search;

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use bdp_model::caveat::Caveat;
use bdp_model::measurement::{DirectionResult, HostFacts, MeasureRequest, Measurement, PathFacts, Way};
use bdp_model::method::EndReason;
use bdp_model::one_way::EachWayReport;
use bdp_model::units::format_bps;
use bdp_sys::clock;
use bdp_sys::socket::{self, TcpOptions};
use bdp_wire::control::{Answer, Request};
use bdp_wire::session::{Kind, Preamble, Ticket};

use bdp_flow::disturbance::{self, Moved};
use bdp_flow::host::Baseline;
use bdp_flow::session::error::SessionError;
use bdp_flow::session::options::{self, PATIENCE};
use bdp_flow::session::progress::Stage;
use bdp_flow::session::reporter::{Goodput, Reporter, SHORTEST_TICK};
use bdp_flow::session::{datagrams, dial, outcome, pacing};
use control::Control;
use flow::{Flow, Outcome};
use interruption::Interruption;
use prober::{Carrier, Prober};

/// How long probes may stay without any answer before datagrams are given up; longer where the path is.
const UDP_PATIENCE: Duration = Duration::from_secs(1);
/// How long late probes are awaited after a flow.
const LATE_PROBES: Duration = Duration::from_secs(1);
/// What a server did that was greeted.
pub enum Greeted {
    /// It admitted the session.
    Admitted(Admitted),
    /// It waits for more, as iperf3's does for the rest of its cookie, which no bdp would.
    Silent {
        /// What that is of a bdp.
        error: SessionError,
        /// The connection, and what was sent on it.
        opened: Option<Opened>,
    },
}

/// A session that may be measured with.
pub struct Admitted {
    control: Control,
    round_trip: Duration,
}

/// A connection on which a server waits for more than bdp's greeting.
pub struct Opened {
    /// The connection.
    pub stream: TcpStream,
    /// Where it leads.
    pub address: SocketAddr,
    /// What was sent on it.
    pub sent: Vec<u8>,
}

/// Finds the server and greets it.
pub fn greet(
    request: &MeasureRequest,
    token: Option<&str>,
    cancel: &AtomicBool,
) -> Result<Greeted, SessionError> {
    let options = TcpOptions { device: request.bind_device.clone(), ..Default::default() };
    let connecting = Instant::now();
    let (stream, address) = dial::connect_any(&dial::resolve(request, cancel)?, request, &options, cancel)?;
    let round_trip = connecting.elapsed();
    let kept = stream.try_clone();
    match Control::greet(stream, address, token) {
        Err(error @ SessionError::Silent { .. }) => {
            let sent = Preamble::new(Kind::Control).encode().to_vec();
            Ok(Greeted::Silent { error, opened: kept.ok().map(|stream| Opened { stream, address, sent }) })
        }
        greeted => Ok(Greeted::Admitted(Admitted { control: greeted?, round_trip })),
    }
}

/// Measures by bdp's protocol, for a request that has been checked. Fills all but the time it took, `findings`, `ceiling` and
/// `label`, and says 1 for `repetition`.
pub fn measure(
    request: &MeasureRequest,
    admitted: Admitted,
    reporter: Reporter<'_>,
) -> Result<Measurement, SessionError> {
    let Admitted { control, round_trip } = admitted;
    let local = control.local_address().map_or(IpAddr::from([0, 0, 0, 0]), |a| a.ip());
    let granted = grant(request, &control)?;
    let mut session = Session {
        request: &granted,
        control,
        near: Baseline::take(local),
        prober: None,
        idle: 0..0,
        reporter,
        round_trip,
        next_flow: 1,
        path_mtu: path_mtu::Found::default(),
        caveats: Vec::new(),
        moved: Moved::default(),
    };
    session.probe_idle(local)?;
    if granted.udp.is_some() {
        session.discover_path_mtu()?;
    }
    let mut directions = Vec::new();
    let mut path = PathFacts::default();
    for round in session.rounds() {
        let results = match (granted.udp.as_ref().and_then(|udp| udp.search), round.as_slice()) {
            (Some(search), &[way]) => session.search(&granted, &search, way, &mut path),
            _ => session.run(&granted, &round, &mut path),
        };
        let results = results.map_err(|e| session.path_mtu.explain(e, &granted, session.control.address));
        if !session.reporter.go_on(&mut directions, results)? {
            break;
        }
    }
    let idle = session.prober.as_ref().and_then(|p| p.summary(&session.idle));
    let mut far = session.far_facts()?;
    let mut near = session.near.facts();
    disturbance::note(&mut near, &mut far, &session.moved, &mut session.caveats);
    directions.iter_mut().for_each(|direction| pacing::note(request, direction, &near, &far));
    path.rtt_min_ns = session.prober.as_ref().and_then(Prober::smallest);
    outcome::add_caveats(request, &directions, &mut session.caveats);
    outcome::add_rate_caveat(&directions, session.control.limits.rate, &mut session.caveats);
    session.reporter.add_caveat(request, &directions, &mut session.caveats);
    let caveats = session.caveats;
    Ok(Measurement { near, far, path, rtt_idle_ns: idle, directions, caveats, ..Measurement::of(request) })
}

/// The request as far as the server grants it. Where bytes end a direction its duration is only a bound, and gives way.
fn grant(request: &MeasureRequest, control: &Control) -> Result<MeasureRequest, SessionError> {
    let (address, limits) = (control.address, control.limits);
    if request.duration > limits.duration && request.bytes.is_none() {
        return Err(SessionError::Request(format!(
            "{address} grants {} a flow and {} were asked for; ask for less, or start 'bdp serve' there with a \
             larger --max-duration",
            limits.duration, request.duration
        )));
    }
    if request.streams > limits.streams {
        return Err(SessionError::Request(format!(
            "{address} grants {} streams and {} were asked for; ask for fewer, or start 'bdp serve' there with a \
             larger --max-streams",
            limits.streams, request.streams
        )));
    }
    let mut granted = MeasureRequest { duration: request.duration.min(limits.duration), ..request.clone() };
    if let Some(udp) = &mut granted.udp {
        let most = limits.rate.map_or(u64::MAX, |rate| rate.as_bps());
        let asked = u128::from(udp.rate_bps.unwrap_or(0)) * u128::from(request.streams);
        if asked > u128::from(most) {
            return Err(SessionError::Request(format!(
                "{address} grants {} of UDP and {} were asked for; ask for less, or start 'bdp serve' there with a \
                 larger --max-rate",
                format_bps(most as f64),
                format_bps(asked as f64)
            )));
        }
        if most < u64::MAX {
            udp.rate_bps.get_or_insert(most / u64::from(request.streams));
        }
    }
    Ok(granted)
}

struct Session<'a, 'r> {
    request: &'a MeasureRequest,
    control: Control,
    near: Baseline,
    prober: Option<Prober>,
    /// When the path was left alone but for probes, monotonic.
    idle: Range<u64>,
    reporter: Reporter<'r>,
    /// Of the first connection, for waits.
    round_trip: Duration,
    next_flow: u32,
    /// Before flows of datagrams, as far as it was found.
    path_mtu: path_mtu::Found,
    caveats: Vec<Caveat>,
    moved: Moved,
}

impl Session<'_, '_> {
    /// The directions that run at the same time, each time.
    fn rounds(&self) -> Vec<Vec<Way>> {
        if self.request.bidirectional {
            return vec![vec![Way::To, Way::From]];
        }
        self.request.directions.iter().map(|&way| vec![way]).collect()
    }

    /// Starts the probe flow and lets it run alone for a while.
    fn probe_idle(&mut self, local: IpAddr) -> Result<(), SessionError> {
        let from = SocketAddr::from((local, 0));
        let (request, address) = (self.request, self.control.address);
        let device = request.bind_device.as_deref();
        let socket = socket::connect_udp(Some(from), address, device, request.dscp)?;
        self.prober = Some(Prober::start(self.control.key, Carrier::Udp(socket))?);
        // Far longer than the path takes, however long that is.
        let patience = UDP_PATIENCE.max(4 * self.round_trip);
        let mut began = clock::monotonic_ns();
        let mut since = Instant::now();
        while self.last_rtt().is_none() && since.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(10));
            self.reporter.check_cancel()?;
        }
        if self.last_rtt().is_none() {
            self.fall_back_to_tcp()?;
            (began, since) = (clock::monotonic_ns(), Instant::now());
        }
        while since.elapsed() < request.idle.to_duration() {
            let left = request.idle.to_duration().saturating_sub(since.elapsed());
            std::thread::sleep(left.min(self.reporter.tick));
            let rtt = self.last_rtt();
            self.reporter.tell(Stage::Idle, since, request.idle, Goodput::default(), rtt)?;
        }
        let until = clock::monotonic_ns();
        self.idle = began..until;
        self.await_probes(until, patience)
    }

    fn fall_back_to_tcp(&mut self) -> Result<(), SessionError> {
        let address = self.control.address;
        let options = TcpOptions {
            nodelay: true,
            dscp: self.request.dscp,
            device: self.request.bind_device.clone(),
            ..Default::default()
        };
        let (mut stream, _) = dial::connect_any(&[address], self.request, &options, self.reporter.cancel)?;
        let ticket = Ticket { key: self.control.key, flow: 0, stream: 0 };
        let sent = stream.set_nonblocking(false).and_then(|()| {
            stream.set_write_timeout(Some(PATIENCE))?;
            std::io::Write::write_all(&mut stream, &ticket.encode(Kind::Probe))
        });
        sent.map_err(bdp_flow::error::EngineError::io("open a probe connection"))?;
        self.prober = Some(Prober::start(self.control.key, Carrier::Tcp(stream))?);
        self.caveats.push(Caveat::ProbesOverTcp { port: address.port() });
        Ok(())
    }

    fn last_rtt(&self) -> Option<u64> {
        self.prober.as_ref().and_then(Prober::last)
    }

    /// Lets late probes come in.
    fn await_probes(&self, until_ns: u64, patience: Duration) -> Result<(), SessionError> {
        let since = Instant::now();
        let Some(prober) = &self.prober else { return Ok(()) };
        // Of a queue that holds answers back longer than any path does, too.
        let patience = || patience.max(Duration::from_nanos(prober.patience_ns()));
        while since.elapsed() < patience() && !prober.is_complete(until_ns) {
            std::thread::sleep(Duration::from_millis(5));
            self.reporter.check_cancel()?;
        }
        Ok(())
    }

    /// Runs directions at the same time, and puts together what came of them.
    fn run(
        &mut self,
        request: &MeasureRequest,
        ways: &[Way],
        path: &mut PathFacts,
    ) -> Result<Vec<DirectionResult>, SessionError> {
        let stage = if let &[way] = ways { Stage::Direction(way) } else { Stage::Both };
        let outcomes = self.carry_out(request, ways, stage)?;
        let was_cut_short = self.reporter.concludes;
        let ended = outcomes.iter().map(|outcome| outcome.counted().end).max().unwrap_or_default();
        if self.await_probes(ended, LATE_PROBES.max(2 * self.round_trip)).is_err() {
            // The flows are over, and what they came to is not to be lost.
            self.reporter.concludes = true;
        }
        self.put_together(request, outcomes, was_cut_short, path)
    }

    /// Makes results of what both ends tell of flows that ran at the same time. Under load are the probes that were sent
    /// while the flow of a direction counted, after its omit.
    fn put_together(
        &mut self,
        request: &MeasureRequest,
        outcomes: Vec<Outcome>,
        was_cut_short: bool,
        path: &mut PathFacts,
    ) -> Result<Vec<DirectionResult>, SessionError> {
        let (idle, prober) = (&self.idle, self.prober.as_ref());
        let mut results = Vec::new();
        for outcome in outcomes {
            let (loaded, carried) = (&outcome.counted(), outcome.carried());
            let rtt = prober.map(|p| p.round_trips(idle, loaded)).unwrap_or_default();
            let each_way =
                prober.map(|p| EachWayReport { idle: p.each_way(idle), loaded: p.each_way(loaded) });
            let each_way_ns = each_way.filter(|ways| ways.idle.is_some() || ways.loaded.is_some());
            let responsiveness_rpm = prober.and_then(|p| p.responsiveness_rpm(loaded));
            let Outcome { way, mut received, sent, clocks, .. } = outcome;
            if was_cut_short {
                received.ended = EndReason::Stopped;
            }
            outcome::note_path(path, way, &received, &sent);
            self.path_mtu.note(path);
            self.caveats.extend(datagrams::fragments(way, &sent, self.control.address));
            let clocks = clocks.map(|clocks| (clocks, carried));
            let udp = datagrams::report(request, way, &received, &sent, clocks);
            let result = outcome::result(request, way, received, sent, rtt);
            let result = self.reporter.unless_cut_short(result)?;
            results.push(DirectionResult { udp, responsiveness_rpm, each_way_ns, ..result });
        }
        Ok(results)
    }

    /// Has flows run at the same time, to their ends.
    fn carry_out(
        &mut self,
        request: &MeasureRequest,
        ways: &[Way],
        stage: Stage,
    ) -> Result<Vec<Outcome>, SessionError> {
        let mut flows = Vec::new();
        for &way in ways {
            flows.push(self.connect(request, way)?);
        }
        let mut pending = Vec::new();
        for flow in &mut flows {
            // A receiver reads before the sender may write.
            flow.start_receiving(request)?;
            pending.push(self.control.ask(Request::Begin { flow: flow.number })?);
        }
        for (flow, pending) in flows.iter_mut().zip(pending) {
            self.expect_done(pending, "the streams come in")?;
            flow.start_sending(request, self.path_mtu.mtu())?;
        }
        let outcomes = self.attend(request, stage, &mut flows)?;
        for Outcome { way, received, sent, .. } in &outcomes {
            self.moved.add(*way, sent.bytes.max(received.bytes), sent.retransmits.unwrap_or(0), sent.mss);
        }
        Ok(outcomes)
    }

    fn expect_done(&mut self, pending: control::Pending, doing: &'static str) -> Result<(), SessionError> {
        // The server itself waits for 30 s and then tells why.
        let since = Instant::now();
        loop {
            match self.control.poll(pending, SHORTEST_TICK)? {
                Some(Answer::Done) => return Ok(()),
                Some(_) => return Err(self.control.out_of_turn()),
                None if since.elapsed() > 3 * PATIENCE => {
                    return Err(SessionError::Silent { address: self.control.address, doing });
                }
                None => self.reporter.check_cancel()?,
            }
        }
    }

    /// Has the server expect a flow, and makes its connections.
    fn connect(&mut self, request: &MeasureRequest, way: Way) -> Result<Flow, SessionError> {
        let number = self.next_flow;
        self.next_flow += 1;
        let mut order = flow::order(request, way, number);
        if let Some(datagrams) = &mut order.datagrams {
            datagrams.path_mtu = self.path_mtu.mtu();
        }
        match self.control.call(Request::Prepare(Box::new(order)), PATIENCE, "a flow is prepared")? {
            Answer::Done => {}
            _ => return Err(self.control.out_of_turn()),
        }
        let address = self.control.address;
        // Each flow has ports of its own: those of the one before may linger.
        let first_port = request.client_port.map(|port| u32::from(port) + (number - 1) * request.streams);
        let key = self.control.key;
        if request.udp.is_some() {
            let (streams, clocks) =
                datagrams::connect(request, address, (key, number), first_port, self.reporter.cancel)?;
            return Ok(Flow::of_datagrams(way, number, streams, clocks));
        }
        let streams = dial::connect_all(
            address,
            request.streams,
            request,
            first_port,
            &options::options(request, way),
            |stream, socket| show(socket, &Ticket { key, flow: number, stream }),
            self.reporter.cancel,
        )?;
        Ok(Flow::new(way, number, streams))
    }

    /// Has both ends' kernels learn the path's MTU.
    fn discover_path_mtu(&mut self) -> Result<(), SessionError> {
        let (address, key) = (self.control.address, self.control.key);
        // Of the path at rest, where probes have told of it.
        let idle = self.prober.as_ref().and_then(Prober::smallest).map(Duration::from_nanos);
        let round_trip = idle.map_or(self.round_trip, |idle| idle.min(self.round_trip));
        self.path_mtu = path_mtu::discover(self.request, address, key, round_trip, self.reporter.cancel)?;
        self.caveats.extend(self.path_mtu.caveat(self.request, address));
        Ok(())
    }

    /// Waits for the flows' end at both ends.
    fn attend(
        &mut self,
        request: &MeasureRequest,
        stage: Stage,
        flows: &mut [Flow],
    ) -> Result<Vec<Outcome>, SessionError> {
        let since = Instant::now();
        let deadline = request.duration.to_duration() + 3 * PATIENCE;
        let (address, mut ended) = (self.control.address, None);
        let mut pending = Vec::new();
        for flow in flows.iter() {
            pending.push(self.control.ask(Request::Collect { flow: flow.number })?);
        }
        let mut far: Vec<Option<Answer>> = flows.iter().map(|_| None).collect();
        let (mut told, mut interruption) = (Instant::now(), Interruption::default());
        loop {
            for ((flow, pending), far) in flows.iter_mut().zip(&pending).zip(&mut far) {
                if far.is_none() {
                    *far = self.control.poll(*pending, Duration::from_millis(10))?;
                    if far.is_some() && flow.way == Way::To {
                        flow.work.stop();
                    }
                }
            }
            if far.iter().all(Option::is_some) && flows.iter().all(|f| f.work.is_finished()) {
                break;
            }
            if far.iter().all(Option::is_some) {
                std::thread::sleep(Duration::from_millis(5));
            }
            if let Some(flow) = flows.iter_mut().find(|f| f.work.has_failed()) {
                // Its own words are better than what the server makes of its silence.
                flow.work.finish().map_err(|error| SessionError::of_flow(error, address))?;
            }
            if told.elapsed() >= self.reporter.tick {
                let span = told.elapsed();
                told = Instant::now();
                let goodput = goodput(span, flows);
                let rtt = self.last_rtt();
                self.reporter.show(stage, since, request.duration, goodput, rtt);
            }
            interruption.attend(self, flows)?;
            // Its end of a flow that is over here can't be far.
            let over =
                flows.iter().all(|f| f.work.is_finished()).then(|| *ended.get_or_insert_with(Instant::now));
            if since.elapsed() > deadline || over.is_some_and(|ended| ended.elapsed() > PATIENCE) {
                return Err(SessionError::Silent { address: self.control.address, doing: "a flow ends" });
            }
        }
        let mut outcomes = Vec::new();
        for (flow, far) in flows.iter_mut().zip(far) {
            let near = flow.work.finish().map_err(|error| SessionError::of_flow(error, address))?;
            let outcome = far.and_then(|far| Outcome::of(flow, near, far));
            outcomes.push(outcome.ok_or_else(|| self.control.out_of_turn())?);
        }
        let senders = flows.iter().map(|f| (f.way, f.work.sender_infos())).collect();
        self.reporter.show(stage, since, request.duration, Goodput::last(senders), None);
        Ok(outcomes)
    }

    fn far_facts(&mut self) -> Result<HostFacts, SessionError> {
        match self.control.call(Request::Facts, PATIENCE, "it tells what machine it is")? {
            Answer::Facts(facts) => Ok(*facts),
            _ => Err(self.control.out_of_turn()),
        }
    }
}

/// What flows have moved within a span.
fn goodput(span: Duration, flows: &mut [Flow]) -> Goodput {
    let moved = flows.iter_mut().map(|f| (f.way, f.work.moved_since())).collect();
    Goodput::of(span, moved, flows.iter().map(|f| (f.way, f.work.sender_infos())).collect())
}

/// A fresh connection takes a ticket at once: its buffer is empty.
fn show(mut stream: &TcpStream, ticket: &Ticket) -> std::io::Result<()> {
    std::io::Write::write_all(&mut stream, &ticket.encode(Kind::Data))
}
