//! Client and server of the session protocol over loopback, in one process.

mod datagrams;
mod faults;
mod figures;
mod support;
#[path = "../../../bdp/tests/support/untested.rs"]
mod untested;
