//! iperf2's clients, on a port of their own: each connection and each flow of datagrams by a thread of its own.
//!
//! A client says nothing of which streams belong together: those of one address at one time are one session.

mod bounceback;
mod bursts;
mod datagrams;
mod door;
mod flow;
mod stream;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use bdp_agent::server::foreign::ForeignProtocol;
use bdp_model::units::{Nanos, Rate};
use bdp_sys::echo::EchoSocket;
use bdp_wire::iperf2::{TestHeader, Unserved};
use bdp_wire::stranger::Stranger;

use bdp_agent::server::access::{Denied, Protocol};
use bdp_agent::server::places::{Activity, GAVE_WAY, Place, StreamPlaces};
use bdp_agent::server::{ECHO_CHECK, Event, Reason, ServerState};
use bdp_flow::error::EngineError;

/// What bdp calls itself where iperf2's version is asked for: the one whose protocol it speaks.
const VERSION: [u16; 3] = [2, 1, 8];

/// iperf2's clients, at a port of their own where one is given.
pub struct Iperf2 {
    options: Options,
    sockets: Mutex<Option<Sockets>>,
    address: Option<SocketAddr>,
    tests: Arc<Tests>,
}

/// How they are served.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Where, TCP and UDP, at the server's address.
    pub port: Option<u16>,
    /// Send datagrams to clients that [`AccessRules::allow`] names, on the word of a source that nothing proves; those of this
    /// machine get them without.
    ///
    /// [`AccessRules::allow`]: bdp_agent::server::access::AccessRules::allow
    pub udp_reverse: bool,
}

struct Sockets {
    listener: TcpListener,
    datagrams: EchoSocket,
}

impl Iperf2 {
    /// Serves nobody yet.
    pub fn new(options: Options) -> Self {
        Self { options, sockets: Mutex::default(), address: None, tests: Arc::default() }
    }
}

impl ForeignProtocol for Iperf2 {
    fn bind(&mut self, address: IpAddr) -> Result<(), EngineError> {
        let Some(port) = self.options.port else { return Ok(()) };
        let listener = bdp_agent::server::listen(SocketAddr::new(address, port))?;
        listener.set_nonblocking(true).map_err(EngineError::io("listen"))?;
        let address = listener.local_addr().map_err(EngineError::io("listen"))?;
        let datagrams = EchoSocket::bind(address, ECHO_CHECK)?;
        self.address = Some(address);
        self.sockets = Mutex::new(Some(Sockets { listener, datagrams }));
        Ok(())
    }

    fn start(&self, server: &Arc<ServerState>) -> Result<Vec<JoinHandle<()>>, EngineError> {
        let sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Sockets { listener, datagrams: socket }) = sockets else { return Ok(Vec::new()) };
        let (udp_reverse, tests) = (self.options.udp_reverse, Arc::clone(&self.tests));
        let of_streams = Arc::new(Shared { server: Arc::clone(server), udp_reverse, tests });
        let of_datagrams = Arc::clone(&of_streams);
        Ok(vec![
            bdp_flow::worker::start(move || door::keep(&listener, &of_streams))?,
            bdp_flow::worker::start(move || datagrams::serve(&socket, &of_datagrams))?,
        ])
    }

    fn way_in(&self, stranger: Stranger) -> Option<String> {
        (stranger == Stranger::Iperf2).then(|| match self.options.port {
            Some(port) => format!("it is served on port {port}: iperf -p {port}"),
            None => "start bdp serve with --iperf2-port to serve it".to_owned(),
        })
    }

    fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    fn is_idle(&self) -> bool {
        self.tests.of().is_empty()
    }
}

/// What the tests of a server have in common.
struct Shared {
    server: Arc<ServerState>,
    udp_reverse: bool,
    tests: Arc<Tests>,
}

/// The tests that are served, one for each address.
#[derive(Default)]
struct Tests(Mutex<HashMap<IpAddr, Test>>);

struct Test {
    number: u32,
    peer: SocketAddr,
    began: Instant,
    place: Place,
    /// Streams that run, and those that ever did.
    running: u32,
    streams: u32,
    why: Option<String>,
}

impl Test {
    fn tell_end(self, server: &ServerState) {
        let Self { number, peer, began, place, streams, why, .. } = self;
        let why = if place.standing().gave_way() { Some(GAVE_WAY.to_owned()) } else { why };
        // Whoever hears of the end finds the place free.
        drop(place);
        let took = Nanos::from(began.elapsed());
        server.tell(&Event::Ended { session: number, peer, took, flows: streams, why });
    }
}

