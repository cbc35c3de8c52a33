//! What is written reads back, whatever is damaged is refused, and tshark agrees.

mod damage;
mod packets;
mod round_trip;
mod tshark;
#[path = "../../../bdp/tests/support/untested.rs"]
mod untested;
