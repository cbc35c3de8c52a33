//! Counters of a machine during a measurement: differences of two readings.

use serde::{Deserialize, Serialize};

/// Counters of what disturbs a measurement at one of its ends; null if the machine does not report them. In the lab by the real
/// clock, `softnet_*` and `throttled_*` cover the whole machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostCounters {
    /// Time between the two readings.
    pub over_ns: u64,
    /// Counters of the device that carries the path; null in the lab, whose links count.
    pub device: Option<DeviceCounters>,
    /// Received packets dropped because the kernel's backlog was full (`/proc/net/softnet_stat`).
    pub softnet_dropped: Option<u64>,
    /// Times that a processor used up its receive budget (`net.core.netdev_budget`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub softnet_squeezed: Option<u64>,
    /// Periods in which the control group's quota of processor time was used up.
    pub throttled_periods: Option<u64>,
    /// Throttled time in those periods, all processors added up.
    pub throttled_ns: Option<u64>,
    /// Counters of the network namespace's stack, all connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<StackCounters>,
}

/// Counters of a host's network stack, by the names of Linux; counters that its kernel lacks are absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackCounters {
    /// `TcpExt` `PruneCalled`: a receive buffer was full, and the kernel looked for memory to free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prune_called: Option<u64>,
    /// `RcvPruned`: segments dropped for that reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rcv_pruned: Option<u64>,
    /// `OfoPruned`: out-of-order segments dropped for that reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ofo_pruned: Option<u64>,
    /// `TCPBacklogDrop`: segments dropped because the socket was in use by a call and its backlog was full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog_drop: Option<u64>,
    /// `TCPRcvQDrop`: segments dropped for lack of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rcvq_drop: Option<u64>,
    /// `TCPZeroWindowDrop`: segments that arrived while the window was closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_window_drop: Option<u64>,
    /// `TCPOFODrop`: out-of-order segments dropped for lack of room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ofo_drop: Option<u64>,
    /// `TCPToZeroWindowAdv`: times that the receive window was closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_zero_window: Option<u64>,
    /// `TCPRcvCollapsed`: segments merged in memory because the buffer was full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rcv_collapsed: Option<u64>,
    /// `TCPMemoryPressures`: times that TCP came under memory pressure, `net.ipv4.tcp_mem`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_pressures: Option<u64>,
    /// `TCPTimeouts`: retransmission timeouts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<u64>,
    /// `TCPSpuriousRTOs`: retransmission timeouts that proved spurious.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spurious_timeouts: Option<u64>,
    /// `TCPLossProbes`: tail loss probes sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_probes: Option<u64>,
    /// `TCPSACKReneging`: times that a receiver discarded data that it had acknowledged selectively.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sack_reneging: Option<u64>,
    /// `TCPDSACKRecv`: reports of segments received twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dsack_received: Option<u64>,
    /// `Tcp` `InCsumErrors`: segments whose checksum was wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_checksum_errors: Option<u64>,
    /// `Udp` `RcvbufErrors`: datagrams dropped because the socket's receive buffer was full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp_receive_buffer_errors: Option<u64>,
    /// `Udp` `SndbufErrors`: datagrams that did not fit the send buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp_send_buffer_errors: Option<u64>,
    /// `Udp` `InCsumErrors`: datagrams whose checksum was wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp_checksum_errors: Option<u64>,
}

/// Counters of a network device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceCounters {
    /// Bytes received, link headers included.
    pub rx_bytes: u64,
    /// Bytes sent, link headers included.
    pub tx_bytes: u64,
    /// Packets received; a super-packet of a virtual device counts as one.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Received packets that it dropped.
    pub rx_dropped: u64,
    /// Outgoing packets that it dropped.
    pub tx_dropped: u64,
    /// Received packets for which it had no buffer: the host was too slow.
    pub rx_missed: u64,
    /// Received packets lost by its FIFO.
    pub rx_fifo: u64,
    /// Outgoing packets lost by its FIFO.
    pub tx_fifo: u64,
    /// Bytes received beyond what the measurement can have caused: payload, retransmits, 118 bytes of header and an acknowledgement
    /// for each packet. Null if unknown.
    pub rx_cross_bytes: Option<u64>,
    /// Bytes sent beyond what the measurement can have caused; null if unknown.
    pub tx_cross_bytes: Option<u64>,
}

