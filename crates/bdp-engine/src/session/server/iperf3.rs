//! Clients of iperf3: each test on a thread of its own, its data connections found by their cookie.
//!
//! Every wait has its deadline, and a client that vanishes is noticed by its control connection.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bdp_model::units::{Nanos, Rate};
use bdp_sys::socket::{self, TcpOptions};
use bdp_wire::frame::FrameError;
use bdp_wire::iperf3::exchange::{Word, hear};
use bdp_wire::iperf3::{
    Cookie, CpuUse, Direction, Failure, LONGEST_PARAMETERS, Parameters, Results, State, StreamResults,
    stream_id,
};

use super::access::{Proof, Protocol};
use super::places::Place;
use super::{Event, Shared, admission};
use crate::iperf3::control::Control;
use crate::iperf3::tcp::{Flow, Outcome, Plan};

/// How long a client may take over each step but the test itself.
const STEP: Duration = Duration::from_secs(10);
/// How much longer than asked for a test may take: paths are slow to end.
const GRACE: Nanos = Nanos::secs(15);
/// How often it is looked whether a test that ends by its volume is through.
const LOOK: Duration = Duration::from_millis(10);
/// How long what is under way at the end of such a test may take.
const STRAGGLERS: Duration = Duration::from_millis(500);
/// Longest results of a client, which are some 200 bytes a stream.
const LONGEST_RESULTS: usize = 256 << 10;

/// The tests of a server.
#[derive(Default)]
pub(super) struct Tests(Mutex<HashMap<Cookie, Arc<Test>>>);

impl Tests {
    fn map(&self) -> MutexGuard<'_, HashMap<Cookie, Arc<Test>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.map().is_empty()
    }

    /// Ends all.
    pub(super) fn hang_up(&self) {
        for test in self.map().values() {
            test.hang_up();
        }
    }
}

/// A connection that began with a cookie: the control connection of a new test, or a stream of one that there is.
/// `order` counts connections as they were let in.
pub(super) fn take(shared: &Arc<Shared>, stream: TcpStream, peer: SocketAddr, cookie: Cookie, order: u64) {
    let test = shared.iperf3.map().get(&cookie).cloned();
    let refused = match test {
        Some(test) => test.take_stream(stream, peer, order),
        None => begin(shared, stream, peer, cookie),
    };
    if let Err(why) = refused {
        shared.tell(&Event::TurnedAway { peer, why });
    }
}

/// Starts a test's thread, unless the client may not come in or there is no place. Never waits for the client.
fn begin(shared: &Arc<Shared>, stream: TcpStream, peer: SocketAddr, cookie: Cookie) -> Result<(), String> {
    let deny = |bytes: &[u8]| {
        // A fresh connection has room for it.
        let _ = (&mut &stream).write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
    };
    let mut not_authorised = vec![State::ServerError.byte()];
    not_authorised.extend(Failure::AUTHORISATION.encode());
    let proof = shared.options.access.check(peer.ip(), Protocol::Iperf3).map_err(|denied| {
        deny(&not_authorised);
        denied.to_string()
    })?;
    let busy = |why: String| {
        deny(&[State::AccessDenied.byte()]);
        Err(why)
    };
    let place = match shared.places.enter(peer.ip()) {
        Ok(_) if shared.is_ending() => return busy("about to end".to_owned()),
        Ok(place) => place,
        Err(denied) => return busy(denied.to_string()),
    };
    let test = Arc::new(Test {
        hang_up: stream.try_clone().map_err(|e| e.to_string())?,
        peer,
        proof,
        arrivals: Mutex::new(Arrivals { missing: 0, streams: BTreeMap::new(), ended: false }),
        changed: Condvar::new(),
    });
    shared.iperf3.map().insert(cookie, Arc::clone(&test));
    let on_thread = Arc::clone(shared);
    let started = crate::agent::start(move || {
        test.serve(&on_thread, stream, place);
        on_thread.iperf3.map().remove(&cookie);
        if on_thread.options.once {
            on_thread.end();
        }
    });
    started.map(drop).map_err(|e| {
        shared.iperf3.map().remove(&cookie);
        e.to_string()
    })
}

/// A test, shared by its own thread and the one that lets connections in.
struct Test {
    hang_up: TcpStream,
    peer: SocketAddr,
    proof: Proof,
    arrivals: Mutex<Arrivals>,
    changed: Condvar,
}

/// The data connections as they come.
struct Arrivals {
    missing: usize,
    /// By the order in which they were let in: their cookies may come in another.
    streams: BTreeMap<u64, TcpStream>,
    ended: bool,
}

