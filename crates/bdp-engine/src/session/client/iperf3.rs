//! Drives a server of iperf3, and makes a measurement of what both ends tell.
//!
//! Each round is a test with a control connection of its own. That server answers no probes: idle round trips are those of
//! the handshakes, loaded ones what this end's kernel makes of its acknowledgements.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use bdp_model::measurement::{DirectionResult, HostFacts, MeasureRequest, Measurement, PathFacts, Way};
use bdp_model::record::{ReceiverSample, RttReport, RttSummary};
use bdp_model::units::Nanos;
use bdp_sys::socket::TcpOptions;
use bdp_sys::{process, random, tcp_info};
use bdp_wire::control::{Mark, Received, Sent};
use bdp_wire::frame::FrameError;
use bdp_wire::iperf3::exchange::{ClientExchange, Step};
use bdp_wire::iperf3::{
    Cookie, CpuUse, Direction, Failure, LONGEST_RESULTS, Parameters, Protocol, Results, State, StreamResults,
    stream_id,
};

use super::{Goodput, Reporter, outcome};
use crate::disturbance::{self, Moved};
use crate::host::Baseline;
use crate::iperf3::control::Control;
use crate::iperf3::tcp::{End, Flow, Outcome, Plan};
use crate::session::{SessionError, Stage, dial};

/// How long the server may take over each of its steps.
const STEP: Duration = Duration::from_secs(15);
/// The same of the answer to the cookie, which it gives at once.
const GREETED: Duration = Duration::from_secs(5);
/// How often a running test is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// How long what was sent of a volume may take to be acknowledged.
const STRAGGLERS: Duration = Duration::from_secs(10);
/// How long a server may be busy with the test before, of whoever it was.
const BUSY: Duration = Duration::from_secs(5);
const BUSY_PAUSE: Duration = Duration::from_millis(250);

/// What a server is silent to that does not speak iperf3.
pub(super) const GREETING: &str = "it is greeted";

/// Measures by iperf3's protocol.
pub(super) struct Driver<'a, 'r> {
    request: &'a MeasureRequest,
    addresses: Vec<SocketAddr>,
    reporter: Reporter<'r>,
    handshakes: Vec<u64>,
    moved: Moved,
    caveats: Vec<String>,
    path: PathFacts,
}

impl<'a, 'r> Driver<'a, 'r> {
    /// For a request that has been checked.
    pub(super) fn new(request: &'a MeasureRequest, reporter: Reporter<'r>) -> Result<Self, SessionError> {
        check(request)?;
        let addresses = dial::resolve(request, reporter.cancel)?;
        Ok(Self {
            request,
            addresses,
            reporter,
            handshakes: Vec::new(),
            moved: Moved::default(),
            caveats: vec![
                "the server speaks iperf3's protocol, which tells of its end bytes and retransmissions alone, and \
                 answers no probes: idle round trips are those of handshakes, loaded ones the sending kernel's here"
                    .to_owned(),
            ],
            path: PathFacts::default(),
        })
    }

