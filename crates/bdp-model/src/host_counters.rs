//! What a machine counted while it was measured: differences of two readings.

use serde::{Deserialize, Serialize};

/// What disturbs a measurement at one end of it; null where the machine does not tell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostCounters {
    /// The time between the two readings.
    pub over_ns: u64,
    /// Of the device that carries the path.
    pub device: Option<DeviceCounters>,
    /// Received packets that found the kernel's backlog full (`/proc/net/softnet_stat`).
    pub softnet_dropped: Option<u64>,
    /// Periods in which the control group's quota of processor time was used up.
    pub throttled_periods: Option<u64>,
    /// How long it was then held back, all processors added up.
    pub throttled_ns: Option<u64>,
}

/// What a network device counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceCounters {
    /// Bytes received, link headers included.
    pub rx_bytes: u64,
    /// Bytes sent, link headers included.
    pub tx_bytes: u64,
    /// Packets received; a super-packet of a virtual device is one.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Received packets that it dropped.
    pub rx_dropped: u64,
    /// Packets to be sent that it dropped.
    pub tx_dropped: u64,
    /// Received packets for which it had no buffer: the host was too slow.
    pub rx_missed: u64,
    /// Received packets that its FIFO lost.
    pub rx_fifo: u64,
    /// Packets to be sent that its FIFO lost.
    pub tx_fifo: u64,
    /// Bytes received beyond what the measurement itself can have caused; null where that is not known.
    pub rx_cross_bytes: Option<u64>,
    /// Bytes sent beyond that.
    pub tx_cross_bytes: Option<u64>,
}

/// What a measurement itself moves, as payload of TCP or UDP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnTraffic {
    /// Payload bytes sent by the machine, those sent again included.
    pub sent_bytes: u64,
    /// Payload bytes that reached it.
    pub received_bytes: u64,
    /// Payload bytes of one packet.
    pub packet_bytes: u64,
}

/// Most bytes around the payload of a packet: Ethernet with a VLAN tag (18), IPv6 (40), TCP with its longest options (60).
const OVERHEAD_BYTES: u64 = 118;
/// What control connection and probes take, per second and once.
const CONTROL_BYTES_PER_S: u64 = 10_000;
const CONTROL_BYTES: u64 = 100_000;

impl OwnTraffic {
    /// The most that a device can have counted of it in one direction: `there` bytes of payload in packets, and an
    /// acknowledgement for each packet of the other direction.
    fn most_on_the_wire(&self, there: u64, back: u64, over_ns: u64) -> u64 {
        let packet = self.packet_bytes.max(1);
        let packets = there.div_ceil(packet).saturating_add(back.div_ceil(packet));
        let control = CONTROL_BYTES + over_ns / 1_000_000_000 * CONTROL_BYTES_PER_S;
        there.saturating_add(packets.saturating_mul(OVERHEAD_BYTES)).saturating_add(control)
    }
}

impl HostCounters {
    /// Fills in what others moved over the device: what it counted beyond the most that `own` can have taken. A device that
    /// loops back counts both directions in each.
    pub fn attribute(&mut self, own: &OwnTraffic, loops_back: bool) {
        let over_ns = self.over_ns;
        let Some(device) = &mut self.device else { return };
        let both = own.sent_bytes.saturating_add(own.received_bytes);
        let (sent, received) = if loops_back { (both, both) } else { (own.sent_bytes, own.received_bytes) };
        let rx = own.most_on_the_wire(received, sent, over_ns);
        let tx = own.most_on_the_wire(sent, received, over_ns);
        device.rx_cross_bytes = Some(device.rx_bytes.saturating_sub(rx));
        device.tx_cross_bytes = Some(device.tx_bytes.saturating_sub(tx));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(rx_bytes: u64, tx_bytes: u64) -> HostCounters {
        let device = DeviceCounters { rx_bytes, tx_bytes, ..Default::default() };
        HostCounters { over_ns: 10_000_000_000, device: Some(device), ..Default::default() }
    }

    fn cross(mut counters: HostCounters, own: &OwnTraffic, loops_back: bool) -> (u64, u64) {
        counters.attribute(own, loops_back);
        let device = counters.device.unwrap();
        (device.rx_cross_bytes.unwrap(), device.tx_cross_bytes.unwrap())
    }

    #[test]
    fn own_traffic_with_headers_and_acknowledgements_is_no_cross_traffic() {
        let own = OwnTraffic { sent_bytes: 1_448_000_000, received_bytes: 0, packet_bytes: 1448 };
        // 1,000,000 segments of 1514 bytes on Ethernet, and an acknowledgement of 66 bytes for every second.
        assert_eq!(cross(counted(33_000_000, 1_514_000_000), &own, false), (0, 0));
        let (rx, tx) = cross(counted(33_000_000 + 500_000_000, 1_514_000_000), &own, false);
        assert!((350_000_000..500_000_000).contains(&rx) && tx == 0, "{rx} {tx}");
    }

    #[test]
    fn a_device_that_loops_back_counts_both_directions_twice() {
        let own = OwnTraffic { sent_bytes: 1 << 30, received_bytes: 1 << 30, packet_bytes: 32_741 };
        assert_eq!(cross(counted(2 << 30, 2 << 30), &own, true), (0, 0));
        assert!(cross(counted(2 << 30, 2 << 30), &own, false).0 > 1 << 29);
    }
}
