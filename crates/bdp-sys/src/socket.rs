//! Socket options that the standard library lacks.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use rustix::net::RecvFlags;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::socket_option::{set_named, set_number};
use crate::{Result, SysError, check, still_clock};

/// Options set before a TCP socket is connected or listens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// `TCP_CONGESTION`.
    pub congestion: Option<String>,
    /// `TCP_MAXSEG`.
    pub mss: Option<u32>,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// `SO_RCVBUF`; turns autotuning off.
    pub receive_buffer: Option<usize>,
    /// `SO_SNDBUF`; turns autotuning off.
    pub send_buffer: Option<usize>,
    /// Further ones, by the kernel's names in [`crate::socket_option`].
    pub numbers: Vec<(&'static str, i32)>,
    /// Receive window on the wire, see [`crate::window::fix`].
    pub window_bytes: Option<u32>,
    /// DSCP, 0..=63.
    pub dscp: Option<u8>,
    /// Device to send through.
    pub device: Option<String>,
}

impl TcpOptions {
    fn apply(&self, socket: &Socket) -> Result<()> {
        let set = |what: &'static str, value: String, done: io::Result<()>| {
            done.map_err(|e| SysError::new("set", format!("{what} to {value}"), e))
        };
        if let Some(name) = &self.congestion {
            let done = socket.set_tcp_congestion(name.as_bytes()).map_err(|e| unknown_congestion(name, e));
            set("TCP_CONGESTION", name.clone(), done)?;
        }
        if let Some(mss) = self.mss {
            set("TCP_MAXSEG", mss.to_string(), socket.set_tcp_mss(mss))?;
        }
        if self.nodelay {
            set("TCP_NODELAY", "1".to_owned(), socket.set_tcp_nodelay(true))?;
        }
        if let Some(bytes) = self.receive_buffer {
            set("SO_RCVBUF", bytes.to_string(), socket.set_recv_buffer_size(bytes))?;
        }
        if let Some(bytes) = self.send_buffer {
            set("SO_SNDBUF", bytes.to_string(), socket.set_send_buffer_size(bytes))?;
        }
        if let Some(bytes) = self.window_bytes {
            crate::window::fix(socket, bytes)?;
        }
        if let Some(dscp) = self.dscp {
            set("the DSCP", dscp.to_string(), set_dscp(socket, dscp))?;
        }
        // After the DSCP, which sets SO_PRIORITY too.
        set_named(socket, &self.numbers)?;
        if let Some(device) = &self.device {
            set("SO_BINDTODEVICE", device.clone(), socket.bind_device(Some(device.as_bytes())))?;
        }
        Ok(())
    }

    /// Sets the options on a connected socket.
    pub fn apply_to(&self, socket: impl AsFd) -> Result<()> {
        self.apply(&SockRef::from(&socket))
    }
}

/// Sets the DSCP, the upper six bits of the octet that IPv4 calls type of service (RFC 2474, section 3). An IPv6
/// socket may carry IPv4, which has its own octet.
pub(crate) fn set_dscp(socket: &Socket, dscp: u8) -> io::Result<()> {
    let octet = u32::from(dscp) << 2;
    if socket.domain()? == Domain::IPV6 {
        socket.set_tclass_v6(octet)?;
        // Refused if the kernel separates the families; then no IPv4 is sent either.
        let _ = socket.set_tos_v4(octet);
        return Ok(());
    }
    socket.set_tos_v4(octet)
}

/// Message for a congestion control that the kernel lacks.
pub const NO_CONGESTION: &str = "not available in this kernel";

/// Adds the available ones to the error of an unknown congestion control.
fn unknown_congestion(name: &str, refused: io::Error) -> io::Error {
    if refused.kind() != io::ErrorKind::NotFound {
        return refused;
    }
    let offered = crate::sysctl::read("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
    let offered = offered.split_whitespace().collect::<Vec<_>>().join(", ");
    // A guest has no modules.
    let way_out = if still_clock::is_there() {
        String::new()
    } else {
        format!("; 'modprobe tcp_{name}' loads it if it is a module")
    };
    let text = format!("{NO_CONGESTION}; available: {offered}{way_out}");
    io::Error::new(io::ErrorKind::NotFound, text)
}

/// Checks that sockets of this process may use a congestion control; the error lists the available ones.
pub fn check_congestion(name: &str) -> Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))
        .map_err(|e| SysError::new("create", "socket", e))?;
    TcpOptions { congestion: Some(name.to_owned()), ..Default::default() }.apply(&socket)
}

fn tcp(address: SocketAddr) -> io::Result<Socket> {
    Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))
}

