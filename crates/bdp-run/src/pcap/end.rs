//! How reading packets ended.

/// What is known at the end of a source of packets.
#[derive(Debug)]
pub(super) struct ReadToEnd {
    /// Packets that the capturing program says it dropped.
    pub(super) dropped: u64,
    /// Why it ended early.
    pub(super) broke: Option<String>,
}
