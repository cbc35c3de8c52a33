//! The streams of a flow between two agents of one owner, as on the hosts of the lab: one listens, the other
//! connects. Their links carry no strangers, so nothing must be proven. Each stream of datagrams has a port, the
//! first the one that the receiver names, the others those after it.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

use bdp_model::case::tcp_settings::SMALLEST_BUFFER;
use bdp_model::tuning::setting::Setting;
use bdp_model::units::Nanos;
use bdp_sys::poll::{Interest, Poll};
use bdp_sys::socket::{self, TcpOptions};
use bdp_sys::udp::{self, UdpOptions};
use bdp_sys::{clock, sysctl};
use bdp_wire::control::FlowOrder;

use bdp_flow::datagram::{Layout, RECEIVE_BUFFER, SEND_BUFFER, Stream};
use bdp_flow::error::{FlowError, Result};
use bdp_flow::pause::idle_check_ns;
use bdp_flow::session::options;
use bdp_flow::streams::Streams;

/// Tries to find as many free ports in a row as there are streams.
const TRIES: u32 = 20;

/// Listening sockets for the streams of one flow.
pub(crate) struct Listening {
    sockets: Sockets,
    port: u16,
    patience: Nanos,
}

enum Sockets {
    Listener(TcpListener),
    Datagrams(Vec<UdpSocket>),
}

impl Listening {
    /// Opens the sockets for an order.
    pub(crate) fn open(
        order: &FlowOrder,
        address: SocketAddr,
        patience: Nanos,
        tcp_rmem_bytes: Option<u64>,
    ) -> Result<Self> {
        if let Some(bytes) = tcp_rmem_bytes {
            sysctl::write(Setting::TcpModerateRcvbuf.name, "0")?;
            let write = |bytes: u64| {
                let least = bytes.min(SMALLEST_BUFFER);
                sysctl::write(Setting::TcpRmem.name, &format!("{least} {bytes} {bytes}"))
            };
            // Newer kernels refuse less. The effect of the buffer shows on the wire.
            match write(bytes) {
                Err(e) if bytes < SMALLEST_BUFFER && e.source.kind() == ErrorKind::InvalidInput => {
                    write(SMALLEST_BUFFER)?;
                }
                written => written?,
            }
        }
        let (sockets, port) = match order.datagrams {
            Some(_) => {
                let (sockets, port) = bind(address, order.spec.streams)?;
                (Sockets::Datagrams(sockets), port)
            }
            None => {
                let options = TcpOptions { mss: order.spec.mss, ..Default::default() };
                let backlog = i32::try_from(order.spec.streams).unwrap_or(i32::MAX).clamp(16, 4096);
                let listener = socket::listen(address, &options, backlog)?;
                let port = listener.local_addr().map_err(FlowError::io("listen"))?.port();
                (Sockets::Listener(listener), port)
            }
        };
        Ok(Self { sockets, port, patience })
    }

    /// Returns the port; for datagrams the first one.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Waits for all streams of the order, or until `stop`. Datagrams have nothing to wait for.
    pub(crate) fn streams(self, order: &FlowOrder, stop: &AtomicBool) -> Result<Streams> {
        match self.sockets {
            Sockets::Listener(listener) => {
                accept(&listener, order.spec.streams, self.patience, stop).map(Streams::Connections)
            }
            Sockets::Datagrams(sockets) => {
                let streams = sockets.into_iter().zip(0..);
                let streams = streams.map(|(socket, i)| Stream { socket, layout: layout(self.port, i) });
                Ok(Streams::Datagrams(streams.collect()))
            }
        }
    }
}

fn accept(listener: &TcpListener, count: u32, patience: Nanos, stop: &AtomicBool) -> Result<Vec<TcpStream>> {
    listener.set_nonblocking(true).map_err(FlowError::io("accept"))?;
    let poll = Poll::new()?;
    poll.add(listener, 0, Interest::Read)?;
    let deadline = clock::monotonic_ns() + patience.as_ns();
    let mut ready = Vec::new();
    let mut streams = Vec::new();
    while streams.len() < count as usize {
        match listener.accept() {
            Ok((stream, _)) => streams.push(stream),
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                let now = clock::monotonic_ns();
                if now >= deadline || stop.load(Ordering::Relaxed) {
                    let came = streams.len();
                    return Err(FlowError::Deadline(format!(
                        "only {came} of {count} connections arrived within {patience}"
                    )));
                }
                poll.wait(&mut ready, Some((deadline - now).min(idle_check_ns())))?;
            }
            Err(e) => return Err(FlowError::io("accept")(e)),
        }
    }
    Ok(streams)
}

/// Connects the streams of an order to another agent's port; each within this time.
pub(crate) fn connect(order: &FlowOrder, to: SocketAddr, patience: Nanos) -> Result<Streams> {
    if order.datagrams.is_some() {
        let options = UdpOptions { send_buffer: Some(SEND_BUFFER), ..Default::default() };
        let mut streams = Vec::new();
        for stream in 0..order.spec.streams {
            let mut to = to;
            to.set_port(port_of(to.port(), stream)?);
            streams.push(udp::connect(None, to, &options)?);
        }
        let streams = streams.into_iter().zip(0..);
        let streams = streams.map(|(socket, i)| Stream { socket, layout: layout(to.port(), i) });
        return Ok(Streams::Datagrams(streams.collect()));
    }
    let options = options::of_flow(&order.spec, true);
    let connections = (0..order.spec.streams).map(|_| socket::connect(to, &options, patience.to_duration()));
    Ok(Streams::Connections(connections.collect::<Result<_, _>>()?))
}

fn bind(address: SocketAddr, streams: u32) -> Result<(Vec<UdpSocket>, u16)> {
    let mut tried = 1;
    loop {
        match bind_in_a_row(address, streams) {
            Err(_) if tried < TRIES => tried += 1,
            outcome => return outcome,
        }
    }
}

fn bind_in_a_row(address: SocketAddr, streams: u32) -> Result<(Vec<UdpSocket>, u16)> {
    let options = UdpOptions { receive_buffer: Some(RECEIVE_BUFFER), ..Default::default() };
    let mut sockets = vec![udp::bind(address, &options)?];
    let port = sockets[0].local_addr().map_err(FlowError::io("bind a UDP socket"))?.port();
    for stream in 1..streams {
        let mut next = address;
        next.set_port(port_of(port, stream)?);
        sockets.push(udp::bind(next, &options)?);
    }
    Ok((sockets, port))
}

fn port_of(first: u16, stream: u32) -> Result<u16> {
    let port = u16::try_from(u32::from(first).saturating_add(stream));
    port.map_err(|_| FlowError::Refused(format!("not enough ports from {first} on for all streams")))
}

fn layout(first: u16, stream: u32) -> Layout {
    Layout::Bdp { tag: (u64::from(first) << 32 | u64::from(stream)).to_be_bytes() }
}
