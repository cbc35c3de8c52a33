//! Assigns streams of datagrams to their tests: a hello shows nothing but its source address.
//!
//! At any address one test at a time therefore waits for its streams, and a hello counts only if the control
//! connection of such a test has the same address: a forged source is never sent anything.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use bdp_model::units::Nanos;
use bdp_sys::echo::ReturnPath;
use bdp_sys::udp::{self, UdpOptions};
use bdp_wire::iperf3::{Failure, Parameters, State, datagram};

use super::ending::{Ending, GAVE_UP, STEP, busy};
use crate::iperf3::control::Control;
use crate::iperf3::udp::streams;
use bdp_agent::server::ServerState;
use bdp_flow::datagram::{RECEIVE_BUFFER, SEND_BUFFER, Stream};
use bdp_flow::lock::{self, lock};

/// Interval at which repeated hellos are checked.
const LOOK: Duration = Duration::from_millis(100);

/// Tests that wait for streams of datagrams, by their client's address.
#[derive(Default)]
pub(super) struct Waiting {
    tests: Mutex<HashMap<IpAddr, Arc<Arrivals>>>,
    left: Condvar,
}

/// The streams of one test, as they arrive.
struct Arrivals {
    wanted: usize,
    options: UdpOptions,
    came: Mutex<Vec<UdpSocket>>,
    changed: Condvar,
}

/// A test's turn to wait at an address; over when this is dropped.
struct Turn<'a> {
    waiting: &'a Waiting,
    address: IpAddr,
    arrivals: Arc<Arrivals>,
}

/// Why a test had no turn.
enum Missed {
    /// Others held it all the time.
    Busy,
    /// The client left.
    Left,
}

impl Waiting {
    fn of(&self, address: IpAddr) -> Option<Arc<Arrivals>> {
        lock(&self.tests).get(&address.to_canonical()).cloned()
    }

    /// Waits for this address to be free, as long as the client does.
    fn take_turn(
        &self,
        address: IpAddr,
        arrivals: Arrivals,
        patience: Duration,
        has_left: impl Fn() -> bool,
    ) -> Result<Turn<'_>, Missed> {
        let address = address.to_canonical();
        let until = Instant::now() + patience;
        let mut tests = lock(&self.tests);
        while tests.contains_key(&address) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Missed::Busy);
            }
            tests = lock::wait(&self.left, tests, left.min(LOOK));
            if has_left() {
                return Err(Missed::Left);
            }
        }
        let arrivals = Arc::new(arrivals);
        tests.insert(address, Arc::clone(&arrivals));
        Ok(Turn { waiting: self, address, arrivals })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        lock(&self.waiting.tests).remove(&self.address);
        self.waiting.left.notify_all();
    }
}

/// Lets a client open its streams, and waits for all of them.
pub(super) fn gather(
    server: &ServerState,
    waiting: &Waiting,
    control: &Control,
    peer: SocketAddr,
    parameters: &Parameters,
) -> Result<Vec<Stream>, Ending> {
    let wanted = parameters.streams() as usize;
    let buffer = parameters.window_bytes.and_then(|bytes| usize::try_from(bytes).ok());
    let options = UdpOptions {
        receive_buffer: Some(buffer.unwrap_or(RECEIVE_BUFFER)),
        send_buffer: Some(buffer.unwrap_or(SEND_BUFFER)),
        // The lower two bits are those of ECN, which applications must not set (RFC 3168).
        dscp: Some(parameters.tos >> 2).filter(|&dscp| dscp > 0),
        // A client's request binds the client itself: as with iperf3's own server, datagrams too long for the path
        // are fragmented.
        dont_fragment: false,
        share_port: true,
        ..Default::default()
    };
    let arrivals = Arrivals { wanted, options, came: Mutex::default(), changed: Condvar::new() };
    let turn = waiting.take_turn(peer.ip(), arrivals, STEP, || control.has_left());
    let turn = turn.map_err(|missed| match missed {
        Missed::Left => Ending::silent(GAVE_UP),
        Missed::Busy => {
            busy(control, "other tests of the same address were waiting for their streams".to_owned())
        }
    })?;
    let gone = |e: std::io::Error| Ending::of(&e.into(), "stream setup");
    control.say(State::CreateStreams).map_err(gone)?;
    let until = Instant::now() + STEP;
    let mut came = lock(&turn.arrivals.came);
    while came.len() < wanted {
        if server.is_ending() {
            return Err(Ending::silent("the server ends"));
        }
        if Instant::now() >= until {
            let why = format!("only {} of {wanted} streams arrived within {}", came.len(), Nanos::from(STEP));
            return Err(Ending::refused(Failure::ACCEPT, why));
        }
        came = lock::wait(&turn.arrivals.changed, came, LOOK);
        came.iter().for_each(answer_again);
        if control.has_left() {
            return Err(Ending::silent(GAVE_UP));
        }
    }
    let sockets = std::mem::take(&mut *came);
    drop(came);
    drop(turn);
    for socket in &sockets {
        socket.set_nonblocking(false).map_err(|e| Ending::refused(Failure::STREAM_SETUP, e.to_string()))?;
    }
    Ok(streams(sockets, parameters.wide_counters))
}