/// Traffic of a measurement itself, as payload of TCP or UDP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnTraffic {
    /// Payload bytes sent by the machine, retransmitted ones included.
    pub sent_bytes: u64,
    /// Payload bytes received by the machine.
    pub received_bytes: u64,
    /// Payload bytes of one packet.
    pub packet_bytes: u64,
}

/// Largest overhead around the payload of a packet: Ethernet with a VLAN tag (18), IPv6 (40), TCP with its longest options (60).
const OVERHEAD_BYTES: u64 = 118;
/// Traffic of the control connection and probes, per second and once.
const CONTROL_BYTES_PER_S: u64 = 10_000;
const CONTROL_BYTES: u64 = 100_000;

impl OwnTraffic {
    /// Returns the most that a device can have counted of it in one direction: `there` bytes of payload in packets, and an
    /// acknowledgement for each packet of the other direction.
    fn most_on_the_wire(&self, there: u64, back: u64, over_ns: u64) -> u64 {
        let packet = self.packet_bytes.max(1);
        let packets = there.div_ceil(packet).saturating_add(back.div_ceil(packet));
        let control = CONTROL_BYTES + over_ns / 1_000_000_000 * CONTROL_BYTES_PER_S;
        there.saturating_add(packets.saturating_mul(OVERHEAD_BYTES)).saturating_add(control)
    }
}

impl StackCounters {
    /// Returns the segments that the host dropped after receiving them, for any reason it counts; `None` if it counts none.
    pub fn dropped_on_receipt(&self) -> Option<u64> {
        let all = [
            self.rcv_pruned,
            self.ofo_pruned,
            self.backlog_drop,
            self.rcvq_drop,
            self.zero_window_drop,
            self.ofo_drop,
        ];
        all.into_iter().flatten().reduce(|sum, count| sum.saturating_add(count))
    }
}

impl HostCounters {
    /// Returns the share of the time in which the control group was throttled, of one processor; above 1 if several were.
    pub fn throttled(&self) -> Option<f64> {
        (self.over_ns > 0).then_some(self.throttled_ns? as f64 / self.over_ns as f64)
    }

    /// Fills in the cross traffic of the device: its counts beyond the most that `own` can have caused. A loopback
    /// device counts both directions in each.
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
    fn what_a_host_drops_and_how_long_it_is_held_back_is_unknown_where_nothing_counts_it() {
        assert_eq!(StackCounters::default().dropped_on_receipt(), None);
        let stack = StackCounters {
            rcv_pruned: Some(2),
            backlog_drop: Some(3),
            timeouts: Some(9),
            ..Default::default()
        };
        assert_eq!(stack.dropped_on_receipt(), Some(5));
        let held =
            |throttled_ns| HostCounters { over_ns: 10, throttled_ns, ..Default::default() }.throttled();
        assert_eq!([held(None), held(Some(5))], [None, Some(0.5)]);
        let json = serde_json::to_value(HostCounters { stack: Some(stack), ..Default::default() }).unwrap();
        assert_eq!(json["stack"], serde_json::json!({"rcv_pruned": 2, "backlog_drop": 3, "timeouts": 9}));
    }

    #[test]
    fn a_device_that_loops_back_counts_both_directions_twice() {
        let own = OwnTraffic { sent_bytes: 1 << 30, received_bytes: 1 << 30, packet_bytes: 32_741 };
        assert_eq!(cross(counted(2 << 30, 2 << 30), &own, true), (0, 0));
        assert!(cross(counted(2 << 30, 2 << 30), &own, false).0 > 1 << 29);
    }
}
