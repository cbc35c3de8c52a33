//! Settings of this host, changed so that they can be put back whatever happens.
//!
//! [`apply()`] checks all, writes a [`Journal`] that is durable, and only then changes settings one by one; [`revert()`] reads the journal and
//! compares it with what is there, so it needs to know nothing of how far a process came that was killed. [`supervise()`] is the process
//! that puts changes back when their time is over, and [`confirm()`] keeps them. Everything that they do to the machine goes through
//! a [`World`], a step at a time: [`HostWorld`] is this machine.
#![forbid(unsafe_code)]

mod apply;
mod confirm;
mod here;
mod host;
mod journal;
mod persist;
mod plan;
mod refusal;
mod revert;
mod state;
mod store;
mod supervise;
mod undo;
mod value;
mod world;

pub use apply::{Applied, ApplyOptions, apply};
pub use confirm::{ConfirmOptions, Confirmed, confirm};
pub use host::{APPLIED as GUARD_APPLIED, GuardCommand, GuardMark, HostWorld, Places, READY as GUARD_READY};
pub use journal::{Entry, JOURNAL_SCHEMA, Journal, Progress, Until};
pub use plan::{Step, check};
pub use refusal::Refusal;
pub use revert::{Foreign, RevertOptions, Reverted, revert};
pub use state::{EntryState, EntryStatus, JournalState, JournalStatus, SetAside, State, set_aside, state};
pub use store::Damaged;
pub use supervise::supervise;
pub use world::{Fault, Holder, Reading, Removal, Undo, World};
