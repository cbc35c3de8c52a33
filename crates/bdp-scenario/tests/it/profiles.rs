//! Links by the name of what they are.

use bdp_model::link::over_time::RateOverTime;
use bdp_scenario::PROFILES;

use super::*;

fn text(lines: &str) -> String {
    format!(
        "title = 't'\n[[link]]\nbetween = ['near', 'far']\n{lines}\n[[flow]]\nfrom = 'near'\nto = 'far'\n"
    )
}

#[test]
fn each_that_ships_is_complete() {
    let on_disk: BTreeSet<String> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../profiles"))
        .unwrap()
        .filter_map(|e| e.unwrap().file_name().to_str()?.strip_suffix(".toml").map(str::to_owned))
        .collect();
    assert_eq!(on_disk, PROFILES.iter().map(|profile| profile.name.to_owned()).collect());
    for profile in PROFILES {
        let year: u32 = profile.date().parse().unwrap_or_else(|_| panic!("{}", profile.name));
        assert!((2000..2100).contains(&year));
        assert!(!profile.title().is_empty() && profile.about().len() > 60 && profile.source().len() > 30);
        assert!(!profile.link_text().is_empty());
        let case = plan(&text(&format!("profile = '{}'", profile.name))).remove(0);
        let link = &case.links[0];
        assert_eq!(link.profile.as_deref(), Some(profile.name));
        assert!(link.config.forward.rate.is_some() && link.config.forward.delay > Nanos::ZERO);
        let json = serde_json::to_string(&case).unwrap();
        assert!(
            json.len() < 10_000,
            "{}: a record keeps the numbers of a trace, not the trace",
            profile.name
        );
        assert_eq!(serde_json::from_str::<CaseSpec>(&json).unwrap(), case);
    }
}

#[test]
fn the_link_s_own_keys_go_before_its_profile_s() {
    let link = |lines: &str| plan(&text(lines)).remove(0).links.remove(0).config;
    let (plain, own) = (link("profile = 'dsl'"), link("profile = 'dsl'\nforward.rate = '8M'\nlimit = 7"));
    assert_eq!((plain.forward.rate, own.forward.rate), (Some(Rate::bps(5_660_000)), Some(Rate::mbps(8))));
    assert_eq!((own.forward.limit, own.reverse.limit), (QueueLimit::Packets(7), QueueLimit::Packets(7)));
    assert_eq!((own.reverse.rate, own.forward.delay), (plain.reverse.rate, plain.forward.delay));
    let both = link("profile = 'lte'\nrate = '9M'");
    assert_eq!((both.forward.rate, both.forward.rate_over_time), (Some(Rate::mbps(9)), None));
    assert_eq!(both.reverse.rate, Some(Rate::mbps(9)));
}

#[test]
fn a_radio_s_levels_are_what_a_user_gets() {
    let config = plan(&text("profile = 'lte'")).remove(0).links.remove(0).config.forward;
    let Some(RateOverTime::Trace(trace)) = &config.rate_over_time else { panic!("{config:?}") };
    assert!(trace.radio().is_some() && trace.repeats());
    assert_eq!(trace.length_ms(), 60_000);
    assert!((14.0e6..20.0e6).contains(&(trace.mean().as_bps() as f64)), "{}", trace.mean());
}

#[test]
fn mistakes_are_shown_in_one_line() {
    for (lines, expected) in [
        ("profile = 'let'", "link.profile = \"let\": expected \"dsl\", \"cable\", \"lte\""),
        ("profile = 3", "link.profile = 3: expected \"dsl\""),
        ("rate = { levels = [] }", "link.rate.levels = a list of 0: expected 1 to 32 rising bit rates"),
        ("rate = { levels = ['2M', '1M'] }", "expected 1 to 32 rising bit rates"),
        ("rate = { levels = ['1M'], share = 0 }", "link.rate.share = 0: expected the share of milliseconds"),
        (
            "rate = { levels = ['1M'], length = '2h' }",
            "link.rate.length = \"2h\": expected the period after which it repeats",
        ),
        ("rate = { levels = ['1M'], stay = 0 }", "link.rate.stay = 0: expected the mean time at a level"),
    ] {
        let found = error(&text(lines));
        assert!(found.contains(expected) && !found.contains('\n'), "{found}\n{expected}");
    }
}
