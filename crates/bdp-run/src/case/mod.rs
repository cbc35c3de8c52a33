//! One case, from its hosts to its record.

mod calibrate;
pub(crate) mod capture;
pub mod key;
pub(crate) mod observe;
pub(crate) mod pair;
mod passage;
mod probing;
pub(crate) mod record;
pub(crate) mod runner;
pub(crate) mod session;
mod share;
mod stepped;
mod verdict;
pub(crate) mod window;
