//! From a host's name to connections, each within its deadline.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use bdp_model::case::Family;
use bdp_model::measurement::MeasureRequest;
use bdp_model::units::Nanos;
use bdp_sys::poll::{Interest, Poll};
use bdp_sys::socket::{self, TcpOptions};
use bdp_sys::{SysError, names};

use super::error::{Result, SessionError};

/// How long one connection may take.
pub const CONNECT_DEADLINE: Duration = Duration::from_secs(3);
/// `TCP_MAXSEG` of control connections, which every IPv4 path carries (RFC 9293, section 3.7.1): they must survive on
/// a path that silently drops longer segments, since they report it.
pub const CONTROL_MSS: u32 = 536;
/// How long the resolver may take.
const RESOLVE_DEADLINE: Duration = Duration::from_secs(10);
/// Connection attempts at once: fewer than the default backlog of a listener.
const AT_ONCE: usize = 64;
/// Longest time until a raised cancel flag is noticed.
const CANCEL_CHECK: Duration = Duration::from_millis(100);

/// Returns the addresses of the requested host, in the resolver's order, as far as the request allows them.
pub fn resolve(request: &MeasureRequest, cancel: &AtomicBool) -> Result<Vec<SocketAddr>> {
    let failed = |cause: String| SessionError::NoSuchHost { host: request.host.clone(), cause };
    let literal = request.host.trim_start_matches('[').trim_end_matches(']');
    let mut found: Vec<SocketAddr> = match literal.parse::<IpAddr>() {
        Ok(address) => vec![(address, request.port).into()],
        Err(_) => look_up(literal, request.port, cancel)?.map_err(failed)?,
    };
    if let (Ok(literal), Some(family)) = (literal.parse::<IpAddr>(), request.family)
        && literal.is_ipv4() != (family == Family::Ipv4)
    {
        return Err(SessionError::Request(format!(
            "{literal} is an {} address, but {} selects the other IP version; omit the option",
            if literal.is_ipv4() { "IPv4" } else { "IPv6" },
            if literal.is_ipv4() { "-6" } else { "-4" },
        )));
    }
    let any = !found.is_empty();
    let wanted = match request.family {
        Some(family) => Some(family),
        None => local_address(request)?.map(|ip| if ip.is_ipv4() { Family::Ipv4 } else { Family::Ipv6 }),
    };
    if let Some(family) = wanted {
        found.retain(|a| a.is_ipv4() == (family == Family::Ipv4));
    }
    if let (true, true, None, Some(bind)) = (found.is_empty(), any, request.family, &request.bind_address) {
        return Err(SessionError::Request(format!(
            "'{literal}' can't be reached from {bind}: the IP versions differ; give another local \
             address, or omit it"
        )));
    }
    match (found.is_empty(), any) {
        (false, _) => Ok(found),
        (true, true) => Err(failed(match wanted {
            Some(Family::Ipv4) => "it has no IPv4 address".to_owned(),
            _ => "it has no IPv6 address".to_owned(),
        })),
        (true, false) => Err(SessionError::no_address(&request.host)),
    }
}

/// The resolver's answer, or why there is none. It waits as long as it likes, and so it is asked on a thread.
fn look_up(host: &str, port: u16, cancel: &AtomicBool) -> Result<Result<Vec<SocketAddr>, String>> {
    let (give, take) = mpsc::channel();
    let name = host.to_owned();
    crate::worker::start(move || drop(give.send(names::look_up(&name, port).map_err(|e| e.to_string()))))?;
    let until = Instant::now() + RESOLVE_DEADLINE;
    while Instant::now() < until {
        if let Ok(answer) = take.recv_timeout(CANCEL_CHECK) {
            return Ok(answer);
        }
        if cancel.load(Ordering::Relaxed) {
            return Err(SessionError::Cancelled);
        }
    }
    Ok(Err(format!("the resolver did not answer within {}", Nanos::from(RESOLVE_DEADLINE))))
}

/// Returns the address that the local end is to send from.
pub fn local_address(request: &MeasureRequest) -> Result<Option<IpAddr>> {
    let Some(text) = &request.bind_address else { return Ok(None) };
    // The device of a link-local address is that of the other end's, which names it too.
    let address = text.split_once('%').map_or(text.as_str(), |(address, _)| address);
    address.parse().map(Some).map_err(|_| {
        SessionError::Request(format!("'{text}' is not an IP address; give a local address to send from"))
    })
}

/// Connects to the first address that answers; if none does, returns the first one's error.
pub fn connect_any(
    addresses: &[SocketAddr],
    request: &MeasureRequest,
    options: &TcpOptions,
    cancel: &AtomicBool,
) -> Result<(TcpStream, SocketAddr)> {
    let mut first_failure = None;
    for &address in addresses {
        match connect_all(address, 1, request, None, options, |_, _| Ok(()), cancel) {
            Ok(mut streams) => {
                if let Some(stream) = streams.pop() {
                    return Ok((stream, address));
                }
            }
            Err(e @ (SessionError::Cancelled | SessionError::Request(_))) => return Err(e),
            Err(e) => drop(first_failure.get_or_insert(e)),
        }
    }
    Err(first_failure.unwrap_or_else(|| SessionError::no_address(&request.host)))
}

