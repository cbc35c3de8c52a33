//! Parses the kernel's answers in place: nothing is copied or allocated, no length trusted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Bytes of `struct inet_diag_msg`.
const SOCKET: usize = 72;
/// `NLM_F_DUMP_INTR`: the table changed while it was listed.
const INTERRUPTED: u16 = 0x10;

/// Numbers of `linux/inet_diag.h`.
pub(super) mod attribute {
    pub const INFO: u16 = 2;
    pub const CONGESTION: u16 = 4;
    pub const SOCKET_MEMORY: u16 = 7;
}

/// The kernel's report of one TCP socket, as it lies in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketReport<'a> {
    base: &'a [u8; SOCKET],
    /// `TCP_INFO`, at the kernel's length; empty if it was not requested or the kernel left it out.
    pub info: &'a [u8],
    /// Name of the congestion control.
    pub congestion: Option<&'a str>,
    /// Memory of the socket (`SK_MEMINFO_*`).
    pub memory: Option<SocketMemory>,
}

/// Memory of a socket, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketMemory {
    /// Memory of received packets not yet read.
    pub received: u32,
    /// `SO_RCVBUF`, as the kernel has it.
    pub receive_buffer: u32,
    /// `SO_SNDBUF`, as the kernel has it.
    pub send_buffer: u32,
    /// Memory of packets to be sent or acknowledged.
    pub queued: u32,
    /// Packets dropped for lack of memory; `None` before Linux 4.7.
    pub drops: Option<u32>,
}

impl SocketReport<'_> {
    fn word(&self, at: usize) -> u32 {
        self.base[at..at + 4].try_into().map_or(0, u32::from_ne_bytes)
    }

    fn port(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.base[at], self.base[at + 1]])
    }

    fn address(&self, at: usize) -> IpAddr {
        if i32::from(self.base[0]) == libc::AF_INET {
            let octets: [u8; 4] = self.base[at..at + 4].try_into().unwrap_or_default();
            return Ipv4Addr::from(octets).into();
        }
        let octets: [u8; 16] = self.base[at..at + 16].try_into().unwrap_or_default();
        // An IPv6 socket may carry IPv4 (RFC 4291, section 2.5.5.2).
        IpAddr::from(Ipv6Addr::from(octets)).to_canonical()
    }

    /// TCP state, numbered as in `include/net/tcp_states.h`.
    pub fn state(&self) -> u8 {
        self.base[1]
    }

    /// Timeouts in a row without an acknowledgement; for a SYN, its retransmissions.
    pub fn tries(&self) -> u8 {
        self.base[3]
    }

    /// Its local address.
    pub fn local(&self) -> SocketAddr {
        SocketAddr::new(self.address(8), self.port(4))
    }

    /// Its remote address.
    pub fn remote(&self) -> SocketAddr {
        SocketAddr::new(self.address(24), self.port(6))
    }

    /// Cookie of the socket, unique while the machine is up.
    pub fn cookie(&self) -> u64 {
        u64::from(self.word(44)) | u64::from(self.word(48)) << 32
    }

    /// Bytes received and not yet read by the program.
    pub fn receive_queue(&self) -> u32 {
        self.word(56)
    }

    /// Bytes written by the program and not yet acknowledged.
    pub fn send_queue(&self) -> u32 {
        self.word(60)
    }

    /// User who owns the socket.
    pub fn user(&self) -> u32 {
        self.word(64)
    }

    /// Inode by which `/proc/PID/fd` names the socket; 0 if no program holds it any more.
    pub fn inode(&self) -> u32 {
        self.word(68)
    }
}

/// One message of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// A socket.
    Socket(SocketReport<'a>),
    /// End of the list; an error number if the kernel could not go on.
    Done(i32),
    /// Refusal of the request, by error number; 0 acknowledges it.
    Refused(i32),
    /// Any other message.
    Other,
}

