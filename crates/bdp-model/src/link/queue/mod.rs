//! Active queue management (RFC 7567), with the option names of `tc`.
//!
//! Each kind of queue and each of its parameters is declared once, in `kinds.rs`: the key of a scenario, which is tc's, its default and
//! range, the record's member, and the kernel's attribute. Scenarios, imported `tc` commands, the kernel's own queues and the tables of
//! docs/queues.md are read and made from these declarations.

mod kinds;
mod parameter;
mod reading;

pub use kinds::*;
pub use parameter::{QueueChoice, QueueKind, QueueParameter, QueueValue};
pub use reading::{QueueLimit, QueueReading, QueueSamples};
