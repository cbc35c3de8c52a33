//! One measurement for another command: repeats the request of a stored run, or measures a host.

use std::path::PathBuf;

use bdp_model::labels::Labels;
use bdp_model::measurement::{MeasureRequest, Measurement};
use bdp_run::Event;
use bdp_run::job::Job;
use bdp_run::measure::MeasurePlan;
use bdp_run::session::Credentials;

use super::live::Live;
use super::{refusal, ssh};
use crate::store::{self, StoreArgs};
use crate::{command_line, exit, guest, help, interrupt, token};

/// What lets the near end in.
#[derive(clap::Args)]
pub struct AccessArgs {
    /// Token printed by the server; other users can see command lines, so prefer BDP_TOKEN or --token-file
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file", help_heading = help::ACCESS)]
    token: Option<String>,

    /// File whose first line is the token
    #[arg(long, value_name = "FILE", help_heading = help::ACCESS)]
    token_file: Option<PathBuf>,
}

impl AccessArgs {
    /// Measures once and keeps the run; returns its id, if stored, and the measurement.
    pub fn measure(
        &self,
        request: &MeasureRequest,
        label: Option<String>,
        store: &StoreArgs,
    ) -> anyhow::Result<(Option<String>, Measurement)> {
        let mut plan = MeasurePlan {
            request: request.clone(),
            credentials: Credentials {
                token: token::find(self.token.as_deref(), self.token_file.as_deref())?,
                login: None,
            },
            label,
            labels: Labels::NONE,
            runs: 1,
            flood: false,
            expectations: Vec::new(),
            baseline: None,
            command: command_line::typed(),
        };
        let mut opened = store.open()?;
        let cancel = interrupt::cancel_instead();
        // Runs as long as this is held.
        let far_end = ssh::start(&mut plan, cancel)?;
        let host = plan.request.host.clone();
        let mut live = Live::new(1);
        let mut watch = |event: Event<'_>| live.show(&event);
        let job = Job::Measure(Box::new(plan));
        let ended = job.run(guest::commands(), store::of_job(&mut opened), &mut watch, cancel);
        live.end();
        drop(far_end);
        super::end_if_asked(cancel, super::NOTHING);
        let measured = ended.results.measurements().first().cloned();
        ended.result.map_err(|error| refusal(error, &host))?;
        let measured =
            measured.ok_or_else(|| exit::environment(format!("measure {host}: nothing was measured")))?;
        if let Some(error) = &measured.error {
            return Err(exit::environment(format!("measure {host}: {error}")));
        }
        Ok((ended.run, measured))
    }
}
