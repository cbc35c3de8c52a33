//! `bdp tune show`: the settings of this host, and their effect.

use bdp_model::tuning::judged::{JudgedSetting, judged};
use bdp_model::tuning::setting::{Setting, all, find};
use bdp_run::tuning::host_settings;
use bdp_sys::device;

use super::sysctl_file;
use crate::exit::{self, Outcome};
use crate::help;
use crate::output::{self, print};

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp tune show\n  bdp tune show --all\n  bdp tune show tcp_rmem tcp_adv_win_scale\n  \
    bdp tune show --device eth0 --json\n  bdp tune show --file /etc/sysctl.d/99-tune.conf     review a file before it is loaded"
)]
pub struct ShowArgs {
    /// Explain these settings in full: tcp_rmem, net.core.rmem_max ('bdp help settings' lists them)
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// Show every setting [default: those that affect a path, are changed or follow outdated advice]
    #[arg(long, conflicts_with = "names", help_heading = help::OUTPUT)]
    all: bool,

    /// Review the values in this sysctl file for this host before it is loaded; '-' is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["names", "all", "device"], help_heading = help::TEST)]
    file: Option<String>,

    /// Network device whose queues to show [default: that of the default route]
    #[arg(long, value_name = "DEV", help_heading = help::OUTPUT)]
    device: Option<String>,

    /// Print JSON, with every setting unless NAME is given ('bdp help tune-show.schema')
    #[arg(long, help_heading = help::OUTPUT)]
    json: bool,
}

impl ShowArgs {
    /// Reads the settings and prints them.
    pub fn run(self) -> Outcome {
        if let Some(path) = &self.file {
            return self.judge(path);
        }
        let wanted = self.names.iter().map(|name| named(name)).collect::<anyhow::Result<Vec<_>>>()?;
        if let Some(name) = self.device.as_deref().filter(|name| !device::exists(name)) {
            let name = output::tame(name);
            return Err(exit::usage(format!("no network device '{name}'; 'ip link' lists devices")));
        }
        let host = host_settings::read(self.device.as_deref());
        let settings = judged(&host);
        let shown: Vec<&JudgedSetting> = match wanted.is_empty() {
            true => settings.iter().collect(),
            false => {
                wanted.iter().filter_map(|wanted| settings.iter().find(|s| s.setting == *wanted)).collect()
            }
        };
        if self.json {
            return print(&format!(
                "{:#}\n",
                bdp_report::tuning::settings_json(&host, &shown, None, env!("CARGO_PKG_VERSION"))
            ));
        }
        let style = output::style();
        if wanted.is_empty() {
            return print(&bdp_report::tuning::settings_text(&host, self.all, &style));
        }
        let texts: Vec<String> =
            shown.iter().map(|setting| bdp_report::tuning::setting_text(setting, &host, &style)).collect();
        print(&texts.join("\n"))
    }
}

impl ShowArgs {
    /// Judges the settings of a file.
    fn judge(&self, path: &str) -> Outcome {
        let text = sysctl_file::read(path)?;
        let (file, host) = sysctl_file::over(path, &text, host_settings::read(None));
        if self.json {
            let settings = bdp_report::tuning::settings_of_file(&file, &host);
            let shown: Vec<&JudgedSetting> = settings.iter().collect();
            let document =
                bdp_report::tuning::settings_json(&host, &shown, Some(&file), env!("CARGO_PKG_VERSION"));
            return print(&format!("{document:#}\n"));
        }
        print(&bdp_report::tuning::sysctl_file_text(&file, &host, &output::style()))
    }
}

/// The setting of this name, in either form.
fn named(name: &str) -> anyhow::Result<Setting> {
    find(&name.replace('/', ".")).ok_or_else(|| {
        let part = name.rsplit(['.', '/']).next().unwrap_or_default();
        let near: Vec<&str> = all()
            .map(|setting| setting.name)
            .filter(|known| !part.is_empty() && known.contains(part))
            .take(4)
            .collect();
        let near = if near.is_empty() { String::new() } else { format!("; similar: {}", near.join(", ")) };
        let name = output::tame(name);
        exit::usage(format!("unknown setting '{name}'{near}; 'bdp help settings' lists all"))
    })
}
