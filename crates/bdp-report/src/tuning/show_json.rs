//! `bdp tune show --json`.

use bdp_model::tuning::host::{HostSettings, Unreadable};
use bdp_model::tuning::judged::{JudgedAdvice, JudgedSetting, judged_queue_length};
use serde_json::{Value, json};

use super::effect::effect;
use super::show::SysctlFile;

/// The schema's name and version.
pub const TUNE_SHOW_SCHEMA: &str = "bdp.tune-show/1";

/// These settings of a host, with its device.
pub fn settings_json(
    host: &HostSettings,
    settings: &[&JudgedSetting],
    file: Option<&SysctlFile>,
    bdp: &str,
) -> Value {
    json!({
        "schema": TUNE_SHOW_SCHEMA,
        "bdp": bdp,
        "run": null,
        "host": host.host,
        "kernel": host.kernel,
        "memory_bytes": host.memory_bytes,
        "first_namespace": host.is_first_namespace,
        "file": file.map(|file| json!({
            "name": file.name,
            "unknown": file.unknown,
            "not_of_kernel": file.not_of_kernel,
            "unreadable_lines": file.unreadable,
        })),
        "settings": settings.iter().map(|setting| setting_json(setting, host)).collect::<Vec<_>>(),
        "device": host.device.as_ref().map(|device| {
            let default = host.value("net.core.default_qdisc");
            json!({
                "name": device.name,
                "mtu_bytes": device.mtu_bytes,
                "speed_bps": device.speed_bps,
                "driver": device.driver,
                "qdisc": device.qdisc,
                "qdisc_is_default": default.zip(device.qdisc.as_deref()).map(|(default, qdisc)| default == qdisc),
                "txqueuelen": device.txqueuelen,
                "tx_queues": device.tx_queues,
                "rx_queues": device.rx_queues,
                "gro": device.gro,
                "gso": device.gso,
                "tso": device.tso,
                "rings": device.rings,
                "advice": judged_queue_length(host).iter().map(advice_json).collect::<Vec<_>>(),
            })
        }),
    })
}

fn setting_json(judged: &JudgedSetting, host: &HostSettings) -> Value {
    let setting = judged.setting;
    json!({
        "name": setting.name,
        "value": judged.value.as_ref().ok(),
        "unreadable": judged.value.as_ref().err().map(|why| match why {
            Unreadable::NotOfKernel => "not_of_kernel",
            Unreadable::NotOfNamespace => "not_of_namespace",
            Unreadable::NoPermission => "no_permission",
            Unreadable::Failed { .. } => "failed",
        }),
        "does": setting.meaning,
        "here": effect(judged, host),
        "kind": setting.kind,
        "unit": setting.unit,
        "scope": if judged.is_of_namespace { "namespace" } else { "machine" },
        "default": judged.default,
        "relation": judged.relation,
        "is_read": judged.is_read,
        "shapes_path": setting.shapes_path,
        "since": setting.since,
        "end": setting.end,
        "warning": judged.warning,
        "advice": judged.advice.iter().map(advice_json).collect::<Vec<_>>(),
    })
}

fn advice_json(judged: &JudgedAdvice) -> Value {
    json!({
        "source": judged.advice.source.name,
        "place": judged.advice.source.place,
        "value": judged.advice.value,
        "verdict": judged.verdict.kind,
        "since": judged.verdict.since,
        "why": judged.verdict.why,
        "followed": judged.is_followed,
    })
}
