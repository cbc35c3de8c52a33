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

use bdp_model::units::{Nanos, Rate};
use bdp_sys::echo::EchoSocket;
use bdp_wire::iperf2::{TestHeader, Unserved};

use super::access::{Denied, Protocol};
use super::places::{GAVE_WAY, Place, Standing, StreamPlaces};
use super::{ECHO_CHECK, Event, Reason, Shared, admission};
use crate::EngineError;

/// What bdp calls itself where iperf2's version is asked for: the one whose protocol it speaks.
const VERSION: [u16; 3] = [2, 1, 8];

/// Its sockets.
pub(super) struct Listener {
    listener: TcpListener,
    socket: EchoSocket,
    address: SocketAddr,
}

impl Listener {
    /// Takes the port, TCP and UDP.
    pub(super) fn bind(address: SocketAddr) -> Result<Self, EngineError> {
        let listener = super::listen(address)?;
        listener.set_nonblocking(true).map_err(EngineError::io("listen"))?;
        let address = listener.local_addr().map_err(EngineError::io("listen"))?;
        Ok(Self { listener, socket: EchoSocket::bind(address, ECHO_CHECK)?, address })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves on threads of its own until the server ends.
    pub(super) fn start(self, shared: &Arc<Shared>) -> Result<Vec<JoinHandle<()>>, EngineError> {
        let Self { listener, socket, .. } = self;
        let of_streams = Arc::clone(shared);
        let of_datagrams = Arc::clone(shared);
        Ok(vec![
            crate::agent::start(move || door::keep(&listener, &of_streams))?,
            crate::agent::start(move || datagrams::serve(&socket, &of_datagrams))?,
        ])
    }
}

/// The tests that are served, one for each address.
#[derive(Default)]
pub(super) struct Tests(Mutex<HashMap<IpAddr, Test>>);

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
    fn tell_end(self, shared: &Shared) {
        let Self { number, peer, began, place, streams, why, .. } = self;
        let why = if place.standing().gave_way() { Some(GAVE_WAY.to_owned()) } else { why };
        // Whoever hears of the end finds the place free.
        drop(place);
        let took = Nanos::from(began.elapsed());
        shared.tell(&Event::Ended { session: number, peer, took, flows: streams, why });
    }
}

/// A stream's part in a test; the last one ends it.
struct Membership {
    shared: Arc<Shared>,
    peer: SocketAddr,
    /// Of its test.
    number: u32,
    standing: Arc<Standing>,
    _streams: StreamPlaces,
}

impl Tests {
    pub(super) fn is_empty(&self) -> bool {
        self.of().is_empty()
    }

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
    shared.options.access.check(peer.ip(), Protocol::Iperf2)?;
    let mut tests = shared.iperf2.of();
    // Both directions of a test are streams.
    let most = shared.options.limits.streams.saturating_mul(2);
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
            let place = shared.places.enter(peer.ip(), connection)?;
            let streams = place.take_streams(1)?;
            let number = admission::next_number(&shared.begun);
            let (began, standing) = (Instant::now(), Arc::clone(place.standing()));
            tests.insert(peer.ip(), Test { number, peer, began, place, running: 1, streams: 1, why: None });
            (streams, standing, number, true)
        }
    };
    drop(tests);
    if let Some(test) = over {
        test.tell_end(shared);
    }
    if began {
        shared.tell(&Event::Began { session: number, peer, program: "iperf2".to_owned() });
    }
    Ok(Membership { shared: Arc::clone(shared), peer, number, standing, _streams: streams })
}

/// Of a G of its rates that has 1024 x 1024 x 1024 bit/s, what is granted may be the usual one.
const BINARY_G: f64 = (1u64 << 30) as f64 / 1e9;

/// Holds the rate that a client says it sends at against what the server grants: it can't be held back, only refused.
fn check_rate(shared: &Shared, peer: SocketAddr, header: &TestHeader) -> Result<(), Denied> {
    let asked_bps = header.rate_bps.map_or(0, |rate| rate.saturating_mul(u64::from(header.streams.max(1))));
    match shared.options.limits.rate {
        Some(granted) if !header.reverse && asked_bps as f64 > granted.as_bps() as f64 * BINARY_G => {
            Err(Denied::Rate { peer: peer.ip(), asked: Rate::bps(asked_bps), granted })
        }
        _ => Ok(()),
    }
}

/// Tells of somebody who was not let in.
fn turn_away(shared: &Shared, peer: SocketAddr, denied: &Denied) {
    shared.counters.give_reason(Reason::of_denied(denied));
    shared.tell(&Event::TurnedAway { peer, why: denied.to_string() });
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
    shared.tell(&Event::TurnedAway { peer, why });
}

impl Membership {
    /// Notes why the test did not go as it should have.
    fn note(&self, why: impl Into<String>) {
        let mut tests = self.shared.iperf2.of();
        if let Some(test) = tests.get_mut(&self.peer.ip()).filter(|test| test.number == self.number) {
            test.why.get_or_insert(why.into());
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut tests = self.shared.iperf2.of();
        let Some(test) = tests.get_mut(&self.peer.ip()).filter(|test| test.number == self.number) else {
            return;
        };
        test.running = test.running.saturating_sub(1);
        if test.running > 0 {
            return;
        }
        let Some(test) = tests.remove(&self.peer.ip()) else { return };
        drop(tests);
        test.tell_end(&self.shared);
        if self.shared.options.once {
            self.shared.end();
        }
    }
}
