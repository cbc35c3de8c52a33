//! Detects changes to a connection's handshake in transit, from what both ends offered and have: a removed option, a
//! reduced MSS.

use bdp_model::finding::caveat::Caveat;
use bdp_model::flow::FlowSpec;
use bdp_model::measurement::{DirectionResult, HostFacts, PathFacts};
use bdp_model::tuning::setting::Setting;

/// Headers of IP and TCP without options, by the length of the addresses, and the timestamps that each segment of most connections has.
const HEADERS: (u64, u64) = (40, 60);
const TIMESTAMPS: u64 = 12;
/// Largest MSS reduction explained by TCP options or a tunnel that the kernel knows.
const OPTIONS: u64 = 24;
/// A kernel makes no segment longer than half of a receive window (`tcp_bound_to_half_wnd` of Linux).
const HALF_OF_WINDOW: u64 = 2;

/// Returns what was changed in transit. Nothing is known for datagrams, and for ends that do not report what they
/// offer.
pub fn changed(
    spec: &FlowSpec,
    [near, far]: [&HostFacts; 2],
    path: &PathFacts,
    directions: &[DirectionResult],
) -> Vec<Caveat> {
    if spec.udp.is_some() {
        return Vec::new();
    }
    let offer = |setting: Setting| {
        [near, far].iter().all(|host| host.sysctls.get(setting.name).is_some_and(|value| value.trim() != "0"))
    };
    let lacks = |of: fn(&DirectionResult) -> Option<bool>| directions.iter().any(|d| of(d) == Some(false));
    let sack = offer(Setting::TcpSack) && lacks(|d| d.connection?.sack);
    let timestamps = offer(Setting::TcpTimestamps) && lacks(|d| d.connection?.timestamps);
    let stripped = [(sack, "SACK"), (timestamps, "timestamps")];
    let mut all: Vec<Caveat> = stripped
        .into_iter()
        .filter(|(is_stripped, _)| *is_stripped)
        .map(|(_, option)| Caveat::OptionStripped { option: option.to_owned() })
        .collect();
    all.extend(clamped(spec, [near, far], path, directions));
    all
}

fn clamped(
    spec: &FlowSpec,
    hosts: [&HostFacts; 2],
    path: &PathFacts,
    directions: &[DirectionResult],
) -> Option<Caveat> {
    let of_hosts = hosts.map(|host| host.device.as_ref()?.mtu);
    // Each end announces what its own device carries, and the kernel uses the path's.
    let mtu = u64::from(of_hosts[0]?.min(of_hosts[1]?));
    let mtu = [path.mtu_to, path.mtu_from].into_iter().flatten().map(u64::from).fold(mtu, u64::min);
    let headers = if hosts.iter().any(|host| host.address.contains(':')) { HEADERS.1 } else { HEADERS.0 };
    let fits_bytes = mtu.checked_sub(headers + TIMESTAMPS)?;
    let is_asked = spec.mss.is_some() || spec.window.is_some() || spec.socket_buffer.is_some();
    let mss_bytes = directions.iter().filter_map(|d| d.mss_bytes).min()?;
    let window = directions.iter().flat_map(|d| &d.sent).filter_map(|s| s.snd_wnd_bytes).max();
    let is_small = window.is_none_or(|window| window < HALF_OF_WINDOW * fits_bytes);
    (!is_asked && !is_small && mss_bytes + OPTIONS < fits_bytes && path.mtu_black_hole.is_none())
        .then(|| Caveat::MssClamped { mss_bytes, fits_bytes, mtu: u32::try_from(mtu).unwrap_or(u32::MAX) })
}

#[cfg(test)]
mod tests {
    use bdp_model::flow::connection::Connection;
    use bdp_model::measurement::{DeviceFacts, Measurement};

    use super::*;

    fn measured(change: impl FnOnce(&mut Measurement)) -> Vec<Caveat> {
        let mut m: Measurement =
            serde_json::from_str(include_str!("../../bdp-store/tests/it/measurement.json")).unwrap();
        for host in [&mut m.near, &mut m.far] {
            host.device = Some(DeviceFacts { mtu: Some(1500), ..Default::default() });
            for setting in ["net.ipv4.tcp_sack", "net.ipv4.tcp_timestamps"] {
                host.sysctls.insert(setting.to_owned(), "1".to_owned());
            }
        }
        (m.path.mtu_to, m.path.mtu_from, m.path.mtu_black_hole) = (Some(1500), None, None);
        m.request.spec = FlowSpec::default();
        for d in &mut m.directions {
            d.mss_bytes = Some(1448);
            d.connection =
                Some(Connection { sack: Some(true), timestamps: Some(true), ..Default::default() });
        }
        change(&mut m);
        changed(&m.request.spec, [&m.near, &m.far], &m.path, &m.directions)
    }

    #[test]
    fn handshake_that_arrived_as_it_was_sent_is_not_mentioned() {
        assert_eq!(measured(|_| {}), []);
        // Without timestamps a segment holds more, and options make it shorter.
        assert_eq!(measured(|m| m.directions[0].mss_bytes = Some(1460)), []);
        assert_eq!(measured(|m| m.directions[0].mss_bytes = Some(1428)), []);
    }

    #[test]
    fn option_that_both_ends_offer_and_none_has_was_stripped() {
        let without = |m: &mut Measurement| {
            m.directions[0].connection =
                Some(Connection { sack: Some(false), timestamps: Some(true), ..Default::default() });
        };
        assert_eq!(measured(without), [Caveat::OptionStripped { option: "SACK".to_owned() }]);
        let off = |m: &mut Measurement| {
            without(m);
            m.far.sysctls.insert("net.ipv4.tcp_sack".to_owned(), "0".to_owned());
        };
        assert_eq!(measured(off), [], "an end does not offer it");
        let silent = |m: &mut Measurement| {
            without(m);
            m.far.sysctls.clear();
        };
        assert_eq!(measured(silent), [], "an end does not say");
    }

    #[test]
    fn segments_far_shorter_than_all_mtus_were_clamped() {
        let short = |m: &mut Measurement| m.directions[0].mss_bytes = Some(1188);
        let clamped = Caveat::MssClamped { mss_bytes: 1188, fits_bytes: 1448, mtu: 1500 };
        assert_eq!(measured(short), [clamped]);
        let known = |m: &mut Measurement| {
            short(m);
            m.path.mtu_to = Some(1240);
        };
        assert_eq!(measured(known), [], "the kernel knows a path of that MTU");
        let asked = |m: &mut Measurement| {
            short(m);
            m.request.spec.mss = Some(1200);
        };
        assert_eq!(measured(asked), [], "it was asked for");
        let small = |m: &mut Measurement| {
            short(m);
            m.directions.iter_mut().flat_map(|d| &mut d.sent).for_each(|s| s.snd_wnd_bytes = Some(2376));
        };
        assert_eq!(measured(small), [], "half of the window holds no more");
    }
}
