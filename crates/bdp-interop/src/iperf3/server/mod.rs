//! iperf3's clients: each test on a thread of its own, its data connections identified by their cookie.
//!
//! Every wait has a deadline, and a client that vanishes is noticed by its control connection.

mod datagrams;
mod ending;
pub mod logins;
mod output;
mod running;
mod silence;

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use bdp_model::units::Nanos;
use bdp_sys::socket::TcpOptions;
use bdp_wire::frame::FrameError;
use bdp_wire::iperf3::{
    COOKIE_BYTES, Cookie, Failure, LONGEST_PARAMETERS, Parameters, Protocol as Carrier, Results, State,
};

use crate::iperf3::control::{Control, refusal};
use bdp_agent::server::accept::Arrived;
use bdp_agent::server::access::{Proof, Protocol};
use bdp_agent::server::foreign::{Claim, ForeignProtocol};
use bdp_agent::server::memory_cost;
use bdp_agent::server::pending_handshakes::PendingHandshake;
use bdp_agent::server::places::Place;
use bdp_agent::server::{Event, Reason, ServerState};
use bdp_flow::lock::{self, lock};
use bdp_flow::streams::Streams;
use bdp_sys::echo::ReturnPath;
use datagrams::take_hello;
use ending::{Ending, GAVE_UP, STEP, busy};
use logins::{LoginRules, Logins};
use running::{Running, granted};

/// How often the server checks whether a client that opens its streams is still there.
const LOOK: Duration = Duration::from_millis(50);
/// How often the server checks whether a client that has yet to log in is still there.
const LOGIN_STEP: Duration = Duration::from_secs(5);
/// Longest results of a client, which are some 200 bytes a stream.
const LONGEST_RESULTS: usize = 256 << 10;

/// Serves iperf3's clients at the server's port.
pub struct Iperf3 {
    tests: Arc<Tests>,
}

impl Iperf3 {
    /// Creates it with these login rules; without them, only addresses are checked.
    pub fn new(logins: Option<Arc<LoginRules>>) -> Self {
        let logins = logins.map(Logins::new);
        Self { tests: Arc::new(Tests { logins, ..Tests::default() }) }
    }
}

impl ForeignProtocol for Iperf3 {
    fn claim(&self, arrived: &[u8]) -> Option<Claim> {
        match Cookie::decode(arrived) {
            Ok(None) => Some(Claim::Unfinished { wanted: COOKIE_BYTES }),
            Ok(Some(_)) => Some(Claim::Whole),
            Err(_) => None,
        }
    }

    fn take(&self, server: &Arc<ServerState>, connection: Arrived, order: u64) {
        let Arrived { stream, peer, bytes } = connection;
        if let Ok(Some(cookie)) = Cookie::decode(&bytes) {
            let shared = Shared { server: Arc::clone(server), tests: Arc::clone(&self.tests) };
            take(&Arc::new(shared), stream, peer, cookie, order);
        }
    }

    fn take_datagram(&self, server: &ServerState, bytes: &[u8], way: &ReturnPath) -> bool {
        take_hello(bytes, way, server, &self.tests.waiting)
    }

    fn is_idle(&self) -> bool {
        lock(&self.tests.by_cookie).is_empty()
    }

    fn hang_up(&self) {
        for test in lock(&self.tests.by_cookie).values() {
            test.hang_up();
        }
    }
}

/// State shared by a server's tests.
struct Shared {
    server: Arc<ServerState>,
    tests: Arc<Tests>,
}

/// The tests of a server.
#[derive(Default)]
struct Tests {
    by_cookie: Mutex<HashMap<Cookie, Arc<Test>>>,
    waiting: datagrams::Waiting,
    logins: Option<Logins>,
}

/// A connection that began with a cookie: the control connection of a new test, or a stream of one that there is.
/// `order` counts connections as they were let in.
fn take(shared: &Arc<Shared>, stream: TcpStream, peer: SocketAddr, cookie: Cookie, order: u64) {
    let test = lock(&shared.tests.by_cookie).get(&cookie).cloned();
    let refused = match test {
        Some(test) => test.take_stream(stream, peer, order),
        None => begin(shared, stream, peer, cookie),
    };
    if let Err(why) = refused {
        shared.server.turn_away(peer, why);
    }
}

