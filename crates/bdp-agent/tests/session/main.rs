//! Client and server of the session protocol over loopback, in one process.

mod datagrams;
mod faults;
mod figures;
mod support;
