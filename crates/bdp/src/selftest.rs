//! `bdp selftest`: tests the machine as an instrument, in five seconds.

use bdp_flow::instrument::examine;

use crate::exit::{self, Exit, Outcome};
use crate::output;

/// Arguments of `bdp selftest`.
#[derive(clap::Args)]
#[command(after_help = "\
Tests the clock, timers, processors and network stack of this machine in five seconds, over loopback only. These set \
the accuracy that any measurement from here can have. 'bdp lab selftest' tests the emulator.\n\n\
Examples:\n  bdp selftest\n  bdp selftest --json")]
pub struct SelftestArgs {
    /// Print JSON ('bdp help selftest.schema')
    #[arg(long)]
    json: bool,
}

impl SelftestArgs {
    /// Runs all tests and prints the results.
    pub fn run(self) -> Outcome {
        let found = examine().map_err(|e| exit::environment(format!("selftest: {e}")))?;
        let text = if self.json {
            let mut document = bdp_report::instrument_json(&found);
            // It is not stored.
            document["run"] = serde_json::Value::Null;
            format!("{document:#}\n")
        } else {
            bdp_report::instrument_text(&found, &output::style())
        };
        output::print(&text)?;
        Ok(Exit::Done)
    }
}
