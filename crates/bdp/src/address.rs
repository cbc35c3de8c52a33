//! Address options of commands that probe: family, source address and device.

use bdp_model::case::Family;

use crate::help;
use crate::measure::target;

// A doc comment here would take the place of the command's own.
#[derive(clap::Args)]
pub struct AddressArgs {
    /// Use IPv4 only
    #[arg(short = '4', long = "version4", conflicts_with = "version6", help_heading = help::ADDRESS, hide_short_help = true)]
    version4: bool,

    /// Use IPv6 only
    #[arg(short = '6', long = "version6", help_heading = help::ADDRESS, hide_short_help = true)]
    version6: bool,

    /// Local address to send from, for example 192.0.2.7
    #[arg(short = 'B', long, value_name = "ADDRESS", help_heading = help::ADDRESS, hide_short_help = true)]
    pub bind: Option<String>,

    /// Network device to send through, for example eth0
    #[arg(long, value_name = "DEVICE", help_heading = help::ADDRESS, hide_short_help = true)]
    pub bind_dev: Option<String>,
}

impl AddressArgs {
    /// The requested address family.
    pub fn family(&self) -> Option<Family> {
        target::family(self.version4, self.version6)
    }
}