    /// Fills all that [`super::measure`] fills but the time it took.
    pub(super) fn measure(mut self) -> Result<Measurement, SessionError> {
        let rounds: Vec<Vec<Way>> = match self.request.bidirectional {
            true => vec![vec![Way::To, Way::From]],
            false => self.request.directions.iter().map(|&way| vec![way]).collect(),
        };
        let mut near = None;
        let mut directions = Vec::new();
        for round in rounds {
            match self.run(&round, &mut near) {
                Ok(results) => directions.extend(results),
                // A server for one test (-1) has ended: what was measured stands.
                Err(SessionError::Refused { address }) if !directions.is_empty() => self.caveats.push(format!(
                    "direction '{}' was not measured: {address} serves no second test; -R measures it alone",
                    round.iter().map(|way| way.name()).collect::<Vec<_>>().join("', '")
                )),
                Err(error) => return Err(error),
            }
        }
        let near: Option<Baseline> = near;
        let mut near = near.map_or_else(HostFacts::default, |baseline| baseline.facts());
        let mut far = HostFacts {
            name: self.request.host.clone(),
            address: self.addresses.first().map_or_else(String::new, |a| a.ip().to_canonical().to_string()),
            ..Default::default()
        };
        disturbance::note(&mut near, &mut far, &self.moved, &mut self.caveats);
        let idle = RttSummary::of(self.handshakes.len() as u64, self.handshakes.iter().copied());
        for direction in &mut directions {
            direction.rtt_ns.idle = idle;
        }
        self.path.rtt_min_ns = self.path.rtt_min_ns.or(idle.map(|rtt| rtt.min));
        outcome::add_caveats(self.request, &directions, &mut self.caveats);
        Ok(Measurement {
            schema: bdp_model::measurement::MEASUREMENT_SCHEMA.to_owned(),
            label: None,
            request: self.request.clone(),
            repetition: 1,
            started_unix_ms: 0,
            took_ms: 0,
            near,
            far,
            path: self.path,
            ceiling: None,
            rtt_idle_ns: idle,
            directions,
            caveats: self.caveats,
            error: None,
        })
    }

    /// One test.
    fn run(
        &mut self,
        ways: &[Way],
        near: &mut Option<Baseline>,
    ) -> Result<Vec<DirectionResult>, SessionError> {
        let test = self.begin(ways, near)?;
        let (streams, test) = self.open_streams(ways, test)?;
        let cpu_before_ns = process::cpu_time_ns();
        let mut flows = self.start(ways, streams)?;
        let ran = Instant::now();
        self.attend(ways, &test, &mut flows)?;
        let told = |e: std::io::Error| test.lost(&e.into(), "the test ends");
        test.control.say(State::TestEnd).map_err(told)?;
        let cpu = (process::cpu_time_ns() - cpu_before_ns) as f64 / ran.elapsed().as_nanos().max(1) as f64;
        let mut outcomes = Vec::new();
        for flow in &mut flows {
            outcomes.push(flow.finish()?);
        }
        let test = self.await_results(test, &flows)?;
        let results = near_results(&outcomes, cpu * 100.0);
        let far = test.exchange(&results, outcomes.iter().map(|o| o.streams.len()).sum())?;
        drop(flows);
        self.conclude(ways, outcomes, &far)
    }

