//! Chooses the guest kernel that is nearest to those of the measured hosts.

use bdp_lab::kernel;
use bdp_model::facts::Facts;
use bdp_model::measurement::Measurement;
use bdp_model::measurement::ends::End;
use bdp_model::tuning::setting::Release;
use bdp_model::twin::{Twin, Unseen};

/// Sets the available kernel whose release is nearest to the sender's, with a note for each host whose kernel
/// differs.
pub fn with_nearest(mut twin: Twin, measurement: &Measurement) -> Twin {
    let sender = twin.host(twin.direction.sender()).kernel.clone();
    let built = kernel::list().into_iter().filter_map(|(name, found)| Some((name, found.ok()?.version)));
    let nearest = built.min_by_key(|(_, version)| distance(&sender, version));
    if let Some((name, version)) = nearest {
        for end in [End::Near, End::Far] {
            let measured = twin.host(end).kernel.clone();
            if Release::of_kernel(&measured) != Release::of_kernel(&version) {
                twin.unseen.push(Unseen::Kernel { end, measured, twin: version.clone() });
            }
        }
        twin.stack = Some(name);
        let receiver = twin.direction.receiver();
        let factor =
            Facts::measured(measurement, twin.direction).and_then(|facts| window_factor(&facts, &version));
        twin.host_mut(receiver).window_factor = factor;
    }
    twin
}

/// Linux up to 6.5 gives half of a receive buffer to the window (`tcp_adv_win_scale`), later ones the share that data
/// take of it; in the lab, where each segment is a packet, it is this share (measured on 6.18).
const SINCE_SHARES: Release = Release::new(6, 6);
const SHARE_BEFORE: f64 = 0.5;
const SHARE_SINCE: f64 = 0.62;
/// A smaller difference of two shares is that of one sample.
const ALIKE: f64 = 0.05;

/// Returns the share of the receive buffer that was window in the measurement / that on the twin's kernel; `None` if
/// they are about equal or the first is unknown.
fn window_factor(facts: &Facts, twin: &str) -> Option<f64> {
    if facts.asked.window.is_some() || facts.asked.socket_buffer.is_some() {
        return None;
    }
    let buffer = facts.window.socket_buffer_bytes.filter(|&bytes| bytes > 0)? as f64;
    let measured = facts.window.on_the_wire_bytes? as f64 / buffer;
    let here = if Release::of_kernel(twin)? < SINCE_SHARES { SHARE_BEFORE } else { SHARE_SINCE };
    // A window that a program's slow reading made small says nothing of the kernel.
    let factor = (measured / here).clamp(0.8, 2.0);
    ((factor - 1.0).abs() > ALIKE).then_some(factor)
}

/// How far two releases are apart, the major number first.
fn distance(measured: &str, built: &str) -> (u16, u16) {
    let [a, b] = [measured, built].map(|release| Release::of_kernel(release).unwrap_or(Release::new(0, 0)));
    (a.major.abs_diff(b.major), a.minor.abs_diff(b.minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_gives_more_window_is_larger_on_an_older_kernel() {
        let facts = |window: u64| {
            let mut measurement = Measurement::of(&bdp_model::measurement::MeasureRequest::to("ams1"));
            let text = include_str!("../../../bdp-store/tests/it/measurement.json");
            let kept: Measurement = serde_json::from_str(text).unwrap();
            measurement.directions = kept.directions;
            let report = &mut measurement.directions[0].window;
            (report.socket_buffer_bytes, report.on_the_wire_bytes) = (Some(262_144), Some(window));
            Facts::measured(&measurement, measurement.directions[0].direction).unwrap()
        };
        let factor = window_factor(&facts(162_816), "6.1.192").unwrap();
        assert!((factor - 1.242).abs() < 0.001, "{factor}");
        assert_eq!(window_factor(&facts(162_816), "6.12.3"), None);
        assert_eq!(window_factor(&facts(131_072), "6.1.192"), None);
    }

    #[test]
    fn releases_are_compared_by_their_series() {
        assert_eq!(Release::of_kernel("6.1.0-37-amd64"), Some(Release::new(6, 1)));
        assert_eq!(Release::of_kernel(""), None);
        assert!(distance("6.8.0-45-generic", "6.12.3") < distance("6.8.0-45-generic", "6.1.192"));
        assert!(distance("5.15.0", "6.1.192") < distance("5.15.0", "7.2.0"));
    }
}
