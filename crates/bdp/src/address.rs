//! Options of commands that probe: by which family, from which address and through which device.

use bdp_model::scenario::Family;

use crate::help;
use crate::measure::target;

// A doc comment here would take the place of the command's own.
#[derive(clap::Args)]
pub struct AddressArgs {
    /// Only IPv4
    #[arg(short = '4', long = "version4", conflicts_with = "version6", help_heading = help::ADDRESS, hide_short_help = true)]
    version4: bool,

    /// Only IPv6
    #[arg(short = '6', long = "version6", help_heading = help::ADDRESS, hide_short_help = true)]
    version6: bool,

    /// Local address to send from
    #[arg(short = 'B', long, value_name = "ADDRESS", help_heading = help::ADDRESS, hide_short_help = true)]
    pub bind: Option<String>,

    /// Local device to send through, as eth0
    #[arg(long, value_name = "DEVICE", help_heading = help::ADDRESS, hide_short_help = true)]
    pub bind_dev: Option<String>,
}

impl AddressArgs {
    /// The family that was asked for.
    pub fn family(&self) -> Option<Family> {
        target::family(self.version4, self.version6)
    }
}
