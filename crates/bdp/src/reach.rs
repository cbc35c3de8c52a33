//! What the command lines of this process may name. Those of the page come from a browser: they open no files and start
//! no programs.

use std::sync::atomic::{AtomicBool, Ordering};

use bdp_model::case::CaseSpec;
use bdp_model::case::stack::{Stack, StepStack};

use crate::exit;

static IS_NARROW: AtomicBool = AtomicBool::new(false);

/// From now on they name neither files nor programs.
pub fn narrow() {
    IS_NARROW.store(true, Ordering::Relaxed);
}

/// Whether they name neither files nor programs.
pub fn is_narrow() -> bool {
    IS_NARROW.load(Ordering::Relaxed)
}

/// Refuses cases that start a program or a kernel of the user's, if these may not be named.
pub fn check(cases: &[CaseSpec]) -> anyhow::Result<()> {
    let is_own = |stack: &Stack| {
        matches!(stack, Stack::File(_)) || matches!(stack.in_steps(), Some(StepStack::Program(_)))
    };
    let own = cases.iter().flat_map(|case| &case.hosts).filter_map(|host| host.stack.as_ref());
    match own.into_iter().find(|stack| is_narrow() && is_own(stack)) {
        Some(stack) => {
            Err(exit::usage(format!("the page starts no programs: run '{stack}' as a stack in a terminal")))
        }
        None => Ok(()),
    }
}
