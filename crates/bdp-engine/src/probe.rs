//! The probe flow: small UDP datagrams at a steady rate, echoed by the other host, timed by the monotonic clock.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bdp_sys::{clock, process};
use bdp_wire::control::{ProbeOrder, Probed};

use crate::EngineError;

/// Payload of a probe: sequence number and time of sending, big-endian.
pub const PROBE_BYTES: usize = 16;

/// Answers every datagram of a probe's size with itself, for as long as the process lives.
pub fn echo(socket: &UdpSocket) {
    process::sharpen_timers();
    let mut room = [0; PROBE_BYTES];
    loop {
        match socket.recv_from(&mut room) {
            // Same size back: nothing to gain for whoever forges a source.
            Ok((PROBE_BYTES, from)) => drop(socket.send_to(&room, from)),
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            // A refused datagram (ICMP) is reported here and concerns only its sender.
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Sends probes and collects their round trips until the order's end or until `stop`.
pub fn run(order: &ProbeOrder, stop: &AtomicBool) -> Result<Probed, EngineError> {
    process::sharpen_timers();
    let any: SocketAddr = match order.to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).map_err(EngineError::io("bind probe"))?;
    socket.connect(order.to).map_err(EngineError::io("connect probe"))?;
    let start = clock::monotonic_ns();
    let interval = order.interval.as_ns().max(10_000);
    let last_send = start + order.duration.as_ns();
    let mut outcome = Probed::default();
    let mut room = [0; PROBE_BYTES + 1];
    loop {
        let now = clock::monotonic_ns();
        if stop.load(Ordering::Relaxed) || now >= last_send + order.patience.as_ns() {
            return Ok(outcome);
        }
        let next_send = start + outcome.sent * interval;
        let sending = next_send < last_send;
        if !sending && outcome.rtt_ns.len() as u64 == outcome.sent {
            return Ok(outcome);
        }
        if sending && now >= next_send {
            let mut probe = [0; PROBE_BYTES];
            probe[..8].copy_from_slice(&outcome.sent.to_be_bytes());
            probe[8..].copy_from_slice(&clock::monotonic_ns().to_be_bytes());
            // A full queue or an unreachable peer shows as a probe without answer.
            let _ = socket.send(&probe);
            outcome.sent += 1;
            continue;
        }
        let wake = if sending { next_send } else { last_send + order.patience.as_ns() };
        // Bounded, so that a stop is seen.
        let wait = wake.saturating_sub(now).clamp(1_000, 50_000_000);
        bdp_sys::socket::set_receive_deadline(&socket, Duration::from_nanos(wait))?;
        if let Ok(PROBE_BYTES) = socket.recv(&mut room) {
            let arrived = clock::monotonic_ns();
            let sent_at = u64::from_be_bytes(room[8..16].try_into().unwrap_or_default());
            outcome.rtt_ns.push(arrived.saturating_sub(sent_at));
        }
    }
}

#[cfg(test)]
mod tests {
    use bdp_model::units::Nanos;

    use super::*;

    #[test]
    fn every_probe_over_loopback_comes_back() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        std::thread::spawn(move || echo(&socket));
        let order = ProbeOrder {
            to,
            interval: Nanos::millis(1),
            duration: Nanos::millis(20),
            patience: Nanos::secs(5),
        };
        let outcome = run(&order, &AtomicBool::new(false)).unwrap();
        assert_eq!(outcome.sent, 20);
        assert_eq!(outcome.rtt_ns.len(), 20);
        assert!(outcome.rtt_ns.iter().all(|&r| r > 0));
    }
}
