//! The catalogue of settings of TCP and of the queues before a network card: what each does, whose it is, which kernels read it, and
//! with what value they start.

mod catalogue;
mod default;
mod entry;
mod relation;
mod release;

pub use catalogue::{all, find};
pub use default::{Basis, DefaultValue};
pub use entry::{EndOfLife, Kind, Setting, Unit};
pub use relation::{Relation, numbers};
pub use release::Release;

#[cfg(test)]
mod tests;
