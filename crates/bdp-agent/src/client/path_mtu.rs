//! Path MTU discovery before datagrams flow: sends echoes as long as the path is known to carry, which must not be
//! fragmented (RFC 1191, RFC 8201). If a router refuses one, it reports this to the sender's kernel, and the next
//! echo is shorter; if one is refused on the way back, the server's kernel learns it, and its next answer is
//! fragmented. If nothing is reported, [`MtuSearcher`] chooses the sizes to try (RFC 8899).

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bdp_model::finding::caveat::Caveat;
use bdp_model::measurement::{MeasureRequest, MtuBlackHole, PathFacts};
use bdp_model::probes::mtu_search::{MtuBounds, MtuEnd, MtuSearcher, Step};
use bdp_model::units::Nanos;
use bdp_sys::{poll, udp};
use bdp_wire::echo::{ECHO_BYTES, Echo, LONGEST_ECHO};
use bdp_wire::session::Key;

use bdp_flow::datagram::{header_bytes, payload_by_path};
use bdp_flow::error::FlowError;
use bdp_flow::session::datagrams;
use bdp_flow::session::error::{Result, SessionError};

/// Longest search, or four round trips if these are longer.
const LONGEST_SEARCH: Duration = Duration::from_secs(3);
/// Longest wait before a flag is seen.
const CHECK: Duration = Duration::from_millis(50);

/// How long probes may go unanswered before datagrams are given up; longer on a long path.
pub(super) const UDP_PATIENCE: Duration = Duration::from_secs(1);

/// The discovered path MTU.
#[derive(Default)]
pub(super) struct Found {
    /// MTU as known to the local kernel.
    known: Option<u32>,
    /// Payload of the longest echoes.
    payload: u32,
    /// Whether one of the longest echoes came back.
    is_answered: bool,
    /// The black hole, if only shorter echoes came back.
    hole: Option<MtuBlackHole>,
}

impl Found {
    /// Returns the assumed MTU of the path.
    pub(super) fn mtu(&self) -> Option<u32> {
        self.hole.map(|hole| hole.mtu).or(self.known)
    }

    /// Adds the result to what kernels know.
    pub(super) fn note(&self, path: &mut PathFacts) {
        let Some(hole) = self.hole else { return };
        path.mtu_black_hole = Some(hole);
        for mtu in [&mut path.mtu_to, &mut path.mtu_from] {
            *mtu = Some(mtu.map_or(hole.mtu, |known| known.min(hole.mtu)));
        }
    }

    /// Returns why a flow failed, if its datagrams are longer than what came back.
    pub(super) fn explain(
        &self,
        error: SessionError,
        request: &MeasureRequest,
        address: SocketAddr,
    ) -> SessionError {
        let by_length =
            matches!(error, SessionError::Far { .. } | SessionError::Near(_) | SessionError::Stalled { .. });
        let asked = request.spec.udp.as_ref().and_then(|udp| udp.datagram_bytes);
        // One as long as the path is known to carry came back, and longer ones may be fragmented.
        let may_fragment = request.spec.udp.as_ref().is_some_and(|udp| !udp.dont_fragment);
        let held = self.known.filter(|_| self.is_answered && may_fragment);
        match (self.hole, asked) {
            (None, Some(asked)) if by_length => {
                let Some(mtu) = held else { return error };
                let fits = mtu.saturating_sub(header_bytes(address.is_ipv4()));
                if asked > fits { SessionError::FragmentsLost { address, asked, mtu, fits } } else { error }
            }
            (Some(MtuBlackHole { mtu, .. }), Some(asked)) if by_length => {
                let fits = mtu.saturating_sub(header_bytes(address.is_ipv4()));
                if asked > fits { SessionError::TooLong { address, asked, mtu, fits } } else { error }
            }
            _ => error,
        }
    }

    /// Returns a caveat for the results.
    pub(super) fn caveat(&self, request: &MeasureRequest, address: SocketAddr) -> Option<Caveat> {
        let Some(MtuBlackHole { mtu, known_mtu, exact }) = self.hole else {
            let known_mtu = self.known.filter(|_| !self.is_answered)?;
            return Some(Caveat::MtuUnconfirmed { datagram_bytes: self.payload, known_mtu });
        };
        Some(Caveat::MtuBlackHole {
            mtu,
            known_mtu,
            exact,
            ipv6: address.is_ipv6(),
            fits_bytes: mtu.saturating_sub(header_bytes(address.is_ipv4())),
            asked_bytes: request.spec.udp.as_ref().and_then(|udp| udp.datagram_bytes),
        })
    }
}

