//! The map of the crates, read from ARCHITECTURE.md, and the workspace held against it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

/// Crates from outside that have one place each.
const AT_HOME: [(&str, &str); 13] = [
    ("axum", "bdp-web"),
    ("hyper", "bdp-web"),
    ("hyper-util", "bdp-web"),
    ("tokio", "bdp-web"),
    ("anyhow", "bdp"),
    ("clap", "bdp"),
    ("clap_complete", "bdp"),
    ("clap_mangen", "bdp"),
    ("indicatif", "bdp"),
    ("libc", "bdp-sys"),
    ("rustix", "bdp-sys"),
    ("socket2", "bdp-sys"),
    ("rusqlite", "bdp-store"),
];

/// Which crate may use which of ours.
#[derive(Debug, PartialEq, Eq)]
pub struct Map(BTreeMap<String, MayUse>);

#[derive(Debug, PartialEq, Eq)]
enum MayUse {
    All,
    These(Vec<String>),
}

/// A member of the workspace.
#[derive(Debug)]
pub struct Crate {
    /// Its name, which is its folder's too.
    pub name: String,
    /// Where it is.
    pub folder: PathBuf,
    /// The files at which its library and its programs begin; not tests, examples and benchmarks.
    pub roots: Vec<PathBuf>,
    /// Names of the packages in its manifest, with their kind: `normal`, `dev`, `build`.
    pub dependencies: Vec<(String, String)>,
}

impl Map {
    /// Reads the table of three columns (crate, what it owns, what it may use) under the heading `Rooms`.
    pub fn parse(markdown: &str) -> Result<Self, String> {
        let rows = markdown
            .lines()
            .skip_while(|line| line.trim() != "## Rooms")
            .skip(1)
            .take_while(|line| !line.starts_with("## "))
            .filter(|line| line.starts_with("| `"));
        let mut map = BTreeMap::new();
        for row in rows {
            let cells: Vec<&str> = row.trim().trim_matches('|').split('|').map(str::trim).collect();
            let [name, _, may_use] = cells[..] else { return Err(format!("not three cells: {row}")) };
            let may_use = match may_use {
                "all" => MayUse::All,
                "-" => MayUse::These(Vec::new()),
                list => MayUse::These(list.split(',').map(|short| format!("bdp-{}", short.trim())).collect()),
            };
            if map.insert(name.trim_matches('`').to_owned(), may_use).is_some() {
                return Err(format!("{name} has two rows"));
            }
        }
        if map.is_empty() {
            return Err("there is no table".to_owned());
        }
        let unknown = map.values().find_map(|may_use| match may_use {
            MayUse::All => None,
            MayUse::These(list) => list.iter().find(|name| !map.contains_key(*name)),
        });
        unknown.map_or_else(|| Ok(()), |name| Err(format!("'{name}' has no row")))?;
        Ok(Self(map))
    }

    /// What the crates use and the map does not allow, and where the two do not name the same crates.
    pub fn judge(&self, crates: &[Crate]) -> Vec<String> {
        let mut faults = Vec::new();
        for name in self.0.keys().filter(|name| crates.iter().all(|c| c.name != **name)) {
            faults.push(format!("the map has {name}, the workspace has not"));
        }
        for member in crates {
            let Some(may_use) = self.0.get(&member.name) else {
                faults.push(format!("the map lacks {}", member.name));
                continue;
            };
            for (used, kind) in &member.dependencies {
                let ours = crates.iter().any(|c| c.name == *used);
                if ours && matches!(may_use, MayUse::These(list) if !list.contains(used)) {
                    faults.push(format!("{} may not use {used} ({kind})", member.name));
                }
                if let Some((_, home)) =
                    AT_HOME.iter().find(|(name, home)| name == used && *home != member.name)
                {
                    faults.push(format!("{} may not use {used} ({kind}): its place is {home}", member.name));
                }
            }
        }
        faults
    }
}

