//! Datagrams to the server's port: messages to echo, streams of flows that open, and those of other protocols.
//!
//! A stream is opened with a cookie that a client receives only at its own address.

use std::io::{self, ErrorKind};
use std::thread;
use std::time::Duration;

use bdp_sys::echo::{EchoSocket, ReturnPath};
use bdp_sys::{clock, process};
use bdp_wire::datagram::{Opening, Step};
use bdp_wire::echo::{Echo, FarStamps, LONGEST_ECHO};
use bdp_wire::session::Probe;

use super::echo::SPIN_NS;
use super::foreign::ForeignProtocol;
use super::own_address::OwnAddresses;
use super::sessions::Sessions;
use bdp_flow::spin::Spin;

/// Answers until the server stops: datagrams with the key of a session, by echoing them, and clients of other
/// protocols.
pub(super) fn serve(socket: &EchoSocket, sessions: &Sessions, foreign: &[Box<dyn ForeignProtocol>]) {
    process::sharpen_timers();
    let mut room = vec![0; LONGEST_ECHO];
    let mut echoes = Echoes::new();
    let others = foreign.iter().filter_map(|other| other.address()).map(|address| address.port());
    let mut own = OwnAddresses::with_ports(std::iter::once(sessions.server.port).chain(others));
    while !sessions.server.is_ending() {
        match echoes.receive(socket, &mut room) {
            Ok((length, way)) => {
                // A datagram longer than any that is answered is truncated.
                let Some(bytes) = room.get_mut(..length) else { continue };
                if own.sent(&way) {
                    continue;
                }
                if echoes.answer(bytes, &way, socket, sessions) {
                    continue;
                }
                let known = Probe::decode(bytes).is_some_and(|probe| sessions.hears(&probe.key));
                if !known
                    && (answer_opening(bytes, &way, socket, sessions)
                        || foreign.iter().any(|other| other.take_datagram(&sessions.server, bytes, &way)))
                {
                    continue;
                }
                if known {
                    // A full queue or an unreachable client shows there as a probe without an answer.
                    let _ = socket.answer(bytes, &way);
                }
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            // A refused datagram (ICMP) is reported here and concerns only its sender.
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Answers a datagram that opens a stream of a session; returns false if it is none.
fn answer_opening(bytes: &[u8], way: &ReturnPath, socket: &EchoSocket, sessions: &Sessions) -> bool {
    let Some(asked) = Opening::decode(bytes) else { return false };
    let (Some(session), Some(peer)) = (sessions.get(&asked.key), way.peer()) else { return true };
    let cookie = asked.cookie_for(&sessions.cookie_secret, &peer.to_string());
    let step = match asked.step {
        Step::Ask => Step::Tell,
        Step::Prove if asked.cookie == cookie => {
            let opened = match way.local(sessions.server.port) {
                Some(local) => session.take_datagrams(&asked, local, peer),
                None => Err("its kernel does not report which address a datagram was sent to".to_owned()),
            };
            if let Err(why) = opened {
                sessions.server.turn_away(peer, why);
                return true;
            }
            Step::Open
        }
        _ => return true,
    };
    let answer = Opening { step, cookie, server_ns: clock::monotonic_ns(), ..asked };
    // It may be lost like any datagram; the client asks again.
    let _ = socket.answer(&answer.encode(), way);
    true
}

/// Sends messages back.
struct Echoes {
    spin: Spin,
    asked_for_stamps: bool,
}

impl Echoes {
    fn new() -> Self {
        Self { spin: Spin::new(SPIN_NS), asked_for_stamps: false }
    }

    /// The next datagram, of whatever kind.
    fn receive(&mut self, socket: &EchoSocket, room: &mut [u8]) -> io::Result<(usize, ReturnPath)> {
        while self.spin.goes_on(clock::monotonic_ns()) {
            match socket.receive_now(room) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
                other => {
                    self.spin.end();
                    return other;
                }
            }
        }
        socket.receive(room)
    }

    /// Answers a message of a session; returns false if the datagram is none.
    fn answer(
        &mut self,
        message: &mut [u8],
        way: &ReturnPath,
        socket: &EchoSocket,
        sessions: &Sessions,
    ) -> bool {
        let Some(mut echo) = Echo::read(message) else { return false };
        if !sessions.hears(&echo.key) {
            return true;
        }
        if !self.asked_for_stamps {
            // Without kernel timestamps, its arrival is when this thread read it.
            let _ = socket.stamp_arrivals();
            self.asked_for_stamps = true;
        }
        let now = clock::unix_ns();
        let stamped = way.arrived_unix_ns();
        let arrived_ns = stamped.unwrap_or(now);
        echo.far = Some(FarStamps { arrived_ns, by_kernel: stamped.is_some(), returned_ns: now });
        echo.put(message);
        // A full queue or an unreachable client shows there as a message without an answer.
        let _ = socket.answer(message, way);
        self.spin.begin(clock::monotonic_ns());
        true
    }
}
