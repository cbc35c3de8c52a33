use super::*;

const GIB: u64 = 1 << 30;

fn default(name: &str, kernel: &str, memory_bytes: u64) -> Option<String> {
    let kernel = Release::of_kernel(kernel).unwrap();
    find(name).unwrap().default_on(kernel, memory_bytes).map(|default| default.value)
}

#[test]
fn settings_are_found_by_their_full_and_short_names() {
    assert_eq!(find("net.ipv4.tcp_rmem"), Some(Setting::TcpRmem));
    assert_eq!(find("somaxconn").unwrap().name, "net.core.somaxconn");
    assert_eq!(Setting::named("net.core.somaxconn"), Some(Setting::Somaxconn));
    assert_eq!(Setting::named("somaxconn"), None);
    assert!(find("net.ipv4").is_none() && find("").is_none() && find("net").is_none());
}

#[test]
fn names_and_sentences_are_unique() {
    let names: std::collections::BTreeSet<&str> = all().map(|setting| setting.name).collect();
    let meanings: std::collections::BTreeSet<&str> = all().map(|setting| setting.meaning).collect();
    assert_eq!((names.len(), meanings.len()), (all().count(), all().count()));
    assert!(all().all(|setting| !setting.meaning.ends_with('.')));
}

#[test]
fn defaults_change_with_the_kernel() {
    for (name, kernel, value) in [
        ("somaxconn", "5.3.0", "128"),
        ("somaxconn", "5.4.0", "4096"),
        ("tcp_rmem", "4.19", "4096 87380 6291456"),
        ("tcp_rmem", "4.20", "4096 131072 6291456"),
        ("tcp_rmem", "6.18", "4096 131072 33554432"),
        ("tcp_wmem", "6.18", "4096 16384 4194304"),
        ("tcp_limit_output_bytes", "3.10", "131072"),
        ("tcp_limit_output_bytes", "6.1", "1048576"),
        ("rmem_max", "6.17", "212992"),
        ("rmem_max", "6.18", "4194304"),
    ] {
        assert_eq!(default(name, kernel, 16 * GIB).as_deref(), Some(value), "{name} of {kernel}");
    }
}

#[test]
fn small_machines_have_small_buffers() {
    assert_eq!(default("tcp_rmem", "6.1", GIB / 4).as_deref(), Some("4096 131072 2097152"));
    assert_eq!(default("tcp_rmem", "6.1", 8 << 20).as_deref(), Some("4096 131072 131072"));
    assert_eq!(default("tcp_wmem", "6.1", 4 << 20).as_deref(), Some("4096 16384 65536"));
    assert_eq!(default("tcp_mem", "6.1", 16 * GIB).as_deref(), Some("196608 262144 393216"));
    assert_eq!(default("tcp_max_syn_backlog", "6.1", 16 * GIB).as_deref(), Some("1024"));
    assert_eq!(default("tcp_max_syn_backlog", "6.1", GIB).as_deref(), Some("128"));
}

#[test]
fn what_a_kernel_does_not_read_is_said() {
    let is_read = |name: &str, kernel: &str| find(name).unwrap().is_read_by(kernel.parse().unwrap());
    assert!(is_read("tcp_fack", "4.14") && !is_read("tcp_fack", "4.15"));
    assert!(is_read("tcp_adv_win_scale", "6.5") && !is_read("tcp_adv_win_scale", "6.6"));
    assert!(is_read("tcp_rmem", "7.0"));
    assert!(!is_read("tcp_rto_min_us", "6.1") && is_read("tcp_rto_min_us", "6.18"));
    assert!(default("tcp_fack", "6.1", GIB).is_some(), "it is still there");
    assert!(default("tcp_tw_recycle", "6.1", GIB).is_none(), "it is gone");
}

#[test]
fn settings_are_the_machines_or_the_namespaces() {
    let kernel = Release::new(6, 1);
    let setting = |name| find(name).unwrap();
    assert!(setting("tcp_rmem").is_of_namespace(kernel));
    assert!(!setting("tcp_rmem").is_of_namespace(Release::new(4, 14)));
    assert!(
        !setting("rmem_max").is_of_namespace(kernel) && !setting("rmem_max").is_seen_in_namespace(kernel)
    );
    assert!(setting("rmem_max").is_seen_in_namespace(Release::new(6, 18)));
}

fn why(name: &str, value: &str) -> Option<String> {
    find(name).unwrap().harm_of(value, 16 * GIB)
}

#[test]
fn absurd_values_are_named_with_what_they_do() {
    for (name, value, words) in [
        ("tcp_syncookies", "0", "a flood of SYNs"),
        ("tcp_rmem", "4096 131072 1073741824", "may hold 1 GiB, 6 % of this machine's memory"),
        ("tcp_wmem", "4096 16384 65536", "in flight: over 20 ms"),
        ("tcp_rmem", "4096 16777216 33554432", "begins with"),
        ("tcp_rmem", "6291456 131072 4096", "do not ascend"),
        ("tcp_rmem", "4096 87380", "expected three numbers"),
        ("tcp_rmem", "4M", "expected three numbers"),
        ("tcp_mem", "16777216 16777216 16777216", "in pages, and not in bytes"),
        ("tcp_retries2", "2", "after 2 timeouts in a row, which is about 1.4"),
        ("tcp_fin_timeout", "1", "later than 1 s"),
        ("tcp_syn_retries", "0", "the loss of one packet"),
        ("tcp_window_scaling", "0", "64 KiB"),
        ("tcp_min_snd_mss", "1400", "1400 bytes or more"),
        ("tcp_sack", "off", "expected a number"),
        ("somaxconn", "5", "5 wait for a listener"),
    ] {
        let said = why(name, value).unwrap_or_default();
        assert!(said.contains(words), "{name} = {value}: {said}");
    }
}

#[test]
fn what_is_merely_unusual_is_not_absurd() {
    for (name, value) in [
        ("tcp_rmem", "4096 131072 536870912"),
        ("tcp_wmem", "4096 65536 16777216"),
        ("tcp_retries2", "8"),
        ("tcp_fin_timeout", "10"),
        ("tcp_notsent_lowat", "131072"),
        ("tcp_notsent_lowat", "-1"),
        ("tcp_min_snd_mss", "536"),
        ("tcp_congestion_control", "bbr"),
        ("rmem_max", "536870912"),
    ] {
        assert_eq!(why(name, value), None, "{name} = {value}");
    }
}

#[test]
fn no_kernel_begins_with_an_absurd_value() {
    for kernel in [Release::OLDEST, Release::new(4, 19), Release::new(6, 1), Release::new(6, 18)] {
        for setting in all() {
            // On a machine of 128 MiB the defaults of tcp_mem and of the SYN queue are as small as this.
            let Some(default) = setting.default_on(kernel, 16 * GIB) else { continue };
            let said = setting.harm_of(&default.value, 16 * GIB);
            assert_eq!(said, None, "{} = {} on {kernel}", setting.name, default.value);
        }
    }
}