impl Crate {
    /// The members in the output of `cargo metadata --no-deps --format-version 1`.
    pub fn all(metadata: &Value) -> Vec<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        list(&metadata["packages"])
            .iter()
            .map(|package| Self {
                name: text(&package["name"]),
                folder: PathBuf::from(text(&package["manifest_path"]))
                    .parent()
                    .map(PathBuf::from)
                    .unwrap_or_default(),
                roots: list(&package["targets"])
                    .iter()
                    .filter(|t| {
                        list(&t["kind"])
                            .iter()
                            .any(|k| matches!(k.as_str(), Some("lib" | "bin" | "proc-macro")))
                    })
                    .map(|t| PathBuf::from(text(&t["src_path"])))
                    .collect(),
                dependencies: list(&package["dependencies"])
                    .iter()
                    .map(|d| (text(&d["name"]), d["kind"].as_str().unwrap_or("normal").to_owned()))
                    .collect(),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
## Words
| `bdp-word` | x | all |
## Rooms
| crate | owns | may use |
|---|---|---|
| `bdp-model` | units | - |
| `bdp-sys` | system | - |
| `bdp-run` | loops | model, sys |
| `bdp` | words | all |
## After
| `bdp-late` | x | - |
";

    fn member(name: &str, dependencies: &[(&str, &str)]) -> Crate {
        Crate {
            name: name.to_owned(),
            folder: PathBuf::new(),
            roots: Vec::new(),
            dependencies: dependencies.iter().map(|(d, k)| ((*d).to_owned(), (*k).to_owned())).collect(),
        }
    }

    fn workspace(model: &[(&str, &str)], run: &[(&str, &str)]) -> Vec<String> {
        let all = [("bdp-run", "normal"), ("bdp-model", "dev"), ("anyhow", "normal")];
        let crates =
            [member("bdp-model", model), member("bdp-sys", &[]), member("bdp-run", run), member("bdp", &all)];
        Map::parse(TABLE).unwrap().judge(&crates)
    }

    #[test]
    fn what_is_allowed_passes() {
        let run = [("bdp-model", "normal"), ("bdp-sys", "dev"), ("serde", "normal")];
        assert_eq!(workspace(&[], &run), [""; 0]);
    }

    #[test]
    fn what_is_not_allowed_is_named() {
        assert_eq!(workspace(&[("bdp-sys", "normal")], &[]), ["bdp-model may not use bdp-sys (normal)"]);
        assert_eq!(workspace(&[("bdp-run", "dev")], &[]), ["bdp-model may not use bdp-run (dev)"]);
        assert_eq!(workspace(&[], &[("bdp", "build")]), ["bdp-run may not use bdp (build)"]);
        assert_eq!(
            workspace(&[], &[("anyhow", "dev")]),
            ["bdp-run may not use anyhow (dev): its place is bdp"]
        );
    }

    #[test]
    fn map_and_workspace_name_the_same_crates() {
        let map = Map::parse(TABLE).unwrap();
        let faults = map.judge(&[member("bdp-model", &[]), member("bdp-run", &[]), member("bdp-web", &[])]);
        assert_eq!(
            faults,
            [
                "the map has bdp, the workspace has not",
                "the map has bdp-sys, the workspace has not",
                "the map lacks bdp-web"
            ]
        );
    }

    #[test]
    fn a_broken_table_is_an_error() {
        for (table, complaint) in [
            ("## Rooms\n", "no table"),
            ("| `bdp` | x | all |\n", "no table"),
            ("## Rooms\n| `bdp` | all |\n", "three cells"),
            ("## Rooms\n| `bdp` | x | all |\n| `bdp` | x | - |\n", "two rows"),
            ("## Rooms\n| `bdp-run` | x | modle |\n", "'bdp-modle' has no row"),
        ] {
            let error = Map::parse(table).unwrap_err();
            assert!(error.contains(complaint), "{table}: {error}");
        }
    }
}
