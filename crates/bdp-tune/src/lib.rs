//! Changes settings of this host so that they can always be reverted.
//!
//! [`apply()`] checks all changes, writes a durable [`Journal`], and only then changes settings one by one. [`revert()`] compares the journal with
//! the present state, so it need not know how far a killed process got. [`supervise()`] is the process that reverts changes when their time is
//! up; [`confirm()`] keeps them. All act on the machine through a [`World`], one step at a time: [`HostWorld`] is this machine.
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
