//! What all clients of a measurement have in common, whatever protocol the server speaks: [`driver`] runs it,
//! [`peer`] is what it needs from each.

mod back_off;
pub mod datagrams;
pub mod deadline;
pub mod dial;
pub mod driver;
pub mod error;
pub mod experiments;
pub mod options;
pub mod outcome;
mod pacing;
pub mod peer;
pub mod progress;
pub mod reporter;
pub mod request;
mod responsiveness;
mod round;
pub mod salvage;
mod search;
pub mod timing;
