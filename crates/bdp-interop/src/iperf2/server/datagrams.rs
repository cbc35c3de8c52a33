//! iperf2's datagrams: those of new clients arrive at one socket, and each flow has its own on the same port, which
//! receives only from its client.
//!
//! Beyond this machine nobody is sent more bytes than were received, unless the server's operator has listed the
//! address and accepted the risk: the source of a datagram may be forged.

use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bdp_sys::echo::{EchoSocket, ReturnPath};
use bdp_sys::udp::{self, UdpOptions};
use bdp_sys::{clock, process};
use bdp_wire::iperf2::{REPORT_BYTES, STAMP_BYTES, TestHeader};

use super::flow::{Arrivals, Flow};
use super::shared::{Shared, check_rate, join, turn_away, turn_away_unserved};
use bdp_agent::server::Reason;
use bdp_agent::server::access::origin;
use bdp_agent::server::own_address::OwnAddresses;
use bdp_flow::error::FlowError;

/// Silence after which a refused client may begin again.
const REFUSED: Duration = Duration::from_secs(1);
/// Most refused clients that are remembered.
const MOST_REFUSED: usize = 64;
/// Interval at which all flows are checked.
const CHECK: Duration = Duration::from_millis(500);
/// Receive buffer of the kernel, for new clients and for each flow.
pub(super) const BUFFER_BYTES: usize = 8 << 20;
/// Most concurrent flows, of which a fourth may be of one address: each has a thread and a buffer, and any datagram
/// begins one.
const MOST_FLOWS: usize = 512;
/// Datagrams that a new socket may have got before it heard its client alone; beyond, they are left to be counted as lost.
const MOST_STRAYS: usize = 4096;