/// A message with the facts of its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// Sequence number of the answered request.
    pub sequence: u32,
    /// Whether the table changed while it was listed, so that sockets may be missing.
    pub interrupted: bool,
    /// Content of the message.
    pub message: Message<'a>,
}

/// Bytes that are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// The messages of one read; an error is the last.
pub fn messages(bytes: &[u8]) -> impl Iterator<Item = Result<Envelope<'_>, Malformed>> {
    let mut rest = Some(bytes).filter(|bytes| !bytes.is_empty());
    std::iter::from_fn(move || {
        let bytes = rest.take()?;
        let Some((envelope, length)) = first(bytes) else { return Some(Err(Malformed)) };
        rest = bytes.get(length.next_multiple_of(4)..).filter(|rest| !rest.is_empty());
        Some(Ok(envelope))
    })
}

fn first(bytes: &[u8]) -> Option<(Envelope<'_>, usize)> {
    let word = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    let half = |at: usize| bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes);
    let (length, kind, flags, sequence) = (word(0)? as usize, half(4)?, half(6)?, word(8)?);
    let body = bytes.get(HEADER..length)?;
    let number = || body.get(..4).and_then(|b| b.try_into().ok()).map_or(0, i32::from_ne_bytes);
    let message = match i32::from(kind) {
        libc::NLMSG_DONE => Message::Done(number().saturating_neg()),
        libc::NLMSG_ERROR => Message::Refused(number().saturating_neg()),
        // `TCPDIAG_GETSOCK`, `SOCK_DIAG_BY_FAMILY`.
        18 | 20 => Message::Socket(socket(body)?),
        _ => Message::Other,
    };
    Some((Envelope { sequence, interrupted: flags & INTERRUPTED != 0, message }, length))
}

fn socket(body: &[u8]) -> Option<SocketReport<'_>> {
    let (base, mut rest) = body.split_first_chunk::<SOCKET>()?;
    let mut report = SocketReport { base, info: &[], congestion: None, memory: None };
    while let Some((kind, value, length)) = next_attribute(rest) {
        match kind {
            attribute::INFO => report.info = value,
            attribute::CONGESTION => {
                let name = value.split(|&b| b == 0).next().unwrap_or_default();
                report.congestion = std::str::from_utf8(name).ok().filter(|name| !name.is_empty());
            }
            attribute::SOCKET_MEMORY => report.memory = memory(value),
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    Some(report)
}

/// Kind, value and length of the attribute that `bytes` begin with, if it is complete.
fn next_attribute(bytes: &[u8]) -> Option<(u16, &[u8], usize)> {
    let length = usize::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
    let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?) & 0x3fff;
    Some((kind, bytes.get(4..length)?, length))
}

