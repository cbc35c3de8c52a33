//! Fidelity bounds that a case broke, and what used its processors, as evidence; `bdp-report` words both.

use serde::{Deserialize, Deserializer, Serialize};

use crate::finding::caveat::text;

/// A broken bound, with the measured values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Breach {
    /// A driver stopped serving a link.
    LinkFailed {
        /// Operation and system error.
        error: String,
    },
    /// No probe was answered.
    NoAnswer {
        /// The two hosts, if flows run between several pairs.
        between: Option<String>,
    },
    /// The smallest idle round trip is below what the links permit.
    IdleBelow {
        /// The two hosts, if flows run between several pairs.
        between: Option<String>,
        /// Smallest idle round trip measured.
        idle_ns: u64,
        /// Smallest round trip that the links are configured for.
        configured_ns: u64,
    },
    /// The smallest idle round trip is too far above the configured one.
    IdleAbove {
        /// The two hosts, if flows run between several pairs.
        between: Option<String>,
        /// Excess over the configured round trip.
        excess_ns: u64,
        /// Configured round trip.
        configured_ns: u64,
        /// Largest permitted excess.
        bound_ns: u64,
    },
    /// The median idle probe took too much time beyond its links.
    IdleBeyond {
        /// The two hosts, if flows run between several pairs.
        between: Option<String>,
        /// Time beyond the links.
        excess_ns: u64,
        /// Configured round trip.
        configured_ns: u64,
        /// Largest permitted time beyond the links.
        bound_ns: u64,
    },
    /// A host did not send the requested datagrams.
    SentOfAsked {
        /// `near->far`.
        flow: String,
        /// Datagrams sent / datagrams requested, 0..=1.
        share: f64,
        /// Largest permitted difference from 1.
        bound: f64,
    },
    /// The emulation reduced a flow's goodput too much.
    Harm {
        /// `near->far`.
        flow: String,
        /// Share of the goodput lost.
        harm: f64,
        /// Largest permitted share.
        bound: f64,
        /// What revealed the loss of goodput.
        seen_by: HarmSeen,
        /// Time of a round trip beyond the links.
        beyond_ns: u64,
        /// Where that time was spent, the largest parts first.
        places: Vec<Delayed>,
    },
    /// Packets in differ from the sum of packets out, dropped and queued.
    NotConserved {
        /// Direction of the link.
        link: String,
    },
    /// The TUN devices dropped packets.
    DeviceDrops {
        /// Direction of the link.
        link: String,
        /// Packets dropped.
        packets: u64,
    },
    /// Under the virtual clock, a packet was delivered after it was due, which is a fault.
    ReleasedLate {
        /// Direction of the link.
        link: String,
        /// Largest lateness.
        late_ns: u64,
    },
    /// The rate of a link differs from the configured one.
    Rate {
        /// Direction of the link.
        link: String,
        /// Achieved / configured - 1.
        off: f64,
        /// Largest permitted difference from 0.
        bound: f64,
    },
    /// The loss of a link differs from the configured one.
    Loss {
        /// Direction of the link.
        link: String,
        /// Share lost.
        achieved: f64,
        /// Share configured to be lost.
        configured: f64,
    },
    /// Text written by an earlier version, or of a kind that only later versions have.
    #[serde(untagged)]
    Text(#[serde(deserialize_with = "text")] String),
}

/// What revealed a flow's loss of goodput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HarmSeen {
    /// Time that probes took beyond their links.
    Probes,
    /// How long the flow's own packets lay unread and how late they were released.
    Packets,
    /// Datagrams that were late at the start or the end of counting.
    Edges,
}

/// Part of a round trip beyond its links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Delayed {
    /// Where the time was spent.
    pub place: Place,
    /// Time spent there.
    pub ns: u64,
}

/// Where a packet or a probe waited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Before it was sent.
    Sender,
    /// In a host, by name, or unread in its device.
    Host(String),
    /// In routers.
    Routers,
    /// In a device, unread by the emulator.
    Emulator,
    /// In the emulator, which released it late.
    Release,
}

/// What used the processors of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Cause {
    /// Programs other than bdp.
    Programs {
        /// Programs with the highest use.
        named: Vec<OtherProgram>,
        /// Number of programs.
        count: usize,
        /// Processors used by all of them.
        processors: f64,
        /// Processors of the machine.
        of: u32,
    },
    /// The hypervisor.
    Hypervisor {
        /// Share of the processors, 0..=1.
        share: f64,
    },
    /// Other cases that ran at the same time.
    OtherCases,
    /// Hosts of the case itself.
    OwnHosts {
        /// Share of the processors left to them.
        share: f64,
    },
    /// The processors were busy throughout.
    Busy,
    /// No cause was seen.
    Unknown,
    /// Text written by an earlier version, or of a kind that only later versions have.
    #[serde(untagged)]
    Text(#[serde(deserialize_with = "text")] String),
}

/// A program that used the processors.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherProgram {
    /// Name in the kernel.
    pub name: String,
    /// Process ID.
    pub process: u32,
    /// Processors used on average.
    pub processors: f64,
}

/// Deserialises causes, or the single text that earlier versions wrote, or null.
pub(crate) fn causes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Cause>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        None(()),
        Text(String),
        Causes(Vec<Cause>),
    }
    Written::deserialize(deserializer).map(|written| match written {
        Written::None(()) => Vec::new(),
        Written::Text(text) => vec![Cause::Text(text)],
        Written::Causes(causes) => causes,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Judged {
        broken: Vec<Breach>,
        #[serde(default, deserialize_with = "causes")]
        cause: Vec<Cause>,
    }

    fn read(value: Value) -> Judged {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_older_versions_stored_is_read_as_text() {
        let old = read(json!({ "broken": ["3.1 % late"], "cause": "rustc took 0.9 of 2 processors" }));
        assert_eq!(old.broken, [Breach::Text("3.1 % late".to_owned())]);
        assert_eq!(old.cause, [Cause::Text("rustc took 0.9 of 2 processors".to_owned())]);
        let none = Judged { broken: Vec::new(), cause: Vec::new() };
        assert_eq!(
            (&read(json!({ "broken": [], "cause": null })), &read(json!({ "broken": [] }))),
            (&none, &none)
        );
        let later = read(json!({ "broken": [{ "kind": "eclipse", "text": "it got dark" }] }));
        assert_eq!(later.broken, [Breach::Text("it got dark".to_owned())]);
    }

    #[test]
    fn evidence_is_stored_and_read_again() {
        let harm = Breach::Harm {
            flow: "near->far".to_owned(),
            harm: 0.5,
            bound: 0.04,
            seen_by: HarmSeen::Probes,
            beyond_ns: 9,
            places: vec![Delayed { place: Place::Host("far".to_owned()), ns: 7 }],
        };
        let link = Breach::NotConserved { link: "near->far".to_owned() };
        let written = Judged {
            broken: vec![harm, link],
            cause: vec![Cause::Hypervisor { share: 0.5 }, Cause::OtherCases],
        };
        let value = serde_json::to_value(&written).unwrap();
        assert_eq!(value["broken"][0]["places"][0], json!({ "place": { "host": "far" }, "ns": 7 }));
        assert_eq!(read(value), written);
    }
}