/// Opens a listener with the options set before it listens, so that they apply to the handshake.
pub fn listen(address: SocketAddr, options: &TcpOptions, backlog: i32) -> Result<TcpListener> {
    let failed = |e| SysError::new("listen on", address.to_string(), e);
    let socket = tcp(address).map_err(failed)?;
    socket.set_reuse_address(true).map_err(failed)?;
    options.apply(&socket)?;
    socket.bind(&address.into()).map_err(failed)?;
    socket.listen(backlog).map_err(failed)?;
    Ok(socket.into())
}

/// Local address for `to`: an IPv6 link-local address (RFC 4007) belongs to a device, by default that of the other end's address.
pub fn scoped(from: SocketAddr, to: SocketAddr) -> SocketAddr {
    match (from, to) {
        (SocketAddr::V6(mut from), SocketAddr::V6(to))
            if from.ip().is_unicast_link_local() && from.scope_id() == 0 =>
        {
            from.set_scope_id(to.scope_id());
            from.into()
        }
        _ => from,
    }
}

/// Connects with the options set before the SYN, within `deadline`.
pub fn connect(address: SocketAddr, options: &TcpOptions, deadline: Duration) -> Result<TcpStream> {
    let failed = |e| SysError::new("connect to", address.to_string(), e);
    let socket = tcp(address).map_err(failed)?;
    options.apply(&socket)?;
    socket.connect_timeout(&address.into(), deadline).map_err(failed)?;
    Ok(socket.into())
}

/// Starts a connection: nonblocking, writable once it is established or has failed. `from` is the local address, if it matters.
pub fn start_connect(
    address: SocketAddr,
    from: Option<SocketAddr>,
    options: &TcpOptions,
) -> Result<TcpStream> {
    let failed = |e| SysError::new("connect to", address.to_string(), e);
    let socket = tcp(address).map_err(failed)?;
    options.apply(&socket)?;
    if let Some(from) = from.map(|from| scoped(from, address)) {
        // A local port that lingers from an earlier run may be reused.
        socket.set_reuse_address(true).map_err(failed)?;
        socket.bind(&from.into()).map_err(|e| SysError::new("bind to", from.to_string(), e))?;
    }
    socket.set_nonblocking(true).map_err(failed)?;
    match socket.connect(&address.into()) {
        Err(e) if e.raw_os_error() != Some(libc::EINPROGRESS) => Err(failed(e)),
        _ => Ok(socket.into()),
    }
}

/// Opens a UDP socket that receives only from `to`.
pub fn connect_udp(
    from: Option<SocketAddr>,
    to: SocketAddr,
    device: Option<&str>,
    dscp: Option<u8>,
) -> Result<UdpSocket> {
    let failed = |e| SysError::new("connect UDP socket to", to.to_string(), e);
    let socket = Socket::new(Domain::for_address(to), Type::DGRAM, Some(Protocol::UDP)).map_err(failed)?;
    if let Some(dscp) = dscp {
        set_dscp(&socket, dscp).map_err(failed)?;
    }
    if let Some(device) = device {
        socket.bind_device(Some(device.as_bytes())).map_err(failed)?;
    }
    if let Some(from) = from {
        socket.bind(&scoped(from, to).into()).map_err(failed)?;
    }
    socket.connect(&to.into()).map_err(failed)?;
    Ok(socket.into())
}

/// Opens a listener: for both IP versions if the address is `[::]`, otherwise for the address's own.
pub fn listen_dual(address: SocketAddr, backlog: i32) -> Result<TcpListener> {
    let failed = |e| SysError::new("listen on", address.to_string(), e);
    let socket = tcp(address).map_err(failed)?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified()).map_err(failed)?;
    }
    socket.set_reuse_address(true).map_err(failed)?;
    socket.bind(&address.into()).map_err(failed)?;
    socket.listen(backlog).map_err(failed)?;
    Ok(socket.into())
}

/// Makes the kernel detect a dead peer: after `patience` without an acknowledgement (`TCP_USER_TIMEOUT`, RFC
/// 5482) or, when nothing is sent, without an answer to keepalives.
pub fn watch_peer(socket: impl AsFd, patience: Duration) -> Result<()> {
    let failed = |e| SysError::new("set", "TCP_USER_TIMEOUT", e);
    let socket = SockRef::from(&socket);
    let step = (patience / 4).max(Duration::from_secs(1));
    let keepalive = socket2::TcpKeepalive::new().with_time(step).with_interval(step).with_retries(4);
    socket.set_tcp_keepalive(&keepalive).map_err(failed)?;
    socket.set_tcp_user_timeout(Some(patience)).map_err(failed)
}

