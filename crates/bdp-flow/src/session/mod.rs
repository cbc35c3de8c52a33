//! What the clients of a measurement have in common, whatever the server speaks: [`driver`] leads through it, [`peer`] is what it
//! asks of each.

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
