//! Care for others on the path: datagrams don't slow down where a link is full, as TCP does, so that a rate beyond what the
//! path is known to carry has to be asked for by an explicit word (RFC 8085, section 3.1).

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use bdp_flow::session::dial;
use bdp_model::measurement::{Direction, MeasureRequest, Measurement};
use bdp_model::units::format_bps;
use bdp_store::{Page, RunKind, Store};
use bdp_sys::device;

use crate::{Result, RunError};

/// What is sent over a path of which nothing is known, bit/s: what a call with pictures takes.
const HARMLESS_BPS: f64 = 1e6;
/// How many stored runs to a host are looked at, the newest.
const RUNS: usize = 20;
/// Runs that are listed at once.
const PAGE: usize = 100;

/// Refuses datagrams at a rate beyond what is known of the path, on any that leaves this machine.
pub(crate) fn check(request: &MeasureRequest, store: Option<&dyn Store>, cancel: &AtomicBool) -> Result<()> {
    let Some(udp) = &request.spec.udp else { return Ok(()) };
    // What has no address is for the session to tell.
    let Ok(addresses) = dial::resolve(request, cancel) else { return Ok(()) };
    if addresses.iter().all(|address| is_here(address.ip())) {
        return Ok(());
    }
    let host = &request.host;
    if udp.search.is_some() {
        return Err(RunError::Request(format!(
            "-b auto sends {host} more than the path carries, and pushes aside what others send there; give --flood if that \
             is yours to do"
        )));
    }
    let streams = f64::from(request.spec.streams);
    let (asked, word) = match udp.rate_bps {
        Some(each) => {
            let total = each as f64 * streams;
            let word = if request.spec.streams > 1 {
                format!("-b {} x {} streams", format_bps(each as f64), request.spec.streams)
            } else {
                format!("-b {}", format_bps(total))
            };
            (total, word)
        }
        None => (f64::INFINITY, "-b 0".to_owned()),
    };
    if asked <= HARMLESS_BPS {
        return Ok(());
    }
    let carried = carried(store, host, &addresses)?;
    let speed = addresses.first().copied().and_then(speed_towards);
    let ways =
        if request.bidirectional { &[Direction::To, Direction::From][..] } else { &request.directions };
    for &way in ways {
        let known = carried.get(way.name()).copied();
        let bound = known.map(|bps| speed.map_or(bps, |speed| bps.min(speed as f64)));
        if bound.is_some_and(|bps| asked <= bps) {
            continue;
        }
        let towards = if way == Direction::To { "to" } else { "from" };
        return Err(RunError::Request(match (known, speed) {
            (Some(bps), Some(speed)) if speed as f64 <= bps => format!(
                "{word} {towards} {host}: the device that leads there has {}; ask for less, or give --flood",
                format_bps(speed as f64)
            ),
            (Some(bps), _) => format!(
                "{word} {towards} {host}: {} is the most that stored measurements saw the path carry, and datagrams yield to \
                 nobody; ask for less, or give --flood",
                format_bps(rounded_down(bps))
            ),
            (None, _) => format!(
                "{word} {towards} {host}: what the path carries is not known, and datagrams yield to nobody; measure it \
                 without -u first, ask for {} at most, or give --flood",
                format_bps(HARMLESS_BPS)
            ),
        }));
    }
    Ok(())
}

/// Whether nobody else's path leads there: a loopback address, or one of this machine's own.
fn is_here(address: IpAddr) -> bool {
    let address = address.to_canonical();
    address.is_loopback() || device::with_address(address).is_ok_and(|device| device.is_some())
}

/// Speed of the device that leads there; nothing where its driver does not tell.
fn speed_towards(address: SocketAddr) -> Option<u64> {
    let any: IpAddr = if address.is_ipv4() { [0, 0, 0, 0].into() } else { [0_u16; 8].into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    // Sends nothing: the kernel looks its route up.
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

/// To three digits, none of which is more than there is.
fn rounded_down(bps: f64) -> f64 {
    let digit = 10f64.powf((bps.max(1.0).log10().floor() - 2.0).max(0.0));
    (bps / digit).floor() * digit
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn a_rate_is_never_rounded_beyond_what_was_seen() {
        assert_eq!(rounded_down(941_478_123.0), 941e6);
        assert_eq!(rounded_down(999.9), 999.0);
        assert_eq!(rounded_down(0.2), 0.0);
    }
}