/// Sends echoes until one of full length comes back, or until the longest working size is known.
pub(super) fn discover(
    request: &MeasureRequest,
    address: SocketAddr,
    key: Key,
    round_trip: Duration,
    cancel: &AtomicBool,
) -> Result<Found> {
    let headers = header_bytes(address.is_ipv4());
    let socket = datagrams::whole(request, address)?;
    socket.set_nonblocking(true).map_err(FlowError::io("have a socket not wait"))?;
    let mut echoes = Echoes { socket, key, number: 0, message: Vec::new(), headers, since: Instant::now() };
    loop {
        let known = udp::path_mtu(&echoes.socket);
        let payload = payload_by_path(&echoes.socket, known).max(ECHO_BYTES as u32);
        let searcher = MtuSearcher::new(MtuBounds {
            smallest: ECHO_BYTES as u32 + headers,
            largest: payload + headers,
            round_trip: Nanos::from(round_trip),
            patience: Nanos::from(UDP_PATIENCE.max(4 * round_trip)),
            until: Nanos::from(LONGEST_SEARCH.max(4 * round_trip)),
        });
        // None if a router has reported less: that is the largest then.
        let Some(end) = echoes.search(searcher, known, cancel)? else { continue };
        let hole = match end {
            MtuEnd::Less { mtu, exact } => {
                Some(MtuBlackHole { mtu, known_mtu: known.unwrap_or(payload + headers), exact })
            }
            MtuEnd::Held | MtuEnd::Unsettled | MtuEnd::Silent => None,
        };
        return Ok(Found { known, payload, is_answered: end == MtuEnd::Held, hole });
    }
}

/// Echoes of one socket.
struct Echoes {
    socket: UdpSocket,
    key: Key,
    number: u64,
    message: Vec<u8>,
    /// Bytes of the packet before the message.
    headers: u32,
    since: Instant,
}

impl Echoes {
    /// Searches for as long as the kernel knows of no other MTU.
    fn search(
        &mut self,
        mut searcher: MtuSearcher,
        known: Option<u32>,
        cancel: &AtomicBool,
    ) -> Result<Option<MtuEnd>> {
        loop {
            match searcher.next(self.now()) {
                Step::Send(size) => self.send(size),
                Step::Wait(until) => self.take_answers(&mut searcher, until)?,
                Step::End(end) => return Ok(Some(end)),
            }
            if udp::path_mtu(&self.socket) != known && self.now() < Nanos::from(LONGEST_SEARCH) {
                return Ok(None);
            }
            if cancel.load(Ordering::Relaxed) {
                return Err(SessionError::Cancelled);
            }
        }
    }

    fn now(&self) -> Nanos {
        Nanos::from(self.since.elapsed())
    }

    fn send(&mut self, size: u32) {
        self.message.clear();
        self.message.resize((size - self.headers) as usize, 0);
        Echo { key: self.key, number: self.number, far: None }.put(&mut self.message);
        self.number += 1;
        // The kernel knows of a length that it refuses, and a full buffer is the same as a loss.
        let _ = self.socket.send(&self.message);
    }

    /// Receives all answers that have arrived, and further ones until a moment; a process that has slept finds them
    /// too.
    fn take_answers(&mut self, searcher: &mut MtuSearcher, until: Nanos) -> Result<(), FlowError> {
        let left = until.saturating_sub(self.now()).min(Nanos::from(CHECK));
        let waited = poll::wait_readable(self.socket.as_fd(), left.as_ns());
        waited.map_err(FlowError::io("wait for an echo"))?;
        self.message.resize(LONGEST_ECHO, 0);
        loop {
            match self.socket.recv(&mut self.message) {
                Ok(length) => {
                    let echo = Echo::read(&self.message[..length]);
                    if echo.is_some_and(|echo| echo.key == self.key && echo.far.is_some()) {
                        searcher.note_answer(length as u32 + self.headers, self.now());
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // An error reported by a router, or by an end that does not listen: reading has cleared it.
                Err(_) => return Ok(()),
            }
        }
    }
}
