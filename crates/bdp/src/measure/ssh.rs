//! `--ssh`: runs this program on the other host for the duration of the measurement.

use std::sync::atomic::AtomicBool;

use bdp_model::measurement::SshRequest;
use bdp_run::measure::MeasurePlan;
use bdp_run::ssh::{FarEnd, SshError, SshPlan};
use bdp_sys::random;
use clap::builder::NonEmptyStringValueParser;

use crate::{exit, help};

/// How the far end is brought there.
#[derive(clap::Args)]
pub struct SshArgs {
    /// Start the other end on this host by ssh for the duration of the test; nothing stays installed there
    #[arg(long, help_heading = help::ACCESS, hide_short_help = true, value_name = "USER@HOST", value_parser = NonEmptyStringValueParser::new(),
        conflicts_with_all = ["token", "token_file"])]
    pub(super) ssh: Option<String>,

    /// Option passed to ssh -o, for example Port=2222; repeatable
    #[arg(long, value_name = "OPTION", requires = "ssh", help_heading = help::ACCESS, hide_short_help = true)]
    ssh_option: Vec<String>,

    /// Send data through the ssh connection, if a firewall blocks all others
    #[arg(long, requires = "ssh", help_heading = help::ACCESS, hide_short_help = true)]
    through_ssh: bool,
}

impl SshArgs {
    /// The request as it is recorded.
    pub(super) fn request(&self, data: (Option<String>, Option<u16>)) -> Option<SshRequest> {
        let (data_host, data_port) = data;
        let (through, options) = (self.through_ssh, self.ssh_option.clone());
        Some(SshRequest { destination: self.ssh.clone()?, through, options, data_host, data_port })
    }
}

/// Starts the far end, if requested, and makes the plan measure to it.
pub fn start(plan: &mut MeasurePlan, cancel: &AtomicBool) -> anyhow::Result<Option<FarEnd>> {
    let Some(request) = plan.request.ssh.clone() else { return Ok(None) };
    if request.through && request.data_host.is_some() {
        return Err(exit::usage("with --through-ssh, data uses the ssh connection; omit HOST"));
    }
    let random: [u8; 4] = random::bytes().map_err(|e| exit::environment(e.to_string()))?;
    let ssh =
        SshPlan { request, subcommand: crate::far::NAME.to_owned(), random: u32::from_ne_bytes(random) };
    let far = FarEnd::start(&ssh, cancel).map_err(|error| match error {
        SshError::Cancelled => exit::environment("measure by ssh: cancelled"),
        other => exit::environment(other.to_string()),
    })?;
    plan.request.host.clone_from(&far.host);
    plan.request.port = far.port;
    plan.credentials.token = Some(far.token.clone());
    Ok(Some(far))
}
