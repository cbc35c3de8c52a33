//! Drives a server of iperf3, and makes a measurement of what both ends tell.
//!
//! Each round is a test with a control connection of its own. That server answers no probes: idle round trips are those of
//! the handshakes, loaded ones what this end's kernel makes of its acknowledgements.

mod conclusion;
mod order;
mod streams;

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use bdp_model::caveat::{Caveat, NotMeasured};
use bdp_model::ends::PeerProtocol;
use bdp_model::measurement::{DirectionResult, HostFacts, MeasureRequest, Measurement, PathFacts, Way};
use bdp_model::record::RttSummary;
use bdp_sys::socket::TcpOptions;
use bdp_sys::{clock, process, random, tcp_info};
use bdp_wire::frame::FrameError;
use bdp_wire::iperf3::auth::SKEW_SECONDS;
use bdp_wire::iperf3::exchange::{ClientExchange, Step};
use bdp_wire::iperf3::{Cookie, Failure, LONGEST_RESULTS, Parameters, Results, ServerOutput, State};
use serde_json::Value;

use crate::iperf3::control::Control;
use crate::iperf3::flow::{Flow, Outcome};
use crate::iperf3::login::{ClientLogin, Padding};
use bdp_agent::client::Opened;
use bdp_flow::disturbance::{self, Moved};
use bdp_flow::error::EngineError;
use bdp_flow::host::Baseline;
use bdp_flow::session::dial;
use bdp_flow::session::error::SessionError;
use bdp_flow::session::progress::Stage;
use bdp_flow::session::reporter::{Goodput, Reporter, SHORTEST_TICK};
use bdp_flow::session::{outcome, pacing};
use order::{check, parameters};

/// How long the server may take over each of its steps.
const STEP: Duration = Duration::from_secs(15);
/// The same of the answer to the cookie, which it gives at once.
const GREETED: Duration = Duration::from_secs(5);
/// How often a running test is looked at; one that ends by its volume more often at first, for the server counts the time
/// until it is told of the end: after this share of the time that it took so far, and no sooner than that.
const LOOK: Duration = Duration::from_millis(10);
const LOOK_SHARE: u32 = 64;
const SOONEST_LOOK: Duration = Duration::from_micros(200);
/// How long the server has to read the last datagrams before it hears of the end: half a round trip, for its time runs on
/// meanwhile. At least that, since its threads have to run, and at most this share of the test.
const LAST_DATAGRAMS: Duration = Duration::from_millis(10);
const LAST_DATAGRAMS_SHARE: u32 = 100;
/// How long what was sent of a volume may take to be acknowledged.
const STRAGGLERS: Duration = Duration::from_secs(10);
/// How long a server may be busy with the test before, of whoever it was.
const BUSY: Duration = Duration::from_secs(5);
const BUSY_PAUSE: Duration = Duration::from_millis(250);
/// How long nothing may listen where a server is said to be: it has another listener for each test.
const RELISTENED: Duration = Duration::from_secs(1);
const RELISTENED_PAUSE: Duration = Duration::from_millis(20);

/// What a server is silent to that does not speak iperf3.
pub(super) const GREETING: &str = "it is greeted";
/// What a server does that closes the connection without a word: it refuses the request.
const TOLD: &str = "it is told what to do";

/// Measures by iperf3's protocol.
pub struct Driver<'a, 'r> {
    request: &'a MeasureRequest,
    login: Option<&'a ClientLogin>,
    addresses: Vec<SocketAddr>,
    reporter: Reporter<'r>,
    handshakes: Vec<u64>,
    moved: Moved,
    caveats: Vec<Caveat>,
    path: PathFacts,
    server_output: Vec<Value>,
    opened: Option<Opened>,
}

impl<'a, 'r> Driver<'a, 'r> {
    /// For a request that has been checked.
    pub fn new(
        request: &'a MeasureRequest,
        login: Option<&'a ClientLogin>,
        reporter: Reporter<'r>,
    ) -> Result<Self, SessionError> {
        check(request)?;
        let addresses = dial::resolve(request, reporter.cancel)?;
        Ok(Self {
            request,
            login,
            addresses,
            reporter,
            handshakes: Vec::new(),
            moved: Moved::default(),
            caveats: vec![Caveat::ForeignServer {
                protocol: PeerProtocol::Iperf3,
                datagrams: request.udp.is_some(),
            }],
            path: PathFacts::default(),
            server_output: Vec::new(),
            opened: None,
        })
    }

    /// Has the first test go on where a server waits for it: one that serves a single client (-1) takes no other.
    pub fn go_on(self, opened: Option<Opened>) -> Self {
        // The server's output would have its own copy of the cookie in it, which is no text.
        Self { opened: opened.filter(|_| !self.request.server_output), ..self }
    }

