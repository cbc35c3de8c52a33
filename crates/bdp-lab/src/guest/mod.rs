//! Guests: a Linux kernel as a program of this machine (user-mode Linux, built with time travel), with this very program as
//! its first process. Its clock stands still while anything runs and moves on to the next timer when everything sleeps, so what
//! happens in it takes no time but that of its links, and happens the same way each time.
//!
//! A guest is given a [`Root`], a private folder that holds the program and an order; it leaves an answer there and switches itself off.

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
