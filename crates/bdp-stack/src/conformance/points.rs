//! The points of the suite.

use super::bench::Bench;
use super::subject::Verdict;
use super::{closing, opening, transfer, windows};

/// A requirement that the suite tests.
pub struct Point {
    /// Short name.
    pub name: &'static str,
    /// The requirement.
    pub what: &'static str,
    /// The document that states it.
    pub source: &'static str,
    /// The test.
    pub(super) check: fn(&mut Bench<'_>) -> Verdict,
}

/// Every point, in the order of a connection's life.
pub const POINTS: &[Point] = &[
    Point {
        name: "options, asked",
        what: "it answers a SYN only with options that were in the SYN, and with MSS",
        source: "RFC 7323, 1.3; RFC 2018, 2; RFC 9293, 3.7.1",
        check: opening::options_asked,
    },
    Point {
        name: "options, asking",
        what: "it sends MSS in its SYN, and uses no option that the SYN-ACK does not have",
        source: "RFC 9293, 3.7.1; RFC 7323, 2.5 and 3.2",
        check: opening::options_asking,
    },
    Point {
        name: "segment size",
        what: "it sends no segment longer than the other end's MSS, or 536 bytes if none was given",
        source: "RFC 9293, 3.7.1",
        check: opening::segment_size,
    },
    Point {
        name: "content, sent",
        what: "a megabyte that it sends arrives completely, and ends with FIN",
        source: "RFC 9293, 3.10",
        check: transfer::content_sent,
    },
    Point {
        name: "content, received",
        what: "a megabyte that it receives is read completely, and its window is respected",
        source: "RFC 9293, 3.10",
        check: transfer::content_received,
    },
    Point {
        name: "damage",
        what: "a segment whose checksum is wrong is neither read nor acknowledged",
        source: "RFC 9293, 3.1",
        check: transfer::damage,
    },
    Point {
        name: "loss, fast",
        what: "after three duplicate acknowledgements it sends the missing segment at once",
        source: "RFC 5681, 3.2",
        check: transfer::loss_fast,
    },
    Point {
        name: "loss, timeout",
        what: "unacknowledged segments are retransmitted with doubling timeouts, not within 200 ms",
        source: "RFC 6298, 5",
        check: transfer::loss_timeout,
    },
    Point {
        name: "reordering",
        what: "segments out of order are kept, acknowledged at once, and read in order",
        source: "RFC 5681, 4.2",
        check: transfer::reordering,
    },
    Point {
        name: "duplicates",
        what: "duplicate data is acknowledged and not read again, and data beyond the window is not read",
        source: "RFC 9293, 3.10.7.4",
        check: transfer::duplicates,
    },
    Point {
        name: "zero window",
        what: "it closes its window if nothing is read, and sends an update when it opens again",
        source: "RFC 9293, 3.8.6",
        check: windows::zero_window,
    },
    Point {
        name: "persist",
        what: "it probes a window that stays closed for minutes, at growing intervals, and continues when it opens",
        source: "RFC 9293, 3.8.6.1",
        check: windows::persist,
    },
    Point {
        name: "half close, other end",
        what: "after the other end's FIN it still sends, until it closes its own direction",
        source: "RFC 9293, 3.6",
        check: closing::half_close_of_other,
    },
    Point {
        name: "half close, its own",
        what: "after its own FIN it still reads, until the other end's",
        source: "RFC 9293, 3.6",
        check: closing::half_close_of_own,
    },
    Point {
        name: "reset, received",
        what: "a reset at the expected number ends the connection; one elsewhere in the window does not",
        source: "RFC 9293, 3.10.7.4; RFC 5961, 3",
        check: closing::reset_received,
    },
    Point {
        name: "reset, sent",
        what: "it resets a connection that is aborted, and answers a SYN to a closed port with a reset",
        source: "RFC 9293, 3.10.5 and 3.10.7.1",
        check: closing::reset_sent,
    },
    Point {
        name: "simultaneous open",
        what: "two SYNs that cross open one connection",
        source: "RFC 9293, 3.5",
        check: opening::simultaneous_open,
    },
    Point {
        name: "wrapped numbers",
        what: "sequence numbers wrap at 2^32 while it reads",
        source: "RFC 9293, 3.4",
        check: transfer::wrapped_numbers,
    },
];