/// Serves datagrams until the server stops.
pub(super) fn serve(socket: &EchoSocket, shared: &Arc<Shared>) {
    process::sharpen_timers();
    // With a smaller buffer, fast flows lose more of their beginning; without timestamps, everything that waits is
    // read.
    let _ = socket.enlarge_receive_buffer(BUFFER_BYTES);
    let _ = socket.stamp_arrivals();
    let port = socket.local_address().map_or(0, |address| address.port());
    // A flow has a socket with two descriptors, and others need some too.
    let most =
        process::raise_descriptor_limit().map_or(MOST_FLOWS, |limit| MOST_FLOWS.min(limit as usize / 8));
    let mut post = Post {
        port,
        own: OwnAddresses::with_ports([port, shared.server.port]),
        shared,
        known: HashMap::new(),
        refused: VecDeque::new(),
        most,
        opened: 0,
        checked: Instant::now(),
    };
    let mut room = vec![0; 65_536];
    while !shared.server.is_ending() {
        let got = if post.opened > 0 { socket.receive_now(&mut room) } else { socket.receive(&mut room) };
        match got {
            Ok((length, way)) => {
                if let Some(arrived_ns) = way.arrived_unix_ns().filter(|_| post.opened > 0) {
                    post.start(arrived_ns);
                }
                post.take(&room[..length.min(65_536)], &way);
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => post.start(u64::MAX),
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
        post.forget_ended();
    }
}

/// The socket for new clients, and the clients that have their own.
struct Post<'a> {
    port: u16,
    own: OwnAddresses,
    shared: &'a Arc<Shared>,
    known: HashMap<SocketAddr, Known>,
    /// Refused flows, with the time of each one's last datagram: each is refused only once.
    refused: VecDeque<(SocketAddr, Instant)>,
    /// Most concurrent flows.
    most: usize,
    /// Flows that have not started.
    opened: usize,
    checked: Instant,
}

/// The state of one address and port.
enum Known {
    /// Its socket is open, and some of its datagrams are still at the socket for new clients.
    Opened {
        /// When its socket began to receive, since 1970.
        at_ns: u64,
        flow: Box<Flow>,
        came: Vec<Arrivals>,
    },
    /// It has its thread, until this is set.
    Running(Arc<AtomicBool>),
}

impl Post<'_> {
    fn take(&mut self, bytes: &[u8], way: &ReturnPath) {
        let Some(peer) = way.peer().filter(|_| !self.own.sent(way)) else { return };
        match self.known.get_mut(&peer) {
            Some(Known::Opened { flow, came, .. }) => {
                came.extend(Arrivals::read(bytes, flow.wide, way.arrived_unix_ns()));
            }
            Some(Known::Running(over)) if !over.load(Ordering::Relaxed) => {}
            _ => {
                if !self.is_refused(peer) {
                    self.begin(bytes, peer, way);
                }
            }
        }
    }

    /// Whether a datagram is of a flow that was turned away.
    fn is_refused(&mut self, peer: SocketAddr) -> bool {
        let now = Instant::now();
        self.refused.retain(|(_, last)| now.duration_since(*last) < REFUSED);
        let refused = self.refused.iter_mut().find(|(refused, _)| *refused == peer);
        refused.map(|(_, last)| *last = now).is_some()
    }

    fn note_refused(&mut self, peer: SocketAddr) {
        if self.refused.len() == MOST_REFUSED {
            self.refused.pop_front();
        }
        self.refused.push_back((peer, Instant::now()));
    }

    /// Begins a flow with its first datagram, if that is valid.
    fn begin(&mut self, bytes: &[u8], peer: SocketAddr, way: &ReturnPath) {
        let header = bytes.get(STAMP_BYTES..).and_then(TestHeader::decode);
        let wide = header.is_some_and(|header| header.wide_numbers);
        let Some(first) = Arrivals::read(bytes, wide, way.arrived_unix_ns()) else { return };
        // The end mark of a finished flow begins none, nor does a client's answer to the end of a flow that it
        // received.
        if first.stamp.number < 0 || (first.stamp.number == 0 && bytes.len() == REPORT_BYTES) {
            return;
        }
        let of_address = self.known.keys().filter(|known| origin(known.ip()) == origin(peer.ip())).count();
        if of_address >= self.most / 4 || self.known.len() >= self.most {
            self.shared.server.counters.give_reason(Reason::Busy);
            let (most, share) = (self.most, self.most / 4);
            let why =
                format!("at most {most} parallel iperf2 UDP flows are served, {share} of them per address");
            self.note_refused(peer);
            return self.shared.server.turn_away(peer, why);
        }
        if let Some(unserved) = header.and_then(|header| header.unserved) {
            self.note_refused(peer);
            return turn_away_unserved(self.shared, peer, unserved);
        }
        let announced = header.map_or(Ok(()), |header| check_rate(self.shared, peer, &header));
        let member = match announced.and_then(|()| join(self.shared, peer, None)) {
            Ok(member) => member,
            Err(denied) => {
                self.note_refused(peer);
                return turn_away(self.shared, peer, &denied);
            }
        };
        let options = &self.shared.server.options;
        let trusted = peer.ip().to_canonical().is_loopback()
            || self.shared.udp_reverse && options.access.is_trusted(peer.ip());
        let sends = header.filter(|h| h.reverse || h.full_duplex || h.connect_back.is_some());
        let sends = match sends {
            Some(header) if !trusted || header.connect_back.is_some() => {
                member.note(
                    "it requests UDP from the server: as source addresses can be forged, this needs \
                     --iperf2-udp-reverse and --allow, and --full-duplex or -R instead of -d or -r",
                );
                None
            }
            other => other,
        };
        let opened = open(way, self.port, peer, header.as_ref());
        let (socket, strays) = match opened {
            Ok(opened) => opened,
            Err(error) => return member.note(error.to_string()),
        };
        let at_ns = clock::unix_ns();
        let mut stop = None;
        if let Some(header) = sends {
            let Ok(second) = join(self.shared, peer, None) else { return };
            second.activity.note_heard();
            stop = header.full_duplex.then(Arc::default);
            let over = Flow::start_sending(self.shared, &socket, header, second, stop.clone());
            if header.reverse {
                // For a client that only receives, its flow holds its place.
                drop(member);
                self.known.insert(peer, Known::Running(over));
                return;
            }
        }
        let flow = Flow::new(Arc::clone(self.shared), socket, member, header.as_ref(), stop);
        let strays = strays.iter().filter_map(|bytes| Arrivals::read(bytes, wide, None));
        let came = std::iter::once(first).chain(strays).collect();
        self.known.insert(peer, Known::Opened { at_ns, flow: Box::new(flow), came });
        self.opened += 1;
    }

    /// Starts the flows that have no more datagrams at the socket for new clients: their sockets existed when the
    /// datagram being read arrived.
    fn start(&mut self, arrived_ns: u64) {
        if self.opened == 0 {
            return;
        }
        let ready = |known: &Known| matches!(known, Known::Opened { at_ns, .. } if *at_ns <= arrived_ns);
        let peers: Vec<SocketAddr> = self.known.iter().filter(|(_, k)| ready(k)).map(|(p, _)| *p).collect();
        for peer in peers {
            if let Some(Known::Opened { flow, mut came, .. }) = self.known.remove(&peer) {
                self.opened -= 1;
                // Datagrams that arrived while there were two sockets are in unknown order.
                came.sort_by_key(|came| came.stamp.number.unsigned_abs());
                self.known.insert(peer, Known::Running(flow.start(came)));
            }
        }
    }

    fn forget_ended(&mut self) {
        if self.checked.elapsed() < CHECK {
            return;
        }
        self.checked = Instant::now();
        self.known.retain(|_, known| !matches!(known, Known::Running(over) if over.load(Ordering::Relaxed)));
    }
}

/// Opens the socket of a flow, with what it received before it was connected to its client.
fn open(
    way: &ReturnPath,
    port: u16,
    peer: SocketAddr,
    header: Option<&TestHeader>,
) -> Result<(UdpSocket, Vec<Vec<u8>>), FlowError> {
    let local = way.local(port).ok_or_else(|| {
        FlowError::Refused("its kernel does not report which address a datagram was sent to".to_owned())
    })?;
    let options = UdpOptions {
        receive_buffer: Some(BUFFER_BYTES),
        send_buffer: Some(bdp_flow::datagram::SEND_BUFFER),
        dscp: header.map(|header| header.type_of_service >> 2).filter(|&dscp| dscp > 0),
        share_port: true,
        ..Default::default()
    };
    let socket = udp::connect(Some(local), peer, &options)?;
    let failed = || FlowError::io("serve an iperf2 client");
    socket.set_nonblocking(true).map_err(failed())?;
    let mut strays = Vec::new();
    let mut room = vec![0; 65_536];
    for _ in 0..MOST_STRAYS {
        match socket.recv_from(&mut room) {
            Ok((length, from)) if from == peer => strays.push(room[..length].to_vec()),
            Ok(_) => {}
            Err(_) => break,
        }
    }
    socket.set_nonblocking(false).map_err(failed())?;
    Ok((socket, strays))
}
