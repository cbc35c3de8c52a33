//! `bdp tune show --json`.

use bdp_model::tuning::advice::VerdictKind;
use bdp_model::tuning::host::{DeviceQueues, HostSettings, Rings, Unreadable};
use bdp_model::tuning::judged::{JudgedAdvice, JudgedSetting, judged_queue_length};
use bdp_model::tuning::setting::{DefaultValue, EndOfLife, Kind, Relation, Release, Unit};
use serde::Serialize;
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
    json!(Document {
        schema: TUNE_SHOW_SCHEMA,
        bdp,
        run: (),
        host: &host.host,
        kernel: &host.kernel,
        memory_bytes: host.memory_bytes,
        first_namespace: host.is_first_namespace,
        file: file.map(|file| File {
            name: &file.name,
            unknown: &file.unknown,
            not_of_kernel: &file.not_of_kernel,
            unreadable_lines: &file.unreadable,
        }),
        settings: settings.iter().map(|setting| Setting::of(setting, host)).collect(),
        device: host.device.as_ref().map(|device| Device::of(device, host)),
    })
}

/// Settings of a host.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    /// Name and version of this document's shape.
    #[cfg_attr(feature = "schema", schemars(extend("const" = TUNE_SHOW_SCHEMA)))]
    schema: &'static str,
    /// Version of bdp.
    bdp: &'a str,
    /// Nothing of it is stored.
    run: (),
    /// Its name.
    #[cfg_attr(feature = "schema", schemars(extend("minLength" = 0)))]
    host: &'a str,
    /// As `uname -r` prints it.
    kernel: &'a str,
    /// Of the machine, whatever of it a container may use.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    memory_bytes: u64,
    /// Whether bdp ran in the machine's first network namespace; others show fewer settings.
    first_namespace: bool,
    /// Of `--file`, whose settings stand in place of this host's; null of the host itself.
    file: Option<File<'a>>,
    /// Each setting.
    settings: Vec<Setting<'a>>,
    /// The device of `--device`, or of the default route; null if there is no such route.
    device: Option<Device<'a>>,
}

/// A file of sysctls.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct File<'a> {
    /// As it was named.
    name: &'a str,
    /// Settings that the catalogue does not have.
    unknown: &'a [String],
    /// Settings that this kernel does not have.
    not_of_kernel: &'a [&'static str],
    /// Lines that set nothing, by their numbers.
    unreadable_lines: &'a [usize],
}

/// A setting as it stands on this host.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Setting<'a> {
    /// Its name.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = r"^net\.(ipv4|core)\.[a-z0-9_]+$")))]
    name: &'static str,
    /// As the kernel prints it, its numbers apart by blanks; null if it can't be read.
    value: Option<&'a str>,
    /// Why it can't be read.
    unreadable: Option<WhyUnreadable>,
    /// What it does.
    does: &'static str,
    /// What the value comes to on this host.
    here: Option<String>,
    /// What its value is.
    kind: Kind,
    /// The unit of its numbers.
    unit: Unit,
    /// Whether each network namespace has its own value on this kernel.
    scope: Scope,
    /// The value with which this kernel starts.
    default: Option<&'a DefaultValue>,
    /// How the value lies to the default; one computed from memory is met by what is within a sixteenth of it.
    relation: Option<Relation>,
    /// Whether this kernel acts by it.
    is_read: bool,
    /// Whether it can limit one connection's goodput, latency or recovery.
    shapes_path: bool,
    /// The kernel that brought it; null if 3.10 has it.
    since: Option<Release>,
    /// The kernel since which it does nothing, or is gone.
    end: Option<&'a EndOfLife>,
    /// What an absurd value does; null of one that is not, and of the kernel's own.
    warning: Option<&'a str>,
    /// What others advise.
    advice: Vec<Advice>,
}

/// Why a setting can't be read.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum WhyUnreadable {
    /// The kernel does not have it.
    NotOfKernel,
    /// Only the machine's first network namespace shows it.
    NotOfNamespace,
    /// bdp may not read it.
    NoPermission,
    /// Reading it failed.
    Failed,
}

