//! What a reader should know before relying on figures, as evidence; `bdp-report` puts it into words. A real path has
//! caveats, never INVALID.

use std::net::SocketAddr;

use serde::{Deserialize, Deserializer, Serialize};

use crate::ends::{Direction, End, PeerProtocol, Task};
use crate::method::EndReason;

/// One thing to know. In JSON an object with `kind`, its evidence, and, where `bdp-report` prints it, `text`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Caveat {
    /// A hypervisor took processor time of an end.
    HypervisorSteal {
        /// Whose.
        end: End,
        /// Of all of its processors, 0..=1.
        share: f64,
    },
    /// The device of an end sends or receives, never both.
    HalfDuplex {
        /// Whose.
        end: End,
        /// Its name.
        device: Option<String>,
    },
    /// The device of an end lost packets of this host, which are no loss of the path.
    DeviceDrops {
        /// Whose.
        end: End,
        /// Its name.
        device: Option<String>,
        /// Received packets that it dropped; 0 as everywhere here where they are too few to matter.
        rx_dropped: u64,
        /// Received packets for which it had no buffer.
        rx_missed: u64,
        /// Received packets that its FIFO lost.
        rx_fifo: u64,
        /// Packets to be sent that it dropped.
        tx_dropped: u64,
        /// Packets to be sent that its FIFO lost.
        tx_fifo: u64,
    },
    /// Other traffic shared the device of an end.
    CrossTraffic {
        /// Whose.
        end: End,
        /// Its name.
        device: Option<String>,
        /// Which way through the device.
        task: Task,
        /// Of the other traffic, on average.
        rate_bps: f64,
        /// Of the device's bytes, 0..=1.
        share: f64,
    },
    /// The kernel of an end dropped received packets because its backlog was full.
    BacklogDrops {
        /// Whose.
        end: End,
        /// How many.
        packets: u64,
    },
    /// The control group of an end used up its quota of processor time.
    CpuQuota {
        /// Whose.
        end: End,
        /// In so many periods.
        periods: u64,
        /// How long it was held back, all processors added up.
        throttled_ns: Option<u64>,
    },
    /// The two hosts took a good part of the round trips of a direction's probes.
    HostLatency {
        /// Which.
        direction: Direction,
        /// What they took at the 95th percentile, or the median of few probes.
        host_ns: u64,
        /// The whole round trips of the same probes at the same percentile; older versions wrote their median.
        rtt_ns: u64,
    },
    /// The kernel of an end made a socket buffer smaller than was asked for.
    SocketBufferCut {
        /// In which direction.
        direction: Direction,
        /// Of the end that sends, or of the one that receives.
        task: Task,
        /// Asked for (`--sockbuf`).
        asked_bytes: u64,
        /// What the kernel took of it, half of what `SO_RCVBUF` or `SO_SNDBUF` reads.
        granted_bytes: u64,
    },
    /// A thread may have been the limit of a direction.
    BusyThread {
        /// Which.
        direction: Direction,
        /// What it did.
        task: Task,
        /// Of a processor, 0..=1.
        share: f64,
    },
    /// Fewer bytes passed than were asked for, in the time that was granted.
    TimeRanOut {
        /// In which direction.
        direction: Direction,
        /// Passed.
        bytes: u64,
        /// Asked for.
        asked_bytes: u64,
        /// In this time.
        after_ns: u64,
    },
    /// A direction ended before its time.
    EndedEarly {
        /// Which.
        direction: Direction,
        /// Why.
        reason: EndReason,
    },
    /// A window was not what was asked for.
    WindowNotReached {
        /// In which direction.
        direction: Direction,
        /// Why.
        reason: WindowShortfall,
    },
    /// A sender of datagrams was slower than asked.
    RateNotReached {
        /// In which direction.
        direction: Direction,
        /// Payload that it sent.
        sent_bps: f64,
        /// Payload that was asked for.
        asked_bps: f64,
        /// Datagrams that were too late for their times and were not sent.
        left_out: u64,
    },
    /// The rate of datagrams that was asked for lost many of them in the first second: the test went on at a lower one.
    BackedOff {
        /// In which direction.
        direction: Direction,
        /// Payload that was asked for; null where that was as fast as possible.
        asked_bps: Option<f64>,
        /// Share of the datagrams that was lost in the first second.
        loss_ratio: f64,
        /// Payload of the rate that was sent from then on.
        rate_bps: f64,
    },
    /// No rate that trials found lasted.
    SearchNotHeld {
        /// In which direction.
        direction: Direction,
    },
    /// Loss did not depend on the rate.
    LossAtAnyRate {
        /// In which direction.
        direction: Direction,
    },
    /// A search was interrupted.
    SearchCutShort {
        /// In which direction.
        direction: Direction,
        /// Trials that were made.
        trials: u64,
        /// Trials that passed.
        passed: u64,
        /// The rate whose figures are reported.
        rate_bps: f64,
    },
    /// The receiving host dropped datagrams, which is no loss of the path.
    ReceiverDrops {
        /// In which direction.
        direction: Direction,
        /// Dropped, because the socket was full.
        dropped: u64,
        /// Of so many lost.
        lost: u64,
    },
    /// Datagrams were longer than the path's MTU.
    Fragmented {
        /// In which direction.
        direction: Direction,
        /// Payload of a datagram.
        datagram_bytes: u64,
        /// MTU of the path.
        path_mtu: u32,
    },
    /// The server counted none of the last datagrams, which it may have received later.
    LastUncounted {
        /// In which direction.
        direction: Direction,
        /// How many.
        datagrams: u64,
    },
    /// The server keeps to a rate of its own (`--max-rate`).
    ServerRateLimit {
        /// Payload that it sends at most.
        rate_bps: u64,
    },
    /// Directions that were asked for and not measured.
    NotMeasured {
        /// Which.
        directions: Vec<Direction>,
        /// Why.
        reason: NotMeasured,
    },
    /// An experiment would have told what limits a direction, and was not run.
    NoExperiment {
        /// Of which direction.
        direction: Direction,
        /// Why.
        reason: NoExperiment,
    },
    /// It was interrupted: the figures are of the time until then.
    Interrupted {
        /// Directions that had not begun.
        not_measured: Vec<Direction>,
    },
    /// A server that was silent to bdp turned out to speak iperf3's protocol.
    RecognisedIperf3,
    /// The server speaks another protocol, which tells less.
    ForeignServer {
        /// Which.
        protocol: PeerProtocol,
        /// Whether datagrams were measured.
        datagrams: bool,
    },
    /// The far end is a server of the web, of which little is known.
    WebServer {
        /// Its name.
        host: String,
        /// From one handshake to the next, by which round trips are measured.
        handshake_interval_ns: u64,
    },
    /// A download ended with its file, before its time.
    FileTooShort {
        /// After this time.
        after_ns: u64,
        /// Files of at least so many bytes are asked for again.
        repeated_from_bytes: u64,
    },
    /// No probe came back by UDP, so that round trips are those of messages on a connection.
    ProbesOverTcp {
        /// Of the server, UDP.
        port: u16,
    },
    /// The path drops packets that its kernel takes for short enough, without a word.
    MtuBlackHole {
        /// Largest IP packet that came through, bytes.
        mtu: u32,
        /// Path MTU as the near kernel knows it, bytes.
        known_mtu: u32,
        /// Whether one byte more is known to be lost.
        exact: bool,
        /// Whether the path is one of IPv6.
        ipv6: bool,
        /// Payload of the largest datagram that the path holds.
        fits_bytes: u32,
        /// Payload of a datagram, where one was asked for.
        asked_bytes: Option<u32>,
    },
    /// No datagram as long as the path's MTU came back, and nobody said why.
    MtuUnconfirmed {
        /// Payload of the datagrams.
        datagram_bytes: u32,
        /// Path MTU as the near kernel knows it.
        known_mtu: u32,
    },
    /// Both ends offer an option of TCP, and the connection has none of it: something on the path takes it out of handshakes.
    OptionStripped {
        /// `SACK` or `timestamps`.
        option: String,
    },
    /// Full segments are far shorter than the MTUs of both ends and of the path allow: something on the path changes the MSS of handshakes.
    MssClamped {
        /// Payload of a full segment.
        mss_bytes: u64,
        /// What the smallest of the MTUs holds.
        fits_bytes: u64,
        /// That MTU.
        mtu: u32,
    },
    /// Data went through `ssh`'s connection.
    SshTunnel,
    /// This machine dropped answers to probes, which is no loss of the path.
    AnswersDropped {
        /// Dropped, because the socket was full.
        dropped: u64,
        /// Of so many lost.
        lost: u64,
    },
    /// Handshakes whose SYN was retransmitted, after a second.
    SynRetransmitted {
        /// How many.
        handshakes: u64,
    },
    /// Probes that were due and not sent.
    ProbesLeftOut {
        /// How many.
        probes: u64,
    },
    /// Not every probe was kept by itself.
    SamplesCapped {
        /// The first so many were.
        kept: u64,
    },
    /// This machine has one processor.
    OneProcessor,
    /// The clocks of two processors disagree.
    ClockWentBack {
        /// By so much at most.
        by_ns: u64,
    },
    /// Threads that never sleep missed their processors.
    ProcessorsTaken {
        /// For this part of the time, 0..=1.
        share: f64,
    },
    /// In words, as versions before this one wrote caveats, or of a kind that a later one has.
    #[serde(untagged)]
    Text(#[serde(deserialize_with = "text")] String),
}

