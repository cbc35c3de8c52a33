//! Limits as nouns.

use bdp_model::finding::Limit;

/// A limit as a noun, as where it binds next.
pub const fn noun(limit: Limit) -> &'static str {
    match limit {
        Limit::ReceiveWindow => "the receive window",
        Limit::SendBuffer => "the send buffer",
        Limit::Ceiling => "the ceiling",
        Limit::PathRate => "the path's bottleneck",
        Limit::ShallowQueue => "the short queue",
        Limit::HalfDuplex => "the half-duplex medium",
        Limit::CrossTraffic => "other traffic",
        Limit::EcnMarks => "congestion marks (ECN)",
        Limit::CongestionLoss => "losses of a full queue",
        Limit::RandomLoss => "random loss",
        Limit::SackMissing => "recovery without SACK",
        Limit::TimestampsMissing => "retransmission without timestamps",
        Limit::Policer => "the policer",
        Limit::Reordering => "reordering",
        Limit::ReversePath => "the way back",
        Limit::MtuBlackHole => "the MTU black hole",
        Limit::PathChanged => "the change of the path",
        Limit::SlowStart => "slow start",
        Limit::AskedRate => "the asked rate",
        Limit::SlowWriter => "the sending program",
        Limit::SlowReader => "the receiving program",
        Limit::ClientIdle => "the client, which had not asked",
        Limit::RoundTrips => "round trips",
        Limit::ProgramWindow => "the programs' own window",
        Limit::PeerGone => "the other end, which answers no more",
        Limit::NotEstablished => "a connection that was never made",
        Limit::Nagle => "Nagle's algorithm",
        Limit::Cpu => "the processor",
        Limit::HostDrops => "packet drops of the host",
        Limit::PathLoss => "loss on the path",
        Limit::ReceivingHost => "the receiving host",
        Limit::SendingHost => "the sending host",
        Limit::Unknown => "something unknown",
    }
}