/// Whose a setting is.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum Scope {
    /// Each network namespace has its own.
    Namespace,
    /// The machine has one.
    Machine,
}

/// What others advise, and what it is worth.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Advice {
    /// Who.
    source: &'static str,
    /// Where.
    place: &'static str,
    /// The value that is advised.
    value: &'static str,
    /// What it is worth on this kernel.
    verdict: VerdictKind,
    /// Since which kernel; null if it was never different since 3.10.
    since: Option<Release>,
    /// Why.
    why: &'static str,
    /// Whether the host's value follows it.
    followed: bool,
}

/// A device and its queues.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Device<'a> {
    /// Its name.
    name: &'a str,
    /// Its MTU.
    mtu_bytes: Option<u32>,
    /// As its driver reports it; null of virtual devices.
    speed_bps: Option<u64>,
    /// Its driver.
    driver: Option<&'a str>,
    /// Of a device with several queues that of these.
    qdisc: Option<&'a str>,
    /// Whether it is `net.core.default_qdisc`; null if that is not shown.
    qdisc_is_default: Option<bool>,
    /// Length of its queue.
    txqueuelen: Option<u32>,
    /// Queues to send.
    tx_queues: Option<u32>,
    /// Queues to receive.
    rx_queues: Option<u32>,
    /// Generic receive offload.
    gro: Option<bool>,
    /// Generic segmentation offload.
    gso: Option<bool>,
    /// TCP segmentation offload.
    tso: Option<bool>,
    /// Its rings.
    rings: Option<&'a Rings>,
    /// On `txqueuelen`.
    advice: Vec<Advice>,
}

impl<'a> Setting<'a> {
    fn of(judged: &'a JudgedSetting, host: &HostSettings) -> Self {
        let setting = judged.setting;
        Self {
            name: setting.name,
            value: judged.value.as_deref().ok(),
            unreadable: judged.value.as_ref().err().map(|why| match why {
                Unreadable::NotOfKernel => WhyUnreadable::NotOfKernel,
                Unreadable::NotOfNamespace => WhyUnreadable::NotOfNamespace,
                Unreadable::NoPermission => WhyUnreadable::NoPermission,
                Unreadable::Failed { .. } => WhyUnreadable::Failed,
            }),
            does: setting.meaning,
            here: effect(judged, host),
            kind: setting.kind,
            unit: setting.unit,
            scope: if judged.is_of_namespace { Scope::Namespace } else { Scope::Machine },
            default: judged.default.as_ref(),
            relation: judged.relation,
            is_read: judged.is_read,
            shapes_path: setting.shapes_path,
            since: setting.since,
            end: setting.end.as_ref(),
            warning: judged.warning.as_deref(),
            advice: judged.advice.iter().map(Advice::of).collect(),
        }
    }
}

impl<'a> Device<'a> {
    fn of(device: &'a DeviceQueues, host: &HostSettings) -> Self {
        let default = host.value("net.core.default_qdisc");
        let qdisc = device.qdisc.as_deref();
        Self {
            name: &device.name,
            mtu_bytes: device.mtu_bytes,
            speed_bps: device.speed_bps,
            driver: device.driver.as_deref(),
            qdisc,
            qdisc_is_default: default.zip(qdisc).map(|(default, qdisc)| default == qdisc),
            txqueuelen: device.txqueuelen,
            tx_queues: device.tx_queues,
            rx_queues: device.rx_queues,
            gro: device.gro,
            gso: device.gso,
            tso: device.tso,
            rings: device.rings.as_ref(),
            advice: judged_queue_length(host).iter().map(Advice::of).collect(),
        }
    }
}

impl Advice {
    fn of(judged: &JudgedAdvice) -> Self {
        Self {
            source: judged.advice.source.name,
            place: judged.advice.source.place,
            value: judged.advice.value,
            verdict: judged.verdict.kind,
            since: judged.verdict.since,
            why: judged.verdict.why,
            followed: judged.is_followed,
        }
    }
}
