//! Datagrams whose source is a port of the server itself, at an address of this machine: only a forger sends them,
//! and an answer would come back as the next one.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use bdp_sys::device;
use bdp_sys::echo::ReturnPath;

/// How long the list of addresses is good.
const FRESH: Duration = Duration::from_secs(1);

/// Detects such datagrams.
pub struct OwnAddresses {
    ports: Vec<u16>,
    addresses: Vec<IpAddr>,
    read: Option<Instant>,
}

impl OwnAddresses {
    /// Creates it for a server with these ports.
    pub fn with_ports(ports: impl IntoIterator<Item = u16>) -> Self {
        Self { ports: ports.into_iter().collect(), addresses: Vec::new(), read: None }
    }

    /// Whether a datagram claims to come from the server itself.
    pub fn sent(&mut self, way: &ReturnPath) -> bool {
        way.peer().is_some_and(|peer| self.are_at(peer, way.local(peer.port())))
    }

    /// Whether one of its ports is at `peer`, which sent to `local`.
    fn are_at(&mut self, peer: SocketAddr, local: Option<SocketAddr>) -> bool {
        if !self.ports.contains(&peer.port()) {
            return false;
        }
        let ip = peer.ip().to_canonical();
        ip.is_loopback() || local.is_some_and(|local| local.ip().to_canonical() == ip) || self.has(ip)
    }

    /// Whether this machine has the address.
    fn has(&mut self, ip: IpAddr) -> bool {
        if self.read.is_none_or(|read| read.elapsed() >= FRESH) {
            // If addresses cannot be listed, the destination address is used.
            let listed = device::addresses().unwrap_or_default();
            self.addresses = listed.into_iter().map(|(_, address)| address).collect();
            self.read = Some(Instant::now());
        }
        self.addresses.contains(&ip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_of_the_server_at_an_address_of_its_machine_is_itself() {
        let mut own = OwnAddresses::with_ports([5201, 5001]);
        let mut is_own = |peer: &str, local: &str| own.are_at(peer.parse().unwrap(), local.parse().ok());
        assert!(is_own("127.0.0.1:5201", "127.0.0.1:5201"));
        assert!(is_own("127.9.9.9:5001", "127.0.0.1:5201") && is_own("[::1]:5201", "[::1]:5201"));
        assert!(is_own("192.0.2.1:5201", "192.0.2.1:5201"));
        assert!(!is_own("127.0.0.1:5202", "127.0.0.1:5201"));
        assert!(!is_own("192.0.2.1:5201", "192.0.2.2:5201"), "another server may measure from its port");
    }
}