/// A stream's part in a test; the last one ends it.
struct Membership {
    shared: Arc<Shared>,
    peer: SocketAddr,
    /// Of its test.
    number: u32,
    standing: Arc<Activity>,
    _streams: StreamPlaces,
}

impl Tests {
    fn of(&self) -> MutexGuard<'_, HashMap<IpAddr, Test>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets a stream in, as the first of a test or one more; over a connection, or of datagrams.
fn join(
    shared: &Arc<Shared>,
    peer: SocketAddr,
    connection: Option<&TcpStream>,
) -> Result<Membership, Denied> {
    shared.server.options.access.check(peer.ip(), Protocol::Iperf2)?;
    let mut tests = shared.tests.of();
    // Both directions of a test are streams.
    let most = shared.server.options.limits.streams.saturating_mul(2);
    // One that gave way is over; what is left of it is about to notice.
    let over = tests.get(&peer.ip()).is_some_and(|test| test.place.standing().gave_way());
    let over = over.then(|| tests.remove(&peer.ip())).flatten();
    let (streams, standing, number, began) = match tests.get_mut(&peer.ip()) {
        Some(test) if test.running >= most => {
            return Err(Denied::TestStreams { peer: peer.ip(), streams: most });
        }
        Some(test) => {
            let streams = test.place.take_streams(1)?;
            test.running += 1;
            test.streams += 1;
            (streams, Arc::clone(test.place.standing()), test.number, false)
        }
        None => {
            let place = shared.server.places.enter(peer.ip(), connection)?;
            let streams = place.take_streams(1)?;
            let number = shared.server.next_number();
            let (began, standing) = (Instant::now(), Arc::clone(place.standing()));
            tests.insert(peer.ip(), Test { number, peer, began, place, running: 1, streams: 1, why: None });
            (streams, standing, number, true)
        }
    };
    drop(tests);
    if let Some(test) = over {
        test.tell_end(&shared.server);
    }
    if began {
        shared.server.tell(&Event::Began { session: number, peer, program: "iperf2".to_owned() });
    }
    Ok(Membership { shared: Arc::clone(shared), peer, number, standing, _streams: streams })
}

/// Of a G of its rates that has 1024 x 1024 x 1024 bit/s, what is granted may be the usual one.
const BINARY_G: f64 = (1u64 << 30) as f64 / 1e9;

/// Holds the rate that a client says it sends at against what the server grants: it can't be held back, only refused.
fn check_rate(shared: &Shared, peer: SocketAddr, header: &TestHeader) -> Result<(), Denied> {
    let asked_bps = header.rate_bps.map_or(0, |rate| rate.saturating_mul(u64::from(header.streams.max(1))));
    match shared.server.options.limits.rate {
        Some(granted) if !header.reverse && asked_bps as f64 > granted.as_bps() as f64 * BINARY_G => {
            Err(Denied::Rate { peer: peer.ip(), asked: Rate::bps(asked_bps), granted })
        }
        _ => Ok(()),
    }
}

/// Tells of somebody who was not let in.
fn turn_away(shared: &Shared, peer: SocketAddr, denied: &Denied) {
    shared.server.counters.give_reason(Reason::of_denied(denied));
    shared.server.tell(&Event::TurnedAway { peer, why: denied.to_string() });
}

/// Tells of a client with an option that changes what a server does, and that is not served here: serving a plain test in its
/// place would make its figures those of something else.
fn turn_away_unserved(shared: &Shared, peer: SocketAddr, unserved: Unserved) {
    let way_out = match unserved {
        Unserved::PermitKey => "--allow names the addresses that may come in",
        Unserved::Isochronous => "--isochronous is served where the client alone sends",
        Unserved::PeriodicBursts => "--burst-period is served where the client alone sends",
    };
    let why = format!("it asked for iperf2's {}, which is not served; {way_out}", unserved.option());
    shared.server.tell(&Event::TurnedAway { peer, why });
}

impl Membership {
    /// Notes why the test did not go as it should have.
    fn note(&self, why: impl Into<String>) {
        let mut tests = self.shared.tests.of();
        if let Some(test) = tests.get_mut(&self.peer.ip()).filter(|test| test.number == self.number) {
            test.why.get_or_insert(why.into());
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut tests = self.shared.tests.of();
        let Some(test) = tests.get_mut(&self.peer.ip()).filter(|test| test.number == self.number) else {
            return;
        };
        test.running = test.running.saturating_sub(1);
        if test.running > 0 {
            return;
        }
        let Some(test) = tests.remove(&self.peer.ip()) else { return };
        drop(tests);
        test.tell_end(&self.shared.server);
        if self.shared.server.options.once {
            self.shared.server.end();
        }
    }
}
