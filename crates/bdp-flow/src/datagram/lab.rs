//! Flows of datagrams between two hosts of the lab: no stranger is on their links, so nothing has to be opened. Each stream has
//! a port of its own, the first the one that the receiver names, the others those behind it.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::AtomicBool;

use bdp_model::units::Nanos;
use bdp_sys::clock;
use bdp_sys::udp::{self, UdpOptions};
use bdp_wire::control::{DatagramFlow, ListenOrder, Received, SendOrder, Sent};

use super::{
    DatagramReceivePlan, DatagramSendPlan, Layout, RECEIVE_BUFFER, SEND_BUFFER, Stream, receive, send,
};
use crate::error::EngineError;
use crate::meter::Meter;
use crate::pause::wait_until;

/// Tries to find as many free ports in a row as there are streams.
const TRIES: u32 = 20;

/// Sockets that wait for a flow.
#[derive(Debug)]
pub struct DatagramReceiver {
    sockets: Vec<UdpSocket>,
    port: u16,
    order: ListenOrder,
}

impl DatagramReceiver {
    /// Binds as ordered.
    pub fn bind(order: ListenOrder) -> Result<Self, EngineError> {
        let mut tried = 1;
        loop {
            match bind_in_a_row(order.address, order.streams) {
                Ok((sockets, port)) => return Ok(Self { sockets, port, order }),
                Err(_) if tried < TRIES => tried += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// The first port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Receives until the sender has ended, or until `stop`.
    pub fn run(self, stop: &AtomicBool) -> Result<Received, EngineError> {
        let streams = self
            .sockets
            .into_iter()
            .zip(0..)
            .map(|(socket, i)| Stream { socket, layout: layout(self.port, i) });
        let plan = DatagramReceivePlan {
            duration: self.order.duration,
            omit: self.order.omit,
            interval: self.order.interval,
            patience: self.order.patience,
        };
        receive::over(streams.collect(), &plan, stop, &Meter::default())
    }
}

/// Sends as ordered when it is time.
pub fn run(order: &SendOrder, flow: &DatagramFlow, stop: &AtomicBool) -> Result<Sent, EngineError> {
    bdp_sys::process::sharpen_timers();
    if !wait_until(clock::monotonic_ns() + order.start.as_ns(), stop) {
        return Ok(Sent::default());
    }
    let options = UdpOptions { send_buffer: Some(SEND_BUFFER), ..Default::default() };
    let mut streams = Vec::new();
    for stream in 0..order.streams {
        let mut to = order.to;
        to.set_port(port_of(order.to.port(), stream)?);
        let layout = layout(order.to.port(), stream);
        streams.push(Stream { socket: udp::connect(None, to, &options)?, layout });
    }
    let plan = DatagramSendPlan {
        payload_bytes: Some(flow.payload_bytes),
        rate_bps: Some(flow.rate_bps),
        duration: order.duration,
        omit: Nanos::ZERO,
        bytes: order.bytes,
    };
    send::over(streams, &plan, stop, &Meter::default())
}

fn bind_in_a_row(address: SocketAddr, streams: u32) -> Result<(Vec<UdpSocket>, u16), EngineError> {
    let first = bind(address)?;
    let port = first.local_addr().map_err(EngineError::io("bind a UDP socket"))?.port();
    let mut sockets = vec![first];
    for stream in 1..streams {
        let mut next = address;
        next.set_port(port_of(port, stream)?);
        sockets.push(bind(next)?);
    }
    Ok((sockets, port))
}

fn bind(address: SocketAddr) -> Result<UdpSocket, EngineError> {
    Ok(udp::bind(address, &UdpOptions { receive_buffer: Some(RECEIVE_BUFFER), ..Default::default() })?)
}

fn port_of(first: u16, stream: u32) -> Result<u16, EngineError> {
    let port = u16::try_from(u32::from(first).saturating_add(stream));
    port.map_err(|_| EngineError::Refused(format!("ports from {first} on do not suffice for all streams")))
}

fn layout(first: u16, stream: u32) -> Layout {
    Layout::Bdp { tag: (u64::from(first) << 32 | u64::from(stream)).to_be_bytes() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stream_has_its_port_and_its_datagrams() {
        let listen = ListenOrder {
            address: "127.0.0.1:0".parse().unwrap(),
            streams: 3,
            tcp_rmem_bytes: None,
            mss: None,
            duration: Nanos::millis(200),
            omit: Nanos::ZERO,
            interval: Nanos::millis(50),
            patience: Nanos::secs(10),
            datagrams: true,
        };
        let receiver = DatagramReceiver::bind(listen).unwrap();
        let flow = DatagramFlow { payload_bytes: 500, rate_bps: 2_000_000 };
        let order = SendOrder {
            to: ([127, 0, 0, 1], receiver.port()).into(),
            start: Nanos::millis(10),
            streams: 3,
            length_bytes: 1,
            mss: None,
            congestion: String::new(),
            nodelay: false,
            duration: Nanos::millis(200),
            bytes: None,
            interval: Nanos::millis(50),
            patience: Nanos::secs(10),
            datagrams: Some(flow.clone()),
        };
        let receiving = std::thread::spawn(move || receiver.run(&AtomicBool::new(false)).unwrap());
        let sent = run(&order, &flow, &AtomicBool::new(false)).unwrap();
        let received = receiving.join().unwrap();
        let (gave, got) = (sent.datagrams.unwrap(), received.datagrams.unwrap());
        assert!(gave.sent + gave.left_out >= 3 * 98, "{gave:?}");
        assert_eq!((got.counts.received, got.counts.duplicated), (gave.sent, 0));
        assert_eq!(received.stream_bytes.iter().sum::<u64>(), gave.sent * 500);
        assert!(received.stream_bytes.iter().all(|&bytes| bytes > 0));
    }
}
