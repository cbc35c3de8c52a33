//! Settings of a host compared with their defaults and with published advice.

use super::advice::{KnownAdvice, Verdict, about};
use super::host::{HostSetting, HostSettings, Unreadable};
use super::setting::{DefaultValue, Relation, Release, Setting};

/// A setting of a host, judged.
#[derive(Debug, Clone)]
pub struct JudgedSetting {
    /// The catalogue's entry.
    pub setting: Setting,
    /// Value, or why it cannot be read.
    pub value: Result<String, Unreadable>,
    /// Default of this kernel.
    pub default: Option<DefaultValue>,
    /// How the value compares with the default; None if either is unknown.
    pub relation: Option<Relation>,
    /// Whether the kernel uses it.
    pub is_read: bool,
    /// Whether each network namespace has its own value.
    pub is_of_namespace: bool,
    /// Published advice on it, and what that is worth here.
    pub advice: Vec<JudgedAdvice>,
    /// Harm that the value does on any host, as a clause; None for the kernel's own value.
    pub warning: Option<String>,
}

/// Published advice on a setting, judged.
#[derive(Debug, Clone, Copy)]
pub struct JudgedAdvice {
    /// The advice.
    pub advice: &'static KnownAdvice,
    /// What it is worth on this kernel.
    pub verdict: Verdict,
    /// Whether the host's value follows the advice.
    pub is_followed: bool,
}

impl JudgedAdvice {
    /// Whether the value was set by advice that is useless or harmful.
    pub fn misleads(&self) -> bool {
        self.is_followed && self.verdict.kind.is_bad()
    }
}

impl JudgedSetting {
    /// Whether the value differs from the kernel's default.
    pub fn is_changed(&self) -> bool {
        self.relation.is_some_and(|relation| relation != Relation::Equal)
    }

    /// Returns the bad advice that the value follows; the kernel's own value follows none.
    pub fn misled_by(&self) -> impl Iterator<Item = &JudgedAdvice> {
        let is_own = self.relation == Some(Relation::Equal);
        self.advice.iter().filter(move |advice| !is_own && advice.misleads())
    }

    /// Whether it is shown by default.
    pub fn is_notable(&self) -> bool {
        self.value.is_ok()
            && (self.is_read && self.setting.shapes_path
                || self.is_changed()
                || self.misled_by().next().is_some()
                || self.warning.is_some())
    }
}

/// Judges all settings that were read. A kernel of unknown release counts as the newest.
pub fn judged(host: &HostSettings) -> Vec<JudgedSetting> {
    let kernel = host.release().unwrap_or(Release::new(u16::MAX, 0));
    host.settings.iter().map(|read| judge(host, kernel, read)).collect()
}

fn judge(host: &HostSettings, kernel: Release, read: &HostSetting) -> JudgedSetting {
    let setting = read.setting;
    let default = setting.default_on(kernel, host.memory_bytes);
    let relation = match (&read.value, &default) {
        (Ok(value), Some(default)) => Some(Relation::to_default(value, default)),
        _ => None,
    };
    let advice = about(Some(setting)).map(|advice| JudgedAdvice {
        advice,
        verdict: advice.verdict_on(kernel),
        is_followed: read.value.as_ref().is_ok_and(|value| advice.is_followed_by(value, host.memory_bytes)),
    });
    // A setting that exists on a kernel too old for it was backported.
    let is_read = setting.end.is_none_or(|end| kernel < end.since)
        && (read.value.is_ok() || setting.is_read_by(kernel));
    let is_own = relation == Some(Relation::Equal);
    let warning = match &read.value {
        Ok(value) if is_read && !is_own => setting.harm_of(value, host.memory_bytes),
        _ => None,
    };
    JudgedSetting {
        setting,
        value: read.value.clone(),
        default,
        relation,
        is_read,
        warning,
        is_of_namespace: setting.is_of_namespace(kernel),
        advice: advice.collect(),
    }
}

/// Returns the judged advice on the queue length of the host's device.
pub fn judged_queue_length(host: &HostSettings) -> Vec<JudgedAdvice> {
    let kernel = host.release().unwrap_or(Release::new(u16::MAX, 0));
    let length = host.device.as_ref().and_then(|device| device.txqueuelen);
    about(None)
        .map(|advice| JudgedAdvice {
            advice,
            verdict: advice.verdict_on(kernel),
            is_followed: length.is_some_and(|n| advice.is_followed_by(&n.to_string(), host.memory_bytes)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(kernel: &str, settings: &[(Setting, &str)]) -> HostSettings {
        let settings =
            settings.iter().map(|&(setting, value)| HostSetting { setting, value: Ok(value.to_owned()) });
        HostSettings {
            kernel: kernel.to_owned(),
            memory_bytes: 16 << 30,
            settings: settings.collect(),
            ..HostSettings::default()
        }
    }

    #[test]
    fn a_setting_is_beside_its_default_and_its_advice() {
        let host = host(
            "6.1.0-18-amd64",
            &[
                (Setting::TcpLowLatency, "1"),
                (Setting::TcpRmem, "4096 131072 6291456"),
                (Setting::TcpTimestamps, "0"),
                (Setting::TcpFrto, "2"),
            ],
        );
        let settings = judged(&host);
        let [low_latency, rmem, timestamps, frto] = &settings[..] else { panic!("{settings:?}") };
        assert!(!low_latency.is_read && low_latency.is_changed() && low_latency.is_notable());
        let verdicts: Vec<_> = low_latency.misled_by().map(|advice| advice.verdict.since).collect();
        assert_eq!(verdicts, [Some(Release::new(4, 14)); 2]);
        assert_eq!(rmem.relation, Some(Relation::Equal));
        assert!(rmem.is_notable() && rmem.misled_by().next().is_none());
        assert!(timestamps.misled_by().count() == 2);
        assert!(!frto.is_notable(), "neither of the path nor changed");
    }

    #[test]
    fn the_kernels_own_value_follows_no_bad_advice() {
        let settings = judged(&host("6.8", &[(Setting::TcpAdvWinScale, "1")]));
        assert!(settings[0].advice.iter().any(JudgedAdvice::misleads));
        assert!(settings[0].misled_by().next().is_none() && !settings[0].is_notable());
    }

    #[test]
    fn a_setting_of_a_newer_kernel_that_is_there_is_read() {
        let settings = judged(&host("6.1", &[(Setting::TcpShrinkWindow, "1")]));
        assert!(settings[0].is_read);
    }
}
