//! Sizes of full segments and datagrams of a lab flow, before a kernel has reported them.

use crate::case::route::Route;
use crate::case::{CaseFlow, CaseSpec, Family, HostSpec};
use crate::path::overhead::{Transport, header_bytes as of_transport};
use crate::tuning::setting::Setting;

/// Returns the IP and TCP or UDP header bytes of a full segment between hosts with these sysctls.
pub fn header_bytes(case: &CaseSpec, flow: &CaseFlow) -> u64 {
    let transport = match flow.spec.udp {
        Some(_) => Transport::Udp,
        None if both_use(case, flow, Setting::TcpTimestamps) => Transport::TcpTimestamps,
        None => Transport::Tcp,
    };
    of_transport(case.family, transport)
}

/// Returns the bytes of an IP header without options.
pub fn ip_header_bytes(family: Family) -> u64 {
    of_transport(family, Transport::Udp) - Transport::Udp.header_bytes()
}

/// Whether both hosts of a flow enable a TCP extension; on by default, as in Linux.
pub fn both_use(case: &CaseSpec, flow: &CaseFlow, extension: Setting) -> bool {
    let off = |h: &HostSpec| h.switches_off(extension);
    !case.hosts.iter().any(|h| (h.name == flow.from || h.name == flow.to) && off(h))
}

/// Returns the payload of this flow's full segment or datagram.
pub fn planned_mss(case: &CaseSpec, flow: &CaseFlow) -> u64 {
    if let Some(bytes) = flow.spec.udp.as_ref().and_then(|udp| udp.datagram_bytes) {
        return u64::from(bytes);
    }
    let mtu = Route::of(case, flow).map_or(1500, |route| u64::from(route.mtu()));
    let headers = header_bytes(case, flow);
    let options = headers - of_transport(case.family, Transport::Tcp);
    let by_path = mtu.saturating_sub(headers);
    flow.spec.mss.map_or(by_path, |mss| by_path.min(u64::from(mss).saturating_sub(options))).max(1)
}
