//! docs/settings.md beside the catalogue: its tables are what the catalogue says. `BDP_SETTINGS_PAGE=write` writes them anew.

use bdp_model::tuning::advice::{KnownAdvice, known};
use bdp_model::tuning::setting::{Basis, Kind, Release, Setting, all};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");
const MEMORY: u64 = 16 << 30;
const KERNELS: [Release; 3] = [Release::new(3, 10), Release::new(6, 1), Release::new(6, 18)];

fn default_of(setting: Setting, kernel: Release) -> String {
    if setting.since.is_some_and(|since| kernel < since) {
        return "-".to_owned();
    }
    match setting.default_on(kernel, MEMORY) {
        None if setting.kind == Kind::Names => "modules".to_owned(),
        None => "gone".to_owned(),
        Some(default) if default.basis == Basis::Memory => format!("about {}", default.value),
        Some(default) => default.value,
    }
}

fn settings() -> String {
    let mut text =
        "| setting | what it does | per namespace | kernels | 3.10 | 6.1 | 6.18 |\n|---|---|---|---|---|---|---|\n"
            .to_owned();
    for setting in all() {
        let namespaced = match setting.own_since {
            Some(since) if since <= KERNELS[0] => "yes".to_owned(),
            Some(since) => format!("since {since}"),
            None => "no".to_owned(),
        };
        let mut kernels = setting.since.map_or_else(String::new, |since| format!("since {since}"));
        if let Some(end) = setting.end {
            let what = if end.is_gone { "gone" } else { "no effect" };
            kernels = format!("{kernels} {what} since {}", end.since).trim().to_owned();
        }
        let defaults = KERNELS.map(|kernel| default_of(setting, kernel)).join(" | ");
        text.push_str(&format!(
            "| `{}` | {} | {namespaced} | {kernels} | {defaults} |\n",
            setting.name, setting.meaning
        ));
    }
    text
}

fn advice() -> String {
    let mut text = "| setting | advised | worth |\n|---|---|---|\n".to_owned();
    let verdicts = |advice: &KnownAdvice| {
        let mut all = Vec::new();
        let releases = [(3, 10..=19), (4, 0..=20), (5, 0..=19), (6, 0..=19)];
        for kernel in releases
            .into_iter()
            .flat_map(|(major, minors)| minors.map(move |minor| Release::new(major, minor)))
        {
            let verdict = advice.verdict_on(kernel);
            if all.last() != Some(&verdict) {
                all.push(verdict);
            }
        }
        let words = all.iter().map(|verdict| {
            let since = verdict.since.map_or_else(String::new, |since| format!(" since {since}"));
            format!("**{}**{since}: {}", verdict.kind.name(), verdict.why)
        });
        words.collect::<Vec<_>>().join("; ")
    };
    // One row for what is worth the same, whoever advises it.
    let mut rows: Vec<(&str, String, String)> = Vec::new();
    for advice in known() {
        let name = advice.setting.map_or("txqueuelen", |setting| setting.short);
        let worth = verdicts(advice);
        let advised = format!("`{}` ({})", advice.value, advice.source.name);
        match rows.iter_mut().find(|row| row.0 == name && row.2 == worth) {
            Some(row) => row.1.push_str(&format!(", {advised}")),
            None => rows.push((name, advised, worth)),
        }
    }
    rows.sort_by_key(|row| row.0);
    for (name, advised, worth) in rows {
        text.push_str(&format!("| `{name}` | {advised} | {worth} |\n"));
    }
    text
}

/// The table after the line that begins so, and what stands before and after it.
fn table<'a>(page: &'a str, heading: &str) -> (&'a str, &'a str, &'a str) {
    let heading = page.find(heading).unwrap_or_else(|| panic!("no '{heading}' in {PAGE}"));
    let start = heading + page[heading..].find("\n| setting").unwrap() + 1;
    let end = page[start..].find("\n\n").map_or(page.len(), |length| start + length + 1);
    (&page[..start], &page[start..end], &page[end..])
}

#[test]
fn the_page_has_the_catalogue_and_the_advice() {
    let mut page = std::fs::read_to_string(PAGE).unwrap();
    for (heading, wanted) in [("## The settings", settings()), ("## The advice", advice())] {
        let (before, found, after) = table(&page, heading);
        if std::env::var("BDP_SETTINGS_PAGE").is_ok_and(|word| word == "write") {
            page = format!("{before}{wanted}{after}");
        } else {
            assert_eq!(
                found, wanted,
                "{heading}: BDP_SETTINGS_PAGE=write cargo test -p bdp-model writes it anew"
            );
        }
    }
    if std::env::var("BDP_SETTINGS_PAGE").is_ok_and(|word| word == "write") {
        std::fs::write(PAGE, page).unwrap();
    }
}
