//! How a flow's window is brought about: by the receiver's buffer, by a clamp on the path, or not at all.

use bdp_model::link::WindowScaleRewrite;
use bdp_model::scenario::{CaseSpec, Family, FlowSpec, LinkSpec, WindowMethod};

/// What is to be done for one flow's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Means {
    /// Autotuning is left alone.
    Autotuned,
    /// The receiver's buffer, calibrated so that the sender sees `target_bytes`.
    Receiver { target_bytes: u64 },
    /// The link bounds the window field of what the receiver sends.
    Path { clamp_bytes: u16 },
}

/// Bytes of IP and TCP headers of a full segment on a host with these sysctls.
pub(crate) fn header_bytes(case: &CaseSpec) -> u64 {
    let timestamps_off =
        case.hosts.iter().any(|h| h.sysctls.get("net.ipv4.tcp_timestamps").is_some_and(|v| v == "0"));
    let ip = if case.family == Family::Ipv4 { 20 } else { 40 };
    ip + 20 + if timestamps_off { 0 } else { 12 }
}

/// Payload of a full segment of this flow, before the kernel has said.
pub(crate) fn planned_mss(case: &CaseSpec, flow: &FlowSpec) -> u64 {
    let mtu = link_of(case, flow).map_or(1500, |l| u64::from(l.config.mtu));
    let headers = header_bytes(case);
    let options = headers - if case.family == Family::Ipv4 { 40 } else { 60 };
    let by_path = mtu.saturating_sub(headers);
    flow.mss.map_or(by_path, |mss| by_path.min(u64::from(mss).saturating_sub(options))).max(1)
}

/// The link between the flow's hosts.
pub(crate) fn link_of<'a>(case: &'a CaseSpec, flow: &FlowSpec) -> Option<&'a LinkSpec> {
    case.links.iter().find(|link| joins(link, flow))
}

fn joins(link: &LinkSpec, flow: &FlowSpec) -> bool {
    link.between == [flow.from.clone(), flow.to.clone()]
        || link.between == [flow.to.clone(), flow.from.clone()]
}

/// Chooses the means for a flow.
pub(crate) fn choose(case: &CaseSpec, flow: &FlowSpec) -> Result<Means, String> {
    let Some(window) = flow.window else { return Ok(Means::Autotuned) };
    let (bytes, mss) = (window.as_bytes(), planned_mss(case, flow));
    let by_path = match flow.window_method {
        WindowMethod::Path => true,
        WindowMethod::Receiver => false,
        WindowMethod::Auto => bytes < mss,
    };
    if by_path {
        return u16::try_from(bytes).map(|clamp_bytes| Means::Path { clamp_bytes }).map_err(|_| {
            format!("a clamp on the path reaches 65535 bytes at most, {bytes} were asked for; use window_method = \"receiver\"")
        });
    }
    // Whole segments: what is left over carries nothing.
    Ok(Means::Receiver { target_bytes: if bytes < mss { bytes } else { bytes / mss * mss } })
}

/// Refuses flows whose windows can't be had side by side: a buffer that is set is set for all that its host receives.
pub(crate) fn check_together(case: &CaseSpec, means: &[Means]) -> Result<(), String> {
    for (flow, means) in case.flows.iter().zip(means) {
        let own = case.hosts.iter().any(|h| h.name == flow.to && h.sysctls.contains_key("net.ipv4.tcp_rmem"));
        if own && matches!(means, Means::Receiver { .. }) {
            return Err(format!(
                "a window is asked for of host '{}', which is set by net.ipv4.tcp_rmem, and the scenario sets that too; \
                 leave out one of them",
                flow.to
            ));
        }
    }
    let to_set = |(_, means): &(&FlowSpec, &Means)| matches!(means, Means::Receiver { .. });
    let flows = || case.flows.iter().zip(means);
    for (set, _) in flows().filter(to_set) {
        if flows().any(|pair| pair.0.to == set.to && !to_set(&pair)) {
            return Err(format!(
                "host '{}' receives a flow with a window and one without, and its kernel sizes buffers for both or \
                 for neither; give both a window, or another host to one of them",
                set.to
            ));
        }
    }
    Ok(())
}

/// Puts the clamp into the link's configuration: scaling stripped both ways, so that the field is bytes, and the
/// field bounded in what the receiver sends.
pub(crate) fn clamp(link: &mut LinkSpec, flow: &FlowSpec, clamp_bytes: u16) {
    link.config.forward.rewrite.window_scale = Some(WindowScaleRewrite::Strip);
    link.config.reverse.rewrite.window_scale = Some(WindowScaleRewrite::Strip);
    let towards_sender =
        if link.between[0] == flow.from { &mut link.config.reverse } else { &mut link.config.forward };
    towards_sender.rewrite.window_field_max = Some(clamp_bytes);
}

/// Applies every clamp of the case to its links.
pub(crate) fn clamp_links(case: &CaseSpec, means: &[Means]) -> Vec<LinkSpec> {
    let mut links = case.links.clone();
    for (flow, means) in case.flows.iter().zip(means) {
        if let (Means::Path { clamp_bytes }, Some(link)) = (means, links.iter_mut().find(|l| joins(l, flow)))
        {
            clamp(link, flow, *clamp_bytes);
        }
    }
    links
}
