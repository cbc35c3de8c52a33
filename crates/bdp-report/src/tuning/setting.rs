//! `bdp tune show NAME`: one setting in full.

use bdp_model::tuning::host::{HostSettings, Unreadable};
use bdp_model::tuning::judged::JudgedSetting;
use bdp_model::tuning::setting::{Basis, Kind, Relation};

use super::effect::effect;
use super::words::verdict;
use crate::grid::{tame, wrap};
use crate::number::size;
use crate::style::{Style, Tint};

/// Returns a setting with its meaning, its default, its scope and the advice on it.
pub fn setting_text(judged: &JudgedSetting, host: &HostSettings, style: &Style) -> String {
    let setting = judged.setting;
    let value = match &judged.value {
        Ok(value) => format!("= {}", tame(value)),
        Err(why) => format!("can't be read: {}", why_words(why)),
    };
    let mut text = wrap(&format!("{} ", setting.name), Tint::Strong, &value, style);
    let mut line =
        |word: &str, words: &str| text.push_str(&wrap(&format!("  {word:<9}"), Tint::Faint, words, style));
    line("does", &format!("{}.", setting.meaning));
    if let Some(effect) = effect(judged, host) {
        line("here", &effect);
    }
    line("default", &default_words(judged, host));
    line("scope", &scope_words(judged));
    line("kernel", &kernel_words(judged));
    if !setting.values.is_empty() {
        let values: Vec<String> =
            setting.values.iter().map(|(value, mode)| format!("{value} {mode}")).collect();
        line("values", &values.join("; "));
    }
    if let Some(warning) = &judged.warning {
        line("warning", &format!("{warning}."));
    }
    for advice in &judged.advice {
        let follows = if advice.is_followed { ", followed here" } else { "" };
        let words = format!(
            "{}{follows} ({}): {}",
            advice.advice.value,
            advice.advice.source.name,
            verdict(&advice.verdict)
        );
        line("advice", &words);
    }
    text
}

fn why_words(why: &Unreadable) -> String {
    match why {
        Unreadable::NotOfKernel => "this kernel does not have it".to_owned(),
        Unreadable::NotOfNamespace => {
            "it is of the whole machine, and this network namespace does not show it; run bdp in the machine's first one"
                .to_owned()
        }
        Unreadable::NoPermission => "no permission".to_owned(),
        Unreadable::Failed { error } => tame(error),
    }
}

fn default_words(judged: &JudgedSetting, host: &HostSettings) -> String {
    let Some(default) = &judged.default else {
        return match judged.setting.kind {
            Kind::Names => "depends on the modules that are loaded".to_owned(),
            _ => "none: this kernel does not have it".to_owned(),
        };
    };
    let basis = match default.basis {
        Basis::Source => String::new(),
        Basis::Memory => {
            format!(", computed for {} of memory, and within some percent", size(host.memory_bytes as f64))
        }
        Basis::Build => ", unless the kernel was built with another".to_owned(),
    };
    let relation = match judged.relation {
        Some(Relation::Equal) => "; the value is the same",
        Some(Relation::Above) => "; the value is above",
        Some(Relation::Below) => "; the value is below",
        Some(Relation::Differs) => "; the value differs",
        None => "",
    };
    format!("{}{basis}{relation}", default.value)
}

fn scope_words(judged: &JudgedSetting) -> String {
    let setting = judged.setting;
    let words = match (judged.is_of_namespace, setting.own_since) {
        (true, _) if setting.is_inherited => {
            "each network namespace has its own, which begins as that of the machine's first"
        }
        (true, _) => "each network namespace has its own, which begins as the default",
        (false, Some(since)) => {
            return format!("the whole machine; each network namespace has its own since Linux {since}");
        }
        (false, None) => "the whole machine",
    };
    words.to_owned()
}

fn kernel_words(judged: &JudgedSetting) -> String {
    let setting = judged.setting;
    let since = setting.since.map_or_else(String::new, |since| format!("since Linux {since}"));
    match setting.end {
        Some(end) => {
            let end = format!(
                "{} since Linux {}: {}",
                if end.is_gone { "gone" } else { "without effect" },
                end.since,
                end.why
            );
            if since.is_empty() { end } else { format!("{since}; {end}") }
        }
        None if since.is_empty() => "read by all kernels since 3.10".to_owned(),
        None => since,
    }
}