    /// Fills all that a measurement fills but the time it took.
    pub fn measure(mut self) -> Result<Measurement, SessionError> {
        let rounds: Vec<Vec<Way>> = match self.request.bidirectional {
            true => vec![vec![Way::To, Way::From]],
            false => self.request.directions.iter().map(|&way| vec![way]).collect(),
        };
        let mut near = None;
        let mut directions = Vec::new();
        for round in rounds {
            match self.run(&round, &mut near) {
                // A server for one test (-1) has ended: what was measured stands.
                Err(SessionError::Refused { address }) if !directions.is_empty() => {
                    let reason = NotMeasured::NoSecondTest { address };
                    self.caveats.push(Caveat::NotMeasured { directions: round, reason });
                }
                results => {
                    if !self.reporter.go_on(&mut directions, results)? {
                        break;
                    }
                }
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
        // How the server keeps to a rate it does not tell.
        for direction in directions.iter_mut().filter(|direction| direction.direction == Way::To) {
            pacing::note(self.request, direction, &near, &far);
        }
        let idle = RttSummary::of(self.handshakes.iter().copied());
        for direction in &mut directions {
            direction.rtt_ns.idle = idle;
        }
        self.path.rtt_min_ns = self.path.rtt_min_ns.or(idle.map(|rtt| rtt.min));
        outcome::add_caveats(self.request, &directions, &mut self.caveats);
        self.reporter.add_caveat(self.request, &directions, &mut self.caveats);
        Ok(Measurement {
            near,
            far,
            path: self.path,
            rtt_idle_ns: idle,
            directions,
            caveats: self.caveats,
            server_output: self.server_output,
            ..Measurement::of(self.request)
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
        let length_bytes = test.length_bytes;
        let mut flows = self.start(ways, streams, length_bytes)?;
        let ran = Instant::now();
        self.attend(ways, &test, &mut flows)?;
        if self.request.udp.is_some() && flows.iter().any(Flow::sends) {
            // That server counts what it has read when it hears of the end, and no more.
            std::thread::sleep(for_last_datagrams(test.control.rtt(), ran.elapsed()));
        }
        let told = |e: std::io::Error| test.lost(&e.into(), "the test ends");
        test.control.say(State::TestEnd).map_err(told)?;
        if self.request.udp.is_some() && self.request.bytes.is_none() {
            flows.iter_mut().for_each(Flow::note_end);
        }
        let cpu = (process::cpu_time_ns() - cpu_before_ns) as f64 / ran.elapsed().as_nanos().max(1) as f64;
        let finish = |flows: &mut [Flow]| flows.iter_mut().map(Flow::finish).collect::<Result<Vec<_>, _>>();
        let (test, outcomes) = match self.request.udp {
            None => {
                let outcomes = finish(&mut flows)?;
                (self.await_results(test, &flows)?, outcomes)
            }
            // When it asks for results it has sent its last datagram.
            Some(_) => {
                let test = self.await_results(test, &flows)?;
                flows.iter().for_each(Flow::settle);
                let outcomes = finish(&mut flows)?;
                if outcomes.iter().any(Outcome::is_empty_handed) {
                    let waited = ran.elapsed().into();
                    return Err(SessionError::NoDatagrams { address: test.address, waited });
                }
                (test, outcomes)
            }
        };
        let senders = flows.iter().map(|f| (f.way(), f.sender_infos())).collect();
        let stage = if let &[way] = ways { Stage::Direction(way) } else { Stage::Both };
        self.reporter.show(stage, ran, self.request.duration, Goodput::last(senders), None);
        let results = conclusion::near_results(&outcomes, cpu * 100.0);
        let far = test.exchange(&results, outcomes.iter().map(|o| o.streams.len()).sum())?;
        drop(flows);
        // Releases up to 3.12 go on to tell those who have not asked once somebody has.
        let asked = far.server_output.iter().filter(|_| self.request.server_output);
        self.server_output.extend(asked.map(|output| match output {
            ServerOutput::Text(text) => Value::String(text.clone()),
            ServerOutput::Json(document) => document.clone(),
        }));
        self.conclude(ways, outcomes, &far, length_bytes)
    }

    /// Shows a cookie to the server, again where it is busy, and says what is wanted.
    fn begin(&mut self, ways: &[Way], near: &mut Option<Baseline>) -> Result<Test, SessionError> {
        let since = Instant::now();
        let options = TcpOptions { device: self.request.bind_device.clone(), ..Default::default() };
        loop {
            if let Some(Opened { stream, address, sent }) = self.opened.take() {
                let cookie = Cookie::behind(&sent, &random::bytes()?);
                if let Ok(test) = self.show(stream, address, cookie, sent.len(), ways, near) {
                    return Ok(test);
                }
                continue;
            }
            let connected = dial::connect_any(&self.addresses, self.request, &options, self.reporter.cancel);
            let (stream, address) = match connected {
                Err(SessionError::Refused { .. })
                    if since.elapsed() < if near.is_some() { BUSY } else { RELISTENED } =>
                {
                    self.pause(RELISTENED_PAUSE)?;
                    continue;
                }
                Err(error) if is_reset(&error) && since.elapsed() < BUSY => {
                    self.pause(BUSY_PAUSE)?;
                    continue;
                }
                other => other?,
            };
            match self.show(stream, address, Cookie::of(&random::bytes()?), 0, ways, near) {
                Ok(test) => return Ok(test),
                // Between two tests its listener is another one, and connections to the one before are lost.
                Err(SessionError::Denied { .. } | SessionError::Lost { .. }) if since.elapsed() < BUSY => {
                    self.pause(BUSY_PAUSE)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Shows a cookie, of which the server has so many bytes, and says what is wanted where it is asked.
    fn show(
        &mut self,
        stream: TcpStream,
        address: SocketAddr,
        cookie: Cookie,
        known: usize,
        ways: &[Way],
        near: &mut Option<Baseline>,
    ) -> Result<Test, SessionError> {
        self.addresses = vec![address];
        self.note_handshake(&stream);
        if near.is_none() {
            let local = stream.local_addr().map_or(std::net::IpAddr::from([0, 0, 0, 0]), |a| a.ip());
            *near = Some(Baseline::take(local));
        }
        let control = Control::over(stream)?;
        let length_bytes = self.length(address)?;
        let exchange = ClientExchange::default();
        let login = self.login.map(|login| login.padding);
        let mut test = Test { control, address, cookie, exchange, length_bytes, login };
        let rest = cookie.bytes().get(known..).unwrap_or_default();
        test.control.send(rest).map_err(|e| test.lost(&e.into(), GREETING))?;
        test.step(&self.reporter, GREETED, GREETING)?;
        let parameters =
            Parameters { auth_token: self.token()?, ..parameters(self.request, ways, length_bytes) };
        let sent = test.control.send_json(&parameters.to_json());
        sent.map_err(|e| test.lost(&e, TOLD))?;
        Ok(test)
    }

    /// The login for a test that begins now.
    fn token(&self) -> Result<Option<String>, SessionError> {
        let Some(login) = self.login else { return Ok(None) };
        match login.token(clock::unix_ms() / 1000) {
            Some(token) => Ok(Some(token)),
            None => Err(SessionError::Request(
                "the user's name and password are longer than the server's key has room for; a longer key helps"
                    .to_owned(),
            )),
        }
    }

    fn pause(&self, pause: Duration) -> Result<(), SessionError> {
        std::thread::sleep(pause);
        self.reporter.check_cancel()
    }

    fn note_handshake(&mut self, stream: &TcpStream) {
        self.handshakes.extend(tcp_info::read(stream).ok().and_then(|info| info.rtt_ns));
    }

    /// Lets the flows run for their time, or until their bytes are through.
    fn attend(&mut self, ways: &[Way], test: &Test, flows: &mut [Flow]) -> Result<(), SessionError> {
        let request = self.request;
        let stage = if let &[way] = ways { Stage::Direction(way) } else { Stage::Both };
        let (since, mut told) = (Instant::now(), Instant::now());
        let mut omit = Some(request.omit.to_duration()).filter(|omit| !omit.is_zero());
        loop {
            let look = if request.bytes.is_some() { next_look(since) } else { LOOK };
            let heard = test.control.hear(look).map_err(|e| test.lost(&e, "a measurement runs"))?;
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
                let span = told.elapsed();
                told = Instant::now();
                let moved = flows.iter_mut().map(|f| (f.way(), f.moved_since())).collect();
                let senders = flows.iter().map(|f| (f.way(), f.sender_infos())).collect();
                let goodput = Goodput::of(span, moved, senders);
                self.reporter.show(stage, since, request.duration, goodput, None);
            }
            // Within the omit there is nothing yet to conclude.
            let any = omit.is_none() && flows.iter().any(|flow| flow.bytes() > 0);
            match self.reporter.begins_to_conclude(any) {
                Ok(true) => break,
                Ok(false) => {}
                Err(cancelled) => {
                    let _ = test.control.say(State::ClientTerminate);
                    return Err(cancelled);
                }
            }
        }
        if request.bytes.is_some() && !self.reporter.concludes {
            self.await_stragglers(flows, since)?;
        }
        flows.iter_mut().for_each(Flow::wind_down);
        Ok(())
    }

    /// Waits until what was sent of a volume, in a test that began then, has arrived.
    fn await_stragglers(&self, flows: &[Flow], since: Instant) -> Result<(), SessionError> {
        let until = Instant::now() + STRAGGLERS;
        let mut ready: Option<Instant> = None;
        while Instant::now() < until {
            let left = flows.iter().filter(|flow| flow.sends()).map(Flow::last_on_its_way);
            match left.collect::<Option<Vec<_>>>() {
                None => ready = None,
                Some(left) => {
                    let longest = left.into_iter().max().unwrap_or_default();
                    if ready.get_or_insert_with(Instant::now).elapsed() >= longest.to_duration() {
                        break;
                    }
                }
            }
            std::thread::sleep(next_look(since));
            self.reporter.check_cancel()?;
        }
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
}

/// How long until a test is looked at again that began then.
fn next_look(since: Instant) -> Duration {
    (since.elapsed() / LOOK_SHARE).clamp(SOONEST_LOOK, LOOK)
}

/// How long the last datagrams of a test that ran for so long have to arrive, given the round trip.
fn for_last_datagrams(rtt: Option<Duration>, ran: Duration) -> Duration {
    let most = LAST_DATAGRAMS.max(ran / LAST_DATAGRAMS_SHARE);
    rtt.map_or(LAST_DATAGRAMS, |rtt| rtt / 2).clamp(LAST_DATAGRAMS, most)
}

/// A test on its way.
struct Test {
    control: Control,
    address: SocketAddr,
    cookie: Cookie,
    exchange: ClientExchange,
    /// Of one write, or of a datagram's payload.
    length_bytes: u64,
    /// The padding of the login, where there is one.
    login: Option<Padding>,
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
            let heard = self.control.hear(SHORTEST_TICK).map_err(|e| self.lost(&e, doing))?;
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
        let code = match self.control.read::<4>(STEP) {
            Ok(bytes) => i32::from_be_bytes(bytes),
            Err(error) => return self.lost(&error, "it tells why it failed"),
        };
        // Of a login that it does not take iperf3 sends no more than that.
        if code == Failure::AUTHORISATION.code {
            return SessionError::Login { address: self.address, way_out: way_in(self.login) };
        }
        match self.control.read::<4>(STEP).map(i32::from_be_bytes) {
            Ok(errno) => {
                let failure = Failure { code, errno };
                SessionError::Far { address: self.address, error: failure.to_string() }
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
            // Releases since 3.21 say nothing to whoever's login they do not accept, and print "no error" at both ends.
            FrameError::Closed if doing == TOLD => SessionError::Login {
                address,
                way_out: format!(
                    "it read the request and closed the connection without a reason, as iperf3 3.22 refuses a login: {}",
                    way_in(self.login)
                ),
            },
            FrameError::Closed | FrameError::Io(_) => SessionError::Lost { address, doing },
            FrameError::Silent => SessionError::Silent { address, doing },
            other => self.nonsense(&other.to_string()),
        }
    }

    fn nonsense(&self, what: &str) -> SessionError {
        SessionError::NotBdp { address: self.address, what: format!("as an iperf3 server, {what}") }
    }
}

/// What helps whoever was not let in; the server does not tell what was wrong.
fn way_in(login: Option<Padding>) -> String {
    let padding = match login {
        None => {
            return "it serves those whom it knows: give --user NAME and its public key, --iperf3-public-key FILE; \
                    of a 'bdp serve' there, --allow for this address does as well"
                .to_owned();
        }
        Some(Padding::Oaep) => "an iperf3 before 3.17 there needs --iperf3-pkcs1",
        Some(Padding::Pkcs1) => "an iperf3 since 3.17 there needs it without --iperf3-pkcs1",
    };
    format!(
        "its answer is the same whatever is wrong: name, password, public key, or clocks more than \
         {SKEW_SECONDS} s apart; {padding}"
    )
}

/// Whether a connection was made and lost at once, as by a server whose listener is another one after each test.
fn is_reset(error: &SessionError) -> bool {
    matches!(error, SessionError::Near(EngineError::Sys(e)) if e.source.kind() == ErrorKind::ConnectionReset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_told_before_it_costs_the_server_more_than_a_hundredth() {
        let ms = Duration::from_millis;
        for (rtt, ran, wait) in [
            (Some(ms(1)), ms(10_000), ms(10)),
            (None, ms(10_000), ms(10)),
            (Some(ms(80)), ms(10_000), ms(40)),
            (Some(ms(600)), ms(10_000), ms(100)),
            (Some(ms(600)), ms(1_000), ms(10)),
        ] {
            assert_eq!(for_last_datagrams(rtt, ran), wait, "{rtt:?} {ran:?}");
        }
    }
}
