//! What README and the documents say, tried: their links lead somewhere, their scenarios are good, and a calculation
//! that they print is what bdp prints.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;

/// Fenced blocks of a document: the word after the fence, and the text.
fn blocks(markdown: &str) -> Vec<(&str, String)> {
    let mut found: Vec<(&str, String)> = Vec::new();
    let mut inside = false;
    for line in markdown.lines() {
        if let Some(word) = line.trim_start().strip_prefix("```") {
            inside = !inside;
            if inside {
                found.push((word.trim(), String::new()));
            }
        } else if let (true, Some((_, text))) = (inside, found.last_mut()) {
            text.push_str(line);
            text.push('\n');
        }
    }
    found
}

/// Targets of links; none from code, nor to other sites.
fn links(markdown: &str) -> Vec<String> {
    let mut inside = false;
    let prose = markdown.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        !inside && !fence
    });
    prose
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.to_owned())
        .filter(|target| !target.is_empty() && !target.contains("://"))
        .collect()
}

/// The file that a link names; empty within a page.
fn file_of(link: &str) -> &str {
    link.split('#').next().unwrap_or_default()
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(markdown: &str) -> Vec<String> {
    let mut inside = false;
    let mut found: Vec<String> = Vec::new();
    for line in markdown.lines() {
        inside ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        if inside || heading == line || !heading.starts_with(' ') {
            continue;
        }
        let letters = heading.trim().to_lowercase();
        let kept = letters.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let same = found.iter().filter(|other| **other == anchor).count();
        found.push(if same == 0 { anchor } else { format!("{anchor}-{same}") });
    }
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// README and its neighbours, and everything below docs.
fn documents() -> Vec<(PathBuf, String)> {
    let folders = [root(), root().join("docs"), root().join("docs/decisions")];
    let mut files: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .collect();
    files.sort();
    files.into_iter().map(|file| (file.clone(), fs::read_to_string(&file).unwrap())).collect()
}

#[test]
fn links_lead_somewhere() {
    let (mut tried, mut tried_anchors) = (0, 0);
    let mut dead = Vec::new();
    for (file, text) in documents() {
        for link in links(&text) {
            tried += 1;
            let target = match file_of(&link) {
                "" => file.clone(),
                name => file.parent().unwrap().join(name),
            };
            let is_there = match link.split_once('#') {
                Some((_, anchor)) if target.extension().is_some_and(|e| e == "md") => {
                    tried_anchors += 1;
                    fs::read_to_string(&target).is_ok_and(|text| anchors(&text).iter().any(|a| a == anchor))
                }
                _ => target.exists(),
            };
            if !is_there {
                dead.push(format!("{}: {link}", file.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
    assert!(tried > 20 && tried_anchors > 20, "only {tried} links found, {tried_anchors} of them to headings");
}

/// The text of one below the root.
fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap()
}

#[test]
fn summary_lists_every_document() {
    let listed = links(&read("docs/SUMMARY.md"));
    let pages = documents().into_iter().filter_map(|(file, _)| {
        let page = file.strip_prefix(root().join("docs")).ok()?.to_str()?.to_owned();
        (!page.contains('/') && page != "SUMMARY.md" && !listed.contains(&page)).then_some(page)
    });
    let lacks: Vec<String> = pages.collect();
    assert!(lacks.is_empty(), "docs/SUMMARY.md lacks {}", lacks.join(", "));
}

#[test]
fn build_that_is_described_is_that_of_the_manifest() {
    let manifest = read("Cargo.toml");
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")).unwrap();
    let version = format!("Rust {} or later", version.trim_end_matches('"'));
    // No crate that ships has features to be left out.
    let features = fs::read_dir(root().join("crates")).unwrap().filter(|entry| {
        let manifest = entry.as_ref().unwrap().path().join("Cargo.toml");
        fs::read_to_string(manifest).unwrap().contains("[features]")
    });
    let has_features = features.count() > 0;
    for (file, text) in documents() {
        assert!(has_features || !text.contains("--no-default-features"), "{}", file.display());
        for (at, _) in text.match_indices("Rust 1.") {
            assert!(text[at..].starts_with(&version), "{}: not {version}", file.display());
        }
    }
    for file in ["README.md", "docs/guide.md"] {
        assert!(read(file).contains(&version), "{file} does not name {version}");
    }
}

/// What is installed has the documents of the folder itself and their drawings, and neither decisions nor the pictures of README.
#[test]
fn a_document_that_is_installed_points_to_another_that_is() {
    let mut tried = 0;
    for (file, text) in
        documents().iter().filter(|(file, _)| file.parent().is_some_and(|f| f.ends_with("docs")))
    {
        for link in links(text) {
            let link = file_of(&link);
            if link.is_empty() {
                continue;
            }
            tried += 1;
            let is_text = !link.contains('/') && [".md", ".schema.json"].iter().any(|e| link.ends_with(e));
            let is_installed = is_text || link.starts_with("images/") && link.ends_with(".svg");
            assert!(is_installed, "{}: {link}", file.display());
        }
    }
    assert!(tried > 20, "only {tried} links found");
}

#[test]
fn scenarios_are_good() {
    let folder = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for (file, text) in documents() {
        let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
        for (_, scenario) in blocks(&text).iter().filter(|(word, _)| *word == "toml") {
            let path = folder.path().join(format!("{stem}-{}.toml", paths.len()));
            fs::write(&path, scenario).unwrap();
            paths.push(path);
        }
    }
    // Each that is wrong is named.
    let output = Command::cargo_bin("bdp").unwrap().args(["lab", "check"]).args(&paths).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tried = paths.len();
    assert!(tried > 3, "only {tried} scenarios found");
}

#[test]
fn calculations_are_what_bdp_prints() {
    let mut tried = 0;
    for (file, text) in documents() {
        for (_, block) in blocks(&text) {
            let Some((line, printed)) = block.strip_prefix("$ bdp calc ").and_then(|b| b.split_once('\n'))
            else {
                continue;
            };
            tried += 1;
            let arguments: Vec<&str> = line.split_whitespace().collect();
            let output = Command::cargo_bin("bdp").unwrap().arg("calc").args(&arguments).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), printed, "{}: {line}", file.display());
        }
    }
    assert!(tried > 0, "no calculation found");
}

#[test]
fn documents_are_read_as_they_are_written() {
    let text =
        "a [b](c.md#d) `e` [f](https://g) [h](#i)\n```toml\nx = [1](2)\n```\n[j](k/l)\n```\n$ y\n```\n";
    assert_eq!(links(text), ["c.md#d", "#i", "k/l"]);
    assert_eq!(anchors("# A `b`, c\n```\n# d\n```\n## A b c\n#e\n## x_y-Z\n"), ["a-b-c", "a-b-c-1", "x_y-z"]);
    assert_eq!(blocks(text), [("toml", "x = [1](2)\n".to_owned()), ("", "$ y\n".to_owned())]);
}