/// Why directions were not measured that were asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NotMeasured {
    /// The server was one for a single test.
    NoSecondTest {
        /// Where.
        address: SocketAddr,
    },
    /// No datagram was answered.
    NoAnswer {
        /// Where.
        address: SocketAddr,
        /// How long was waited.
        waited_ns: u64,
    },
    /// The server was asked for datagrams, and none came.
    NoDatagrams {
        /// Where.
        address: SocketAddr,
        /// How long was waited.
        waited_ns: u64,
    },
}

/// Why an experiment was not run that would have told limits apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NoExperiment {
    /// The server's protocol has no word for a second test.
    OtherProtocol,
    /// It was run, and a host paused meanwhile.
    HostPaused {
        /// For how long.
        pause_ns: u64,
    },
    /// It failed, or the server refused it.
    Failed {
        /// What was said.
        error: String,
    },
}

/// Why a window was not what was asked for. In JSON as a [`Caveat`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WindowShortfall {
    /// The sender's kernel does not report the window that it sees.
    Unreported,
    /// The scale of the handshake allows multiples of a unit alone.
    ScaleRounding {
        /// Window on the wire.
        seen_bytes: u64,
        /// What it is a multiple of.
        unit_bytes: u64,
    },
    /// The receiver's kernel does not shrink a window that is open.
    NotShrunk {
        /// Window on the wire.
        seen_bytes: u64,
    },
    /// The receiver's buffer has room for it, and its kernel did not offer more.
    NotOffered {
        /// Window on the wire.
        seen_bytes: u64,
        /// `SO_RCVBUF`.
        buffer_bytes: u64,
    },
    /// The receiver's buffer is too small.
    BufferTooSmall {
        /// Window on the wire.
        seen_bytes: u64,
        /// `SO_RCVBUF`, where known.
        buffer_bytes: Option<u64>,
    },
    /// In the lab: the sender saw no window after omit.
    NoneSeen,
    /// In the lab: calibration found no buffer that gives it.
    NotCalibrated {
        /// Window on the wire.
        seen_bytes: u64,
        /// The closest that calibration came.
        best_bytes: u64,
        /// With this buffer.
        buffer_bytes: u64,
    },
    /// In the lab: calibration had it, and the case did not.
    BelowTwin {
        /// Window on the wire.
        seen_bytes: u64,
        /// Window in the twin without delay.
        twin_bytes: u64,
    },
    /// In the lab: the sender saw another window than the path was to clamp it to.
    BesideClamp {
        /// Window that the sender saw.
        seen_bytes: u64,
    },
    /// In words, as versions before this one wrote it, or of a kind that a later one has.
    #[serde(untagged)]
    Text(#[serde(deserialize_with = "text")] String),
}