/// Makes `count` connections in parallel, in order, nonblocking; `open` is called for each as soon as it is
/// established, so that none stays silent for long. `first_port` is the local port of the first.
pub fn connect_all(
    address: SocketAddr,
    count: u32,
    request: &MeasureRequest,
    first_port: Option<u32>,
    options: &TcpOptions,
    open: impl Fn(u32, &TcpStream) -> std::io::Result<()>,
    cancel: &AtomicBool,
) -> Result<Vec<TcpStream>> {
    let local = local_address(request)?;
    let poll = Poll::new()?;
    let count = count as usize;
    let mut streams: Vec<TcpStream> = Vec::with_capacity(count);
    let mut deadlines: Vec<Option<Instant>> = Vec::with_capacity(count);
    let (mut under_way, mut ready) = (0, Vec::new());
    while streams.len() < count || under_way > 0 {
        while streams.len() < count && under_way < AT_ONCE {
            let index = streams.len() as u32;
            let from = local_end(address, local, first_port, index)?;
            let stream = socket::start_connect(address, from, options).map_err(|e| failure(address, e))?;
            poll.add(&stream, u64::from(index), Interest::Write)?;
            streams.push(stream);
            deadlines.push(Some(Instant::now() + CONNECT_DEADLINE));
            under_way += 1;
        }
        poll.wait(&mut ready, Some(CANCEL_CHECK.as_nanos() as u64))?;
        if cancel.load(Ordering::Relaxed) {
            return Err(SessionError::Cancelled);
        }
        for &index in &ready {
            let index = index as usize;
            let Some(stream) = streams.get(index) else { continue };
            if let Ok(Some(cause)) | Err(cause) = stream.take_error() {
                return Err(failure_by(address, cause));
            }
            poll.remove(stream)?;
            open(index as u32, stream).map_err(|e| failure_by(address, e))?;
            deadlines[index] = None;
            under_way -= 1;
        }
        let now = Instant::now();
        if deadlines.iter().flatten().any(|&deadline| now >= deadline) {
            return Err(SessionError::NoAnswer { address, deadline: Nanos::from(CONNECT_DEADLINE) });
        }
    }
    Ok(streams)
}

/// Returns the local address of stream `index`; `None` if the kernel chooses.
pub fn local_end(
    to: SocketAddr,
    local: Option<IpAddr>,
    first_port: Option<u32>,
    index: u32,
) -> Result<Option<SocketAddr>> {
    let port = match first_port {
        None => 0,
        Some(first) => {
            first.checked_add(index).and_then(|port| u16::try_from(port).ok()).ok_or_else(|| {
                SessionError::Request(format!("not enough local ports from {first} on for all streams"))
            })?
        }
    };
    if local.is_none() && port == 0 {
        return Ok(None);
    }
    Ok(Some((local.unwrap_or(any_address(to)), port).into()))
}

/// Returns the unspecified address of the same family.
pub fn any_address(to: SocketAddr) -> IpAddr {
    if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}

/// Returns the error that a failed system call means for the connecting end.
pub fn failure(address: SocketAddr, error: SysError) -> SessionError {
    let kind = error.source.kind();
    match error.operation {
        "connect to" => failure_by(address, error.source),
        "bind to" if kind == ErrorKind::AddrNotAvailable => SessionError::Request(format!(
            "{error}; this machine has no such address for {address} ('ip address' lists its addresses)"
        )),
        "set" if error.operand.starts_with("SO_BINDTODEVICE") && kind != ErrorKind::PermissionDenied => {
            SessionError::Request(format!("{error}; 'ip link' lists this machine's devices"))
        }
        "bind to" if kind == ErrorKind::AddrInUse => {
            SessionError::Request(format!("{error}; choose another local port with --cport, or omit it"))
        }
        _ => error.into(),
    }
}

fn failure_by(address: SocketAddr, cause: std::io::Error) -> SessionError {
    match cause.kind() {
        ErrorKind::ConnectionRefused => SessionError::Refused { address },
        ErrorKind::TimedOut => SessionError::NoAnswer { address, deadline: Nanos::from(CONNECT_DEADLINE) },
        // The last two: a blackhole or prohibit route, or a local firewall.
        ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::NetworkDown
        | ErrorKind::InvalidInput
        | ErrorKind::PermissionDenied => SessionError::NoRoute { address, cause: cause.to_string() },
        _ => SessionError::Near(crate::error::FlowError::Sys(SysError {
            operation: "connect to",
            operand: address.to_string(),
            source: cause,
        })),
    }
}
