//! How a flow's window is set: by the receiver's buffer, by a clamp on the path, or not at all.

use bdp_model::case::network::Hop;
use bdp_model::case::route::Route;
use bdp_model::case::segment::planned_mss;
use bdp_model::case::{CaseFlow, CaseSpec, LinkSpec, WindowMethod};
use bdp_model::link::{DirectionConfig, WindowScaleRewrite};
use bdp_model::tuning::setting::Setting;

/// How one flow's window is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Means {
    /// By autotuning.
    Autotuned,
    /// By the receiver's buffer, calibrated so that the sender sees `target_bytes`.
    Receiver { target_bytes: u64 },
    /// By the link, which clamps the window field of the receiver's segments.
    Path { clamp_bytes: u16 },
}

/// Chooses how a flow's window is set.
pub(crate) fn choose(case: &CaseSpec, flow: &CaseFlow) -> Result<Means, String> {
    let Some(window) = flow.spec.window else { return Ok(Means::Autotuned) };
    let (bytes, mss) = (window.as_bytes(), planned_mss(case, flow));
    let by_path = match flow.window_method {
        WindowMethod::Path => true,
        WindowMethod::Receiver => false,
        WindowMethod::Auto => bytes < mss,
    };
    if by_path {
        return u16::try_from(bytes).map(|clamp_bytes| Means::Path { clamp_bytes }).map_err(|_| {
            format!("a window clamp on the path is limited to 65535 bytes, {bytes} requested; use window_method = \"receiver\"")
        });
    }
    // Whole segments: the remainder carries nothing.
    Ok(Means::Receiver { target_bytes: if bytes < mss { bytes } else { bytes / mss * mss } })
}

/// Refuses flows whose windows cannot be set together: a buffer applies to everything that its host receives.
pub(crate) fn check_together(case: &CaseSpec, means: &[Means]) -> Result<(), String> {
    for (flow, means) in case.flows.iter().zip(means) {
        let own = case
            .hosts
            .iter()
            .any(|h| h.name == flow.to && h.all_sysctls().contains_key(Setting::TcpRmem.name));
        if own && matches!(means, Means::Receiver { .. }) {
            return Err(format!(
                "the window of host '{}' is set by {}, which the scenario also sets \
                 (sysctls or receive_buffer); remove one of them",
                flow.to,
                Setting::TcpRmem
            ));
        }
    }
    let to_set = |(_, means): &(&CaseFlow, &Means)| matches!(means, Means::Receiver { .. });
    let flows = || case.flows.iter().zip(means);
    for (set, _) in flows().filter(to_set) {
        if flows().any(|pair| pair.0.to == set.to && pair.0.spec.udp.is_none() && !to_set(&pair)) {
            return Err(format!(
                "host '{}' receives one flow with a window and one without, but its kernel tunes buffers \
                 for both or neither; set a window for both, or use another host for one",
                set.to
            ));
        }
    }
    Ok(())
}

/// Configures the clamp on the links: scaling is stripped from the SYN that reaches the receiver and from its answer,
/// so that the field is bytes, and the field is bounded in what the receiver sends, both on its own link.
fn clamp(links: &mut [LinkSpec], last: Hop, first: Hop, clamp_bytes: u16) {
    direction(links, last).rewrite.window_scale = Some(WindowScaleRewrite::Strip);
    let towards_sender = direction(links, first);
    towards_sender.rewrite.window_scale = Some(WindowScaleRewrite::Strip);
    towards_sender.rewrite.window_field_max = Some(clamp_bytes);
}

fn direction(links: &mut [LinkSpec], hop: Hop) -> &mut DirectionConfig {
    let config = &mut links[hop.link].config;
    if hop.forward { &mut config.forward } else { &mut config.reverse }
}

/// Applies every clamp of the case to its links.
pub(crate) fn clamp_links(case: &CaseSpec, means: &[Means]) -> Vec<LinkSpec> {
    let mut links = case.links.clone();
    for (flow, means) in case.flows.iter().zip(means) {
        if let (Means::Path { clamp_bytes }, Some(route)) = (means, Route::of(case, flow))
            && let (Some(&last), Some(&first)) = (route.there.last(), route.back.first())
        {
            clamp(&mut links, last, first, *clamp_bytes);
        }
    }
    links
}
