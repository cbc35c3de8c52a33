//! Guests: a Linux kernel as a program of this machine (user-mode Linux, built with time travel), with this same
//! program as its first process. Its clock stands still while anything runs and advances to the next timer when
//! everything sleeps, so events in it take only the time of its links, and are the same each time.
//!
//! A guest gets a [`Root`], a private folder with the program and an order; it leaves an answer there and powers itself off.

mod elf;
mod keep;
mod keeping;
mod paths;
mod process;
mod root;
mod script;
mod spec;

pub use keep::keep;
pub use paths::{ALIVE, ANSWER, ERRORS, ORDER, OUTPUT, READY};
pub use process::{Ended, Guest};
pub use root::{Root, RootMaker};
pub use spec::GuestSpec;
