//! What disturbed a measurement at either end: counters told apart by whose traffic they counted, and said in words where
//! they matter.

use bdp_model::host_counters::{DeviceCounters, HostCounters, OwnTraffic};
use bdp_model::measurement::{HostFacts, Way};
use bdp_model::units::{Nanos, format_bps};

/// Fraction of processor time taken by a hypervisor from which it matters.
const STOLEN: f64 = 0.05;
/// Fraction of a device's bytes that are others' from which they matter, and their least rate.
const CROSS: f64 = 0.03;
const CROSS_BPS: f64 = 1e6;
/// Fraction of a device's packets whose drop matters: it drops some that nobody here would have wanted.
const DROPPED: f64 = 1e-4;
const FEW_DROPS: u64 = 10;

/// Payload bytes that a measurement has moved so far in each direction, the most that it can be.
#[derive(Debug, Clone, Copy, Default)]
pub struct Moved {
    to_bytes: u64,
    from_bytes: u64,
    packet_bytes: Option<u64>,
}

impl Moved {
    /// Adds a flow: bytes that its sender gave to the kernel, packets sent again, and payload bytes of a packet.
    pub fn add(&mut self, way: Way, bytes: u64, sent_again: u64, packet_bytes: Option<u64>) {
        let packet = packet_bytes.unwrap_or(536);
        let moved = match way {
            Way::To => &mut self.to_bytes,
            Way::From => &mut self.from_bytes,
        };
        *moved = moved.saturating_add(bytes).saturating_add(sent_again.saturating_mul(packet));
        self.packet_bytes = Some(self.packet_bytes.map_or(packet, |known| known.min(packet)));
    }

    fn near(&self) -> OwnTraffic {
        OwnTraffic {
            sent_bytes: self.to_bytes,
            received_bytes: self.from_bytes,
            packet_bytes: self.packet_bytes.unwrap_or(536),
        }
    }

    fn far(&self) -> OwnTraffic {
        let near = self.near();
        OwnTraffic { sent_bytes: near.received_bytes, received_bytes: near.sent_bytes, ..near }
    }
}

/// Tells cross traffic at both ends, and adds a caveat for each thing there that matters.
pub fn note(near: &mut HostFacts, far: &mut HostFacts, moved: &Moved, caveats: &mut Vec<String>) {
    for (end, host, own) in [("near", near, moved.near()), ("far", far, moved.far())] {
        let loops_back = host.device.as_ref().is_some_and(|d| d.name == "lo");
        if let Some(counters) = &mut host.counters {
            counters.attribute(&own, loops_back);
        }
        describe(end, host, caveats);
    }
}

fn describe(end: &str, host: &HostFacts, caveats: &mut Vec<String>) {
    if let Some(steal) = host.cpu_steal.filter(|&steal| steal >= STOLEN) {
        caveats.push(format!(
            "{end} end: its hypervisor took {:.0} % of its processor time; the path may carry more",
            steal * 100.0
        ));
    }
    let device = host.device.as_ref().map_or("its device", |d| &d.name);
    if host.device.as_ref().and_then(|d| d.full_duplex) == Some(false) {
        caveats.push(format!(
            "{end} end: {device} is half duplex, so that acknowledgements compete with data; check its cable and the \
             settings of the switch"
        ));
    }
    let Some(counters) = &host.counters else { return };
    if let Some(counted) = &counters.device {
        describe_device(end, device, counted, counters, caveats);
    }
    if let Some(dropped @ 1..) = counters.softnet_dropped {
        caveats.push(format!(
            "{end} end: the kernel's backlog dropped {dropped} received packets before TCP saw them; a larger \
             net.core.netdev_max_backlog, or receive queues on more processors, helps"
        ));
    }
    if let Some(periods @ 1..) = counters.throttled_periods {
        let time = counters.throttled_ns.map_or(String::new(), |ns| format!(", {} in all", Nanos(ns)));
        caveats.push(format!(
            "{end} end: its control group's quota held processes back {periods} times{time}; a larger CPU limit helps"
        ));
    }
}

