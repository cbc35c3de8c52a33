//! What arrives of datagrams that are sent at a rate whatever becomes of them: all, less what the path loses, up to what it
//! has room for.
//!
//! ```text
//! min(offered x (1 - loss), room)        room = rate x payload / (payload + headers + framing)
//! ```
//!
//! No source prints this: a sender without congestion control (RFC 8085, section 3.1) takes nothing back, and a queue that
//! is full drops what is beyond the rate that empties it.

/// Goodput, bit/s of payload, and whether it is the room that bounds it. `rooms_bps` has that of each hop that has one.
pub fn goodput(offered_bps: f64, loss: f64, rooms_bps: impl IntoIterator<Item = f64>) -> (f64, bool) {
    let arriving = offered_bps * (1.0 - loss);
    let room = rooms_bps.into_iter().fold(f64::INFINITY, f64::min);
    if room < arriving { (room, true) } else { (arriving, false) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_arrives_up_to_the_room() {
        assert_eq!(goodput(10e6, 0.0, [98.13e6]), (10e6, false));
        assert_eq!(goodput(110e6, 0.0, [200e6, 98.13e6]), (98.13e6, true));
        assert_eq!(goodput(100e6, 0.25, [98.13e6]), (75e6, false));
        assert_eq!(goodput(1e6, 1.0, []), (0.0, false));
    }
}
