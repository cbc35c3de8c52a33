//! Changes to a twin, to see their effect.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::measurement::ends::{Direction, End};
use crate::tuning::setting::Setting;
use crate::tuning::{Change, RouteAttribute, Target};

use super::path::TwinHost;

/// Changes to a twin; the twin itself if nothing is set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TwinVariant {
    /// Short name, unique among variants run together: letters, digits and `-`.
    pub name: String,
    /// Sysctls of the near host that replace the measured ones.
    pub near_sysctls: BTreeMap<String, String>,
    /// Sysctls of the far host that replace the measured ones.
    pub far_sysctls: BTreeMap<String, String>,
    /// Congestion control of the sender.
    pub congestion: Option<String>,
    /// Initial congestion window of the sender, segments.
    pub initial_window: Option<u32>,
    /// Rate limit of each stream at its sender, bit/s.
    pub writer_bps: Option<u64>,
    /// Receive window on the wire, bytes.
    pub window_bytes: Option<u64>,
    /// Parallel connections.
    pub streams: Option<u32>,
    /// A competing flow.
    pub competitor: Option<Competitor>,
}

/// A long competing flow through the same bottleneck in the same direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Competitor {
    /// Its congestion control.
    pub congestion: String,
    /// When it starts, nanoseconds since the flow's start.
    pub start_ns: u64,
}

impl TwinVariant {
    /// Creates an unchanged variant with this name.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Adds a change of settings for data of a direction; returns `false` if a twin cannot show its effect, or it is at the other end.
    pub fn with_change(&mut self, change: &Change, direction: Direction) -> bool {
        let sends = direction.sender() == change.end;
        match &change.target {
            target if target.setting() == Some(Setting::TcpCongestionControl) => {
                if sends {
                    self.congestion = Some(change.to.clone());
                }
                sends
            }
            Target::Sysctl { name } if is_settable(name) => {
                let sysctls = match change.end {
                    End::Near => &mut self.near_sysctls,
                    End::Far => &mut self.far_sysctls,
                };
                sysctls.insert(name.clone(), change.to.clone());
                true
            }
            Target::Route { attribute: RouteAttribute::Congctl, .. } if sends => {
                self.congestion = Some(change.to.clone());
                true
            }
            Target::Route { attribute: RouteAttribute::Initcwnd, .. } if sends => {
                self.initial_window = change.to.parse().ok();
                self.initial_window.is_some()
            }
            Target::Qdisc { .. } if sends => {
                self.writer_bps = max_rate(&change.to);
                self.writer_bps.is_some()
            }
            _ => false,
        }
    }
}

/// Returns the per-flow rate in `fq maxrate 95000000bit`.
fn max_rate(qdisc: &str) -> Option<u64> {
    let mut words = qdisc.split_whitespace().skip_while(|word| *word != "maxrate").skip(1);
    words.next()?.strip_suffix("bit")?.parse().ok()
}

/// Whether a lab host can have its own value of a sysctl.
fn is_settable(name: &str) -> bool {
    Setting::named(name).is_some_and(|setting| setting.is_twinned)
}

impl TwinHost {
    /// Returns those of a host's sysctls that a lab host can be given.
    pub fn settable(sysctls: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let tidy = |value: &String| value.split_whitespace().collect::<Vec<_>>().join(" ");
        let kept = sysctls.iter().filter(|(name, _)| is_settable(name));
        kept.map(|(name, value)| (name.clone(), tidy(value))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuning::Reason;

    #[test]
    fn changes_of_a_plan_become_a_variant_where_the_lab_can_show_them() {
        let change = |end, target, to: &str| Change {
            end,
            target,
            from: None,
            to: to.to_owned(),
            reason: Reason::Off,
            gain: None,
        };
        let route = |attribute| Target::Route { to: "192.0.2.7".parse().unwrap(), attribute };
        let mut variant = TwinVariant::named("plan");
        let mut add = |change: &Change| variant.with_change(change, Direction::To);
        assert!(add(&change(End::Far, Target::sysctl("net.ipv4.tcp_rmem"), "4096 131072 33554432")));
        assert!(add(&change(End::Near, route(RouteAttribute::Congctl), "bbr")));
        assert!(add(&change(End::Near, route(RouteAttribute::Initcwnd), "40")));
        assert!(add(&change(End::Near, Target::Qdisc { device: "eth0".into() }, "fq maxrate 95000000bit")));
        // The receiver's congestion control carries no data here, and a scenario has no such setting.
        assert!(!add(&change(End::Far, route(RouteAttribute::Congctl), "bbr")));
        assert!(!add(&change(End::Near, route(RouteAttribute::RtoMin), "50ms")));
        assert!(!add(&change(End::Near, Target::sysctl("net.core.netdev_max_backlog"), "9")));
        assert_eq!(variant.far_sysctls["net.ipv4.tcp_rmem"], "4096 131072 33554432");
        assert_eq!(variant.congestion.as_deref(), Some("bbr"));
        assert_eq!((variant.initial_window, variant.writer_bps), (Some(40), Some(95_000_000)));
    }
}