fn describe_device(
    end: &str,
    device: &str,
    counted: &DeviceCounters,
    counters: &HostCounters,
    caveats: &mut Vec<String>,
) {
    let matters =
        |dropped: u64, packets: u64| dropped >= FEW_DROPS && dropped as f64 > packets as f64 * DROPPED;
    let lost = [
        (matters(counted.rx_dropped, counted.rx_packets), counted.rx_dropped, "received packets dropped"),
        (counted.rx_missed > 0, counted.rx_missed, "missed for want of a buffer"),
        (counted.rx_fifo > 0, counted.rx_fifo, "lost by its receive FIFO"),
        (matters(counted.tx_dropped, counted.tx_packets), counted.tx_dropped, "dropped on the way out"),
        (counted.tx_fifo > 0, counted.tx_fifo, "lost by its send FIFO"),
    ];
    let lost: Vec<String> =
        lost.iter().filter(|l| l.0).map(|(_, count, what)| format!("{count} {what}")).collect();
    if !lost.is_empty() {
        caveats.push(format!(
            "{end} end: {device} lost packets of this host: {}; they are no loss of the path",
            lost.join(", ")
        ));
    }
    for (cross, bytes, what) in [
        (counted.rx_cross_bytes, counted.rx_bytes, "receiving"),
        (counted.tx_cross_bytes, counted.tx_bytes, "sending"),
    ] {
        let Some(cross) = cross else { continue };
        let rate = cross as f64 * 8e9 / counters.over_ns.max(1) as f64;
        if cross as f64 >= bytes as f64 * CROSS && rate >= CROSS_BPS {
            caveats.push(format!(
                "{end} end: other traffic shared {device} while it was {what}: {} on average, {:.0} % of its bytes",
                format_bps(rate),
                cross as f64 / bytes.max(1) as f64 * 100.0
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use bdp_model::measurement::DeviceFacts;

    use super::*;

    fn host(counters: HostCounters) -> HostFacts {
        HostFacts {
            device: Some(DeviceFacts { name: "eth0".to_owned(), ..Default::default() }),
            counters: Some(counters),
            ..Default::default()
        }
    }

    fn said(host: HostFacts) -> Vec<String> {
        let mut caveats = Vec::new();
        describe("near", &host, &mut caveats);
        caveats
    }

    #[test]
    fn what_matters_is_said_with_its_number_and_the_rest_is_not() {
        let quiet = HostCounters {
            over_ns: 10_000_000_000,
            device: Some(DeviceCounters {
                rx_bytes: 1_000_000_000,
                rx_packets: 1_000_000,
                rx_dropped: 20,
                rx_cross_bytes: Some(20_000_000),
                tx_cross_bytes: Some(0),
                ..Default::default()
            }),
            softnet_dropped: Some(0),
            throttled_periods: Some(0),
            throttled_ns: Some(0),
        };
        assert_eq!(said(host(quiet.clone())), Vec::<String>::new());
        assert_eq!(said(HostFacts { cpu_steal: Some(0.02), ..host(quiet.clone()) }), Vec::<String>::new());
        let mut loud = quiet;
        loud.softnet_dropped = Some(3);
        loud.throttled_periods = Some(7);
        loud.throttled_ns = Some(70_000_000);
        let device = loud.device.as_mut().unwrap();
        (device.rx_dropped, device.rx_missed, device.rx_cross_bytes) = (200, 9, Some(500_000_000));
        let facts = HostFacts { cpu_steal: Some(0.31), ..host(loud) };
        let all = said(facts).join("\n");
        for part in [
            "took 31 %",
            "200 received packets dropped, 9 missed",
            "dropped 3 received",
            "back 7 times, 70 ms in all",
            "400 Mbit/s on average, 50 % of its bytes",
        ] {
            assert!(all.contains(part), "{part}: {all}");
        }
    }

    #[test]
    fn each_end_has_its_own_view_of_what_was_moved() {
        let mut moved = Moved::default();
        moved.add(Way::To, 1_000_000, 10, Some(1448));
        moved.add(Way::From, 5_000, 0, Some(1400));
        assert_eq!(
            moved.near(),
            OwnTraffic { sent_bytes: 1_014_480, received_bytes: 5_000, packet_bytes: 1400 }
        );
        assert_eq!((moved.far().sent_bytes, moved.far().received_bytes), (5_000, 1_014_480));
    }
}
