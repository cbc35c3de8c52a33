//! The interface between the purposes of probes and their kinds: UDP, TCP or ICMP.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

use bdp_model::probes::hops::{AnswerKind, ProbeMethod};
use bdp_sys::SysError;
use bdp_sys::hop_socket::ReportedError;
use bdp_sys::poll::Interest;
use bdp_wire::icmp;

/// Bytes of a probe after its IP header if its size does not matter: a header of 8, a mark and a number.
pub(super) const SMALL_BYTES: u32 = 24;
/// Buffer for what a router quotes, and for whole answers.
pub(super) const ROOM: usize = 65_536;

/// Sends probes, and returns their answers.
pub(super) trait Prober: Send {
    /// How it is done.
    fn method(&self) -> ProbeMethod;

    /// Sends a probe.
    fn send(&mut self, probe: &Outgoing) -> Result<(), SysError>;

    /// Whether another probe of this flow must wait for the one in flight.
    fn is_busy(&self, _flow: u16) -> bool {
        false
    }

    /// Whether a flow has at most one probe in flight.
    fn is_one_at_a_time(&self) -> bool {
        false
    }

    /// Nothing is waited for of this probe any longer.
    fn give_up(&mut self, _number: u32) {}

    /// Passes on everything that has arrived.
    fn receive(&mut self, each: &mut dyn FnMut(Reply)) -> io::Result<()>;

    /// Collects the descriptors to wait for.
    fn descriptors<'a>(&'a self, into: &mut Vec<(BorrowedFd<'a>, Interest)>);

    /// Returns the probe in flight that a router quotes, by the beginning of what follows the IP header.
    fn number_of(&self, quote: &icmp::Quote<'_>) -> Option<Which>;

    /// Whether probes may have any size.
    fn has_sizes(&self) -> bool {
        true
    }

    /// Whether flows differ on the wire.
    fn has_flows(&self) -> bool {
        true
    }
}

/// A probe to send.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outgoing {
    /// Its number, from 0.
    pub number: u32,
    /// Its flow.
    pub flow: u16,
    /// Its hop limit.
    pub hop: u8,
    /// Its type of service or traffic class.
    pub octet: u8,
    /// Bytes of its IP packet.
    pub bytes: u32,
}

/// Identifies the probe that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// The probe of this number.
    Number(u32),
    /// The last probe whose number ends with these bits.
    Ending(u16),
    /// A probe of this flow: the router quotes too little to say more (RFC 792 requires 8 bytes after the IP header).
    OfFlow(u16),
}

/// An answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reply {
    /// The probe that it answers.
    pub which: Which,
    /// Its sender.
    pub from: Option<IpAddr>,
    /// Its kind.
    pub kind: AnswerKind,
    /// When the kernel received it.
    pub arrived_unix_ns: Option<u64>,
    /// The round trip, if the kernel reports it.
    pub rtt_ns: Option<u64>,
}

impl Reply {
    /// Returns the reply that an ICMP error is; `None` if it says nothing about the path.
    pub(super) fn reported(which: Which, report: &ReportedError, destination: IpAddr) -> Option<Self> {
        let arrived_unix_ns = report.received.arrived_unix_ns;
        let kind = kind_of(report, destination)?;
        Some(Self { which, from: report.offender, kind, arrived_unix_ns, rtt_ns: None })
    }

    /// Returns a reply of the destination.
    pub(super) fn arrived(which: Which, destination: IpAddr, arrived_unix_ns: Option<u64>) -> Self {
        let kind = AnswerKind::Arrived;
        Self { which, from: Some(destination), kind, arrived_unix_ns, rtt_ns: None }
    }
}

/// Returns the kind of answer that an ICMP error is; `None` if it says nothing about the path.
fn kind_of(report: &ReportedError, destination: IpAddr) -> Option<AnswerKind> {
    let by_destination = report.offender == Some(destination);
    let unreachable = |code| match by_destination {
        true => AnswerKind::Arrived,
        false => AnswerKind::Unreachable(code),
    };
    if !report.by_icmp {
        return None;
    }
    match (destination, report.kind, report.code) {
        (IpAddr::V4(_), icmp::EXCEEDED_V4, _) | (IpAddr::V6(_), icmp::EXCEEDED_V6, _) => {
            Some(AnswerKind::Exceeded)
        }
        (IpAddr::V4(_), icmp::UNREACHABLE_V4, icmp::TOO_LONG_V4) | (IpAddr::V6(_), icmp::TOO_LONG_V6, _) => {
            Some(AnswerKind::TooLong(report.info))
        }
        (IpAddr::V4(_), icmp::UNREACHABLE_V4, code) | (IpAddr::V6(_), icmp::UNREACHABLE_V6, code) => {
            Some(unreachable(code))
        }
        // A kernel before 5.8 does not say by whom a SYN was answered.
        (_, 0, _) => Some(AnswerKind::Exceeded),
        _ => None,
    }
}

/// Returns the bytes of an IP header without options.
pub(super) fn ip_header(to: SocketAddr) -> u32 {
    if to.is_ipv4() { 20 } else { 40 }
}

/// Writes the payload of a probe: a mark of this run, its number, and zeros.
pub(super) fn payload(into: &mut Vec<u8>, mark: [u8; 4], number: u32, bytes: u32) {
    into.extend(mark);
    into.extend(number.to_be_bytes());
    into.resize(into.len().max(bytes as usize), 0);
}

/// Returns the number in a quoted payload; `None` if too little was quoted or the mark is another's.
pub(super) fn number_in(payload: &[u8], mark: [u8; 4]) -> Option<u32> {
    let number = payload.strip_prefix(&mark)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*number))
}