/// Handles a hello; returns false if the datagram is none.
pub(super) fn take_hello(bytes: &[u8], way: &ReturnPath, server: &ServerState, waiting: &Waiting) -> bool {
    let Some(answer) = datagram::answer(bytes) else { return false };
    if let (Some(peer), Some(local)) = (way.peer(), way.local(server.port)) {
        let_in(answer, peer, local, server, waiting);
    }
    true
}

/// Accepts a hello as a stream, if a test at that address waits for one.
fn let_in(answer: [u8; 4], peer: SocketAddr, local: SocketAddr, server: &ServerState, waiting: &Waiting) {
    let Some(arrivals) = waiting.of(peer.ip()) else { return };
    match arrivals.take(answer, peer, local) {
        Ok(strays) => {
            for (hello, stray) in strays {
                if let Some(answer) = datagram::answer(&hello) {
                    let_in(answer, stray, local, server, waiting);
                }
            }
        }
        Err(why) => server.turn_away(peer, why),
    }
}

impl Arrivals {
    /// Connects the server's end of a stream: on the same port, receiving only from this client. Returns what others
    /// sent to that port before it was connected.
    fn take(
        &self,
        answer: [u8; 4],
        peer: SocketAddr,
        local: SocketAddr,
    ) -> Result<Vec<([u8; 4], SocketAddr)>, String> {
        let mut came = lock(&self.came);
        if came.len() >= self.wanted {
            return Ok(Vec::new());
        }
        let socket = udp::connect(Some(local), peer, &self.options).map_err(|e| e.to_string())?;
        socket.set_nonblocking(true).map_err(|e| e.to_string())?;
        let strays = strays(&socket, peer);
        // It may be lost like any datagram; a repeated hello is answered again.
        let _ = socket.send(&answer);
        came.push(socket);
        self.changed.notify_all();
        Ok(strays)
    }
}

/// Hellos of others that a socket took before it was connected to its peer.
fn strays(socket: &UdpSocket, peer: SocketAddr) -> Vec<([u8; 4], SocketAddr)> {
    let mut strays = Vec::new();
    let mut room = [0; 5];
    while let Ok((length, from)) = socket.recv_from(&mut room) {
        if let (Ok(hello), true) = (room[..length].try_into(), from != peer) {
            strays.push((hello, from));
        }
    }
    strays
}

/// Answers a repeated hello, since the first answer did not arrive.
fn answer_again(socket: &UdpSocket) {
    let mut room = [0; 5];
    loop {
        match socket.recv(&mut room) {
            Ok(length) => {
                if let Some(answer) = datagram::answer(&room[..length]) {
                    let _ = socket.send(&answer);
                }
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            // Nothing more to read, or the client has gone, which the control connection shows.
            Err(_) => return,
        }
    }
}
