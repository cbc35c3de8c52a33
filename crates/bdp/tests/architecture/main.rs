//! The rules of ARCHITECTURE.md, held against the code: who may use whom, where `unsafe` lives, which crates ask for
//! neither time nor randomness, how long a file may be. Each rule is a function that is tried on small pieces first.

mod circles;
mod code;
mod map;
mod rules;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use map::{Crate, Map};
use rules::Fault;

/// Crates that run in virtual time: what they need of the world comes as an argument.
const PURE: [&str; 8] = [
    "bdp-model",
    "bdp-scenario",
    "bdp-wire",
    "bdp-link",
    "bdp-pcap",
    "bdp-capture",
    "bdp-explain",
    "bdp-report",
];
/// The one crate that may say `unsafe`.
const UNSAFE: &str = "bdp-sys";
/// Runtimes that would bring threads and clocks of their own. The page's server has tokio, and alone has it.
const RUNTIMES: [&str; 3] = ["async-std", "async-io", "smol"];

#[test]
fn every_crate_uses_only_what_the_map_allows() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let map = Map::parse(&text).expect("the table under 'Rooms'");
    assert_none(map.judge(&crates()));
}

#[test]
fn unsafe_stays_in_its_crate() {
    let mut faults = Vec::new();
    for member in crates().iter().filter(|c| c.name != UNSAFE) {
        // Code that libFuzzer's macro writes is `extern "C"`, which counts as unsafe; what stands beside it is read as text below.
        for target in member.roots.iter().filter(|root| !root.iter().any(|part| part == "fuzz_targets")) {
            faults.extend(in_file(target, rules::forbids_unsafe(&read(target))));
        }
        for file in rust_files(&member.folder) {
            faults.extend(in_file(&file, rules::unsafe_code(&read(&file))));
        }
    }
    // Code beside the crates is under the same rule.
    for file in rust_files(&root()).iter().filter(|f| !f.starts_with(root().join("crates"))) {
        faults.extend(in_file(file, rules::unsafe_code(&read(file))));
    }
    assert_none(faults);
}

#[test]
fn time_and_randomness_are_arguments() {
    let members = crates();
    let mut faults = Vec::new();
    for name in PURE {
        let member = members.iter().find(|c| c.name == name).unwrap_or_else(|| panic!("there is no {name}"));
        let files = rust_files(&member.folder.join("src"));
        assert!(!files.is_empty(), "{name} has no source");
        for file in files {
            faults.extend(in_file(&file, rules::asks_the_world(&read(&file))));
        }
    }
    assert_none(faults);
}

#[test]
fn no_file_needs_itself_through_others() {
    let mut faults = Vec::new();
    for member in crates() {
        let source = member.folder.join("src");
        let module = |file: &PathBuf| -> circles::Module {
            let path = file.strip_prefix(&source).expect("a file of the crate").with_extension("");
            let names: Vec<String> = path.iter().map(|name| name.to_string_lossy().into_owned()).collect();
            let is_parent = matches!(names.last().map(String::as_str), Some("mod" | "lib" | "main"));
            names[..names.len() - usize::from(is_parent)].to_vec()
        };
        let files = rust_files(&source).iter().map(|file| (module(file), read(file))).collect();
        for circle in circles::circles(&files) {
            let names: Vec<String> =
                circle.iter().map(|module| format!("{}/{}", member.name, module.join("/"))).collect();
            faults.push(format!("a circle of files: {}", names.join(", ")));
        }
    }
    assert_none(faults);
}

#[test]
fn no_second_runtime_is_linked() {
    let lock = read(&root().join("Cargo.lock"));
    assert!(rules::locks(&lock, "tokio"), "Cargo.lock is not read as it is written");
    let found: Vec<_> = RUNTIMES.iter().filter(|name| rules::locks(&lock, name)).collect();
    assert!(found.is_empty(), "Cargo.lock holds {found:?}; workloads are threads");
}

#[test]
fn files_are_short_and_have_telling_names() {
    let files = rust_files(&root());
    assert!(files.len() > 50, "only {} files found", files.len());
    let mut faults = Vec::new();
    for file in &files {
        faults.extend(in_file(file, rules::too_long(&read(file))));
        faults.extend(in_file(file, rules::says_nothing(file)));
    }
    assert_none(faults);
}

#[test]
fn no_doc_comment_holds_a_test_that_nothing_runs() {
    let all = crates().into_iter().flat_map(|member| rust_files(&member.folder.join("src")));
    assert_none(all.flat_map(|file| in_file(&file, rules::documentation_test(&read(&file)))).collect());
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

/// The workspace's members, as cargo reads their manifests.
fn crates() -> Vec<Crate> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let crates = Crate::all(&metadata);
    assert!(crates.iter().any(|c| c.name == "bdp"), "cargo metadata is not read as it is written");
    crates
}

/// Every Rust file below a folder, without what cargo and git keep there.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.expect("an entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() {
                // A build folder of any name carries cargo's tag, unless something else made it first, as `make kernel` does.
                let built = name == "target" || path.join("CACHEDIR.TAG").exists();
                if !name.starts_with('.') && !built {
                    folders.push(path);
                }
            } else if name.ends_with(".rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

/// The faults as lines that an editor can jump to.
fn in_file(file: &Path, faults: Vec<Fault>) -> Vec<String> {
    let root = root();
    let file = file.strip_prefix(&root).unwrap_or(file).display();
    faults.into_iter().map(|Fault { line, what }| format!("{file}:{line}: {what}")).collect()
}

#[track_caller]
fn assert_none(faults: Vec<String>) {
    assert!(faults.is_empty(), "against ARCHITECTURE.md:\n{}", faults.join("\n"));
}
