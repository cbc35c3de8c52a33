//! Packets are found in each link layer and tunnel, as tshark finds them, and whatever is damaged is refused.

mod account;
mod flows;
mod layers;
mod tshark;
#[path = "../../../bdp/tests/support/untested.rs"]
mod untested;
mod wrapped;