/// Starts a test's thread, unless the client is not allowed or there is no place. Never waits for the client.
fn begin(shared: &Arc<Shared>, stream: TcpStream, peer: SocketAddr, cookie: Cookie) -> Result<(), String> {
    let deny = |bytes: &[u8]| {
        // A fresh connection has room for it.
        let _ = (&mut &stream).write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
    };
    let proof = shared.server.options.access.check(peer.ip(), Protocol::Iperf3).map_err(|denied| {
        shared.server.counters.give_reason(Reason::of_denied(&denied));
        deny(&refusal(Failure::AUTHORISATION));
        denied.to_string()
    })?;
    let busy = |why: String| {
        deny(&[State::AccessDenied.byte()]);
        Err(why)
    };
    if shared.server.is_ending() {
        return busy("about to end".to_owned());
    }
    let entry = if proof == Proof::Nothing {
        match shared.server.places.enter(peer.ip(), Some((&stream, Shutdown::Read))) {
            Ok(place) => Entry::Place(place),
            Err(denied) => {
                shared.server.counters.give_reason(Reason::of_denied(&denied));
                return busy(denied.to_string());
            }
        }
    } else {
        // Strangers take no place until they have logged in.
        if shared.server.places.is_full(peer.ip()) {
            shared.server.counters.give_reason(Reason::Busy);
            return busy("busy".to_owned());
        }
        Entry::PendingHandshake(shared.server.pending.enter(&stream, peer).map_err(|e| e.to_string())?)
    };
    let test = Arc::new(Test {
        hang_up: stream.try_clone().map_err(|e| e.to_string())?,
        peer,
        arrivals: Mutex::new(Arrivals { missing: 0, streams: BTreeMap::new(), ended: false }),
        changed: Condvar::new(),
    });
    lock(&shared.tests.by_cookie).insert(cookie, Arc::clone(&test));
    let on_thread = Arc::clone(shared);
    let started = bdp_flow::worker::start(move || {
        let was_session = test.serve(&on_thread, stream, entry);
        lock(&on_thread.tests.by_cookie).remove(&cookie);
        if was_session && on_thread.server.options.once {
            on_thread.server.end();
        }
    });
    started.map(drop).map_err(|e| {
        lock(&shared.tests.by_cookie).remove(&cookie);
        e.to_string()
    })
}

/// How a client is let in.
enum Entry {
    /// It has its place.
    Place(Place),
    /// It gets one once it has logged in.
    PendingHandshake(PendingHandshake),
}

/// A test, shared by its own thread and the one that lets connections in.
struct Test {
    hang_up: TcpStream,
    peer: SocketAddr,
    arrivals: Mutex<Arrivals>,
    changed: Condvar,
}

/// The data connections as they arrive.
struct Arrivals {
    missing: usize,
    /// In the order in which they were accepted: their cookies may arrive in another.
    streams: BTreeMap<u64, TcpStream>,
    ended: bool,
}

