//! Conclusions with their evidence.

use serde::{Deserialize, Serialize};

/// A conclusion, how sure it is, what it rests on, and what to do about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What limits the flow.
    pub limit: Limit,
    /// Which end it concerns, by name: `receive window of ams1`.
    pub subject: String,
    /// How sure it is.
    pub confidence: Confidence,
    /// One sentence that can stand alone.
    pub summary: String,
    /// Each a sentence with its numbers.
    pub evidence: Vec<String>,
    /// What to change, where something can be.
    pub remedy: Option<String>,
    /// What is missing, where the answer is unknown.
    pub missing: Vec<String>,
}

/// What limits a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The window that the receiver allows.
    ReceiveWindow,
    /// The buffer of the sending socket.
    SendBuffer,
    /// The medium: no setting of TCP can add to it.
    Ceiling,
    /// The path's bottleneck, which gives all that it can: a queue stands before it.
    PathRate,
    /// Losses that have nothing to do with the load: they come at any rate.
    RandomLoss,
    /// Something on the path that drops what exceeds a rate, and has no queue.
    Policer,
    /// Segments that overtake others, so that the sender takes them for lost.
    Reordering,
    /// The way back, which loses acknowledgements.
    ReversePath,
    /// Packets of full size vanish, smaller ones come through.
    MtuBlackHole,
    /// The path changed while it was measured: an outage, or another rate.
    PathChanged,
    /// The transfer was over before slow start was.
    SlowStart,
    /// The rate that was asked for: all of it came through.
    AskedRate,
    /// The path, which lost datagrams.
    PathLoss,
    /// The host that receives, which dropped datagrams that had come, or reads more slowly than they come.
    ReceivingHost,
    /// The host that sends, which could send no faster, or dropped datagrams before they left.
    SendingHost,
    /// Not known.
    Unknown,
}

/// How sure a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// The evidence fits, other causes would too.
    Low,
    /// The evidence fits, few other causes would.
    Medium,
    /// Independent evidence agrees.
    High,
}
