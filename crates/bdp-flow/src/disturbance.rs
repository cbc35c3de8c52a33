//! Disturbances of a measurement at either end: counters separated by whose traffic they counted, and a caveat for
//! each that matters.

use bdp_model::finding::caveat::{Caveat, to_percent};
use bdp_model::finding::threshold::STEAL_NOTED;
use bdp_model::measurement::ends::{End, Task};
use bdp_model::measurement::host_counters::{DeviceCounters, OwnTraffic};
use bdp_model::measurement::{Direction, HostFacts};

/// Fraction of a device's bytes that are others' from which they matter, and their least rate.
const CROSS: f64 = 0.03;
const CROSS_BPS: f64 = 1e6;
/// Share of a device's packets whose drop matters: some dropped packets would have been unwanted anyway.
const DROPPED: f64 = 1e-4;
const FEW_DROPS: u64 = 10;

/// Upper bound of the payload bytes that a measurement has moved so far in each direction.
#[derive(Debug, Clone, Copy, Default)]
pub struct Moved {
    to_bytes: u64,
    from_bytes: u64,
    packet_bytes: Option<u64>,
}

impl Moved {
    /// Adds a flow: bytes that its sender gave to the kernel, retransmitted packets, and payload bytes per packet.
    pub fn add(&mut self, way: Direction, bytes: u64, sent_again: u64, packet_bytes: Option<u64>) {
        let packet = packet_bytes.unwrap_or(536);
        let moved = match way {
            Direction::To => &mut self.to_bytes,
            Direction::From => &mut self.from_bytes,
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

/// Determines cross traffic at both ends, and adds a caveat for each disturbance that matters.
pub fn note(near: &mut HostFacts, far: &mut HostFacts, moved: &Moved, caveats: &mut Vec<Caveat>) {
    for (end, host, own) in [(End::Near, near, moved.near()), (End::Far, far, moved.far())] {
        let loops_back = host.device.as_ref().is_some_and(|d| d.name == "lo");
        if let Some(counters) = &mut host.counters {
            counters.attribute(&own, loops_back);
        }
        describe(end, host, caveats);
    }
}

fn describe(end: End, host: &HostFacts, caveats: &mut Vec<Caveat>) {
    if let Some(steal) = host.cpu_steal.filter(|&steal| steal >= STEAL_NOTED) {
        caveats.push(Caveat::HypervisorSteal { end, share: to_percent(steal) });
    }
    let device = host.device.as_ref();
    let name = device.map(|d| d.name.clone());
    if device.and_then(|d| d.full_duplex) == Some(false) {
        caveats.push(Caveat::HalfDuplex { end, device: name.clone() });
    }
    let Some(counters) = &host.counters else { return };
    if let Some(counted) = &counters.device {
        caveats.extend(drops(end, &name, counted));
        caveats.extend(cross_traffic(end, &name, counted, counters.over_ns));
    }
    if let Some(packets @ 1..) = counters.softnet_dropped {
        caveats.push(Caveat::BacklogDrops { end, packets });
    }
    if let Some(periods @ 1..) = counters.throttled_periods {
        caveats.push(Caveat::CpuQuota { end, periods, throttled_ns: counters.throttled_ns });
    }
}

/// Returns a caveat for packets that the device of a host dropped, if it matters.
fn drops(end: End, device: &Option<String>, counted: &DeviceCounters) -> Option<Caveat> {
    let relevant = |dropped: u64, packets: u64| match dropped {
        dropped if dropped >= FEW_DROPS && dropped as f64 > packets as f64 * DROPPED => dropped,
        _ => 0,
    };
    let rx_dropped = relevant(counted.rx_dropped, counted.rx_packets);
    let tx_dropped = relevant(counted.tx_dropped, counted.tx_packets);
    let DeviceCounters { rx_missed, rx_fifo, tx_fifo, .. } = *counted;
    let any = [rx_dropped, rx_missed, rx_fifo, tx_dropped, tx_fifo].iter().any(|&count| count > 0);
    let device = device.clone();
    any.then_some(Caveat::DeviceDrops { end, device, rx_dropped, rx_missed, rx_fifo, tx_dropped, tx_fifo })
}

/// Returns a caveat for cross traffic through the device, each way, if it matters.
fn cross_traffic(
    end: End,
    device: &Option<String>,
    counted: &DeviceCounters,
    over_ns: u64,
) -> impl Iterator<Item = Caveat> {
    let each_way = [
        (counted.rx_cross_bytes, counted.rx_bytes, Task::Receiving),
        (counted.tx_cross_bytes, counted.tx_bytes, Task::Sending),
    ];
    each_way.into_iter().filter_map(move |(cross, bytes, task)| {
        let cross = cross? as f64;
        let rate_bps = cross * 8e9 / over_ns.max(1) as f64;
        let share = to_percent(cross / bytes.max(1) as f64);
        let device = device.clone();
        (cross >= bytes as f64 * CROSS && rate_bps >= CROSS_BPS).then_some(Caveat::CrossTraffic {
            end,
            device,
            task,
            rate_bps,
            share,
        })
    })
}

#[cfg(test)]
mod tests {
    use bdp_model::measurement::DeviceFacts;
    use bdp_model::measurement::host_counters::HostCounters;

    use super::*;

    fn host(counters: HostCounters) -> HostFacts {
        HostFacts {
            device: Some(DeviceFacts { name: "eth0".to_owned(), ..Default::default() }),
            counters: Some(counters),
            ..Default::default()
        }
    }

    fn noted(host: HostFacts) -> Vec<Caveat> {
        let mut caveats = Vec::new();
        describe(End::Near, &host, &mut caveats);
        caveats
    }

    #[test]
    fn counters_that_matter_become_caveats_and_the_rest_do_not() {
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
            ..Default::default()
        };
        assert_eq!(noted(host(quiet.clone())), Vec::new());
        assert_eq!(noted(HostFacts { cpu_steal: Some(0.02), ..host(quiet.clone()) }), Vec::new());
        let mut loud = quiet;
        loud.softnet_dropped = Some(3);
        loud.throttled_periods = Some(7);
        loud.throttled_ns = Some(70_000_000);
        let counted = loud.device.as_mut().unwrap();
        (counted.rx_dropped, counted.rx_missed, counted.rx_cross_bytes) = (200, 9, Some(500_000_000));
        let (end, device) = (End::Near, || Some("eth0".to_owned()));
        assert_eq!(
            noted(HostFacts { cpu_steal: Some(0.312), ..host(loud) }),
            [
                Caveat::HypervisorSteal { end, share: 0.31 },
                Caveat::DeviceDrops {
                    end,
                    device: device(),
                    rx_dropped: 200,
                    rx_missed: 9,
                    rx_fifo: 0,
                    tx_dropped: 0,
                    tx_fifo: 0,
                },
                Caveat::CrossTraffic {
                    end,
                    device: device(),
                    task: Task::Receiving,
                    rate_bps: 4e8,
                    share: 0.5,
                },
                Caveat::BacklogDrops { end, packets: 3 },
                Caveat::CpuQuota { end, periods: 7, throttled_ns: Some(70_000_000) },
            ]
        );
    }

    #[test]
    fn each_end_has_its_own_view_of_what_was_moved() {
        let mut moved = Moved::default();
        moved.add(Direction::To, 1_000_000, 10, Some(1448));
        moved.add(Direction::From, 5_000, 0, Some(1400));
        assert_eq!(
            moved.near(),
            OwnTraffic { sent_bytes: 1_014_480, received_bytes: 5_000, packet_bytes: 1400 }
        );
        assert_eq!((moved.far().sent_bytes, moved.far().received_bytes), (5_000, 1_014_480));
    }
}
