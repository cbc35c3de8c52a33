//! Sysctl files, as `sysctl -p` reads them, and their effect.

use bdp_model::tuning::host::{HostSettings, Unreadable};
use bdp_model::tuning::setting::Setting;
use bdp_report::tuning::SysctlFile;

use crate::exit;

/// Reads a file; `-` is standard input.
pub fn read(path: &str) -> anyhow::Result<String> {
    let refused = |cause: String| exit::usage(format!("cannot read '{path}': {cause}"));
    let bytes = super::file::bytes(path).map_err(refused)?;
    String::from_utf8(bytes).map_err(|_| refused("it is not text".to_owned()))
}

/// The settings of a file, and a host with these in place of its own.
pub fn over(name: &str, text: &str, mut host: HostSettings) -> (SysctlFile, HostSettings) {
    let name = if name == "-" { "standard input" } else { name };
    let mut file = SysctlFile { name: name.to_owned(), ..SysctlFile::default() };
    host.device = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            file.unreadable.push(number);
            continue;
        };
        // A key that begins with a hyphen is set with errors ignored.
        let key = key.trim().trim_start_matches('-').trim().replace('/', ".");
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        // A file has full names alone.
        match Setting::named(&key) {
            _ if key.is_empty() || value.is_empty() => file.unreadable.push(number),
            None if !file.unknown.contains(&key) => file.unknown.push(key),
            None => {}
            Some(setting) => set(&mut file, &mut host, setting, value),
        }
    }
    (file, host)
}

fn set(file: &mut SysctlFile, host: &mut HostSettings, setting: Setting, value: String) {
    let Some(of_host) = host.settings.iter_mut().find(|of| of.setting == setting) else { return };
    if of_host.value == Err(Unreadable::NotOfKernel) {
        if !file.not_of_kernel.contains(&setting) {
            file.not_of_kernel.push(setting);
        }
        return;
    }
    of_host.value = Ok(value);
    // The last of several applies.
    if !file.settings.contains(&setting) {
        file.settings.push(setting);
    }
}

#[cfg(test)]
mod tests {
    use bdp_model::tuning::host::HostSetting;

    use super::*;

    #[test]
    fn a_file_is_read_as_sysctl_does() {
        let value = |setting, value: Result<&str, Unreadable>| HostSetting {
            setting,
            value: value.map(str::to_owned),
        };
        let host = HostSettings {
            settings: vec![
                value(Setting::TcpRmem, Ok("4096 131072 6291456")),
                value(Setting::TcpSack, Ok("1")),
                value(Setting::TcpTwRecycle, Err(Unreadable::NotOfKernel)),
            ],
            ..HostSettings::default()
        };
        let text = "# a comment\n; another\n\nnet.ipv4.tcp_rmem=1 2 3\nnet/ipv4/tcp_rmem = 4096\t87380  16777216\n\
            -net.ipv4.tcp_tw_recycle = 1\nvm.swappiness = 1\nvm.swappiness = 2\nnonsense\nnet.ipv4.tcp_sack =\n";
        let (file, host) = over("a.conf", text, host);
        assert_eq!(file.settings, [Setting::TcpRmem]);
        assert_eq!(host.value(Setting::TcpRmem), Some("4096 87380 16777216"));
        assert_eq!(host.value(Setting::TcpSack), Some("1"));
        assert_eq!(file.not_of_kernel, [Setting::TcpTwRecycle]);
        assert_eq!((file.unknown, file.unreadable), (vec!["vm.swappiness".to_owned()], vec![9, 10]));
    }
}
