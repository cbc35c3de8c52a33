//! What limits a flow: every limit that bdp knows, with its name in JSON and in the documentation.

use super::named::named;

named! {
    /// What limits a flow.
    pub enum Limit {
        /// The window that the receiver allows.
        ReceiveWindow = "receive_window",
        /// The buffer of the sending socket.
        SendBuffer = "send_buffer",
        /// The medium: no setting of TCP can add to it.
        Ceiling = "ceiling",
        /// The path's bottleneck, which gives all that it can: a queue stands before it.
        PathRate = "path_rate",
        /// A queue before the bottleneck that is too short for the bursts that come.
        ShallowQueue = "shallow_queue",
        /// A medium that carries one direction at a time: acknowledgements take their part.
        HalfDuplex = "half_duplex",
        /// Other traffic, which takes a part of the bottleneck.
        CrossTraffic = "cross_traffic",
        /// A queue on the path that marks packets instead of dropping them (ECN, RFC 3168).
        EcnMarks = "ecn_marks",
        /// Losses of a full queue, to which the congestion control answers by a smaller window.
        CongestionLoss = "congestion_loss",
        /// Losses that have nothing to do with the load: they come at any rate.
        RandomLoss = "random_loss",
        /// Recovery from losses without selective acknowledgements: one segment a round trip (RFC 2018).
        SackMissing = "sack_missing",
        /// No timestamps beside retransmissions (RFC 7323): stands beside what limits the flow.
        TimestampsMissing = "timestamps_missing",
        /// Something on the path that drops what exceeds a rate, and has no queue.
        Policer = "policer",
        /// Segments that overtake others, so that the sender takes them for lost.
        Reordering = "reordering",
        /// The way back, which loses or delays acknowledgements.
        ReversePath = "reverse_path",
        /// Packets of full size vanish, smaller ones come through.
        MtuBlackHole = "mtu_black_hole",
        /// The path changed while it was measured: an outage, or another rate.
        PathChanged = "path_changed",
        /// The transfer was over before slow start was.
        SlowStart = "slow_start",
        /// The rate that was asked for: all of it came through.
        AskedRate = "asked_rate",
        /// The program that sends: it writes more slowly than the path carries.
        SlowWriter = "slow_writer",
        /// The program that receives: it reads more slowly than data comes.
        SlowReader = "slow_reader",
        /// The client, which had not asked: the connection waits for a program, or for a person.
        ClientIdle = "client_idle",
        /// Round trips between questions and answers, one after the other.
        RoundTrips = "round_trips",
        /// The window of the programs' own protocol, as of SSH's channels, SMB's credits and HTTP/2's flow control.
        ProgramWindow = "program_window",
        /// The other end, which answers no more.
        PeerGone = "peer_gone",
        /// The connection, which was never made.
        NotEstablished = "not_established",
        /// Small writes that wait for the acknowledgement of the last one (RFC 896).
        Nagle = "nagle",
        /// The processor of an end.
        Cpu = "cpu",
        /// An end, whose device or kernel dropped packets.
        HostDrops = "host_drops",
        /// The path, which lost datagrams.
        PathLoss = "path_loss",
        /// The host that receives, whose socket dropped datagrams that had come.
        ReceivingHost = "receiving_host",
        /// The host that sends, which could send no faster, or dropped datagrams before they left.
        SendingHost = "sending_host",
        /// Not known.
        Unknown = "unknown",
    }
}
