//! Protects other traffic on the path: unlike TCP, datagrams do not slow down on a full link, so a rate above the
//! path's measured capacity is checked in its first second (RFC 8085, section 3.1).

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use bdp_flow::session::dial;
use bdp_model::measurement::{Direction, MeasureRequest, Measurement};
use bdp_store::{Page, RunKind, Store};
use bdp_sys::device;

use crate::Result;

/// Send rate on an unknown path, bit/s: that of a video call.
const HARMLESS_BPS: f64 = 1e6;
/// How many stored runs to a host are looked at, the newest.
const RUNS: usize = 20;
/// Runs that are listed at once.
const PAGE: usize = 100;

/// Whether the first second of datagrams must be checked: if this machine sends them at a rate above the path's known
/// capacity.
pub(crate) fn is_needed(
    request: &MeasureRequest,
    store: Option<&dyn Store>,
    cancel: &AtomicBool,
) -> Result<bool> {
    // A search watches each of its trials.
    let Some(udp) = request.spec.udp.as_ref().filter(|udp| udp.search.is_none()) else { return Ok(false) };
    // The session reports a missing address.
    let Ok(addresses) = dial::resolve(request, cancel) else { return Ok(false) };
    if addresses.iter().all(|address| is_here(address.ip())) {
        return Ok(false);
    }
    let streams = f64::from(request.spec.streams);
    let asked = udp.rate_bps.map_or(f64::INFINITY, |each| each as f64 * streams);
    if asked <= HARMLESS_BPS {
        return Ok(false);
    }
    let carried = carried(store, &request.host, &addresses)?;
    let speed = addresses.first().copied().and_then(speed_towards).map(|speed| speed as f64);
    let ways =
        if request.bidirectional { &[Direction::To, Direction::From][..] } else { &request.directions };
    let is_known = |way: &Direction| {
        let known = carried.get(way.name()).copied();
        known.is_some_and(|bps| asked <= speed.map_or(bps, |speed| bps.min(speed)))
    };
    Ok(!ways.iter().all(is_known))
}

/// Whether the address is reached without a shared path: a loopback address, or one of this machine's own.
fn is_here(address: IpAddr) -> bool {
    let address = address.to_canonical();
    address.is_loopback() || device::with_address(address).is_ok_and(|device| device.is_some())
}

/// Returns the speed of the device on the route; none if its driver does not report it.
fn speed_towards(address: SocketAddr) -> Option<u64> {
    let any: IpAddr = if address.is_ipv4() { [0, 0, 0, 0].into() } else { [0_u16; 8].into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    // Sends nothing: the kernel looks up its route.
    socket.connect(address).ok()?;
    let device = device::with_address(socket.local_addr().ok()?.ip().to_canonical()).ok()??;
    device::speed_bps(&device)
}

/// The most that each direction of stored measurements to this host carried, bit/s, by its name.
fn carried(
    store: Option<&dyn Store>,
    host: &str,
    addresses: &[SocketAddr],
) -> Result<BTreeMap<&'static str, f64>> {
    let is_it =
        |name: &str| name == host || addresses.iter().any(|a| a.ip().to_canonical().to_string() == name);
    let mut most = BTreeMap::new();
    let Some(store) = store else { return Ok(most) };
    let (mut page, mut looked_at) = (Page::first(PAGE), 0);
    loop {
        let runs = store.runs(&page)?;
        for run in runs.iter().filter(|run| run.kind != RunKind::Lab && is_it(&run.scenario)) {
            // A run that can't be read any more says nothing.
            let _ = store.each_measurement(&run.id, &mut |kept| {
                add(&mut most, &kept.measurement);
                ControlFlow::Continue(())
            });
            looked_at += 1;
            if looked_at == RUNS {
                return Ok(most);
            }
        }
        let Some(last) = runs.last() else { return Ok(most) };
        page.after = Some(last.id.clone());
    }
}

fn add(most: &mut BTreeMap<&'static str, f64>, measurement: &Measurement) {
    for direction in &measurement.directions {
        let known = most.entry(direction.direction.name()).or_insert(0.0);
        *known = known.max(direction.goodput_bps);
    }
}

#[cfg(test)]
mod tests {
    use bdp_model::flow::udp::{RateSearch, UdpRequest};

    use super::*;

    #[test]
    fn what_is_on_this_machine_is_nobody_elses() {
        for here in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert!(is_here(here.parse().unwrap()), "{here}");
        }
        for elsewhere in ["192.0.2.1", "2001:db8::1", "8.8.8.8"] {
            assert!(!is_here(elsewhere.parse().unwrap()), "{elsewhere}");
        }
    }

    /// Nobody has the address of documentation (RFC 5737), and nothing is stored about it.
    #[test]
    fn rate_that_nobody_knows_the_path_to_carry_is_watched_and_never_refused() {
        let request = |host: &str, rate_bps: Option<u64>, search: Option<RateSearch>| {
            let mut request = MeasureRequest::to(host);
            request.spec.udp =
                Some(UdpRequest { rate_bps, search, datagram_bytes: None, dont_fragment: false });
            request
        };
        let searched = Some(RateSearch { loss_ratio: 0.0, trial: RateSearch::usual_trial() });
        for (host, rate_bps, search, watched) in [
            ("192.0.2.1", Some(50_000_000), None, true),
            ("192.0.2.1", None, None, true),
            ("192.0.2.1", Some(1_000_000), None, false),
            ("192.0.2.1", None, searched, false),
            ("127.0.0.1", Some(50_000_000), None, false),
        ] {
            let asked = request(host, rate_bps, search);
            let needed = is_needed(&asked, None, &AtomicBool::new(false)).unwrap();
            assert_eq!(needed, watched, "{host} {rate_bps:?}");
        }
        let of_tcp = MeasureRequest::to("192.0.2.1");
        assert!(!is_needed(&of_tcp, None, &AtomicBool::new(false)).unwrap());
    }
}
