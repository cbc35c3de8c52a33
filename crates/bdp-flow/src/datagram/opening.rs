//! Opens the streams of a flow of datagrams: the client obtains the cookie of its address and presents it. Meanwhile
//! the two clocks are compared.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bdp_model::probes::one_way::{ClockOffset, Exchange};
use bdp_sys::clock;
use bdp_sys::poll::{Interest, Poll};
use bdp_wire::datagram::{OPENING_BYTES, Opening, Step};
use bdp_wire::session::Key;

use super::{Layout, Stream};
use crate::session::error::SessionError;

/// Interval of retries of a step.
const AGAIN: Duration = Duration::from_millis(250);
/// How long all streams may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a stream that has shown its cookie is asked to be confirmed: the server's answer may have been lost, and then the
/// word to begin says.
const CONFIRMATION: Duration = Duration::from_secs(2);
/// Round trips of the first stream with which the clocks are compared.
const LOOKS: u32 = 8;

/// Opens every stream, each over a socket that is connected to the server.
pub fn open(
    address: SocketAddr,
    (key, flow): (Key, u32),
    sockets: Vec<UdpSocket>,
    cancel: &AtomicBool,
) -> Result<(Vec<Stream>, Option<ClockOffset>), SessionError> {
    let poll = Poll::new()?;
    let mut waiting = Vec::new();
    for (socket, stream) in sockets.into_iter().zip(0..) {
        socket.set_nonblocking(true).map_err(crate::error::FlowError::io("open a stream of datagrams"))?;
        poll.add(&socket, u64::from(stream), Interest::Read)?;
        waiting.push(Waiting::new(
            socket,
            Opening { step: Step::Ask, key, flow, stream, cookie: [0; 16], client_ns: 0, server_ns: 0 },
        ));
    }
    let since = Instant::now();
    let mut offset: Option<ClockOffset> = None;
    let mut ready = Vec::new();
    while waiting.iter().any(|w| !w.is_open()) {
        waiting.iter_mut().for_each(Waiting::send_when_due);
        poll.wait(&mut ready, Some(20_000_000))?;
        for &stream in &ready {
            if let Some(waiting) = waiting.get_mut(stream as usize) {
                waiting.take_in(&mut offset);
            }
        }
        if cancel.load(Ordering::Relaxed) {
            return Err(SessionError::Cancelled);
        }
        if since.elapsed() > PATIENCE {
            return Err(SessionError::NoDatagrams { address, waited: since.elapsed().into() });
        }
    }
    let streams = waiting.into_iter().map(|w| {
        w.socket.set_nonblocking(false)?;
        Ok(Stream { layout: Layout::Bdp { tag: w.opening.tag() }, socket: w.socket })
    });
    let streams = streams.collect::<std::io::Result<_>>();
    Ok((streams.map_err(crate::error::FlowError::io("open a stream of datagrams"))?, offset))
}

/// A stream that is being opened.
struct Waiting {
    socket: UdpSocket,
    opening: Opening,
    /// Answers that gave the time.
    looks: u32,
    tried: Option<Instant>,
    proving_since: Option<Instant>,
}

impl Waiting {
    fn new(socket: UdpSocket, opening: Opening) -> Self {
        Self { socket, opening, looks: 0, tried: None, proving_since: None }
    }

    fn is_open(&self) -> bool {
        self.opening.step == Step::Open
            || self.proving_since.is_some_and(|since| since.elapsed() > CONFIRMATION)
    }

    fn send_when_due(&mut self) {
        if !self.is_open() && self.tried.is_none_or(|tried| tried.elapsed() >= AGAIN) {
            self.send();
        }
    }

    fn send(&mut self) {
        self.opening.client_ns = clock::monotonic_ns();
        self.tried = Some(Instant::now());
        // A failed send is treated as a loss: it is retried.
        let _ = self.socket.send(&self.opening.encode());
    }

    fn take_in(&mut self, offset: &mut Option<ClockOffset>) {
        let mut room = [0; OPENING_BYTES + 1];
        // An error (ICMP) clears the descriptor's readiness too.
        while let Ok(length) = self.socket.recv(&mut room) {
            let now = clock::monotonic_ns();
            let Some(answer) = Opening::decode(&room[..length]) else { continue };
            let of_mine = (answer.key, answer.flow, answer.stream)
                == (self.opening.key, self.opening.flow, self.opening.stream);
            match answer.step {
                Step::Tell if of_mine && self.opening.step == Step::Ask => {
                    self.looks += 1;
                    compare(&answer, now, offset);
                    if self.opening.stream > 0 || self.looks >= LOOKS {
                        self.opening.cookie = answer.cookie;
                        self.opening.step = Step::Prove;
                        self.proving_since = Some(Instant::now());
                    }
                    self.send();
                }
                Step::Open if of_mine && answer.cookie == self.opening.cookie => {
                    self.opening.step = Step::Open;
                }
                _ => {}
            }
        }
    }
}

/// Keeps the comparison of the shortest round trip: the server's clock was read somewhere within it.
fn compare(answer: &Opening, now: u64, offset: &mut Option<ClockOffset>) {
    // The server has one reading for both its times.
    let (arrived_ns, returned_ns) = (answer.server_ns, answer.server_ns);
    let exchange = Exchange { sent_ns: answer.client_ns, arrived_ns, returned_ns, received_ns: now };
    let Some(measured) = ClockOffset::of([&exchange]) else { return };
    if offset.is_none_or(|known| measured.error_ns < known.error_ns) {
        *offset = Some(measured);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortest_round_trip_gives_the_clock_offset() {
        let answer = |client_ns, server_ns| Opening {
            step: Step::Tell,
            key: [0; 16],
            flow: 1,
            stream: 0,
            cookie: [0; 16],
            client_ns,
            server_ns,
        };
        let mut offset = None;
        compare(&answer(1_000, 50), 2_000, &mut offset);
        assert_eq!(offset, Some(ClockOffset { far_ahead_ns: 50 - 1_500, error_ns: 500, at_ns: 1_000 }));
        compare(&answer(3_000, 1_600), 9_000, &mut offset);
        assert_eq!(offset.unwrap().error_ns, 500, "a longer one says less");
        compare(&answer(10_000, 1_000_000), 10_100, &mut offset);
        assert_eq!(
            offset,
            Some(ClockOffset { far_ahead_ns: 1_000_000 - 10_050, error_ns: 50, at_ns: 10_000 })
        );
    }
}
