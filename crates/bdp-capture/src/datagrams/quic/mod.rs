//! QUIC, from its unencrypted parts: long headers, handshake times, and the spin bit. Nothing is decrypted, not even Initial packets, whose keys
//! are public.

mod header;
mod spin;

use bdp_model::capture::{CapturedQuic, FlowEnd, QuicHandshake};

use self::header::{Id, Kind, Long, NotLong, long};
use self::spin::Spin;

/// Length to which a client pads the datagram of its first Initial (RFC 9000, section 14.1).
const CLIENT_LEAST: u32 = 1200;
/// Shortest connection ID that a client chooses for the server (section 7.2).
const CLIENT_ID_LEAST: usize = 8;
/// Smallest packet with a short header: one byte, packet number and tag (section 10.3).
const SHORT_LEAST: usize = 21;

/// A QUIC connection.
#[derive(Debug)]
pub(crate) struct Quic {
    /// Whether this is confirmed: until then, one datagram looked like a client's first, of an unknown version.
    is_sure: bool,
    version: u32,
    /// Side of the client.
    client: usize,
    began: bool,
    /// Connection IDs in the client's first packet, the server's first.
    first_ids: [Id; 2],
    /// Connection ID by which each side wants to be addressed.
    ids: [Option<Id>; 2],
    has_handshake: [bool; 2],
    retry: bool,
    version_negotiation: bool,
    zero_rtt: u64,
    began_at: Option<u64>,
    answered_at: Option<u64>,
    /// Time of the client's first packet with a short header, and whether an earlier one may have been truncated.
    through_at: Option<u64>,
    is_through: bool,
    was_cut: bool,
    spin: Spin,
}

/// A datagram of a flow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Datagram<'a> {
    /// Sender: 0 for the end that began, 1 for the other.
    pub side: usize,
    /// Time at which it passed the capture.
    pub at: Option<u64>,
    /// Captured payload.
    pub kept: &'a [u8],
    /// Payload length, bytes.
    pub length: u32,
}