/// Why a test came to nothing: what the client is told, and what the log says.
struct Ending {
    failure: Option<Failure>,
    why: String,
}

impl Ending {
    fn refused(failure: Failure, why: impl Into<String>) -> Self {
        Self { failure: Some(failure), why: why.into() }
    }

    /// There is nobody to tell.
    fn silent(why: impl Into<String>) -> Self {
        Self { failure: None, why: why.into() }
    }

    fn of(error: &FrameError, doing: &str) -> Self {
        Self::silent(match error {
            FrameError::Closed => format!("the client left while {doing}"),
            FrameError::Silent => format!("the client said nothing while {doing}"),
            other => format!("while {doing}: {other}"),
        })
    }
}

impl Test {
    /// From the cookie to the farewell.
    fn serve(&self, shared: &Shared, stream: TcpStream, place: Place) {
        let began = Instant::now();
        let number = admission::next_number(&shared.begun);
        let mut flows = 0;
        let ended = Control::over(stream).map_err(|e| Ending::silent(e.to_string())).and_then(|control| {
            self.attend(shared, &control, &place, number, &mut flows).inspect_err(|ending| {
                if let Some(failure) = ending.failure {
                    control.refuse(failure);
                }
            })
        });
        self.arrivals().ended = true;
        drop(place);
        shared.tell(&Event::Ended {
            session: number,
            peer: self.peer,
            took: Nanos::from(began.elapsed()),
            flows,
            why: ended.err().map(|ending| ending.why),
        });
    }

    fn attend(
        &self,
        shared: &Shared,
        control: &Control,
        place: &Place,
        number: u32,
        flows: &mut u32,
    ) -> Result<(), Ending> {
        let gone = |e: std::io::Error| Ending::of(&e.into(), "it was asked for parameters");
        control.say(State::ParamExchange).map_err(gone)?;
        let parameters = read_parameters(control)?;
        let program =
            format!("iperf3 {}", parameters.client_version.as_deref().unwrap_or("without a version"));
        let program = program.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').take(30).collect();
        shared.tell(&Event::Began { session: number, peer: self.peer, program });
        self.authorise(&parameters)?;
        let longest = granted(shared, &parameters)?;
        let _streams = place
            .take_streams(parameters.streams())
            .map_err(|denied| Ending::refused(Failure::STREAMS, denied.to_string()))?;
        let streams = self.gather(control, &parameters)?;
        let mut running = Running::start(streams, &parameters, longest, shared.options.limits.rate)?;
        *flows = running.flows.len() as u32;
        let gone = |e: std::io::Error| Ending::of(&e.into(), "the test began");
        control.send(&[State::TestStart.byte(), State::TestRunning.byte()]).map_err(gone)?;
        running.attend(control, &parameters, longest)?;
        let results = running.finish(&parameters)?;
        let received =
            if parameters.direction == Direction::Reverse { 0 } else { parameters.parallel as usize };
        let (to, from) = results.streams.split_at(received.min(results.streams.len()));
        shared.counters.add_received(to.iter().map(|s| s.bytes).sum());
        shared.counters.add_sent(from.iter().map(|s| s.bytes).sum());
        exchange(control, &results)
    }

    /// Whether the client has shown what it has to.
    fn authorise(&self, _parameters: &Parameters) -> Result<(), Ending> {
        match self.proof {
            Proof::Nothing => Ok(()),
            Proof::User | Proof::Token => {
                Err(Ending::refused(Failure::AUTHORISATION, "it named no user that is known here"))
            }
        }
    }

