//! Host settings, what a path needs of them, and the smallest change that meets the need.
//!
//! `bdp-explain` makes a [`Plan`], `bdp-tune` applies its changes reversibly, `bdp-report` prints it and writes it as scripts.

pub mod advice;
mod change;
pub mod host;
pub mod judged;
mod made;
mod plan;
mod reason;
mod rehearsal;
pub mod setting;
mod verification;

pub use change::{Change, RouteAttribute, Scope, Target};
pub use made::{JournalReport, SettingBack, SettingChange, SettingReport};
pub use plan::{Advice, Alternative, PLAN_SCHEMA, Plan, PlanDirection, PlanHost, PlanPath, Refused, Why};
pub use reason::{Gain, Reason};
pub use rehearsal::{BEFORE, Beside, PLAN, Predicted, REHEARSAL_SCHEMA, Rehearsal, Rehearsed, choose};
pub use verification::{Outcome, VERIFICATION_SCHEMA, Verdict, Verification, Verified};