impl Quic {
    /// Heap memory in use, including that of the report, bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.spin.held_bytes() + size_of::<CapturedQuic>()
    }

    /// Returns a connection that begins with this datagram, whether it is the first of its flow or not; `None` if it can't be the beginning.
    pub(crate) fn starting(datagram: &Datagram<'_>, is_first: bool) -> Option<Self> {
        // Both top bits are set in the first byte of any connection.
        if datagram.kept.first()? >> 6 != 3 {
            return None;
        }
        let header = long(datagram.kept, datagram.length as usize).ok()?;
        let is_client_like =
            datagram.length >= CLIENT_LEAST && header.destination.as_slice().len() >= CLIENT_ID_LEAST;
        let is_known = match header.kind {
            Kind::Initial | Kind::Handshake => true,
            Kind::Unknown if is_client_like && is_first => false,
            Kind::ZeroRtt | Kind::Retry | Kind::VersionNegotiation | Kind::Unknown => return None,
        };
        let mut quic = Self {
            is_sure: is_known,
            version: header.version,
            client: datagram.side,
            began: is_first && is_client_like && header.kind != Kind::Handshake,
            first_ids: [header.destination, header.source],
            ids: [None; 2],
            has_handshake: [false; 2],
            retry: false,
            version_negotiation: false,
            zero_rtt: 0,
            began_at: datagram.at,
            answered_at: None,
            through_at: None,
            is_through: false,
            was_cut: false,
            spin: Spin::default(),
        };
        quic.datagram(datagram);
        Some(quic)
    }

    pub(crate) fn is_sure(&self) -> bool {
        self.is_sure
    }

    /// Processes the packets of a datagram, as far as they were captured.
    pub(crate) fn datagram(&mut self, datagram: &Datagram<'_>) {
        let Datagram { side, at, kept, length } = *datagram;
        let mut from = 0;
        while from < length as usize {
            let (rest, whole) = (kept.get(from..).unwrap_or_default(), length as usize - from);
            match rest.first() {
                None => {
                    self.cut(side);
                    return;
                }
                Some(first) if first & 0x80 == 0 => {
                    self.short(side, at, rest, whole, from > 0);
                    return;
                }
                Some(_) => {}
            }
            match long(rest, whole) {
                Ok(header) => {
                    self.long(side, at, &header);
                    let Some(length) = header.length else { return };
                    from += length;
                }
                Err(NotLong::Cut) => {
                    self.cut(side);
                    return;
                }
                Err(NotLong::Other) => return,
            }
        }
    }

    fn long(&mut self, side: usize, at: Option<u64>, header: &Long) {
        match header.kind {
            Kind::VersionNegotiation => {
                // Connection IDs are swapped in the answer (RFC 8999, section 6).
                if side != self.client && [header.source, header.destination] == self.first_ids {
                    self.version_negotiation = true;
                    self.is_sure = true;
                }
                return;
            }
            Kind::Unknown => return,
            Kind::Retry if side != self.client => {
                self.retry = true;
                self.ids[side] = Some(header.source);
                return;
            }
            Kind::Retry => return,
            Kind::ZeroRtt => {
                self.zero_rtt += 1;
                return;
            }
            Kind::Handshake if side == self.client && !self.has_handshake[1 - side] => {
                // A client has no keys for this before the server's answer: the supposed client is the server.
                self.client = 1 - side;
                self.began = false;
            }
            Kind::Initial | Kind::Handshake => {}
        }
        self.is_sure = true;
        self.has_handshake[side] |= header.kind == Kind::Handshake;
        self.ids[side] = Some(header.source);
        if side != self.client {
            if self.answered_at.is_none() {
                self.answered_at = at;
            }
            self.version = header.version;
        } else if self.ids[1 - side].is_none() {
            self.version = header.version;
        }
    }

    fn short(&mut self, side: usize, at: Option<u64>, rest: &[u8], whole: usize, is_coalesced: bool) {
        if !self.is_sure || whole < SHORT_LEAST {
            return;
        }
        let addressed =
            self.ids[1 - side].map(|id| rest.get(1..=id.as_slice().len()).map(|to| to == id.as_slice()));
        let is_fixed = rest[0] & 0x40 != 0;
        // Padding after the last packet is not a packet; the fixed bit of others may be greased (RFC 9287).
        if (!is_fixed || is_coalesced) && addressed.flatten() != Some(true) {
            return;
        }
        if side == self.client && !self.is_through {
            match addressed {
                Some(Some(true)) => {
                    self.is_through = true;
                    self.through_at = at;
                }
                Some(None) => self.cut(side),
                // A later connection ID from the server; packets with the first one were not captured.
                Some(Some(false)) | None => {}
            }
        }
        self.spin.note(side, self.client, rest[0] & 0x20 != 0, at);
    }

    /// Records that a packet of this side was truncated.
    fn cut(&mut self, side: usize) {
        self.was_cut |= side == self.client && !self.is_through;
    }

    pub(crate) fn report(&self) -> CapturedQuic {
        let since = |to: Option<u64>| Some(to?.saturating_sub(self.began_at?)).filter(|_| self.began);
        let handshake = if !self.began {
            QuicHandshake::BeginningMissing
        } else if self.was_cut {
            QuicHandshake::Cut
        } else if !self.is_through {
            QuicHandshake::NotSeen
        } else {
            QuicHandshake::Known
        };
        CapturedQuic {
            version: self.version,
            client: if self.client == 0 { FlowEnd::A } else { FlowEnd::B },
            retry: self.retry,
            version_negotiation: self.version_negotiation,
            zero_rtt: self.zero_rtt,
            first_answer_ns: since(self.answered_at),
            handshake_ns: since(self.through_at).filter(|_| handshake == QuicHandshake::Known),
            handshake,
            spin: self.spin.report(),
        }
    }
}