impl Test {
    /// Serves a test from the cookie to the goodbye; returns whether it was a session.
    fn serve(&self, shared: &Shared, stream: TcpStream, entry: Entry) -> bool {
        let turn_away = |why| {
            shared.server.turn_away(self.peer, why);
            false
        };
        let control = match Control::over(stream) {
            Ok(control) => control,
            Err(e) => return turn_away(e.to_string()),
        };
        let activity = match &entry {
            Entry::Place(place) => Some(Arc::clone(place.activity())),
            Entry::PendingHandshake(_) => None,
        };
        let Admitted { parameters, place, program } =
            match self.admit(shared, &control, entry).map_err(|ending| ending.send(&control, None)) {
                Ok(admitted) => admitted,
                Err(ending) => {
                    let evicted = activity.and_then(|activity| activity.evicted());
                    return turn_away(
                        evicted.map_or(ending.why, |evicted| busy(&control, evicted.to_string()).why),
                    );
                }
            };
        let began = Instant::now();
        let number = shared.server.next_number();
        shared.server.report(&Event::Began { session: number, peer: self.peer, program });
        let mut flows = 0;
        let ended = self
            .run(shared, &control, &parameters, &place, &mut flows)
            .map_err(|ending| ending.send(&control, parameters.client_version.as_deref()));
        lock(&self.arrivals).ended = true;
        let evicted = place.activity().evicted();
        drop(place);
        shared.server.report(&Event::Ended {
            session: number,
            peer: self.peer,
            took: Nanos::from(began.elapsed()),
            flows,
            why: ended.err().map(|ending| evicted.map_or(ending.why, |evicted| evicted.to_string())),
        });
        true
    }

    /// Asks for parameters, and for the user if required.
    fn admit(&self, shared: &Shared, control: &Control, entry: Entry) -> Result<Admitted, Ending> {
        let gone = |e: std::io::Error| Ending::of(&e.into(), "the exchange of parameters");
        control.say(State::ParamExchange).map_err(gone)?;
        let patience = if matches!(entry, Entry::PendingHandshake(_)) { LOGIN_STEP } else { STEP };
        let parameters = read_parameters(control, patience)?;
        let version = parameters.client_version.as_deref().unwrap_or("without a version");
        let mut program = format!("iperf3 {}", readable(version));
        let place = match entry {
            Entry::Place(place) => place,
            Entry::PendingHandshake(_guest) => {
                let user = self.authorise(shared, &parameters)?;
                program.push_str(&format!(", user '{}'", readable(&user)));
                shared
                    .server
                    .places
                    .enter(self.peer.ip(), Some((&self.hang_up, Shutdown::Read)))
                    .map_err(|denied| busy(control, denied.to_string()))?
            }
        };
        Ok(Admitted { parameters, place, program })
    }

    /// Gathers the streams, runs the test over them, and exchanges its results.
    fn run(
        &self,
        shared: &Shared,
        control: &Control,
        parameters: &Parameters,
        place: &Place,
        flows: &mut u32,
    ) -> Result<(), Ending> {
        let limits = &shared.server.options.limits;
        let longest = granted(limits, parameters)?;
        let is_udp = parameters.protocol == Carrier::Udp;
        let _memory = place
            .take_memory(memory_cost::of_streams(parameters.streams(), is_udp))
            .map_err(|denied| busy(control, denied.to_string()))?;
        let _streams =
            place.take_streams(parameters.streams()).map_err(|denied| busy(control, denied.to_string()))?;
        let streams = match parameters.protocol {
            Carrier::Tcp => Streams::Connections(self.gather(control, parameters)?),
            Carrier::Udp => Streams::Datagrams(datagrams::gather(
                &shared.server,
                &shared.tests.waiting,
                control,
                self.peer,
                parameters,
            )?),
        };
        let mut running = Running::start(streams, parameters, longest, limits.rate)?;
        *flows = running.flows();
        let gone = |e: std::io::Error| Ending::of(&e.into(), "the start of the test");
        let begun = control.send(&[State::TestStart.byte(), State::TestRunning.byte()]).map_err(gone);
        let went = begun.and_then(|()| running.wait(control, parameters, longest, place.activity().as_ref()));
        let went = went.map_err(|ending| match place.activity().evicted() {
            Some(evicted) => ending::busy_while_running(control, evicted.to_string()),
            None => ending.announce(control, parameters.client_version.as_deref()),
        });
        let outcomes = running.finish(went.is_ok(), &shared.server.counters);
        went?;
        exchange(control, &running.results(&outcomes?, parameters))
    }

