//! Behaviour in real time, and with real peers: rates that are kept, how soon things end. `make test-live` runs these one
//! after the other, in guests where these boot, whose time is exact on any machine (`in_guest`). What runs outside is judged where the machine
//! kept time while it was taken; where it did not, that is printed.

#[path = "../support/mod.rs"]
mod support;

mod attacks;
mod clocks;
mod figures;
mod iperf2;
mod iperf3;
mod iperf3_json;
mod iperf3_udp;
mod iperf_figures;
mod processors;
mod stopped;
