//! How reading packets ended.

/// What is known at the end of a source of packets.
#[derive(Debug)]
pub(super) struct ReadToEnd {
    /// Packets dropped, as reported by the capturing program.
    pub(super) dropped: u64,
    /// Why it ended early.
    pub(super) broke: Option<String>,
}
