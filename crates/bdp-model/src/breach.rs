//! Bounds of fidelity that a case broke, and who took its processors, as evidence; `bdp-report` puts both into words.

use serde::{Deserialize, Deserializer, Serialize};

use crate::caveat::text;

/// A bound that was broken, with what was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Breach {
    /// A driver gave a link up.
    LinkFailed {
        /// The operation and the system's answer.
        error: String,
    },
    /// No probe was answered.
    NoAnswer {
        /// The ends, where flows run between several pairs.
        between: Option<String>,
    },
    /// The smallest idle round trip is below what the links allow.
    IdleBelow {
        /// The ends, where flows run between several pairs.
        between: Option<String>,
        /// It.
        idle_ns: u64,
        /// The least that the links were configured for.
        configured_ns: u64,
    },
    /// The smallest idle round trip is too far above what the links were configured for.
    IdleAbove {
        /// The ends, where flows run between several pairs.
        between: Option<String>,
        /// By so much.
        excess_ns: u64,
        /// Of the links.
        configured_ns: u64,
        /// The most that it may be.
        bound_ns: u64,
    },
    /// The median idle probe took too much beyond its links.
    IdleBeyond {
        /// The ends, where flows run between several pairs.
        between: Option<String>,
        /// So much.
        excess_ns: u64,
        /// Of the links.
        configured_ns: u64,
        /// The most that it may be.
        bound_ns: u64,
    },
    /// A host did not send the datagrams that were asked of it.
    SentOfAsked {
        /// `near->far`.
        flow: String,
        /// What it sent, 0..=1.
        share: f64,
        /// How far from 1 that may be.
        bound: f64,
    },
    /// The emulation cost a flow too much of its goodput.
    Harm {
        /// `near->far`.
        flow: String,
        /// The part of it.
        harm: f64,
        /// The most that it may be.
        bound: f64,
        /// Where it was seen.
        seen_by: HarmSeen,
        /// What a round trip took beyond the links.
        beyond_ns: u64,
        /// Where, the largest parts first.
        places: Vec<Delayed>,
    },
    /// Packets in are not packets out, dropped and queued.
    NotConserved {
        /// The direction of a link.
        link: String,
    },
    /// The TUN devices dropped packets.
    DeviceDrops {
        /// The direction of a link.
        link: String,
        /// How many.
        packets: u64,
    },
    /// By the virtual clock a packet was handed over after it was due, which is a fault.
    ReleasedLate {
        /// The direction of a link.
        link: String,
        /// By so much at most.
        late_ns: u64,
    },
    /// A link carried another rate than it was configured for.
    Rate {
        /// The direction of a link.
        link: String,
        /// Achieved / configured - 1.
        off: f64,
        /// How far from 0 that may be.
        bound: f64,
    },
    /// A link lost another share than it was configured for.
    Loss {
        /// The direction of a link.
        link: String,
        /// Share lost.
        achieved: f64,
        /// Share to be lost.
        configured: f64,
    },
    /// In words, as versions before this one wrote it, or of a kind that a later one has.
    #[serde(untagged)]
    Text(#[serde(deserialize_with = "text")] String),
}

/// What showed the harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HarmSeen {
    /// What probes took beyond their links.
    Probes,
    /// How long the flow's own packets lay unread and how late they were released.
    Packets,
    /// Datagrams that were late where counting began or ended.
    Edges,
}

/// A part of a round trip beyond its links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Delayed {
    /// Where it passed.
    pub place: Place,
    /// How long.
    pub ns: u64,
}

/// Where a packet or a probe waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Before it was sent.
    Sender,
    /// In a host, by name, and unread.
    Host(String),
    /// In routers.
    Routers,
    /// In a device, unread by the emulator.
    Emulator,
    /// In the emulator, which released it late.
    Release,
}

/// Who or what took the processors of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Cause {
    /// Programs that are no part of bdp.
    Programs {
        /// The greediest.
        named: Vec<OtherProgram>,
        /// How many there were.
        count: usize,
        /// Processors that all of them took.
        processors: f64,
        /// Of so many.
        of: u32,
    },
    /// The hypervisor.
    Hypervisor {
        /// Of the processors, 0..=1.
        share: f64,
    },
    /// Other cases beside it.
    OtherCases,
    /// Its own hosts.
    OwnHosts {
        /// Of the processors left to them.
        share: f64,
    },
    /// The processors were busy throughout.
    Busy,
    /// Nobody was seen to.
    Unknown,
    /// In words, as versions before this one wrote it, or of a kind that a later one has.
    #[serde(untagged)]
    Text(#[serde(deserialize_with = "text")] String),
}

/// A program that took the processors.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherProgram {
    /// As the kernel calls it.
    pub name: String,
    /// Its process.
    pub process: u32,
    /// How many processors it used on average.
    pub processors: f64,
}

/// Causes, or the one text that versions before this one wrote, or null.
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
