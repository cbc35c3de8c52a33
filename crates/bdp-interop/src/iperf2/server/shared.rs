//! State shared by the streams of iperf2's clients: their tests, and access control.

use std::collections::HashMap;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bdp_agent::server::access::{Denied, Protocol};
use bdp_agent::server::memory_cost;
use bdp_agent::server::places::{Activity, MemoryHold, Place, StreamPlaces};
use bdp_agent::server::{Event, Reason, ServerState};
use bdp_flow::error::FlowError;
use bdp_flow::lock::lock;
use bdp_model::units::{Nanos, Rate};
use bdp_sys::socket;
use bdp_wire::iperf2::{TestHeader, Unserved};

/// The iperf2 version that bdp reports: the one whose protocol it speaks.
pub(super) const VERSION: [u16; 3] = [2, 1, 8];

/// State shared by all tests.
pub(super) struct Shared {
    pub(super) server: Arc<ServerState>,
    pub(super) udp_reverse: bool,
    pub(super) tests: Arc<Tests>,
}

/// The running tests, one for each address.
#[derive(Default)]
pub(super) struct Tests(Mutex<HashMap<IpAddr, Test>>);

struct Test {
    number: u32,
    peer: SocketAddr,
    began: Instant,
    place: Place,
    /// Running streams, and streams so far.
    running: u32,
    streams: u32,
    why: Option<String>,
}

impl Test {
    fn report_end(self, server: &ServerState) {
        let Self { number, peer, began, place, streams, why, .. } = self;
        let why = place.activity().evicted().map(|evicted| evicted.to_string()).or(why);
        // The place is free by the time the end is logged.
        drop(place);
        let took = Nanos::from(began.elapsed());
        server.report(&Event::Ended { session: number, peer, took, flows: streams, why });
    }
}

/// A stream's membership in a test; the last one ends it.
pub(super) struct Membership {
    shared: Arc<Shared>,
    peer: SocketAddr,
    /// The number of its test.
    number: u32,
    pub(super) activity: Arc<Activity>,
    _streams: StreamPlaces,
    _memory: MemoryHold,
}

impl Tests {
    /// Whether there are no clients.
    pub(super) fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }
}

/// Admits a stream, as the first of a test or an additional one; a connection or datagrams.
pub(super) fn join(
    shared: &Arc<Shared>,
    peer: SocketAddr,
    connection: Option<&TcpStream>,
) -> Result<Membership, Denied> {
    shared.server.options.access.check(peer.ip(), Protocol::Iperf2)?;
    let mut tests = lock(&shared.tests.0);
    // Both directions of a test are streams.
    let most = shared.server.options.limits.streams.saturating_mul(2);
    // An evicted test is over; its remaining streams are about to notice.
    let over = tests.get(&peer.ip()).is_some_and(|test| test.place.activity().is_evicted());
    let over = over.then(|| tests.remove(&peer.ip())).flatten();
    let cost = memory_cost::of_streams(1, connection.is_none());
    let (streams, memory, activity, number, began) = match tests.get_mut(&peer.ip()) {
        Some(test) if test.running >= most => {
            return Err(Denied::TestStreams { peer: peer.ip(), streams: most });
        }
        Some(test) => {
            let (streams, memory) = (test.place.take_streams(1)?, test.place.take_memory_now(cost)?);
            test.running += 1;
            test.streams += 1;
            (streams, memory, Arc::clone(test.place.activity()), test.number, false)
        }
        None => {
            let place = shared.server.places.enter(peer.ip(), connection.map(|c| (c, Shutdown::Both)))?;
            let (streams, memory) = (place.take_streams(1)?, place.take_memory_now(cost)?);
            let number = shared.server.next_number();
            let (began, activity) = (Instant::now(), Arc::clone(place.activity()));
            tests.insert(peer.ip(), Test { number, peer, began, place, running: 1, streams: 1, why: None });
            (streams, memory, activity, number, true)
        }
    };
    drop(tests);
    if let Some(test) = over {
        test.report_end(&shared.server);
    }
    if began {
        shared.server.report(&Event::Began { session: number, peer, program: "iperf2".to_owned() });
    }
    Ok(Membership { shared: Arc::clone(shared), peer, number, activity, _streams: streams, _memory: memory })
}

/// Serves a connection on a thread of its own, as a stream of its client's test; closes it if it is not allowed.
pub(super) fn serve(
    shared: &Arc<Shared>,
    stream: TcpStream,
    peer: SocketAddr,
    announced: Result<(), Denied>,
    work: impl FnOnce(&Arc<Shared>, TcpStream, &Membership) -> Result<(), FlowError> + Send + 'static,
) {
    let member = match announced.and_then(|()| join(shared, peer, Some(&stream))) {
        Ok(member) => member,
        Err(denied) => {
            turn_away(shared, peer, &denied);
            return socket::close_hard(stream);
        }
    };
    let on_thread = Arc::clone(shared);
    let started = bdp_flow::worker::start(move || {
        if let Err(error) = work(&on_thread, stream, &member) {
            member.note(error.to_string());
        }
    });
    if let Err(error) = started {
        shared.server.turn_away(peer, error);
    }
}

/// iperf2's G may be 1024 x 1024 x 1024 bit/s while the limit uses the decimal one.
const BINARY_G: f64 = (1u64 << 30) as f64 / 1e9;

/// Checks the rate that a client announces against the server's limit: a client can only be refused, not slowed down.
pub(super) fn check_rate(shared: &Shared, peer: SocketAddr, header: &TestHeader) -> Result<(), Denied> {
    let asked_bps = header.rate_bps.map_or(0, |rate| rate.saturating_mul(u64::from(header.streams.max(1))));
    match shared.server.options.limits.rate {
        Some(granted) if !header.reverse && asked_bps as f64 > granted.as_bps() as f64 * BINARY_G => {
            Err(Denied::Rate { peer: peer.ip(), asked: Rate::bps(asked_bps), granted })
        }
        _ => Ok(()),
    }
}

/// Reports a refused client.
pub(super) fn turn_away(shared: &Shared, peer: SocketAddr, denied: &Denied) {
    shared.server.counters.give_reason(Reason::of_denied(denied));
    shared.server.turn_away(peer, denied);
}

/// Reports a client with an option that changes the server's behaviour and is not supported: a plain test in its
/// place would give the wrong figures.
pub(super) fn turn_away_unserved(shared: &Shared, peer: SocketAddr, unserved: Unserved) {
    let way_out = match unserved {
        Unserved::PermitKey => "start 'bdp serve' there with --allow ADDRESS",
        Unserved::Isochronous => "--isochronous is served only if just the client sends",
        Unserved::PeriodicBursts => "--burst-period is served only if just the client sends",
    };
    let why = format!("it requested iperf2's {}, which is not served; {way_out}", unserved.option());
    shared.server.turn_away(peer, why);
}

impl Membership {
    /// Notes why the test did not go as it should have.
    pub(super) fn note(&self, why: impl Into<String>) {
        let mut tests = lock(&self.shared.tests.0);
        if let Some(test) = tests.get_mut(&self.peer.ip()).filter(|test| test.number == self.number) {
            test.why.get_or_insert(why.into());
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut tests = lock(&self.shared.tests.0);
        let Some(test) = tests.get_mut(&self.peer.ip()).filter(|test| test.number == self.number) else {
            return;
        };
        test.running = test.running.saturating_sub(1);
        if test.running > 0 {
            return;
        }
        let Some(test) = tests.remove(&self.peer.ip()) else { return };
        drop(tests);
        test.report_end(&self.shared.server);
        if self.shared.server.options.once {
            self.shared.server.end();
        }
    }
}
