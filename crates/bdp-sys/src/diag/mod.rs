//! All TCP sockets of a network namespace, as the kernel lists them (sock_diag(7), inet_diag).
//!
//! A request is one walk through the kernel's table of connections. The kernel locks each socket that it reports
//! for the microsecond that `TCP_INFO` takes, and changes nothing.

mod filter;
mod message;

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{Timeout, set_socket_recv_buffer_size, set_socket_timeout};
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, socket_with};

use crate::netlink::push_attribute;
use crate::{Result, SysError};

pub use filter::{Condition, MOST_CONDITIONS};
pub use message::{Envelope, Malformed, Message, SocketMemory, SocketReport, messages};

/// Connections: all states of `include/net/tcp_states.h` with two ends, except TIME_WAIT and CLOSE: ESTABLISHED,
/// SYN_SENT, SYN_RECV, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK, CLOSING.
const CONNECTED: u32 = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;
/// LISTEN.
const LISTENING: u32 = 1 << 10;
/// `TCPDIAG_GETSOCK`, which lists both families in one walk, and `SOCK_DIAG_BY_FAMILY`.
const BOTH_FAMILIES: u16 = 18;
const BY_FAMILY: u16 = 20;
/// `INET_DIAG_REQ_BYTECODE`.
const BYTECODE: u16 = 1;
/// Buffer of one read: the kernel fills 32 KiB, later versions more.
const ROOM: usize = 256 << 10;
/// Receive buffer for answers that wait to be read.
const RECEIVE_BUFFER: usize = 1 << 20;
/// How long the kernel may take for the next part of an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// How much to request of each socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// `TCP_INFO` and the socket's memory.
    Figures,
    /// Also the congestion control.
    Everything,
}

/// Result of a list request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Listed {
    /// Number of listed sockets.
    pub sockets: u32,
    /// Whether some may be missing: the kernel reported that its table changed meanwhile, or that answers were lost.
    pub incomplete: bool,
}

/// A sock_diag socket.
#[derive(Debug)]
pub struct Diag {
    socket: OwnedFd,
    sequence: u32,
    room: Vec<u8>,
    /// Whether the kernel lists both families at once; `None` before the first request.
    lists_both: Option<bool>,
}

impl Diag {
    /// Opens one in the calling thread's network namespace.
    pub fn open() -> Result<Self> {
        Self::open_descriptor().and_then(Self::from_descriptor)
    }

