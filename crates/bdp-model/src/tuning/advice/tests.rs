use std::collections::BTreeSet;

use super::*;
use crate::tuning::setting::{Release, find};

const GIB: u64 = 1 << 30;

fn of(source: &str, setting: &str, value: &str) -> &'static KnownAdvice {
    let is_meant = |advice: &&KnownAdvice| {
        advice.source.name == source && advice.setting == find(setting) && advice.value == value
    };
    known().find(is_meant).unwrap()
}

#[test]
fn each_is_given_once_and_followed_by_its_value() {
    let mut seen = BTreeSet::new();
    for advice in known() {
        assert!(seen.insert((advice.source.name, advice.setting, advice.value)), "{advice:?}");
        assert!(advice.is_followed_by(advice.value, 16 * GIB), "{advice:?}");
    }
}

#[test]
fn verdicts_change_with_the_kernel() {
    let advice = of("blog advice", "net.ipv4.tcp_low_latency", "1");
    assert_eq!(advice.verdict_on(Release::new(4, 13)).kind, VerdictKind::Current);
    let verdict = advice.verdict_on(Release::new(6, 1));
    assert_eq!((verdict.kind, verdict.since), (VerdictKind::Stale, Some(Release::new(4, 14))));
    let tuned = of("TuneD network-throughput", "net.ipv4.tcp_rmem", "4096 131072 16777216");
    assert_eq!(tuned.verdict_on(Release::new(6, 15)).kind, VerdictKind::Current);
    assert_eq!(tuned.verdict_on(Release::new(6, 16)).kind, VerdictKind::Harmful);
    let timestamps = of("blog advice", "net.ipv4.tcp_timestamps", "0").verdict_on(Release::new(2, 6));
    assert_eq!((timestamps.kind, timestamps.since), (VerdictKind::Harmful, None));
}

/// Advice to set the kernel's own default is never `current`.
#[test]
fn what_the_kernel_does_by_itself_is_not_called_current() {
    let kernels =
        (0..=20).map(|minor| Release::new(4, minor)).chain((0..=18).map(|minor| Release::new(6, minor)));
    for kernel in kernels {
        for advice in known() {
            let default = advice.setting.and_then(|setting| setting.default_on(kernel, 16 * GIB));
            let Some(default) = default else { continue };
            if default.value == advice.value {
                assert_ne!(advice.verdict_on(kernel).kind, VerdictKind::Current, "{advice:?} on {kernel}");
            }
        }
    }
}

/// Advice that lowers a default of this kernel is not recommended for it.
#[test]
fn what_is_below_a_default_is_not_called_current() {
    use crate::tuning::setting::{Kind, Relation};
    for kernel in [Release::new(4, 14), Release::new(5, 10), Release::new(6, 1), Release::new(6, 18)] {
        for advice in known() {
            let Some(setting) = advice.setting else { continue };
            let Some(default) = setting.default_on(kernel, 16 * GIB) else { continue };
            if setting.kind == Kind::Triple && Relation::of(advice.value, &default.value) == Relation::Below {
                assert!(advice.verdict_on(kernel).kind.is_bad(), "{advice:?} on {kernel}");
            }
        }
    }
}

#[test]
fn values_beside_the_advice_follow_it_where_they_do_the_same() {
    let mem = of("blog advice", "net.ipv4.tcp_mem", "16777216 16777216 16777216");
    assert!(mem.is_followed_by("8388608 8388608 8388608", 16 * GIB));
    assert!(!mem.is_followed_by("287901 383869 575802", 16 * GIB));
    assert!(!mem.is_followed_by("16777216 16777216 16777216", 128 * GIB), "so much is there");
    let raised = of("blog advice", "net.ipv4.tcp_rmem", "4096 12582912 16777216");
    assert!(raised.is_followed_by("4096 16777216 16777216", GIB));
    assert!(!raised.is_followed_by("4096 131072 16777216", GIB));
    let off = of("blog advice", "net.ipv4.tcp_sack", "0");
    assert!(!off.is_followed_by("1", GIB) && !off.is_followed_by("", GIB));
}
