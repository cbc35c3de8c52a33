//! Errors of commands as refusals of the page.

use bdp_web::{Refused, RefusedBy};

use crate::exit::{Exit, Refusal};
use crate::output::tame;

/// The refusal that tells this error.
pub fn refused(error: &anyhow::Error) -> Refused {
    let kind = match error.downcast_ref::<Refusal>().map(|refusal| refusal.exit) {
        Some(Exit::Usage) => RefusedBy::Usage,
        Some(_) => RefusedBy::Environment,
        None => RefusedBy::Bug,
    };
    Refused::new(kind, tame(&format!("{error:#}")))
}
