//! What limits a flow: every limit that bdp knows, with its name in JSON, its name in a sentence, and what the time goes to that it is a name for.

use super::named::{named, named_kinds};
use crate::facts::Waits;

/// The limits, in kinds.
macro_rules! limits {
    ($(
        $(#[doc = $about:literal])+
        $kind:ident { $(
            $(#[doc = $doc:literal])+
            $limit:ident = $name:literal, $noun:literal, [$($waits:ident),*],
        )+ }
    )+) => {
        named_kinds! {
            /// What limits a flow.
            pub enum Limit { $( $(#[doc = $about])+ $kind { $( $(#[doc = $doc])+ $limit = $name, )+ } )+ }
        }

        impl Limit {
            /// As a noun, as where it binds next.
            pub const fn noun(self) -> &'static str {
                match self { $($( Self::$limit => $noun, )+)+ }
            }

            /// What the time goes to that it is a name for.
            const fn waits(self) -> &'static [Waits] {
                match self { $($( Self::$limit => &[$(Waits::$waits),*], )+)+ }
            }
        }
    };
}

impl Limit {
    /// Whether it is a name for what is waited for: one that is not known may be any.
    pub fn names(self, waits: Waits) -> bool {
        self == Self::Unknown || self.waits().contains(&waits)
    }
}

limits! {
    /// Windows and buffers.
    Windows {
        /// The window that the receiver allows.
        ReceiveWindow = "receive_window", "the receive window", [ReceiveWindow],
        /// The buffer of the sending socket.
        SendBuffer = "send_buffer", "the send buffer", [SendBuffer],
    }
    /// The path, and the queues on it.
    Path {
        /// The medium: no setting of TCP can add to it.
        Ceiling = "ceiling", "the ceiling", [Path],
        // A transfer that is over before its window has grown has its time in slow start, though the path may have been full since its first window.
        /// The path's bottleneck, which gives all that it can: a queue stands before it.
        PathRate = "path_rate", "the path's bottleneck", [Path, SlowStart],
        /// A queue before the bottleneck that is too short for the bursts that come.
        ShallowQueue = "shallow_queue", "the short queue", [Path],
        /// A medium that carries one direction at a time: acknowledgements take their part.
        HalfDuplex = "half_duplex", "the half-duplex medium", [Path],
        /// Other traffic, which takes a part of the bottleneck.
        CrossTraffic = "cross_traffic", "other traffic", [Path],
        /// A queue on the path that marks packets instead of dropping them (ECN, RFC 3168).
        EcnMarks = "ecn_marks", "congestion marks (ECN)", [Path],
    }
    /// What becomes of packets on the way.
    Packets {
        /// Losses of a full queue, to which the congestion control answers by a smaller window.
        CongestionLoss = "congestion_loss", "losses of a full queue", [Path],
        /// Losses that have nothing to do with the load: they come at any rate.
        RandomLoss = "random_loss", "random loss", [Path],
        /// Recovery from losses without selective acknowledgements: one segment a round trip (RFC 2018).
        SackMissing = "sack_missing", "recovery without SACK", [Path],
        /// No timestamps beside retransmissions (RFC 7323): stands beside what limits the flow.
        TimestampsMissing = "timestamps_missing", "retransmission without timestamps", [],
        /// Something on the path that drops what exceeds a rate, and has no queue.
        Policer = "policer", "the policer", [Path],
        /// Segments that overtake others, so that the sender takes them for lost.
        Reordering = "reordering", "reordering", [Path],
        /// The way back, which loses or delays acknowledgements.
        ReversePath = "reverse_path", "the way back", [Path],
        /// Packets of full size vanish, smaller ones come through.
        MtuBlackHole = "mtu_black_hole", "the MTU black hole", [Path, SlowStart, ReceiveWindow, SendBuffer],
        /// The path changed while it was measured: an outage, or another rate.
        PathChanged = "path_changed", "the change of the path", [Path],
    }
    /// Programs and their connections.
    Programs {
        /// The transfer was over before slow start was.
        SlowStart = "slow_start", "slow start", [SlowStart],
        /// The rate that was asked for: all of it came through.
        AskedRate = "asked_rate", "the asked rate", [Pacing],
        /// The program that sends: it writes more slowly than the path carries.
        SlowWriter = "slow_writer", "the sending program", [Writer, Server],
        /// The program that receives: it reads more slowly than data comes.
        SlowReader = "slow_reader", "the receiving program", [Reader],
        /// The client, which had not asked: the connection waits for a program, or for a person.
        ClientIdle = "client_idle", "the client, which had not asked", [Client, Server, Nothing],
        /// Round trips between questions and answers, one after the other.
        RoundTrips = "round_trips", "round trips", [RoundTrips, Connection],
        /// The window of the programs' own protocol, as of SSH's channels, SMB's credits and HTTP/2's flow control.
        ProgramWindow = "program_window", "the programs' own window", [ProgramWindow],
        /// The other end, which answers no more.
        PeerGone = "peer_gone", "the other end, which answers no more", [Path],
        /// The connection, which was never made.
        NotEstablished = "not_established", "a connection that was never made", [Connection, RoundTrips],
        /// Small writes that wait for the acknowledgement of the last one (RFC 896).
        Nagle = "nagle", "Nagle's algorithm", [Nagle],
    }
    /// Processors and devices of hosts.
    Hosts {
        /// The processor of an end.
        Cpu = "cpu", "the processor", [Processor],
        /// An end, whose device or kernel dropped packets.
        HostDrops = "host_drops", "packet drops of the host", [Path],
    }
    /// Datagrams.
    Datagrams {
        /// The path, which lost datagrams.
        PathLoss = "path_loss", "loss on the path", [],
        /// The host that receives, whose socket dropped datagrams that had come.
        ReceivingHost = "receiving_host", "the receiving host", [],
        /// The host that sends, which could send no faster, or dropped datagrams before they left.
        SendingHost = "sending_host", "the sending host", [],
    }
    /// What nobody knows.
    NotKnown {
        /// Not known.
        Unknown = "unknown", "something unknown", [],
    }
}
