//! The most that the two ends' devices can carry, as goodput of TCP or of the datagrams sent.

use bdp_model::case::Family;
use bdp_model::measurement::{Ceiling, DeviceFacts, HostFacts, Measurement};
use bdp_model::path::overhead::{Medium, Transport, header_bytes};
use bdp_model::tuning::setting::Setting;
use bdp_model::units::format_bps;

/// The slowest device with a known speed, minus headers: `rate x MSS / (MSS + headers + framing)`, the
/// model of [`bdp_model::path::overhead`] over Ethernet; for datagrams by their size. `None` if no speed is known, as with loopback and virtual
/// devices, or no segment size.
pub fn ceiling(measurement: &Measurement) -> Option<Ceiling> {
    let (end, device, speed_bps) = slowest(&measurement.near, &measurement.far)?;
    let share = payload_share(measurement)?;
    let by = format!("the {end} NIC, {}, {}", device.name, format_bps(speed_bps as f64));
    Some(Ceiling { goodput_bps: speed_bps as f64 * share, by })
}

fn slowest<'a>(near: &'a HostFacts, far: &'a HostFacts) -> Option<(&'static str, &'a DeviceFacts, u64)> {
    let known = |end, host: &'a HostFacts| {
        let device = host.device.as_ref()?;
        Some((end, device, device.speed_bps.filter(|&bps| bps > 0)?))
    };
    // The near device if both are equal: the reader can look at it.
    [known("near", near), known("far", far)].into_iter().flatten().min_by_key(|&(_, _, bps)| bps)
}

/// Payload of a full segment / its bytes on the wire.
fn payload_share(measurement: &Measurement) -> Option<f64> {
    let family = family(&measurement.near.address);
    let mtu = smallest_mtu(measurement);
    if measurement.request.spec.udp.is_some() {
        let datagram = measurement.directions.iter().find_map(|d| d.udp.as_ref())?.datagram_bytes;
        return datagram_share(datagram, family, mtu);
    }
    let bare = header_bytes(family, Transport::Tcp);
    let with_timestamps = header_bytes(family, Transport::TcpTimestamps);
    let headers = match (mtu, measurement.path.mss_bytes) {
        // A segment that leaves no room for timestamps has none.
        (Some(mtu), Some(mss)) if mss + with_timestamps > mtu => bare,
        _ if timestamps_off(&measurement.near) || timestamps_off(&measurement.far) => bare,
        _ => with_timestamps,
    };
    let mss = measurement.path.mss_bytes.or_else(|| mtu?.checked_sub(headers)).filter(|&mss| mss > 0)?;
    Some(mss as f64 / (mss + headers + Medium::Ethernet.overhead_bytes()) as f64)
}

/// Payload of a datagram / its bytes on the wire, in fragments if it is longer than the MTU (RFC 791: their payload
/// is a multiple of 8).
fn datagram_share(payload: u64, family: Family, mtu: Option<u64>) -> Option<f64> {
    let headers = header_bytes(family, Transport::Udp);
    let ip = headers - Transport::Udp.header_bytes();
    let room = mtu.and_then(|mtu| mtu.checked_sub(ip)).map_or(u64::MAX, |room| room / 8 * 8);
    let whole = payload + Transport::Udp.header_bytes();
    let packets = if room >= whole { 1 } else { whole.div_ceil(room.max(8)) };
    let wire = whole + packets * (ip + Medium::Ethernet.overhead_bytes());
    (payload > 0).then(|| payload as f64 / wire as f64)
}

/// The smallest known MTU of the path or, failing that, of the devices.
fn smallest_mtu(measurement: &Measurement) -> Option<u64> {
    let path = [measurement.path.mtu_to, measurement.path.mtu_from].into_iter().flatten().min();
    let devices = || {
        let mtu = |host: &HostFacts| host.device.as_ref().and_then(|d| d.mtu);
        [mtu(&measurement.near), mtu(&measurement.far)].into_iter().flatten().min()
    };
    path.or_else(devices).map(u64::from)
}

fn timestamps_off(host: &HostFacts) -> bool {
    host.sysctls.get(Setting::TcpTimestamps.name).is_some_and(|v| v.trim() == "0")
}

/// The family by the form of an address: only IPv6 addresses have colons, unless they hold an IPv4 one.
fn family(address: &str) -> Family {
    let mapped = address.to_ascii_lowercase().starts_with("::ffff:") && address.contains('.');
    if address.contains(':') && !mapped { Family::Ipv6 } else { Family::Ipv4 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_leave_what_their_headers_take() {
        // 1472 B fill an MTU of 1500, 1538 on the wire: 957.09 Mbit/s of 1 Gbit/s.
        let whole = datagram_share(1472, Family::Ipv4, Some(1500)).unwrap();
        assert!((whole * 1e9 - 957.09e6).abs() < 1e4, "{whole}");
        // One byte more is a second packet.
        let two = datagram_share(1473, Family::Ipv4, Some(1500)).unwrap();
        assert!((two - 1473.0 / (1481.0 + 2.0 * 58.0)).abs() < 1e-9, "{two}");
        assert_eq!(datagram_share(0, Family::Ipv6, None), None);
    }
}
