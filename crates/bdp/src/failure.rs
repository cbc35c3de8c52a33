//! An error at the end of bdp: a line on standard error, and a document where JSON was asked for.

use serde_json::json;

use crate::exit::{Exit, Refusal};
use crate::output;

/// Prints an error in one line and gives its exit code; an error without one is a bug of ours.
pub fn report(error: &anyhow::Error) -> Exit {
    let exit = match error.downcast_ref::<Refusal>() {
        Some(refusal) => {
            output::note(&format!("bdp: {error:#}"));
            refusal.exit
        }
        None => {
            report_bug(&format!("{error:#}"));
            Exit::Bug
        }
    };
    report_json(exit, &format!("{error:#}"));
    exit
}

/// Version of the shape of an error's document: `docs/error.schema.json`.
const SCHEMA: &str = "bdp.error/1";

/// Prints the error as JSON too, where JSON was asked for and no other document was printed.
fn report_json(exit: Exit, message: &str) {
    let arguments = std::env::args_os().skip(1).take_while(|argument| argument != "--");
    if output::has_printed()
        || !arguments.into_iter().any(|argument| argument == "--json" || argument == "-J")
    {
        return;
    }
    let document = json!({
        "schema": SCHEMA,
        "bdp": env!("CARGO_PKG_VERSION"),
        "run": null,
        "error": { "kind": exit.kind(), "message": output::tame(message), "exit_code": exit as u8 },
    });
    // The error itself is on standard error.
    let _ = output::print(&format!("{document:#}\n"));
}

/// Prints in one line that bdp is at fault.
pub fn report_bug(what: &str) {
    output::note(&format!("bdp: internal error: {what}; please report it with the command you ran"));
}
