//! `bdp tune show --json`.

use bdp_model::tuning::advice::VerdictKind;
use bdp_model::tuning::host::{DeviceQueues, HostSettings, Rings, Unreadable};
use bdp_model::tuning::judged::{JudgedAdvice, JudgedSetting, judged_queue_length};
use bdp_model::tuning::setting::{self, DefaultValue, EndOfLife, Kind, Relation, Release, Unit};
use serde::Serialize;
use serde_json::{Value, json};

use super::effect::effect;
use super::show::SysctlFile;

/// The schema's name and version.
pub const TUNE_SHOW_SCHEMA: &str = "bdp.tune-show/1";

/// Renders a host's settings and its network device as JSON.
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
            not_of_kernel: file.not_of_kernel.iter().map(|setting| setting.name).collect(),
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
    /// Name and version of the schema.
    #[cfg_attr(feature = "schema", schemars(extend("const" = TUNE_SHOW_SCHEMA)))]
    schema: &'static str,
    /// Version of bdp.
    bdp: &'a str,
    /// Always null: the document is not stored.
    run: (),
    /// Host name.
    #[cfg_attr(feature = "schema", schemars(extend("minLength" = 0)))]
    host: &'a str,
    /// Kernel release, as printed by `uname -r`.
    kernel: &'a str,
    /// Memory of the machine, regardless of container limits.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    memory_bytes: u64,
    /// Whether bdp ran in the machine's first network namespace; others show fewer settings.
    first_namespace: bool,
    /// File given by `--file`, whose values replace this host's; null if the host itself is shown.
    file: Option<File<'a>>,
    /// Settings of the catalogue.
    settings: Vec<Setting<'a>>,
    /// The device of `--device`, or of the default route; null if there is no such route.
    device: Option<Device<'a>>,
}

/// A file of sysctl settings.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct File<'a> {
    /// File name, as given.
    name: &'a str,
    /// Settings in the file that are not in the catalogue.
    unknown: &'a [String],
    /// Settings in the file that this kernel does not have.
    not_of_kernel: Vec<&'static str>,
    /// Numbers of the lines that set nothing.
    unreadable_lines: &'a [usize],
}

/// A setting and its value on this host.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Setting<'a> {
    /// Name of the setting.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = r"^net\.(ipv4|core)\.[a-z0-9_]+$")))]
    name: &'static str,
    /// Value as printed by the kernel, numbers separated by spaces; null if it can't be read.
    value: Option<&'a str>,
    /// Why the value can't be read; null if it can.
    unreadable: Option<WhyUnreadable>,
    /// What the setting does.
    does: &'static str,
    /// What the value means on this host.
    here: Option<String>,
    /// Type of the value.
    kind: Kind,
    /// Unit of the numbers.
    unit: Unit,
    /// Whether each network namespace has its own value on this kernel.
    scope: Scope,
    /// Default value in this kernel.
    default: Option<&'a DefaultValue>,
    /// Relation of the value to the default; a default computed from memory matches within one sixteenth.
    relation: Option<Relation>,
    /// Whether this kernel uses the setting.
    is_read: bool,
    /// Whether the setting can limit the goodput, latency or loss recovery of one connection.
    shapes_path: bool,
    /// First kernel that has the setting; null if 3.10 already has it.
    since: Option<Release>,
    /// Kernel from which on the setting has no effect or is removed.
    end: Option<&'a EndOfLife>,
    /// Effect of an absurd value; null if the value is not absurd or is the kernel's own.
    warning: Option<&'a str>,
    /// Published advice on the setting.
    advice: Vec<Advice>,
}

/// Why a setting can't be read.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum WhyUnreadable {
    /// The kernel does not have it.
    NotOfKernel,
    /// Shown only in the machine's first network namespace.
    NotOfNamespace,
    /// bdp lacks the permission to read it.
    NoPermission,
    /// Reading failed.
    Failed,
}

/// Scope of a setting.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum Scope {
    /// Per network namespace.
    Namespace,
    /// Machine-wide.
    Machine,
}

/// A piece of published advice and bdp's verdict on it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Advice {
    /// Who gives the advice.
    source: &'static str,
    /// Where it is published.
    place: &'static str,
    /// Advised value.
    value: &'static str,
    /// Verdict for this kernel.
    verdict: VerdictKind,
    /// Kernel since which the verdict applies; null if it has been the same since 3.10.
    since: Option<Release>,
    /// Reason for the verdict.
    why: &'static str,
    /// Whether the host's value follows the advice.
    followed: bool,
}

/// A network device and its queues.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Device<'a> {
    /// Device name.
    name: &'a str,
    /// MTU.
    mtu_bytes: Option<u32>,
    /// Link speed reported by the driver; null for virtual devices.
    speed_bps: Option<u64>,
    /// Driver name.
    driver: Option<&'a str>,
    /// Queueing discipline; on a multi-queue device, that of the queues.
    qdisc: Option<&'a str>,
    /// Whether the discipline is `net.core.default_qdisc`; null if that can't be read.
    qdisc_is_default: Option<bool>,
    /// Transmit queue length.
    txqueuelen: Option<u32>,
    /// Number of transmit queues.
    tx_queues: Option<u32>,
    /// Number of receive queues.
    rx_queues: Option<u32>,
    /// Generic receive offload.
    gro: Option<bool>,
    /// Generic segmentation offload.
    gso: Option<bool>,
    /// TCP segmentation offload.
    tso: Option<bool>,
    /// Ring buffer sizes.
    rings: Option<&'a Rings>,
    /// Published advice on `txqueuelen`.
    advice: Vec<Advice>,
}

impl<'a> Setting<'a> {
    fn of(judged: &'a JudgedSetting, host: &HostSettings) -> Self {
        let setting = judged.setting.row();
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
        let default = host.value(setting::Setting::DefaultQdisc);
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
