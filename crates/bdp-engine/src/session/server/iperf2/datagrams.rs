//! iperf2's datagrams: each flow is known by the address that they come from.
//!
//! An address that was not named by whoever started the server gets no byte more than came from it, for whoever sends a
//! datagram may claim any.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bdp_model::units::Nanos;
use bdp_sys::echo::{EchoSocket, Way};
use bdp_sys::{clock, process};
use bdp_wire::iperf2::{Amount, REPORT_BYTES, STAMP_BYTES, Stamp, Tally, TestHeader};

use super::super::{Event, Shared};
use super::{Membership, join};
use crate::pause::wait_until;

/// How long a flow may be silent before it is dropped.
const SILENCE: Duration = Duration::from_secs(10);
/// How long its report is given again, once it has ended.
const FAREWELL: Duration = Duration::from_secs(3);
/// From one look at all flows to the next.
const CHECK: Duration = Duration::from_millis(500);
/// From one line about datagrams that were turned away to the next: anybody can send many.
const TOLD_EVERY: Duration = Duration::from_secs(1);
/// Room for what the kernel holds until it is read.
const BUFFER_BYTES: usize = 8 << 20;
/// Rate of a sender where the client names none, bit/s, and its payload: iperf2's defaults.
const RATE_BPS: u64 = 1 << 20;
const PAYLOAD_BYTES: u32 = 1470;
/// Payload that is sent at most and at least.
const LONGEST_PAYLOAD: u32 = 65_507;
/// How often the end of a flow that the server sends is told.
const ENDS: i64 = 3;

/// Takes datagrams in until the server ends.
pub(super) fn serve(socket: Arc<EchoSocket>, shared: &Arc<Shared>) {
    process::sharpen_timers();
    // Where the system grants less, fast flows lose more.
    let _ = socket.enlarge_receive_buffer(BUFFER_BYTES);
    let mut post =
        Post { socket: &socket, shared, flows: HashMap::new(), checked: Instant::now(), told: None };
    let mut room = vec![0; 65_536];
    while !shared.is_ending() {
        match socket.receive(&mut room) {
            Ok((length, way)) => post.take(&room[..length.min(65_536)], &way),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
        post.drop_silent();
    }
}

struct Post<'a> {
    socket: &'a Arc<EchoSocket>,
    shared: &'a Arc<Shared>,
    flows: HashMap<SocketAddr, Flow>,
    checked: Instant,
    told: Option<Instant>,
}

/// What comes from one address and port.
struct Flow {
    tally: Tally,
    wide: bool,
    wants_report: bool,
    last: Instant,
    heard_bytes: u64,
    told_bytes: u64,
    member: Option<Membership>,
}

