//! The rules, one per file, and those that name the cause of each part of the time, in an order in which an earlier answer makes later ones
//! meaningless.

pub mod asked_rate;
pub mod at_ceiling;
pub mod beyond_doubt;
pub mod black_hole;
pub mod captured;
pub mod conversation;
pub mod cpu;
pub mod cross_traffic;
pub mod datagrams;
pub mod ecn_marks;
pub mod experiment;
pub mod half_duplex;
pub mod host_drops;
pub mod nagle;
pub mod outage;
pub mod part;
pub mod path_rate;
pub mod path_step;
pub mod paused;
pub mod plateau;
pub mod random_loss;
pub mod receive_window;
pub mod reordering;
pub mod reverse_path;
pub mod sack_missing;
pub mod send_buffer;
pub mod slow_reader;
pub mod slow_start;
pub mod slow_writer;
pub mod threshold;
pub mod timestamps_missing;
pub mod tokens;
pub mod transfer;
pub mod unknown;
pub mod watched;
pub mod watched_account;

use bdp_model::facts::{Facts, Waits};
use bdp_model::finding::Finding;

/// A rule: claims the limit, or returns `None`.
pub type Rule = fn(&Facts) -> Option<Finding>;

/// Rules for a path that is busy all the time, or that changed: anything else that is full is full because of it.
const BUSY_PATH: [Rule; 8] = [
    at_ceiling::judge,
    outage::judge,
    tokens::judge,
    path_step::judge,
    reverse_path::judge,
    half_duplex::judge,
    cross_traffic::judge,
    path_rate::judge,
];

/// Rules for what keeps a congestion window below the path's capacity: reordered segments, taken for lost;
pub const OVERTAKEN: [Rule; 1] = [reordering::judge];
/// a queue that is short, or that losses do not empty;
const SHORT_QUEUE: [Rule; 4] =
    [path_rate::judge_shallow, plateau::judge, captured::full_since_the_start, captured::full_mostly];
/// losses, or what resembles them.
pub const LOSSES: [Rule; 5] = [
    ecn_marks::judge,
    // Packets dropped by a host are not losses of the path.
    host_drops::judge,
    random_loss::judge,
    threshold::judge,
    // It slows down loss recovery, whatever the cause of the losses.
    sack_missing::judge,
];
/// Rules for a path of which no more is known.
const PLAIN_PATH: [Rule; 2] = [slow_start::outlasted, captured::plain_path];

const RECEIVE_WINDOW: [Rule; 2] = [receive_window::half_scaled, receive_window::judge];
const SEND_BUFFER: [Rule; 3] = [send_buffer::runs_dry, send_buffer::judge, captured::judge];

/// Rules for what is true in addition to the limit: marks, counters, options.
const BESIDE: [Rule; 6] = [
    path_step::judge,
    ecn_marks::judge,
    host_drops::judge,
    sack_missing::judge,
    timestamps_missing::judge,
    reverse_path::is_full_too,
];

/// Without an account of the time: a program that pauses closes windows and fills queues in bursts, which would mislead later rules.
const WITHOUT: [&[Rule]; 13] = [
    &[receive_window::half_scaled],
    &[asked_rate::judge],
    &[cpu::judge],
    &[nagle::judge],
    &[slow_reader::judge, send_buffer::runs_dry, slow_start::judge],
    &BUSY_PATH,
    &RECEIVE_WINDOW,
    &SEND_BUFFER,
    &[slow_writer::judge],
    &OVERTAKEN,
    &SHORT_QUEUE,
    &LOSSES,
    &PLAIN_PATH,
];

/// The rules that name the cause of a part of the time.
const fn rules(waits: Waits) -> &'static [&'static [Rule]] {
    match waits {
        Waits::Path => &[&BUSY_PATH, &OVERTAKEN, &SHORT_QUEUE, &LOSSES, &PLAIN_PATH],
        Waits::SlowStart => &[&[slow_start::judge, slow_start::outlasted]],
        Waits::ReceiveWindow => &[&RECEIVE_WINDOW],
        Waits::SendBuffer => &[&SEND_BUFFER],
        Waits::Reader => &[&[slow_reader::judge]],
        Waits::Writer => &[&[slow_writer::judge]],
        Waits::Nagle => &[&[nagle::judge]],
        Waits::Pacing => &[&[asked_rate::judge]],
        Waits::Processor => &[&[cpu::judge]],
        Waits::Unknown => &WITHOUT,
        Waits::Connection
        | Waits::Client
        | Waits::Server
        | Waits::RoundTrips
        | Waits::OtherWay
        | Waits::ProgramWindow
        | Waits::Uncaptured
        | Waits::Nothing => &[],
    }
}

/// The cause of a part of the time, by the first of its rules that claims it.
pub fn cause(facts: &Facts, waits: Waits) -> Option<Finding> {
    rules(waits).iter().copied().flatten().find_map(|rule| rule(facts))
}

/// All causes that the rules of a part claim, in order.
pub fn causes(facts: &Facts, waits: Waits) -> impl Iterator<Item = Finding> {
    rules(waits).iter().copied().flatten().filter_map(|rule| rule(facts))
}