    /// Shows a cookie to the server, again where it is busy, and says what is wanted.
    fn begin(&mut self, ways: &[Way], near: &mut Option<Baseline>) -> Result<Test, SessionError> {
        let since = Instant::now();
        let options = TcpOptions { device: self.request.bind_device.clone(), ..Default::default() };
        loop {
            let connected = dial::connect_any(&self.addresses, self.request, &options, self.reporter.cancel);
            let (stream, address) = match connected {
                Err(SessionError::Refused { .. }) if near.is_some() && since.elapsed() < BUSY => {
                    self.pause()?;
                    continue;
                }
                other => other?,
            };
            self.addresses = vec![address];
            self.note_handshake(&stream);
            if near.is_none() {
                let local = stream.local_addr().map_or(std::net::IpAddr::from([0, 0, 0, 0]), |a| a.ip());
                *near = Some(Baseline::take(local));
            }
            let control = Control::over(stream)?;
            let cookie = Cookie::of(&random::bytes()?);
            let mut test = Test { control, address, cookie, exchange: ClientExchange::default() };
            let sent = test.control.send(cookie.bytes());
            sent.map_err(|e| test.lost(&e.into(), GREETING))?;
            match test.step(&self.reporter, GREETED, GREETING) {
                Ok(_) => {
                    let parameters = parameters(self.request, ways);
                    let sent = test.control.send_json(&parameters.to_json());
                    sent.map_err(|e| test.lost(&e, "it is told what to do"))?;
                    return Ok(test);
                }
                // Between two tests its listener is another one, and connections to the one before are lost.
                Err(SessionError::Denied { .. } | SessionError::Lost { .. }) if since.elapsed() < BUSY => {
                    self.pause()?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn pause(&self) -> Result<(), SessionError> {
        std::thread::sleep(BUSY_PAUSE);
        self.reporter.check_cancel()
    }

    fn note_handshake(&mut self, stream: &TcpStream) {
        self.handshakes.extend(tcp_info::read(stream).ok().and_then(|info| info.rtt_ns));
    }

    /// Opens the streams one after the other: the server tells them apart by their order.
    fn open_streams(&mut self, ways: &[Way], mut test: Test) -> Result<(Vec<TcpStream>, Test), SessionError> {
        test.expect(Step::OpenStreams, &self.reporter, "it is told what to do")?;
        let request = self.request;
        let mut streams = Vec::new();
        for index in 0..request.streams * ways.len() as u32 {
            let way = if index < request.streams { ways[0] } else { Way::From };
            let first_port = request.client_port.map(|port| u32::from(port) + index);
            let options = super::flow::options(request, way);
            let cookie = test.cookie;
            streams.extend(dial::connect_all(
                test.address,
                1,
                request,
                first_port,
                &options,
                |_, mut stream| std::io::Write::write_all(&mut stream, cookie.bytes()),
                self.reporter.cancel,
            )?);
        }
        streams.iter().for_each(|stream| self.note_handshake(stream));
        test.expect(Step::Prepare, &self.reporter, "the streams come in")?;
        test.expect(Step::Run, &self.reporter, "the test begins")?;
        Ok((streams, test))
    }

    fn start(&self, ways: &[Way], mut streams: Vec<TcpStream>) -> Result<Vec<Flow>, SessionError> {
        let request = self.request;
        let plan = Plan {
            length_bytes: request.length.as_bytes(),
            longest: request.duration,
            omit: request.omit,
            volume_bytes: request.bytes.map(|b| b.as_bytes()).filter(|_| request.omit == Nanos::ZERO),
            interval: request.interval,
            autotuned: request.socket_buffer.is_none() && request.window.is_none(),
        };
        let mut flows = Vec::new();
        // The streams of the server's are the last; it may send already.
        if ways.len() > 1 {
            let back = streams.split_off(request.streams as usize);
            flows.push(Flow::receive(back, &plan)?);
        }
        match ways.first() {
            Some(Way::From) => flows.push(Flow::receive(streams, &plan)?),
            _ => flows.insert(0, Flow::send(streams, &plan)?),
        }
        Ok(flows)
    }

    /// Lets the flows run for their time, or until their bytes are through.
    fn attend(&mut self, ways: &[Way], test: &Test, flows: &mut [Flow]) -> Result<(), SessionError> {
        let request = self.request;
        let stage = if let &[way] = ways { Stage::Direction(way) } else { Stage::Both };
        let (since, mut told) = (Instant::now(), Instant::now());
        let mut omit = Some(request.omit.to_duration()).filter(|omit| !omit.is_zero());
        loop {
            let heard = test.control.hear(LOOK).map_err(|e| test.lost(&e, "a measurement runs"))?;
            if let Some(byte) = heard {
                return Err(test.unexpected(byte));
            }
            if omit.is_some_and(|omit| since.elapsed() >= omit) {
                flows.iter_mut().for_each(Flow::begin_counting);
                omit = None;
            }
            let volume = request.bytes.map(|b| b.as_bytes()).filter(|_| omit.is_none());
            // A sender has ended where all is written, a receiver where all has come.
            let through = |flow: &Flow| {
                flow.is_finished() || volume.is_some_and(|v| !flow.sends() && flow.bytes() >= v)
            };
            let over = if request.bytes.is_some() { flows.iter().any(through) } else { false };
            if over || since.elapsed() >= request.duration.to_duration() {
                break;
            }
            if told.elapsed() >= self.reporter.tick {
                let elapsed = told.elapsed().as_secs_f64();
                told = Instant::now();
                let way = |flow: &Flow| if flow.sends() { Way::To } else { Way::From };
                let ways =
                    flows.iter_mut().map(|f| (way(f), f.bytes_since() as f64 * 8.0 / elapsed)).collect();
                let goodput = Goodput { ways, streams: Vec::new() };
                self.reporter.tell(stage, since, request.duration, goodput, None)?;
            }
            if let Err(cancelled) = self.reporter.check_cancel() {
                let _ = test.control.say(State::ClientTerminate);
                return Err(cancelled);
            }
        }
        if request.bytes.is_some() {
            let until = Instant::now() + STRAGGLERS;
            while flows.iter().any(|f| f.sends() && !f.is_through()) && Instant::now() < until {
                std::thread::sleep(LOOK);
                self.reporter.check_cancel()?;
            }
        }
        flows.iter_mut().for_each(Flow::stop);
        Ok(())
    }

    /// Waits until the server asks for results, and meanwhile takes what it still sends.
    fn await_results(&self, mut test: Test, flows: &[Flow]) -> Result<Test, SessionError> {
        let since = Instant::now();
        loop {
            flows.iter().filter(|flow| !flow.sends()).for_each(Flow::drain);
            let heard = test.control.hear(LOOK).map_err(|e| test.lost(&e, "the test ends"))?;
            if let Some(byte) = heard {
                test.take(byte, Step::ExchangeResults)?;
                return Ok(test);
            }
            if since.elapsed() > STEP {
                return Err(SessionError::Silent { address: test.address, doing: "the test ends" });
            }
            self.reporter.check_cancel()?;
        }
    }

    /// Puts together what both ends tell of each direction.
    fn conclude(
        &mut self,
        ways: &[Way],
        outcomes: Vec<Outcome>,
        far: &Results,
    ) -> Result<Vec<DirectionResult>, SessionError> {
        let mut left = far.streams.as_slice();
        let mut results = Vec::new();
        for (&way, outcome) in ways.iter().zip(outcomes) {
            let count = outcome.streams.len().min(left.len());
            let (theirs, rest) = left.split_at(count);
            left = rest;
            let (received, sent) = match outcome.end {
                End::Sent(sent) => (received_there(self.request, &sent, theirs, far), sent),
                End::Received(received) => {
                    // It was this end that stopped it, for one of these two.
                    let ended = if self.request.bytes.is_some() { "closed" } else { "duration" };
                    (Received { ended: ended.to_owned(), ..received }, sent_there(theirs, far))
                }
            };
            let omit_ns = self.request.omit.as_ns();
            let seen = || sent.samples.iter().filter(|s| s.at_ns >= omit_ns).filter_map(|s| s.srtt_ns);
            let loaded = RttSummary::of(seen().count() as u64, seen());
            outcome::note_path(&mut self.path, way, &received, &sent);
            self.moved.add(way, sent.bytes.max(received.bytes), sent.retransmits.unwrap_or(0), sent.mss);
            results.push(outcome::result(
                self.request,
                way,
                received,
                sent,
                RttReport { idle: None, loaded },
            )?);
        }
        Ok(results)
    }
}

/// A test on its way.
struct Test {
    control: Control,
    address: SocketAddr,
    cookie: Cookie,
    exchange: ClientExchange,
}

impl Test {
    /// Waits for the server's next state.
    fn step(
        &mut self,
        reporter: &Reporter<'_>,
        patience: Duration,
        doing: &'static str,
    ) -> Result<Step, SessionError> {
        let since = Instant::now();
        while since.elapsed() < patience {
            let heard = self.control.hear(super::SHORTEST_TICK).map_err(|e| self.lost(&e, doing))?;
            match heard {
                Some(byte) => return self.follow(byte),
                None => reporter.check_cancel()?,
            }
        }
        Err(SessionError::Silent { address: self.address, doing })
    }

    fn expect(
        &mut self,
        due: Step,
        reporter: &Reporter<'_>,
        doing: &'static str,
    ) -> Result<(), SessionError> {
        let step = self.step(reporter, STEP, doing)?;
        if step == due { Ok(()) } else { Err(self.nonsense("it goes on out of turn")) }
    }

    fn take(&mut self, byte: u8, due: Step) -> Result<(), SessionError> {
        let step = self.follow(byte)?;
        if step == due { Ok(()) } else { Err(self.nonsense("it goes on out of turn")) }
    }

    fn follow(&mut self, byte: u8) -> Result<Step, SessionError> {
        match self.exchange.take(byte) {
            Ok(Step::Denied) => Err(SessionError::Denied {
                address: self.address,
                refusal: bdp_wire::session::Refusal::Other {
                    text: "the iperf3 server is busy with another test; try again later".to_owned(),
                },
            }),
            Ok(Step::ReadFailure) => Err(self.failure()),
            Ok(Step::Ended) => Err(SessionError::Lost { address: self.address, doing: "a test goes on" }),
            Ok(step) => Ok(step),
            Err(error) => Err(self.nonsense(&error.to_string())),
        }
    }

    /// The server's reason.
    fn failure(&self) -> SessionError {
        match self.control.read::<{ Failure::BYTES }>(STEP) {
            Ok(bytes) => {
                SessionError::Far { address: self.address, error: Failure::decode(bytes).to_string() }
            }
            Err(error) => self.lost(&error, "it tells why it failed"),
        }
    }

    /// What a state says that comes while a test runs.
    fn unexpected(&self, byte: u8) -> SessionError {
        match State::of(byte) {
            Some(State::ServerError) => self.failure(),
            Some(State::ServerTerminate) => {
                SessionError::Lost { address: self.address, doing: "a measurement runs" }
            }
            _ => self.nonsense("it goes on out of turn"),
        }
    }

    /// Tells results, hears the server's, and takes leave.
    fn exchange(mut self, results: &Results, streams: usize) -> Result<Results, SessionError> {
        let doing = "results are exchanged";
        self.control.send_json(&results.to_json()).map_err(|e| self.lost(&e, doing))?;
        let body = self.control.read_json(LONGEST_RESULTS, STEP).map_err(|e| self.lost(&e, doing))?;
        let far = Results::parse(&body, streams).map_err(|e| self.nonsense(&e.to_string()))?;
        let since = Instant::now();
        while since.elapsed() < STEP {
            if let Some(byte) = self.control.hear(LOOK).map_err(|e| self.lost(&e, doing))? {
                self.take(byte, Step::Leave)?;
                break;
            }
        }
        // Results are here; a server that does not hear the farewell notices by itself.
        let _ = self.control.say(State::IperfDone);
        Ok(far)
    }

    fn lost(&self, error: &FrameError, doing: &'static str) -> SessionError {
        let address = self.address;
        match error {
            FrameError::Closed | FrameError::Io(_) => SessionError::Lost { address, doing },
            FrameError::Silent => SessionError::Silent { address, doing },
            other => self.nonsense(&other.to_string()),
        }
    }

    fn nonsense(&self, what: &str) -> SessionError {
        SessionError::NotBdp { address: self.address, what: format!("as an iperf3 server, {what}") }
    }
}

/// Refuses what can't be asked of that server.
fn check(request: &MeasureRequest) -> Result<(), SessionError> {
    let wrong = |text: &str| Err(SessionError::Request(text.to_owned()));
    if request.udp.is_some() {
        return wrong("UDP with an iperf3 server is not measured; with 'bdp serve' it is");
    }
    if request.check_payload {
        return wrong(
            "an iperf3 server sends no bytes that could be checked; --check-payload needs 'bdp serve'",
        );
    }
    if request.window.is_some() {
        return wrong(
            "-w is the window on the wire, which an iperf3 server does not set; --sockbuf is what iperf3 calls -w",
        );
    }
    if request.streams > bdp_wire::iperf3::MOST_STREAMS {
        return wrong("an iperf3 server takes 128 streams at most");
    }
    if !request.omit.as_ns().is_multiple_of(1_000_000_000) {
        return wrong("an iperf3 server leaves out whole seconds: give -O 1, -O 2");
    }
    if request.length.as_bytes() > 1 << 20 {
        return wrong("an iperf3 server takes writes of 1 MiB at most");
    }
    Ok(())
}

/// The test in iperf3's words.
fn parameters(request: &MeasureRequest, ways: &[Way]) -> Parameters {
    let whole_seconds = request.duration.saturating_sub(request.omit).as_ns().div_ceil(1_000_000_000);
    Parameters {
        direction: match ways {
            [Way::To] => Direction::Forward,
            [Way::From] => Direction::Reverse,
            _ => Direction::Both,
        },
        parallel: request.streams,
        seconds: if request.bytes.is_some() { 0 } else { whole_seconds },
        omit_seconds: request.omit.as_ns() / 1_000_000_000,
        bytes: request.bytes.map_or(0, |b| b.as_bytes()),
        length_bytes: request.length.as_bytes(),
        window_bytes: request.socket_buffer.map(|b| b.as_bytes()),
        mss: request.mss,
        tos: request.dscp.map_or(0, |dscp| dscp << 2),
        nodelay: request.nodelay,
        congestion: request.congestion.clone(),
        // What servers take for a release of their own that knows all that is asked for here.
        client_version: Some("3.12".to_owned()),
        ..Parameters::over(Protocol::Tcp)
    }
}

/// This end's results, as iperf3 has them.
fn near_results(outcomes: &[Outcome], cpu: f64) -> Results {
    let streams = outcomes.iter().flat_map(|outcome| outcome.streams.iter().map(|s| (s, outcome.counted)));
    Results {
        cpu: CpuUse { total: cpu, user: 0.0, system: 0.0 },
        has_retransmits: outcomes.iter().any(|o| matches!(o.end, End::Sent(_))).then_some(true),
        congestion: outcomes.iter().find_map(|o| o.congestion.clone()),
        server_output: None,
        streams: streams
            .enumerate()
            .map(|(index, (stream, counted))| StreamResults {
                id: stream_id(index),
                bytes: stream.bytes,
                retransmits: stream.retransmits,
                end_s: counted.as_secs_f64(),
                ..Default::default()
            })
            .collect(),
    }
}

/// What the server received: its own sums, and beside them what this end's kernel saw acknowledged.
fn received_there(
    request: &MeasureRequest,
    sent: &Sent,
    theirs: &[StreamResults],
    far: &Results,
) -> Received {
    let omit_ns = request.omit.as_ns();
    let samples: Vec<ReceiverSample> = sent
        .samples
        .iter()
        .filter_map(|s| Some(ReceiverSample { at_ns: s.at_ns, bytes: s.acked_bytes?, ..Default::default() }))
        .collect();
    let before = samples.iter().take_while(|s| s.at_ns <= omit_ns).last().map_or(0, |s| s.bytes);
    let before = if omit_ns == 0 { 0 } else { before };
    let seconds = theirs.iter().map(StreamResults::seconds).fold(0.0, f64::max);
    let ended = if request.bytes.is_some() { "closed" } else { "duration" };
    Received {
        bytes: before + theirs.iter().map(|s| s.bytes).sum::<u64>(),
        duration_ns: omit_ns + (seconds * 1e9) as u64,
        counted_from: Mark { at_ns: omit_ns, bytes: before },
        stream_bytes: theirs.iter().map(|s| s.bytes).collect(),
        samples,
        cpu: far.cpu.total / 100.0,
        ended: ended.to_owned(),
        ..Default::default()
    }
}

/// What the server sent, as far as it tells.
fn sent_there(theirs: &[StreamResults], far: &Results) -> Sent {
    let retransmits: Vec<u64> = theirs.iter().filter_map(|s| s.retransmits).collect();
    Sent {
        bytes: theirs.iter().map(|s| s.bytes).sum(),
        congestion: far.congestion.clone().unwrap_or_default(),
        retransmits: (!retransmits.is_empty()).then(|| retransmits.iter().sum()),
        cpu: far.cpu.total / 100.0,
        ..Default::default()
    }
}