/// Discards up to `room` bytes of a stream's receive queue without copying (`MSG_TRUNC`): the kernel counts and
/// frees them, acknowledges and opens the window as after a read. A kernel without this flag copies to `room`.
pub fn discard(stream: &TcpStream, room: &mut [u8]) -> std::io::Result<usize> {
    Ok(rustix::net::recv(stream, room, RecvFlags::TRUNC)?.1)
}

/// Bytes received and not yet read by the program (`FIONREAD`); `None` if the kernel does not report it.
pub fn unread_bytes(stream: &TcpStream) -> Option<u64> {
    rustix::io::ioctl_fionread(stream).ok()
}

/// Closes at once with a reset, so that no state lingers.
pub fn close_hard(socket: TcpStream) {
    // If it can't be set the kernel closes in order.
    let _ = SockRef::from(&socket).set_linger(Some(Duration::ZERO));
}

/// `SO_SNDBUF` as the kernel reports it (twice what was set).
pub fn send_buffer(socket: impl AsFd) -> Result<usize> {
    SockRef::from(&socket).send_buffer_size().map_err(|e| SysError::new("read", "SO_SNDBUF", e))
}

/// Requests a send buffer of this size; the system may grant less.
pub fn enlarge_send_buffer(socket: impl AsFd, bytes: usize) -> Result<()> {
    SockRef::from(&socket).set_send_buffer_size(bytes).map_err(|e| SysError::new("set", "SO_SNDBUF", e))
}

/// Limits the kernel's sending rate (`SO_MAX_PACING_RATE`), headers not counted; for datagrams only the queueing discipline `fq` does so.
pub fn pace(socket: impl AsFd, rate_bps: u64) -> Result<()> {
    let bytes_per_second: u64 = (rate_bps / 8).max(1);
    // SAFETY: the kernel reads eight bytes from a live u64 (since Linux 4.20; before, it takes the first four of them).
    let done = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const bytes_per_second).cast(),
            size_of::<u64>() as libc::socklen_t,
        )
    };
    check(done, "set", format!("SO_MAX_PACING_RATE to {rate_bps} bit/s")).map(drop)
}

/// Sets how many bytes wake a reader (`SO_RCVLOWAT`).
pub fn set_receive_low_water(socket: impl AsFd, bytes: usize) -> Result<()> {
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    set_number(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes, "SO_RCVLOWAT")
}

/// Makes closing a connection send a reset instead of a FIN.
pub fn reset_on_close(stream: &TcpStream) -> Result<()> {
    SockRef::from(stream)
        .set_linger(Some(Duration::ZERO))
        .map_err(|e| SysError::new("set", "SO_LINGER to 0", e))
}

/// Name of the congestion control in use.
pub fn congestion(socket: impl AsFd) -> Result<String> {
    let name =
        SockRef::from(&socket).tcp_congestion().map_err(|e| SysError::new("read", "TCP_CONGESTION", e))?;
    Ok(String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned())
}

/// `SO_RCVBUF` as the kernel reports it (twice what was set).
pub fn receive_buffer(socket: impl AsFd) -> Result<usize> {
    SockRef::from(&socket).recv_buffer_size().map_err(|e| SysError::new("read", "SO_RCVBUF", e))
}

/// Sets the deadline of a UDP socket's reads.
pub fn set_receive_deadline(socket: &UdpSocket, deadline: Duration) -> Result<()> {
    socket.set_read_timeout(Some(deadline)).map_err(|e| SysError::new("set", "SO_RCVTIMEO", e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket_option::named;

    #[test]
    fn options_are_in_force_and_read_back() {
        let options = TcpOptions {
            congestion: Some("reno".into()),
            mss: Some(700),
            numbers: vec![("TCP_NOTSENT_LOWAT", 40_000)],
            ..Default::default()
        };
        let listener = listen("127.0.0.1:0".parse().unwrap(), &TcpOptions::default(), 8).unwrap();
        let stream = connect(listener.local_addr().unwrap(), &options, Duration::from_secs(3)).unwrap();
        assert_eq!(congestion(&stream).unwrap(), "reno");
        let mss = crate::tcp_info::read(&stream).unwrap().snd_mss.unwrap();
        assert!(mss <= 700, "{mss}");
        assert_eq!(named(&stream, "TCP_NOTSENT_LOWAT").unwrap(), 40_000);
    }

    #[test]
    fn an_unknown_congestion_control_is_named() {
        let options = TcpOptions { congestion: Some("no_such_cc".into()), ..Default::default() };
        let error = connect("127.0.0.1:9".parse().unwrap(), &options, Duration::from_secs(1)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("no_such_cc") && text.contains("reno") && text.contains("modprobe"), "{text}");
    }
}
