//! One change of one setting of one host.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::reason::{Gain, Reason};
use super::setting::Setting;
use crate::measurement::ends::{Direction, End, Task};
use crate::names;

/// The setting to change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Target {
    /// A sysctl.
    Sysctl {
        /// Its dotted name.
        name: String,
    },
    /// An attribute of the route to a single address.
    Route {
        /// Destination address.
        to: IpAddr,
        /// The attribute.
        attribute: RouteAttribute,
    },
    /// The root queueing discipline of a device, in `tc` syntax: `fq`, `fq maxrate 95000000bit`.
    Qdisc {
        /// The device.
        device: String,
    },
}

/// An attribute of a route, named as in `ip route`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RouteAttribute {
    /// Name of the congestion control for connections over the route.
    Congctl,
    /// Initial congestion window, segments.
    Initcwnd,
    /// Initial receive window advertised by a new connection, segments.
    Initrwnd,
    /// Minimum retransmission timeout in milliseconds, written `50ms`.
    RtoMin,
}

names!(RouteAttribute: Congctl = "congctl", Initcwnd = "initcwnd", Initrwnd = "initrwnd", RtoMin = "rto_min");

impl RouteAttribute {
    /// All attributes.
    pub const ALL: [Self; 4] = [Self::Congctl, Self::Initcwnd, Self::Initrwnd, Self::RtoMin];
}

/// How much of a host a change affects, narrowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Connections to one address.
    Route,
    /// All traffic sent through one device.
    Device,
    /// All connections of the host or of its network namespace.
    Host,
}

names!(Scope: Route = "route", Device = "device", Host = "host");

impl Target {
    /// Creates a sysctl target from its dotted name.
    pub fn sysctl(name: impl Into<String>) -> Self {
        Self::Sysctl { name: name.into() }
    }

    /// Returns the setting of the catalogue, if it is one.
    pub fn setting(&self) -> Option<Setting> {
        match self {
            Self::Sysctl { name } => Setting::named(name),
            Self::Route { .. } | Self::Qdisc { .. } => None,
        }
    }

    /// Returns how much of the host a change of it affects.
    pub const fn scope(&self) -> Scope {
        match self {
            Self::Sysctl { .. } => Scope::Host,
            Self::Route { .. } => Scope::Route,
            Self::Qdisc { .. } => Scope::Device,
        }
    }
}

/// `net.ipv4.tcp_rmem`, `route to 192.0.2.7 congctl`, `qdisc of eth0`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sysctl { name } => f.write_str(name),
            Self::Route { to, attribute } => write!(f, "route to {to} {}", attribute.name()),
            Self::Qdisc { device } => write!(f, "qdisc of {device}"),
        }
    }
}

/// One change of one setting of one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// The end of the measurement that is changed.
    pub end: End,
    /// The setting to change.
    pub target: Target,
    /// The measured value; null if it is unset or unknown.
    pub from: Option<String>,
    /// The new value, in the form in which it is read back.
    pub to: String,
    /// Why it is changed.
    pub reason: Reason,
    /// The gain predicted by the model; null if unknown.
    pub gain: Option<Gain>,
}

impl Change {
    /// Whether the change can affect data in a direction. A receive buffer affects data its host receives; a send buffer, congestion control,
    /// route or device affects data its host sends; a TCP option affects both.
    pub fn concerns(&self, direction: Direction) -> bool {
        let sends = direction.sender() == self.end;
        match &self.target {
            Target::Sysctl { .. } => match self.target.setting().and_then(|setting| setting.matters_for) {
                Some(Task::Receiving) => !sends,
                Some(Task::Sending) => sends,
                None => true,
            },
            Target::Route { attribute: RouteAttribute::Initrwnd, .. } => !sends,
            Target::Route { .. } | Target::Qdisc { .. } => sends,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_concern_the_directions_that_they_can_change() {
        let change =
            |end, target| Change { end, target, from: None, to: "1".into(), reason: Reason::Off, gain: None };
        let concerned = |end, target: Target| {
            [Direction::To, Direction::From].map(|direction| change(end, target.clone()).concerns(direction))
        };
        assert_eq!(concerned(End::Far, Target::sysctl("net.ipv4.tcp_rmem")), [true, false]);
        assert_eq!(concerned(End::Near, Target::sysctl("net.ipv4.tcp_wmem")), [true, false]);
        assert_eq!(concerned(End::Near, Target::sysctl("net.ipv4.tcp_sack")), [true, true]);
        let to = "192.0.2.7".parse().unwrap();
        assert_eq!(
            concerned(End::Far, Target::Route { to, attribute: RouteAttribute::Congctl }),
            [false, true]
        );
    }
}
