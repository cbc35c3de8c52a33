//! `bdp lab list --profiles`: named link profiles.

use std::fmt::Write;

use bdp_scenario::{PROFILES, Profile};
use serde_json::json;

use crate::exit::{self, Outcome};
use crate::output::print;

/// Lists all profiles, or prints the file of one.
pub fn run(name: Option<&str>, as_json: bool) -> Outcome {
    let wanted: Vec<&Profile> = match name {
        None => PROFILES.iter().collect(),
        Some(name) => {
            let Some(profile) = PROFILES.iter().find(|profile| profile.name == name) else {
                return Err(exit::usage(format!(
                    "no profile '{name}'; 'bdp lab list --profiles' lists profiles"
                )));
            };
            if !as_json {
                return print(profile.text);
            }
            vec![profile]
        }
    };
    if as_json {
        let list: Vec<_> = wanted.iter().map(|profile| of(profile)).collect();
        return print(&format!(
            "{:#}\n",
            json!({ "schema": "bdp.profiles/1", "bdp": env!("CARGO_PKG_VERSION"), "run": null, "profiles": list })
        ));
    }
    let mut text = format!("{:<15}{}\n", "profile", "description and source of the figures");
    for profile in wanted {
        let _ = writeln!(text, "{:<15}{}\n{:<15}{}", profile.name, profile.title(), "", profile.source());
    }
    text.push_str("\nUse profile = \"NAME\" in a [[link]]; 'bdp lab list --profiles NAME' prints its keys\n");
    print(&text)
}

fn of(profile: &Profile) -> serde_json::Value {
    json!({
        "name": profile.name,
        "title": profile.title(),
        "about": profile.about(),
        "source": profile.source(),
        "date": profile.date(),
        "link": profile.link_text(),
    })
}
