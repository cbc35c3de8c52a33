//! `--ssh`: runs this program on the other host for the duration of the measurement.

use bdp_model::measurement::SshRequest;
use clap::builder::NonEmptyStringValueParser;

use crate::help;

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
