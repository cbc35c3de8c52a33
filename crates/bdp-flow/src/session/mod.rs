//! What the clients of a measurement have in common, whatever the server speaks.

pub mod datagrams;
pub mod deadline;
pub mod dial;
pub mod error;
pub mod options;
pub mod outcome;
pub mod pacing;
pub mod progress;
pub mod reporter;
pub mod request;
pub mod timing;
