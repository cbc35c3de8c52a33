//! The scenarios built into bdp.

/// Returns name and text of every built-in scenario, sorted by name.
pub fn shipped() -> impl Iterator<Item = (&'static str, &'static str)> {
    SHIPPED.iter().copied()
}

/// Returns name and text of the built-in scenario with this name, in any case, with or without `.toml`.
pub fn find(name: &str) -> Option<(&'static str, &'static str)> {
    let lower = name.to_ascii_lowercase();
    let stem = lower.strip_suffix(".toml").unwrap_or(&lower);
    shipped().find(|(shipped, _)| *shipped == stem)
}

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../scenarios/", $name, ".toml")))),+]
    };
}

const SHIPPED: &[(&str, &str)] = files![
    "eval-access",
    "eval-aqm-aggressive",
    "eval-aqm-friendly",
    "eval-aqm-initial-window",
    "eval-aqm-rtt-fairness",
    "eval-aqm-unresponsive",
    "eval-buffers",
    "eval-compare",
    "eval-data-centre",
    "eval-fairness",
    "eval-impact",
    "eval-ramp-up",
    "eval-satellite",
    "eval-transients",
    "eval-transoceanic",
    "fast-delay",
    "fast-lossy",
    "path-profiles",
    "s0-delay",
    "s0-distance",
    "s0-latency",
    "s0-streams",
    "s0-window-i",
    "s0-window-ii",
    "s1-64k",
    "s1-128k",
    "s1-cdn",
    "s1-scale",
    "s1-starve",
    "s1-streams",
    "s1-udp",
    "s2-length",
    "s2-mss",
    "s3-30k",
    "s3-base",
    "s3-loss",
    "s3-noscale",
    "s3-oneway",
    "s4-loss",
    "s4-loss-stacks",
    "s4-reverse",
    "s4-reverse-stacks",
];
