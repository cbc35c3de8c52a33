//! Client and server of the session protocol over loopback, in one process.

mod datagrams;
mod faults;
mod figures;
#[path = "../../../bdp/tests/support/inside.rs"]
mod inside;
mod support;
#[path = "../../../bdp/tests/support/untested.rs"]
mod untested;