    /// Opens one and returns its descriptor, for another process to use.
    pub fn open_descriptor() -> Result<OwnedFd> {
        let opened = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        );
        opened.map_err(|e| SysError::new("open", "socket for sock_diag", e.into()))
    }

    /// Uses a descriptor from [`Diag::open_descriptor`], for the namespace in which it was opened.
    pub fn from_descriptor(socket: OwnedFd) -> Result<Self> {
        // A smaller one only costs more reads.
        let _ = set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER);
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))
            .map_err(|e| SysError::new("set a deadline of", "socket for sock_diag", e.into()))?;
        Ok(Self { socket, sequence: 0, room: vec![0; ROOM], lists_both: None })
    }

    /// Lists connections that meet any of the conditions, or all without conditions, and passes each on as it is
    /// read. The kernel may list more than those.
    pub fn list(
        &mut self,
        conditions: &[Condition],
        detail: Detail,
        each: impl FnMut(&SocketReport<'_>),
    ) -> Result<Listed> {
        self.list_states(conditions, (CONNECTED, detail), each)
    }

    /// The ports that programs listen on.
    pub fn listening(&mut self) -> Result<BTreeSet<u16>> {
        let mut ports = BTreeSet::new();
        self.list_states(&[], (LISTENING, Detail::Figures), |report| {
            ports.insert(report.local().port());
        })?;
        Ok(ports)
    }

    fn list_states(
        &mut self,
        conditions: &[Condition],
        wanted: (u32, Detail),
        mut each: impl FnMut(&SocketReport<'_>),
    ) -> Result<Listed> {
        let code = filter::bytecode(conditions);
        let mut list =
            |this: &mut Self, kind, family| this.walk(kind, family, code.as_deref(), wanted, &mut each);
        if let Some(family) = one_family(conditions) {
            return list(self, BY_FAMILY, family).map_err(failed);
        }
        if self.lists_both != Some(false) {
            match list(self, BOTH_FAMILIES, libc::AF_UNSPEC) {
                Ok(listed) => {
                    self.lists_both = Some(true);
                    return Ok(listed);
                }
                // A kernel without the older request has the newer one.
                Err(error) if self.lists_both.is_none() && is_unsupported(&error) => {
                    self.lists_both = Some(false)
                }
                Err(error) => return Err(failed(error)),
            }
        }
        let four = list(self, BY_FAMILY, libc::AF_INET).map_err(failed)?;
        match list(self, BY_FAMILY, libc::AF_INET6) {
            Ok(six) => Ok(Listed {
                sockets: four.sockets + six.sockets,
                incomplete: four.incomplete || six.incomplete,
            }),
            // A kernel without IPv6.
            Err(error) if is_unsupported(&error) => Ok(four),
            Err(error) => Err(failed(error)),
        }
    }

    /// Sends one request and reads its whole answer.
    fn walk(
        &mut self,
        kind: u16,
        family: i32,
        code: Option<&[u8]>,
        wanted: (u32, Detail),
        each: &mut impl FnMut(&SocketReport<'_>),
    ) -> io::Result<Listed> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = request(kind, family, code, wanted, self.sequence);
        net::send(&self.socket, &request, SendFlags::empty())?;
        let mut listed = Listed::default();
        loop {
            let read = retry_on_intr(|| net::recv(&self.socket, self.room.as_mut_slice(), RecvFlags::TRUNC));
            let (got, whole) = match read {
                Ok(read) => read,
                // Answers were lost; the rest still arrives.
                Err(Errno::NOBUFS) => {
                    listed.incomplete = true;
                    continue;
                }
                Err(Errno::AGAIN) => {
                    return Err(io::Error::other("the kernel's answer was truncated"));
                }
                Err(error) => return Err(error.into()),
            };
            if got == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            for envelope in messages(&self.room[..got]) {
                let Ok(envelope) = envelope else {
                    // The rest was cut off.
                    let why = if whole > got { "longer than the buffer" } else { "not a netlink message" };
                    return Err(io::Error::other(format!("an answer of the kernel is {why}")));
                };
                // Belongs to an earlier request that was given up.
                if envelope.sequence != self.sequence {
                    continue;
                }
                listed.incomplete |= envelope.interrupted;
                match envelope.message {
                    Message::Socket(report) => {
                        listed.sockets += 1;
                        each(&report);
                    }
                    Message::Done(0) => return Ok(listed),
                    Message::Done(code) | Message::Refused(code) if code != 0 => {
                        return Err(io::Error::from_raw_os_error(code));
                    }
                    _ => {}
                }
            }
        }
    }
}

fn failed(source: io::Error) -> SysError {
    SysError::new("list", "TCP sockets (sock_diag)", source)
}

/// Whether the kernel lacks the request or the family.
fn is_unsupported(error: &io::Error) -> bool {
    let codes = [libc::EOPNOTSUPP, libc::EINVAL, libc::ENOENT, libc::EAFNOSUPPORT, libc::EPROTONOSUPPORT];
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

/// The family of all conditions, if they share one: an IPv6 address alone never matches IPv4.
fn one_family(conditions: &[Condition]) -> Option<i32> {
    let six = |c: &Condition| matches!(c, Condition::Remote(IpAddr::V6(_), _));
    (!conditions.is_empty() && conditions.iter().all(six)).then_some(libc::AF_INET6)
}

fn request(
    kind: u16,
    family: i32,
    code: Option<&[u8]>,
    (states, detail): (u32, Detail),
    sequence: u32,
) -> Vec<u8> {
    let bit = |attribute: u16| 1u8 << (attribute - 1);
    let extensions = bit(message::attribute::INFO)
        | bit(message::attribute::SOCKET_MEMORY)
        | match detail {
            Detail::Figures => 0,
            Detail::Everything => bit(message::attribute::CONGESTION),
        };
    /// `struct inet_diag_sockid`, all zero: any socket.
    const ANY: [u8; 48] = [0; 48];
    let mut body = Vec::new();
    if kind == BY_FAMILY {
        // struct inet_diag_req_v2: family, protocol, extensions, unused, states, socket.
        body.extend([family as u8, libc::IPPROTO_TCP as u8, extensions, 0]);
        body.extend(states.to_ne_bytes());
        body.extend(ANY);
    } else {
        // struct inet_diag_req: family, lengths of addresses, extensions, socket, states, an unused number.
        body.extend([family as u8, 0, 0, extensions]);
        body.extend(ANY);
        body.extend(states.to_ne_bytes());
        body.extend(0u32.to_ne_bytes());
    }
    if let Some(code) = code {
        push_attribute(&mut body, BYTECODE, code);
    }
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    let mut message = (16 + body.len() as u32).to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend(sequence.to_ne_bytes());
    message.extend(0u32.to_ne_bytes());
    message.extend(body);
    message
}

/// The memory of a socket of this process; `None` if the kernel does not say (before 4.12).
pub fn memory_of(socket: impl AsFd) -> Option<SocketMemory> {
    let mut room = [0u8; 64];
    let mut length = room.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `room` and stores how many.
    let done = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            room.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    message::memory(room.get(..length as usize).filter(|_| done == 0)?)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{SocketAddr, TcpListener, TcpStream};

    use super::*;

    fn pair(address: &str) -> Option<(TcpStream, TcpStream)> {
        let listener = TcpListener::bind((address, 0)).ok()?;
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        Some((near, listener.accept().unwrap().0))
    }

    fn listed(
        diag: &mut Diag,
        conditions: &[Condition],
        detail: Detail,
    ) -> BTreeSet<(SocketAddr, SocketAddr)> {
        let mut all = BTreeSet::new();
        diag.list(conditions, detail, |socket| {
            all.insert((socket.local(), socket.remote()));
        })
        .unwrap();
        all
    }

    #[test]
    fn own_connections_are_listed_with_their_figures() {
        let (mut near, far) = pair("127.0.0.1").unwrap();
        near.write_all(&[7; 1000]).unwrap();
        let (local, remote) = (near.local_addr().unwrap(), near.peer_addr().unwrap());
        let mut found = 0;
        let mut diag = Diag::open().unwrap();
        let ended = diag.list(&[], Detail::Everything, |socket| {
            if socket.local() == local && socket.remote() == remote {
                found += 1;
                let info = crate::tcp_info::decode(socket.info);
                assert!(info.snd_mss.unwrap() > 500 && info.cwnd_segments.unwrap() >= 1);
                assert!(socket.congestion.is_some() && socket.memory.unwrap().send_buffer > 0);
                assert!(socket.inode() > 0 && socket.cookie() > 0);
            } else if socket.local() == remote && socket.remote() == local {
                found += 1;
                assert_eq!(socket.receive_queue(), 1000);
            }
        });
        assert!(found == 2 && ended.unwrap().sockets >= 2);
        drop(far);
    }

    #[test]
    fn both_requests_list_the_same_of_either_family() {
        let pairs: Vec<_> = ["127.0.0.1", "::1"].into_iter().filter_map(pair).collect();
        let mut diag = Diag::open().unwrap();
        let both = listed(&mut diag, &[], Detail::Figures);
        let mut older = Diag { lists_both: Some(false), ..Diag::open().unwrap() };
        let apart = listed(&mut older, &[], Detail::Figures);
        for (near, far) in &pairs {
            for socket in [near, far] {
                let ends = (socket.local_addr().unwrap(), socket.peer_addr().unwrap());
                assert!(both.contains(&ends) && apart.contains(&ends), "{ends:?}");
            }
        }
    }

    #[test]
    fn the_kernel_takes_the_conditions_and_lists_no_others() {
        let (near, far) = pair("127.0.0.1").unwrap();
        let (near, far) = (near.local_addr().unwrap(), far.local_addr().unwrap());
        let (other, _there) = pair("127.0.0.1").unwrap();
        let other = other.local_addr().unwrap();
        let mut diag = Diag::open().unwrap();
        let mut list = |conditions: &[Condition]| listed(&mut diag, conditions, Detail::Figures);
        assert_eq!(list(&[Condition::LocalPort(near.port())]), BTreeSet::from([(near, far)]));
        assert_eq!(list(&[Condition::RemotePort(near.port())]), BTreeSet::from([(far, near)]));
        let either = [Condition::LocalPort(near.port()), Condition::RemotePort(near.port())];
        assert_eq!(list(&either), BTreeSet::from([(near, far), (far, near)]));
        let exactly = [Condition::Remote(near.ip(), Some(near.port())), Condition::LocalPort(1)];
        assert_eq!(list(&exactly), BTreeSet::from([(far, near)]));
        let host = list(&[Condition::Remote(near.ip(), None)]);
        assert!(host.contains(&(near, far)) && host.iter().any(|&(local, _)| local == other));
        assert_eq!(list(&[Condition::Remote("127.7.7.7".parse().unwrap(), None)]), BTreeSet::new());
        assert_eq!(list(&[Condition::Remote("::7".parse().unwrap(), None)]), BTreeSet::new());
    }
}
