//! Drives an iperf3 server, and makes a measurement of both ends' reports.
//!
//! Each round is a test with its own control connection. That server answers no probes: idle round trips are those of
//! the handshakes, loaded ones the local kernel's estimates from acknowledgements.

mod conclusion;
mod order;
mod streams;
mod test;

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use bdp_agent::client::Opened;
use bdp_flow::background::Passed;
use bdp_flow::error::FlowError;
use bdp_flow::session::dial;
use bdp_flow::session::error::{Result, SessionError};
use bdp_flow::session::peer::{Context, Outcome, Peer, Polled};
use bdp_flow::session::reporter::Reporter;
use bdp_model::finding::caveat::{Caveat, NotMeasured};
use bdp_model::measurement::ends::PeerProtocol;
use bdp_model::measurement::{Direction, HostFacts, MeasureRequest};
use bdp_model::record::RttSummary;
use bdp_sys::socket::TcpOptions;
use bdp_sys::tcp_info::TcpInfo;
use bdp_sys::{clock, process, random, tcp_info};
use bdp_wire::iperf3::exchange::{ClientExchange, Step};
use bdp_wire::iperf3::{Cookie, Parameters, ServerOutput, State};
use serde_json::Value;

use super::control::Control;
use super::flow::Flow;
use super::login::ClientLogin;
use super::outcome;
use order::{check, parameters};
use test::{GREETING, LOOK, SET_UP, STEP, Test};

/// How long the server may take to answer the cookie, which it does at once.
const GREETED: Duration = Duration::from_secs(5);
/// A test that ends by its volume is looked at more often at first, for the server counts the time until it hears of the
/// end: after this share of the time that it took so far, and no sooner than that.
const LOOK_SHARE: u32 = 64;
const SOONEST_LOOK: Duration = Duration::from_micros(200);
/// How long the server has to read the last datagrams before it hears of the end: half a round trip, for its time runs on
/// meanwhile. At least that, since its threads have to run, and at most this share of the test.
const LAST_DATAGRAMS: Duration = Duration::from_millis(10);
const LAST_DATAGRAMS_SHARE: u32 = 100;
/// How long the rest of a volume may take to be acknowledged.
const STRAGGLERS: Duration = Duration::from_secs(10);
/// How long a server may be busy with the test before, of any client.
const BUSY: Duration = Duration::from_secs(5);
const BUSY_PAUSE: Duration = Duration::from_millis(250);
/// How long nothing may listen at a known server: it opens another listener for each test.
const RELISTENED: Duration = Duration::from_secs(1);
const RELISTENED_PAUSE: Duration = Duration::from_millis(20);

/// Measures with iperf3's protocol.
pub struct Iperf3Peer<'a> {
    login: Option<&'a ClientLogin>,
    addresses: Vec<SocketAddr>,
    opened: Option<Opened>,
    handshakes: Vec<u64>,
    server_output: Vec<Value>,
    round: Option<Round>,
}

/// A test that runs.
struct Round {
    test: Test,
    flows: Vec<Flow>,
    began: Instant,
    cpu_before_ns: u64,
    /// Time until counting begins.
    omit: Option<Duration>,
    /// Whether it was interrupted.
    is_cut_short: bool,
}

impl<'a> Iperf3Peer<'a> {
    /// Creates a peer that begins the first test with a new connection.
    pub fn new(login: Option<&'a ClientLogin>) -> Self {
        Self {
            login,
            addresses: Vec::new(),
            opened: None,
            handshakes: Vec::new(),
            server_output: Vec::new(),
            round: None,
        }
    }

    /// Creates a peer that continues the first test on a waiting connection: a server for a single client (-1)
    /// accepts no other.
    pub fn going_on(login: Option<&'a ClientLogin>, opened: Option<Opened>) -> Self {
        Self { opened, ..Self::new(login) }
    }
}

