//! A half-duplex medium filled with data by one end, and used for acknowledgements only by the other.
//!
//! The other end waits from the first acknowledgement on, so its turn follows each turn of the data: `n` segments of
//! `s` seconds each, with `n` the fewest that last a turn. Then a guard time, an acknowledgement of `a` seconds for
//! every two segments (RFC 9293, section 3.8.6.3), and another guard time. The data has the medium for
//!
//! ```text
//! n s / (n s + n a / 2 + 2 guard)        n = ceil(turn / s)
//! ```
//!
//! of the time. No source gives this: it follows from the rules of the medium (`docs/emulator.md`), and a test of
//! `bdp-link` compares the link with it.

use crate::link::Turns;

/// Share of the time for which data has the medium, with segments and acknowledgements of these durations in seconds.
pub fn share(turns: Turns, segment_secs: f64, acknowledgement_secs: f64) -> f64 {
    // A packet that was begun is finished, and the first one is always begun.
    let segments = (turns.turn.as_secs_f64() / segment_secs).ceil().max(1.0);
    let data = segments * segment_secs;
    data / (data + segments / 2.0 * acknowledgement_secs + 2.0 * turns.guard.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Nanos;

    #[test]
    fn guards_and_acknowledgements_are_what_data_does_not_get() {
        let of = |guard_us, turn_us, ack_us: f64| {
            let turns = Turns { guard: Nanos::micros(guard_us), turn: Nanos::micros(turn_us) };
            share(turns, 100e-6, ack_us * 1e-6)
        };
        let close = |got: f64, want: f64| assert!((got - want).abs() < 1e-12, "{got} {want}");
        close(of(0, 2_000, 0.0), 1.0);
        close(of(500, 2_000, 0.0), 2.0 / 3.0);
        close(of(500, 2_000, 100.0), 2.0 / 4.0);
        // Of 1950 us a packet that was begun at 1900 is finished; without a turn one packet goes at a time.
        close(of(500, 1_950, 0.0), 2.0 / 3.0);
        close(of(50, 0, 0.0), 0.5);
    }
}