    /// The user that the client is.
    fn authorise(&self, shared: &Shared, parameters: &Parameters) -> Result<String, Ending> {
        let checked = match &shared.tests.logins {
            Some(logins) => logins.check(self.peer.ip(), parameters.auth_token.as_deref()),
            None => Err("it can't show what it has to".to_owned()),
        };
        checked.map_err(|why| {
            shared.server.counters.give_reason(Reason::Login);
            Ending::refused(Failure::AUTHORISATION, why)
        })
    }

    /// Asks for the streams, and waits for all of them.
    fn gather(&self, control: &Control, parameters: &Parameters) -> Result<Vec<TcpStream>, Ending> {
        let wanted = parameters.streams() as usize;
        lock(&self.arrivals).missing = wanted;
        let gone = |e: std::io::Error| Ending::of(&e.into(), "stream setup");
        control.say(State::CreateStreams).map_err(gone)?;
        let until = Instant::now() + STEP;
        let mut arrivals = lock(&self.arrivals);
        while arrivals.missing > 0 {
            if arrivals.ended {
                return Err(Ending::silent("the server ends"));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let came = wanted - arrivals.missing;
                let why = format!("only {came} of {wanted} streams arrived within {}", Nanos::from(STEP));
                return Err(Ending::refused(Failure::ACCEPT, why));
            }
            arrivals = lock::wait(&self.changed, arrivals, left.min(LOOK));
            if control.has_left() {
                return Err(Ending::silent(GAVE_UP));
            }
        }
        let streams: Vec<TcpStream> = std::mem::take(&mut arrivals.streams).into_values().collect();
        drop(arrivals);
        let options = TcpOptions {
            congestion: parameters.congestion.clone(),
            nodelay: parameters.nodelay,
            receive_buffer: parameters.window_bytes.map(|b| b as usize),
            send_buffer: parameters.window_bytes.map(|b| b as usize),
            // The lower two bits are those of ECN, which applications must not set (RFC 3168).
            dscp: Some(parameters.tos >> 2).filter(|&dscp| dscp > 0),
            ..Default::default()
        };
        for stream in &streams {
            options.apply_to(stream).map_err(|e| Ending::refused(Failure::STREAM_SETUP, e.to_string()))?;
        }
        Ok(streams)
    }

    /// Takes a stream of this test in.
    fn take_stream(&self, stream: TcpStream, peer: SocketAddr, order: u64) -> Result<(), String> {
        if peer.ip() != self.peer.ip() {
            return Err("its cookie belongs to a test of another address".to_owned());
        }
        let mut arrivals = lock(&self.arrivals);
        if arrivals.missing == 0 || arrivals.ended {
            return Err("its test expects no stream".to_owned());
        }
        arrivals.missing -= 1;
        arrivals.streams.insert(order, stream);
        self.changed.notify_all();
        Ok(())
    }

    /// Tells the client that the server stops.
    fn hang_up(&self) {
        let _ = (&mut &self.hang_up).write_all(&[State::ServerTerminate.byte()]);
        let _ = self.hang_up.shutdown(Shutdown::Both);
        lock(&self.arrivals).ended = true;
        self.changed.notify_all();
    }
}

/// A client that is let in.
struct Admitted {
    parameters: Parameters,
    place: Place,
    /// The client's program, for the log.
    program: String,
}

/// Words of a client, for one line.
fn readable(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').take(30).collect()
}

fn read_parameters(control: &Control, patience: Duration) -> Result<Parameters, Ending> {
    let doing = "the exchange of parameters";
    let body = control.read_json(LONGEST_PARAMETERS, patience).map_err(|e| match e {
        FrameError::TooLong { .. } | FrameError::Malformed(_) => {
            Ending::refused(Failure::PARAMETERS, e.to_string())
        }
        other => Ending::of(&other, doing),
    })?;
    Parameters::parse(&body).map_err(|e| Ending::refused(e.failure(), format!("its parameters: {e}")))
}

/// Exchanges results, and lets the client leave.
fn exchange(control: &Control, results: &Results) -> Result<(), Ending> {
    let doing = "the exchange of results";
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
    // The client has its results; how it leaves does not matter.
    let _ = control.hear(STEP);
    Ok(())
}