impl Peer for Iperf3Peer<'_> {
    fn open(&mut self, request: &MeasureRequest, context: &mut Context<'_>) -> Result<MeasureRequest> {
        check(request)?;
        self.addresses = dial::resolve(request, context.reporter.cancel)?;
        let datagrams = request.spec.udp.is_some();
        context.caveats.push(Caveat::ForeignServer { protocol: PeerProtocol::Iperf3, datagrams });
        if request.server_output {
            // The server's output would have its own copy of the cookie in it, which is no text.
            self.opened = None;
        }
        Ok(request.clone())
    }

    fn begin(
        &mut self,
        request: &MeasureRequest,
        ways: &[Direction],
        context: &mut Context<'_>,
    ) -> Result<()> {
        self.round = None;
        let mut test = self.show_cookie(request, ways, context)?;
        let (streams, handshakes) = streams::open(request, ways, &mut test, &context.reporter)?;
        self.handshakes.extend(handshakes);
        let cpu_before_ns = process::cpu_time_ns();
        let flows = streams::start(request, ways, streams, test.length_bytes)?;
        let omit = Some(request.spec.omit.to_duration()).filter(|omit| !omit.is_zero());
        let began = Instant::now();
        self.round = Some(Round { test, flows, began, cpu_before_ns, omit, is_cut_short: false });
        Ok(())
    }

    fn poll(&mut self, request: &MeasureRequest, _: &mut Context<'_>) -> Result<Polled> {
        match &mut self.round {
            Some(round) => round.poll(request),
            None => Ok(Polled::Over),
        }
    }

    fn moved(&mut self) -> Vec<(Direction, Passed)> {
        let flows = self.round.iter_mut().flat_map(|round| &mut round.flows);
        flows.map(|flow| (flow.way(), flow.moved_since())).collect()
    }

    fn sender_infos(&self) -> Vec<(Direction, Vec<TcpInfo>)> {
        let flows = self.round.iter().flat_map(|round| &round.flows);
        flows.map(|flow| (flow.way(), flow.sender_infos())).collect()
    }

    fn has_begun(&self) -> bool {
        // Within the omit there is nothing yet to conclude.
        let round = self.round.as_ref().filter(|round| round.omit.is_none());
        round.is_some_and(|round| round.flows.iter().any(|flow| flow.bytes() > 0))
    }

    fn interrupt(&mut self, _: &mut Context<'_>) -> Result<()> {
        if let Some(round) = &mut self.round {
            round.is_cut_short = true;
        }
        Ok(())
    }

    fn abandon(&mut self) {
        if let Some(round) = self.round.take() {
            // Whether or not it hears it, the test is over.
            let _ = round.test.control.say(State::ClientTerminate);
        }
    }

    fn finish(&mut self, request: &MeasureRequest, context: &mut Context<'_>) -> Result<Vec<Outcome>> {
        let Some(round) = self.round.take() else { return Ok(Vec::new()) };
        let (outcomes, output) = round.finish(request, &context.reporter)?;
        self.server_output.extend(output);
        Ok(outcomes)
    }

    fn idle_rtt(&self) -> Option<RttSummary> {
        RttSummary::of(self.handshakes.iter().copied())
    }

    fn unmeasured(&self, error: &SessionError) -> Option<NotMeasured> {
        // A server for one test (-1) has ended.
        let SessionError::Refused { address } = *error else { return None };
        Some(NotMeasured::NoSecondTest { address })
    }

    fn knows_pacing(&self, way: Direction) -> bool {
        // The server does not report how it paces.
        way == Direction::To
    }

    fn remote_facts(&mut self, request: &MeasureRequest) -> Result<HostFacts> {
        let address = self.addresses.first().map_or_else(String::new, |a| a.ip().to_canonical().to_string());
        Ok(HostFacts { name: request.host.clone(), address, ..Default::default() })
    }

    fn server_output(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.server_output)
    }
}