pub(super) fn memory(value: &[u8]) -> Option<SocketMemory> {
    let word = |at: usize| value.get(at * 4..at * 4 + 4)?.try_into().ok().map(u32::from_ne_bytes);
    Some(SocketMemory {
        received: word(0)?,
        receive_buffer: word(1)?,
        send_buffer: word(3)?,
        queued: word(5)?,
        drops: word(8),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message with its header.
    fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = (16 + body.len() as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(7u32.to_ne_bytes());
        bytes.extend(0u32.to_ne_bytes());
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = (4 + value.len() as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn body(family: i32) -> Vec<u8> {
        let mut body = vec![0u8; SOCKET];
        (body[0], body[1]) = (family as u8, 1);
        body[4..8].copy_from_slice(&[0x14, 0x51, 0x01, 0xbb]);
        body[8..12].copy_from_slice(&[192, 0, 2, 1]);
        body[24..28].copy_from_slice(&[198, 51, 100, 7]);
        body[44..48].copy_from_slice(&3u32.to_ne_bytes());
        body[48..52].copy_from_slice(&1u32.to_ne_bytes());
        body[56..60].copy_from_slice(&11u32.to_ne_bytes());
        body[60..64].copy_from_slice(&22u32.to_ne_bytes());
        body[64..68].copy_from_slice(&1000u32.to_ne_bytes());
        body[68..72].copy_from_slice(&4711u32.to_ne_bytes());
        body
    }

    #[test]
    fn a_socket_is_read_with_its_attributes() {
        let mut whole = body(libc::AF_INET);
        whole.extend(attribute(attribute::CONGESTION, b"cubic\0"));
        whole.extend(attribute(99, &[1; 5]));
        whole.extend(attribute(attribute::INFO, &[1; 104]));
        let memory: Vec<u8> = (0u32..9).flat_map(|i| (i * 10).to_ne_bytes()).collect();
        whole.extend(attribute(attribute::SOCKET_MEMORY, &memory));
        let mut bytes = message(20, INTERRUPTED, &whole);
        bytes.extend(message(libc::NLMSG_DONE as u16, 0, &0i32.to_ne_bytes()));
        let read: Vec<_> = messages(&bytes).map(Result::unwrap).collect();
        let [first, last] = &read[..] else { panic!("{read:?}") };
        assert!(first.interrupted && first.sequence == 7 && last.message == Message::Done(0));
        let Message::Socket(socket) = first.message else { panic!("{first:?}") };
        assert_eq!(socket.local().to_string(), "192.0.2.1:5201");
        assert_eq!(socket.remote().to_string(), "198.51.100.7:443");
        assert_eq!((socket.cookie(), socket.inode(), socket.user()), (1 << 32 | 3, 4711, 1000));
        assert_eq!((socket.receive_queue(), socket.send_queue(), socket.state()), (11, 22, 1));
        assert_eq!((socket.info.len(), socket.congestion), (104, Some("cubic")));
        let memory = socket.memory.unwrap();
        assert_eq!((memory.receive_buffer, memory.send_buffer, memory.drops), (10, 30, Some(80)));
    }

    #[test]
    fn an_ipv6_socket_that_speaks_ipv4_has_ipv4_addresses() {
        let mut whole = body(libc::AF_INET6);
        whole[8..24].copy_from_slice(&"::ffff:192.0.2.9".parse::<Ipv6Addr>().unwrap().octets());
        whole[24..40].copy_from_slice(&"2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
        let bytes = message(18, 0, &whole);
        let Message::Socket(socket) = messages(&bytes).next().unwrap().unwrap().message else { panic!() };
        assert_eq!(socket.local().to_string(), "192.0.2.9:5201");
        assert_eq!(socket.remote().to_string(), "[2001:db8::1]:443");
    }

    #[test]
    fn what_is_cut_off_is_malformed_and_the_last() {
        let bytes = message(20, 0, &body(libc::AF_INET));
        for cut in 1..bytes.len() {
            let read: Vec<_> = messages(&bytes[..cut]).collect();
            assert_eq!(read, [Err(Malformed)], "{cut}");
        }
        // A length of zero would loop for ever.
        assert_eq!(messages(&[0; 64]).collect::<Vec<_>>(), [Err(Malformed)]);
        // An attribute longer than the rest is left out.
        let mut whole = body(libc::AF_INET);
        whole.extend([200, 0, 2, 0, 1]);
        let bytes = message(20, 0, &whole);
        assert!(
            matches!(messages(&bytes).next(), Some(Ok(Envelope { message: Message::Socket(s), .. })) if s.info.is_empty())
        );
    }

    #[test]
    fn refusals_have_positive_numbers() {
        let refused = message(libc::NLMSG_ERROR as u16, 0, &(-libc::EPERM).to_ne_bytes());
        assert_eq!(messages(&refused).next().unwrap().unwrap().message, Message::Refused(libc::EPERM));
        let least = message(libc::NLMSG_DONE as u16, 0, &i32::MIN.to_ne_bytes());
        assert_eq!(messages(&least).next().unwrap().unwrap().message, Message::Done(i32::MAX));
    }
}
