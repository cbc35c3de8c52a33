//! What of a twin is changed to see what that does.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ends::{Direction, End};
use crate::tuning::{Change, RouteAttribute, Target};

use super::path::TwinHost;

/// A twin with something changed; nothing set: the twin itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TwinVariant {
    /// A short name, unique among those that run together: letters, digits and `-`.
    pub name: String,
    /// Sysctls of the near host in place of those measured.
    pub near_sysctls: BTreeMap<String, String>,
    /// The same of the far host.
    pub far_sysctls: BTreeMap<String, String>,
    /// Congestion control of the sender.
    pub congestion: Option<String>,
    /// Congestion window of a new connection of the sender, segments.
    pub initial_window: Option<u32>,
    /// Rate to which each stream is held by its sender, bit/s.
    pub writer_bps: Option<u64>,
    /// Window on the wire, bytes.
    pub window_bytes: Option<u64>,
    /// Parallel connections.
    pub streams: Option<u32>,
    /// A flow of others beside it.
    pub competitor: Option<Competitor>,
}

/// A long flow of others over the same bottleneck, in the same direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Competitor {
    /// Its congestion control.
    pub congestion: String,
    /// When it starts, nanoseconds since the flow's start.
    pub start_ns: u64,
}

impl TwinVariant {
    /// The twin itself under a name.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Adds a change of settings for data of a direction; `false` where a twin can't show what it does, or it is of the other end.
    pub fn with_change(&mut self, change: &Change, direction: Direction) -> bool {
        let sends = direction.sender() == change.end;
        match &change.target {
            Target::Sysctl { name } if name == "net.ipv4.tcp_congestion_control" => {
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

/// The rate of `fq maxrate 95000000bit`, which is that of each flow.
fn max_rate(qdisc: &str) -> Option<u64> {
    let mut words = qdisc.split_whitespace().skip_while(|word| *word != "maxrate").skip(1);
    words.next()?.strip_suffix("bit")?.parse().ok()
}

/// Sysctls of TCP that belong to a network namespace, so that a host of the lab can have its own, and that do not depend on the machine's memory.
const SETTABLE: [&str; 17] = [
    "net.ipv4.tcp_adv_win_scale",
    "net.ipv4.tcp_app_win",
    "net.ipv4.tcp_base_mss",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_ecn_fallback",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_recovery",
];

/// Whether a host of the lab can be given a sysctl of its own.
fn is_settable(name: &str) -> bool {
    SETTABLE.contains(&name)
}

impl TwinHost {
    /// Of a host's sysctls, those that a host of the lab can be given.
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
        // The receiver's congestion control carries no data here, and no scenario has these.
        assert!(!add(&change(End::Far, route(RouteAttribute::Congctl), "bbr")));
        assert!(!add(&change(End::Near, route(RouteAttribute::RtoMin), "50ms")));
        assert!(!add(&change(End::Near, Target::sysctl("net.core.netdev_max_backlog"), "9")));
        assert_eq!(variant.far_sysctls["net.ipv4.tcp_rmem"], "4096 131072 33554432");
        assert_eq!(variant.congestion.as_deref(), Some("bbr"));
        assert_eq!((variant.initial_window, variant.writer_bps), (Some(40), Some(95_000_000)));
    }
}