impl Iperf3Peer<'_> {
    /// Sends a cookie to the server, again while it is busy, and then the request.
    fn show_cookie(
        &mut self,
        request: &MeasureRequest,
        ways: &[Direction],
        context: &mut Context<'_>,
    ) -> Result<Test> {
        let since = Instant::now();
        let options = TcpOptions { device: request.bind_device.clone(), ..Default::default() };
        loop {
            if let Some(Opened { stream, address, sent }) = self.opened.take() {
                let cookie = Cookie::behind(&sent, &random::bytes()?);
                if let Ok(test) = self.show(stream, address, cookie, sent.len(), (request, ways), context) {
                    return Ok(test);
                }
                continue;
            }
            let connected = dial::connect_any(&self.addresses, request, &options, context.reporter.cancel);
            let (stream, address) = match connected {
                Err(SessionError::Refused { .. })
                    if since.elapsed() < if context.is_connected() { BUSY } else { RELISTENED } =>
                {
                    pause(&context.reporter, RELISTENED_PAUSE)?;
                    continue;
                }
                Err(error) if is_reset(&error) && since.elapsed() < BUSY => {
                    pause(&context.reporter, BUSY_PAUSE)?;
                    continue;
                }
                other => other?,
            };
            match self.show(stream, address, Cookie::of(&random::bytes()?), 0, (request, ways), context) {
                Ok(test) => return Ok(test),
                // Between two tests it opens a new listener, and connections to the old one are lost.
                Err(SessionError::Denied { .. } | SessionError::Lost { .. }) if since.elapsed() < BUSY => {
                    pause(&context.reporter, BUSY_PAUSE)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a cookie, of which the server already has this many bytes, and then the request when asked.
    fn show(
        &mut self,
        stream: TcpStream,
        address: SocketAddr,
        cookie: Cookie,
        known: usize,
        (request, ways): (&MeasureRequest, &[Direction]),
        context: &mut Context<'_>,
    ) -> Result<Test> {
        self.addresses = vec![address];
        self.handshakes.extend(handshake(&stream));
        context.note_local(stream.local_addr().map_or(IpAddr::from([0, 0, 0, 0]), |a| a.ip()));
        let control = Control::over(stream)?;
        let length_bytes = streams::length(request, address)?;
        let exchange = ClientExchange::default();
        let login = self.login.map(|login| login.padding);
        let mut test = Test { control, address, cookie, exchange, length_bytes, login };
        let rest = cookie.bytes().get(known..).unwrap_or_default();
        test.control.send(rest).map_err(|e| test.lost(&e.into(), GREETING))?;
        test.step(&context.reporter, GREETED, GREETING)?;
        let parameters = Parameters { auth_token: self.token()?, ..parameters(request, ways, length_bytes) };
        let sent = test.control.send_json(&parameters.to_json());
        sent.map_err(|e| test.lost(&e, SET_UP))?;
        Ok(test)
    }

    /// The login for a test that begins now.
    fn token(&self) -> Result<Option<String>> {
        let Some(login) = self.login else { return Ok(None) };
        match login.token(clock::unix_ms() / 1000) {
            Some(token) => Ok(Some(token)),
            None => Err(SessionError::Request(
                "user name and password are too long for the server's key; use a longer key".to_owned(),
            )),
        }
    }
}

impl Round {
    fn poll(&mut self, request: &MeasureRequest) -> Result<Polled> {
        if self.is_cut_short {
            return Ok(Polled::Over);
        }
        let look = if request.spec.bytes.is_some() { next_look(self.began) } else { LOOK };
        let heard = self.test.control.hear(look).map_err(|e| self.test.lost(&e, "the measurement"))?;
        if let Some(byte) = heard {
            return Err(self.test.unexpected(byte));
        }
        if self.omit.is_some_and(|omit| self.began.elapsed() >= omit) {
            self.flows.iter_mut().for_each(Flow::begin_counting);
            self.omit = None;
        }
        let volume = request.spec.bytes.map(|b| b.as_bytes()).filter(|_| self.omit.is_none());
        // A sender has ended once everything is written, a receiver once everything has arrived.
        let through =
            |flow: &Flow| flow.is_finished() || volume.is_some_and(|v| !flow.sends() && flow.bytes() >= v);
        let over = request.spec.bytes.is_some() && self.flows.iter().any(through);
        let is_over = over || self.began.elapsed() >= request.spec.duration.to_duration();
        Ok(if is_over { Polled::Over } else { Polled::Running })
    }

    /// Ends the test normally, and returns its outcome with the server's output.
    fn finish(
        mut self,
        request: &MeasureRequest,
        reporter: &Reporter<'_>,
    ) -> Result<(Vec<Outcome>, Vec<Value>)> {
        if request.spec.bytes.is_some() && !self.is_cut_short {
            self.await_stragglers(reporter)?;
        }
        self.flows.iter_mut().for_each(Flow::wind_down);
        if request.spec.udp.is_some() && self.flows.iter().any(Flow::sends) {
            // That server counts what it has read when it learns of the end, and no more.
            std::thread::sleep(for_last_datagrams(self.test.control.rtt(), self.began.elapsed()));
        }
        let lost = |e: std::io::Error| self.test.lost(&e.into(), "the end of the test");
        self.test.control.say(State::TestEnd).map_err(lost)?;
        if request.spec.udp.is_some() && request.spec.bytes.is_none() {
            self.flows.iter_mut().for_each(Flow::note_end);
        }
        let cpu_ns = process::cpu_time_ns() - self.cpu_before_ns;
        let cpu = cpu_ns as f64 / self.began.elapsed().as_nanos().max(1) as f64;
        let outcomes = self.end_flows(request, reporter)?;
        let senders: Vec<_> = self.flows.iter().map(Flow::sender_infos).collect();
        let ways: Vec<Direction> = self.flows.iter().map(Flow::way).collect();
        let length_bytes = self.test.length_bytes;
        let results = conclusion::near_results(&outcomes, cpu * 100.0);
        let far = self.test.exchange(&results, outcomes.iter().map(|o| o.streams.len()).sum())?;
        drop(self.flows);
        // Releases up to 3.12 continue to send it to clients that have not asked once any client has.
        let asked = far.server_output.iter().filter(|_| request.server_output);
        let output = asked.map(|output| match output {
            ServerOutput::Text(text) => Value::String(text.clone()),
            ServerOutput::Json(document) => document.clone(),
        });
        let output = output.collect();
        let mut concluded = conclusion::conclude(request, &ways, outcomes, &far, length_bytes);
        for (outcome, infos) in concluded.iter_mut().zip(senders) {
            outcome.sender_infos = infos;
        }
        Ok((concluded, output))
    }

    /// Waits for the flows' ends, and until the server asks for results.
    fn end_flows(
        &mut self,
        request: &MeasureRequest,
        reporter: &Reporter<'_>,
    ) -> Result<Vec<outcome::Outcome>> {
        let finish = |flows: &mut [Flow]| flows.iter_mut().map(Flow::finish).collect::<Result<Vec<_>, _>>();
        if request.spec.udp.is_none() {
            let outcomes = finish(&mut self.flows)?;
            self.await_results(reporter)?;
            return Ok(outcomes);
        }
        // When it asks for results it has sent its last datagram.
        self.await_results(reporter)?;
        self.flows.iter().for_each(Flow::settle);
        let outcomes = finish(&mut self.flows)?;
        if outcomes.iter().any(outcome::Outcome::is_empty_handed) {
            let waited = self.began.elapsed().into();
            return Err(SessionError::NoDatagrams { address: self.test.address, waited });
        }
        Ok(outcomes)
    }

    /// Waits until all sent bytes of a volume have arrived.
    fn await_stragglers(&self, reporter: &Reporter<'_>) -> Result<()> {
        let until = Instant::now() + STRAGGLERS;
        let mut ready: Option<Instant> = None;
        while Instant::now() < until {
            let left = self.flows.iter().filter(|flow| flow.sends()).map(Flow::last_on_its_way);
            match left.collect::<Option<Vec<_>>>() {
                None => ready = None,
                Some(left) => {
                    let longest = left.into_iter().max().unwrap_or_default();
                    if ready.get_or_insert_with(Instant::now).elapsed() >= longest.to_duration() {
                        break;
                    }
                }
            }
            std::thread::sleep(next_look(self.began));
            reporter.check_cancel()?;
        }
        Ok(())
    }

    /// Waits until the server asks for results, and meanwhile receives what it still sends.
    fn await_results(&mut self, reporter: &Reporter<'_>) -> Result<()> {
        let since = Instant::now();
        loop {
            self.flows.iter().filter(|flow| !flow.sends()).for_each(Flow::drain);
            let heard =
                self.test.control.hear(LOOK).map_err(|e| self.test.lost(&e, "the end of the test"))?;
            if let Some(byte) = heard {
                self.test.take(byte, Step::ExchangeResults)?;
                return Ok(());
            }
            if since.elapsed() > STEP {
                return Err(SessionError::Silent {
                    address: self.test.address,
                    doing: "the end of the test",
                });
            }
            reporter.check_cancel()?;
        }
    }
}

fn pause(reporter: &Reporter<'_>, pause: Duration) -> Result<()> {
    std::thread::sleep(pause);
    reporter.check_cancel()
}

/// The round trip of a fresh connection's handshake.
fn handshake(stream: &TcpStream) -> Option<u64> {
    tcp_info::read(stream).ok().and_then(|info| info.rtt_ns)
}

/// Returns how long until a test that began then is checked again.
fn next_look(since: Instant) -> Duration {
    (since.elapsed() / LOOK_SHARE).clamp(SOONEST_LOOK, LOOK)
}

/// Returns how long the last datagrams of a test have to arrive, by its duration and the round trip.
fn for_last_datagrams(rtt: Option<Duration>, ran: Duration) -> Duration {
    let most = LAST_DATAGRAMS.max(ran / LAST_DATAGRAMS_SHARE);
    rtt.map_or(LAST_DATAGRAMS, |rtt| rtt / 2).clamp(LAST_DATAGRAMS, most)
}

/// Whether a connection was made and lost at once, as by a server whose listener is another one after each test.
fn is_reset(error: &SessionError) -> bool {
    matches!(error, SessionError::Near(FlowError::Sys(e)) if e.source.kind() == ErrorKind::ConnectionReset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_is_announced_within_a_hundredth_of_the_test() {
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