    /// Asks for the streams, and waits for all of them.
    fn gather(&self, control: &Control, parameters: &Parameters) -> Result<Vec<TcpStream>, Ending> {
        let wanted = parameters.streams() as usize;
        self.arrivals().missing = wanted;
        let gone = |e: std::io::Error| Ending::of(&e.into(), "it was asked for its streams");
        control.say(State::CreateStreams).map_err(gone)?;
        let until = Instant::now() + STEP;
        let mut arrivals = self.arrivals();
        while arrivals.missing > 0 {
            if arrivals.ended {
                return Err(Ending::silent("the server ends"));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let came = wanted - arrivals.missing;
                let why = format!("{came} of {wanted} streams came within {}", Nanos::from(STEP));
                return Err(Ending::refused(Failure::ACCEPT, why));
            }
            arrivals = self.changed.wait_timeout(arrivals, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let streams: Vec<TcpStream> = std::mem::take(&mut arrivals.streams).into_values().collect();
        drop(arrivals);
        let options = TcpOptions {
            congestion: parameters.congestion.clone(),
            nodelay: parameters.nodelay,
            receive_buffer: parameters.window_bytes.map(|b| b as usize),
            send_buffer: parameters.window_bytes.map(|b| b as usize),
            // The lower two bits are those of ECN, which is not for an application to set (RFC 3168).
            dscp: Some(parameters.tos >> 2).filter(|&dscp| dscp > 0),
            ..Default::default()
        };
        for stream in &streams {
            options.apply_to(stream).map_err(|e| Ending::refused(Failure::BUFFER_SIZE, e.to_string()))?;
        }
        Ok(streams)
    }

    /// Takes a stream of this test in.
    fn take_stream(&self, stream: TcpStream, peer: SocketAddr, order: u64) -> Result<(), String> {
        if peer.ip() != self.peer.ip() {
            return Err("its cookie is of a test of another address".to_owned());
        }
        let mut arrivals = self.arrivals();
        if arrivals.missing == 0 || arrivals.ended {
            return Err("its test expects no stream".to_owned());
        }
        arrivals.missing -= 1;
        arrivals.streams.insert(order, stream);
        self.changed.notify_all();
        Ok(())
    }

    /// Tells the client that the server ends.
    fn hang_up(&self) {
        let _ = (&mut &self.hang_up).write_all(&[State::ServerTerminate.byte()]);
        let _ = self.hang_up.shutdown(Shutdown::Both);
        self.arrivals().ended = true;
        self.changed.notify_all();
    }

    fn arrivals(&self) -> MutexGuard<'_, Arrivals> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read_parameters(control: &Control) -> Result<Parameters, Ending> {
    let doing = "its parameters were awaited";
    let body = control.read_json(LONGEST_PARAMETERS, STEP).map_err(|e| match e {
        FrameError::TooLong { .. } | FrameError::Malformed(_) => {
            Ending::refused(Failure::PARAMETERS, e.to_string())
        }
        other => Ending::of(&other, doing),
    })?;
    Parameters::parse(&body).map_err(|e| Ending::refused(e.failure(), format!("its parameters: {e}")))
}

/// Holds a test against what the server grants; the longest that it may take.
fn granted(shared: &Shared, parameters: &Parameters) -> Result<Nanos, Ending> {
    let limits = shared.options.limits;
    let asked = Nanos::secs(parameters.seconds + parameters.omit_seconds);
    if asked > limits.duration {
        let why = format!("{asked} were asked for, and {} are granted (--max-duration)", limits.duration);
        return Err(Ending::refused(Failure::DURATION, why));
    }
    if parameters.parallel > limits.streams {
        let why = format!(
            "{} streams were asked for, and {} are granted (--max-streams)",
            parameters.parallel, limits.streams
        );
        return Err(Ending::refused(Failure::STREAMS, why));
    }
    if let Some(name) = &parameters.congestion {
        socket::check_congestion(name).map_err(|e| Ending::refused(Failure::CONGESTION, e.to_string()))?;
    }
    Ok(if parameters.seconds > 0 { asked } else { limits.duration })
}

/// The flows of a test.
struct Running {
    flows: Vec<Flow>,
    began: Instant,
    cpu_before_ns: u64,
}

impl Running {
    fn start(
        mut streams: Vec<TcpStream>,
        parameters: &Parameters,
        longest: Nanos,
        most: Option<Rate>,
    ) -> Result<Self, Ending> {
        let plan = Plan::of(parameters, longest + GRACE);
        let failed = |e: crate::EngineError| Ending::refused(Failure::ACCEPT, e.to_string());
        pace(&streams, parameters, most).map_err(failed)?;
        let cpu_before_ns = bdp_sys::process::cpu_time_ns();
        let flows = match parameters.direction {
            Direction::Forward => vec![Flow::receive(streams, &plan).map_err(failed)?],
            Direction::Reverse => vec![Flow::send(streams, &plan).map_err(failed)?],
            Direction::Both => {
                let back = streams.split_off(parameters.parallel as usize);
                vec![Flow::receive(streams, &plan).map_err(failed)?, Flow::send(back, &plan).map_err(failed)?]
            }
        };
        Ok(Self { flows, began: Instant::now(), cpu_before_ns })
    }

    /// Lets the test run until the client says that it is over.
    fn attend(&mut self, control: &Control, parameters: &Parameters, longest: Nanos) -> Result<(), Ending> {
        let mut omit = Some(Duration::from_secs(parameters.omit_seconds)).filter(|omit| !omit.is_zero());
        let deadline = (longest + GRACE).to_duration();
        loop {
            let until = omit.unwrap_or(deadline);
            let heard = control
                .hear(until.saturating_sub(self.began.elapsed()))
                .map_err(|e| Ending::of(&e, "the test ran"))?;
            if let Some(byte) = heard {
                let word = hear(byte, true).map_err(|e| Ending::refused(e.failure(), e.to_string()))?;
                if word == Word::Terminated {
                    return Err(Ending::silent("the client ended the test"));
                }
                break;
            }
            if omit.is_some_and(|omit| self.began.elapsed() >= omit) {
                self.flows.iter_mut().for_each(Flow::begin_counting);
                omit = None;
            } else if self.began.elapsed() >= deadline {
                let why = format!("the test did not end within {}", Nanos::from(deadline));
                return Err(Ending::refused(Failure::MESSAGE, why));
            }
        }
        if let Some(volume) = parameters.volume_bytes() {
            self.await_stragglers(volume);
        }
        Ok(())
    }

    /// Waits a moment for what a client has sent of a volume and is still under way.
    fn await_stragglers(&self, volume_bytes: u64) {
        let until = Instant::now() + STRAGGLERS;
        let receiving = || self.flows.iter().filter(|flow| !flow.sends());
        while receiving().any(|flow| flow.bytes() < volume_bytes && !flow.is_finished())
            && Instant::now() < until
        {
            std::thread::sleep(LOOK);
        }
    }

    /// Ends the flows, and says what came of them.
    fn finish(&mut self, parameters: &Parameters) -> Result<Results, Ending> {
        self.flows.iter_mut().for_each(Flow::stop);
        let wall = self.began.elapsed().as_nanos().max(1) as f64;
        let cpu = (bdp_sys::process::cpu_time_ns() - self.cpu_before_ns) as f64 / wall * 100.0;
        let mut outcomes = Vec::new();
        for flow in &mut self.flows {
            let failed = |e: crate::EngineError| Ending::refused(Failure::MESSAGE, e.to_string());
            outcomes.push(flow.finish().map_err(failed)?);
            flow.close();
        }
        // In order: the client's streams, then the server's.
        let streams: Vec<StreamResults> = outcomes
            .iter()
            .flat_map(|outcome| outcome.streams.iter().map(|&stream| (stream, outcome.counted)))
            .enumerate()
            .map(|(index, (stream, counted))| StreamResults {
                id: stream_id(index),
                bytes: stream.bytes,
                retransmits: stream.retransmits,
                end_s: counted.as_secs_f64(),
                ..Default::default()
            })
            .collect();
        Ok(Results {
            cpu: CpuUse { total: cpu, user: 0.0, system: 0.0 },
            has_retransmits: (parameters.direction != Direction::Forward).then_some(true),
            congestion: outcomes.iter().find_map(|outcome: &Outcome| outcome.congestion.clone()),
            server_output: None,
            streams,
        })
    }
}

/// Has the kernel hold the streams to the rate that was asked for, and all that the server sends to what it may.
fn pace(
    streams: &[TcpStream],
    parameters: &Parameters,
    most: Option<Rate>,
) -> Result<(), crate::EngineError> {
    let share = most.map(|most| most.as_bps() / u64::from(parameters.parallel));
    let asked = [parameters.rate_bps, parameters.kernel_rate_bps].into_iter().filter(|&rate| rate > 0).min();
    let Some(rate) = asked.into_iter().chain(share).min() else { return Ok(()) };
    for stream in streams {
        socket::pace(stream, rate)?;
    }
    Ok(())
}

/// Exchanges results, and lets the client leave.
fn exchange(control: &Control, results: &Results) -> Result<(), Ending> {
    let doing = "results were exchanged";
    let gone = |e: std::io::Error| Ending::of(&e.into(), doing);
    control.say(State::ExchangeResults).map_err(gone)?;
    control.read_json(LONGEST_RESULTS, STEP).map_err(|e| match e {
        FrameError::TooLong { .. } | FrameError::Malformed(_) => {
            Ending::refused(Failure::RESULTS, e.to_string())
        }
        other => Ending::of(&other, doing),
    })?;
    control.send_json(&results.to_json()).map_err(|e| Ending::of(&e, doing))?;
    control.say(State::DisplayResults).map_err(gone)?;
    // It has what it came for; how it leaves is its own affair.
    let _ = control.hear(STEP);
    Ok(())
}