/// A share to the per cent, as it is said: two runs that differ by less have the same caveat.
pub fn to_percent(share: f64) -> f64 {
    (share * 100.0).round() / 100.0
}

/// What `bdp-report` would say: a string, or the `text` of an object.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Words {
        Bare(String),
        Beside { text: String },
    }
    Words::deserialize(deserializer).map(|words| match words {
        Words::Bare(text) | Words::Beside { text } => text,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: serde_json::Value) -> Caveat {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_caveat_is_an_object_with_its_kind_and_evidence() {
        let caveat = Caveat::BusyThread { direction: Direction::To, task: Task::Sending, share: 1.0 };
        let value = json!({ "kind": "busy_thread", "direction": "to", "task": "sending", "share": 1.0 });
        assert_eq!(serde_json::to_value(&caveat).unwrap(), value);
        assert_eq!(read(value), caveat);
        assert_eq!(read(json!({ "kind": "ssh_tunnel", "text": "in words" })), Caveat::SshTunnel);
        let reason = WindowShortfall::BufferTooSmall { seen_bytes: 1, buffer_bytes: None };
        let caveat = Caveat::WindowNotReached { direction: Direction::From, reason };
        assert_eq!(read(serde_json::to_value(&caveat).unwrap()), caveat);
    }

    #[test]
    fn words_of_older_versions_and_kinds_of_later_ones_are_kept_as_text() {
        let old = read(json!("the far end ran another measurement meanwhile"));
        assert_eq!(old, Caveat::Text("the far end ran another measurement meanwhile".to_owned()));
        assert_eq!(
            serde_json::to_value(&old).unwrap(),
            json!("the far end ran another measurement meanwhile")
        );
        let later = read(json!({ "kind": "eclipse", "share": 0.5, "text": "it got dark" }));
        assert_eq!(later, Caveat::Text("it got dark".to_owned()));
        assert!(serde_json::from_value::<Caveat>(json!({ "kind": "eclipse" })).is_err());
        let note: Option<WindowShortfall> = serde_json::from_value(json!("it ends at 208 KiB")).unwrap();
        assert_eq!(note, Some(WindowShortfall::Text("it ends at 208 KiB".to_owned())));
    }
}
