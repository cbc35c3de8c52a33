//! The conformance suite for stacks, run on a stack given by name: a kernel in a guest, any other in this process.

use bdp_lab::Program;
use bdp_model::case::stack::{Stack, StepStack};
pub use bdp_stack::conformance::{Outcome, POINTS, Point};
use bdp_stack::conformance::{Stepped, run, settings};
pub use bdp_stack::{Found, list};

use crate::{RunError, guest};

/// Conformance results of a stack.
#[derive(Debug)]
pub struct Conformance {
    /// The stack's name and version.
    pub version: String,
    /// Results of each test point, in order.
    pub outcomes: Vec<Outcome>,
}

/// Returns the name and version of a stack that is not a kernel.
pub fn version_of(stack: &StepStack) -> Result<String, bdp_stack::StackError> {
    bdp_stack::open(stack, settings()).map(|stack| stack.version().to_owned())
}

/// Runs every test point on a stack; fails if the stack is not available.
pub fn of(keeper: &Program, stack: &Stack) -> crate::Result<Conformance> {
    match stack {
        Stack::Machine => Err(RunError::Request(
            "the suite needs the virtual clock, but this machine's kernel uses the real one; choose a guest kernel".to_owned(),
        )),
        Stack::Guest(_) | Stack::File(_) => {
            let (kernel, outcomes) = guest::conformance(keeper, &stack.to_string())?;
            Ok(Conformance { version: format!("Linux {}", kernel.version), outcomes })
        }
        Stack::Steps(stack) => {
            let open = || bdp_stack::open(stack, settings());
            let refused = |error: bdp_stack::StackError| RunError::Request(error.to_string());
            let version = version_of(stack).map_err(refused)?;
            let outcomes = run(|| Ok(Box::new(Stepped::new(open()?))));
            Ok(Conformance { version, outcomes })
        }
    }
}
