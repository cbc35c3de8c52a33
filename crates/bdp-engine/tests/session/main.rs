//! Client and server of the session protocol over loopback, in one process.

mod faults;
mod figures;
mod support;
