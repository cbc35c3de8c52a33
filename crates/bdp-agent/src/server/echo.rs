//! Messages sent back with the times of their arrival and return: datagrams, and connections of kind echo.
//!
//! Whoever has just answered keeps the processor for a moment in wait for the next message: a client that asks as fast as
//! answers come then meets a thread that is awake.

use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;
use std::os::fd::AsFd;

use bdp_sys::echo::{EchoSocket, Way};
use bdp_sys::{clock, poll, process};
use bdp_wire::echo::{Echo, FarStamps};
use bdp_wire::session::Key;

use super::ServerState;
use super::places::Activity;
use bdp_flow::spin::Spin;

/// How long the processor is kept after an answer.
const SPIN_NS: u64 = 50_000;
/// How long a client may take to receive what it sent.
const WRITE_PATIENCE_NS: u64 = 5_000_000_000;
/// Longest wait before the connection is looked at again.
const CHECK_NS: u64 = 500_000_000;

/// The datagrams' side.
pub(super) struct Echoes {
    spin: Spin,
    asked_for_stamps: bool,
}

impl Echoes {
    pub(super) fn new() -> Self {
        Self { spin: Spin::new(SPIN_NS), asked_for_stamps: false }
    }

    /// The next datagram, of whatever kind.
    pub(super) fn receive(&mut self, socket: &EchoSocket, room: &mut [u8]) -> io::Result<(usize, Way)> {
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

    /// Answers a message of a session; false where the datagram is none.
    pub(super) fn answer(
        &mut self,
        message: &mut [u8],
        way: &Way,
        socket: &EchoSocket,
        shared: &ServerState,
    ) -> bool {
        let Some(mut echo) = Echo::read(message) else { return false };
        if !shared.hears(&echo.key) {
            return true;
        }
        if !self.asked_for_stamps {
            // Where the kernel stamps nothing, its arrival is when this thread got to it.
            let _ = socket.stamp_arrivals();
            self.asked_for_stamps = true;
        }
        let now = clock::unix_ns();
        let stamped = way.arrived_unix_ns();
        let arrived_ns = stamped.unwrap_or(now);
        echo.far = Some(FarStamps { arrived_ns, by_kernel: stamped.is_some(), returned_ns: now });
        echo.put(message);
        // A full queue or an unreachable client shows there as a message without answer.
        let _ = socket.answer(message, way);
        self.spin.begin(clock::monotonic_ns());
        true
    }
}

/// Sends each message of so many bytes back, until the connection ends.
pub(super) fn answer_on(stream: &TcpStream, key: Key, length: usize, standing: &Activity) {
    // However it ends, the client sees that it has.
    let _ = answer_until_end(stream, key, length, standing);
    let _ = stream.shutdown(std::net::Shutdown::Both);
}

fn answer_until_end(mut stream: &TcpStream, key: Key, length: usize, standing: &Activity) -> io::Result<()> {
    process::sharpen_timers();
    stream.set_nonblocking(true)?;
    let (mut room, mut arrived) = (vec![0; length], 0);
    let mut spin = Spin::new(SPIN_NS);
    loop {
        match stream.read(&mut room[arrived..]) {
            Ok(0) => return Ok(()),
            Ok(more) => {
                spin.end();
                arrived += more;
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                if !spin.goes_on(clock::monotonic_ns()) {
                    poll::wait_readable(stream.as_fd(), CHECK_NS)?;
                }
                continue;
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        }
        if arrived < length {
            continue;
        }
        arrived = 0;
        let arrived_ns = clock::unix_ns();
        let Some(mut echo) = Echo::read(&room).filter(|echo| echo.key == key) else { return Ok(()) };
        echo.far = Some(FarStamps { arrived_ns, by_kernel: false, returned_ns: clock::unix_ns() });
        echo.put(&mut room);
        poll::write_whole(stream, &room, WRITE_PATIENCE_NS)?;
        standing.note_heard();
        spin.begin(clock::monotonic_ns());
    }
}
