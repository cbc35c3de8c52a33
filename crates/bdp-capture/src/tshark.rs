//! Findings about a packet as Wireshark's fields `tcp.analysis.*`.

use crate::notes::Notes;

/// Returns the fields that apply to a packet, sorted by name.
pub fn fields(notes: Notes) -> Vec<&'static str> {
    const FIELDS: [(Notes, &str); 11] = [
        (Notes::ACKED_UNSEEN, "ack_lost_segment"),
        (Notes::DUPLICATE_ACK, "duplicate_ack"),
        (Notes::FAST, "fast_retransmission"),
        (Notes::KEEP_ALIVE, "keep_alive"),
        (Notes::GAP, "lost_segment"),
        (Notes::REORDERED, "out_of_order"),
        (Notes::RETRANSMISSION, "retransmission"),
        (Notes::NEEDLESS, "spurious_retransmission"),
        (Notes::WINDOW_FULL, "window_full"),
        (Notes::WINDOW_UPDATE, "window_update"),
        (Notes::ZERO_WINDOW, "zero_window"),
    ];
    let mut all: Vec<&str> =
        FIELDS.iter().filter(|(note, _)| notes.has(*note)).map(|(_, name)| *name).collect();
    if notes.has(Notes::PROBE) {
        all.push("zero_window_probe");
    }
    all
}

/// Returns the line of a packet: its number in the capture, its connection's number, and the fields; `None` if none applies.
pub fn line(packet: u64, stream: u32, notes: Notes) -> Option<String> {
    let fields = fields(notes);
    (!fields.is_empty()).then(|| format!("{packet}\t{stream}\t{}\n", fields.join(",")))
}