impl Post<'_> {
    fn take(&mut self, bytes: &[u8], way: &Way) {
        let Some(peer) = way.peer() else { return };
        if !self.flows.contains_key(&peer) && !self.begin(bytes, peer, way) {
            return;
        }
        let trusted = self.shared.options.access.is_trusted(peer.ip());
        let Some(flow) = self.flows.get_mut(&peer) else { return };
        let Some(stamp) = Stamp::decode(bytes, flow.wide) else { return };
        // What a client answers to the end of a flow that it received has no number.
        if stamp.number == 0 && bytes.len() == REPORT_BYTES {
            return;
        }
        flow.last = Instant::now();
        flow.heard_bytes += bytes.len() as u64;
        flow.tally.take(&stamp, bytes.len(), clock::unix_ns() / 1000);
        if stamp.number >= 0 {
            return;
        }
        flow.member = None;
        let affordable = flow.told_bytes + REPORT_BYTES as u64 <= flow.heard_bytes;
        if flow.wants_report && (trusted || affordable) {
            let mut echoed = [0; STAMP_BYTES];
            echoed.copy_from_slice(&bytes[..STAMP_BYTES]);
            if self.socket.answer(&flow.tally.report().encode(&echoed), way).is_ok() {
                flow.told_bytes += REPORT_BYTES as u64;
            }
        }
    }

    /// Begins a flow with its first datagram; false where that begins none.
    fn begin(&mut self, bytes: &[u8], peer: SocketAddr, way: &Way) -> bool {
        let header = bytes.get(STAMP_BYTES..).and_then(TestHeader::decode);
        let wide = header.is_some_and(|header| header.wide_numbers);
        // What ends a flow that is over begins none.
        if bytes.len() < STAMP_BYTES || Stamp::decode(bytes, wide).is_none_or(|stamp| stamp.number < 0) {
            return false;
        }
        let member = match join(self.shared, peer) {
            Ok(member) => member,
            Err(denied) => {
                self.turn_away(peer, denied.to_string());
                return false;
            }
        };
        if let Some(header) = header.filter(|h| h.reverse || h.full_duplex || h.connect_back.is_some()) {
            if !self.shared.options.access.is_trusted(peer.ip()) || header.connect_back.is_some() {
                let why = "it wants datagrams sent to it: an address that anybody may claim gets none unless it is \
                           under --allow, and none in the manner of -d and -r; --full-duplex and -R work there";
                member.note(why);
            } else {
                self.start_sending(header, peer, *way);
            }
        }
        let flow = Flow {
            tally: Tally::default(),
            wide,
            wants_report: header.is_none_or(|header| !header.no_report && !header.reverse),
            last: Instant::now(),
            heard_bytes: 0,
            told_bytes: 0,
            // Of a client that only receives, what is sent to it holds its place.
            member: header.is_none_or(|header| !header.reverse).then_some(member),
        };
        self.flows.insert(peer, flow);
        true
    }

    fn start_sending(&mut self, header: TestHeader, peer: SocketAddr, way: Way) {
        let Ok(member) = join(self.shared, peer) else { return };
        let (socket, shared) = (Arc::clone(self.socket), Arc::clone(self.shared));
        let started = crate::agent::start(move || {
            send(&socket, &shared, &header, &way);
            drop(member);
        });
        if let Err(error) = started {
            self.turn_away(peer, error.to_string());
        }
    }

    fn turn_away(&mut self, peer: SocketAddr, why: String) {
        if self.told.is_none_or(|told| told.elapsed() >= TOLD_EVERY) {
            self.told = Some(Instant::now());
            self.shared.tell(&Event::TurnedAway { peer, why });
        }
    }

    fn drop_silent(&mut self) {
        if self.checked.elapsed() < CHECK {
            return;
        }
        self.checked = Instant::now();
        self.flows.retain(|_, flow| {
            let patience = if flow.tally.has_ended() { FAREWELL } else { SILENCE };
            let stays = flow.last.elapsed() < patience;
            if let (false, Some(member)) = (stays, &flow.member) {
                member.note(format!("silent for {}", Nanos::from(patience)));
            }
            stays
        });
    }
}

/// Sends datagrams at the rate that the client named, for as long.
fn send(socket: &EchoSocket, shared: &Shared, header: &TestHeader, way: &Way) {
    process::sharpen_timers();
    let limits = shared.options.limits;
    let length = header.length.unwrap_or(PAYLOAD_BYTES).clamp(STAMP_BYTES as u32, LONGEST_PAYLOAD) as usize;
    let rate = header.rate_bps.unwrap_or(RATE_BPS).min(limits.rate.map_or(u64::MAX, |rate| rate.as_bps()));
    let (longest, total) = match header.amount {
        Amount::Time(time) => (time.min(limits.duration), u64::MAX),
        Amount::Bytes(bytes) => (limits.duration, bytes),
    };
    let mut datagram = vec![0; length];
    let start = clock::monotonic_ns();
    let mut number: i64 = 1;
    let put = |number: i64, datagram: &mut [u8]| {
        let stamp = Stamp { number, sent_us: clock::unix_ns() / 1000 };
        datagram[..STAMP_BYTES].copy_from_slice(&stamp.encode());
        // One that the system has no room for is lost, as on the path.
        let _ = socket.answer(datagram, way);
    };
    loop {
        let sent = (number - 1) as u64 * length as u64;
        let due_ns = (u128::from(sent) * 8_000_000_000 / u128::from(rate.max(1))) as u64;
        if due_ns >= longest.as_ns() || sent >= total || !wait_until(start + due_ns, &shared.ending) {
            break;
        }
        put(number, &mut datagram);
        number += 1;
    }
    for end in 0..ENDS {
        put(-(number + end), &mut datagram);
    }
}
