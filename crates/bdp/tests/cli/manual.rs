//! Manual pages and completions: one for every subcommand, and what reads them has nothing to say.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::Bench;
use crate::support::machine::has;
use bdp_store::{NewRun, SqliteStore, Store};

/// Every subcommand, as `bdp ... --help` lists them, with what leads to it.
fn subcommands(bench: &Bench, path: &str, found: &mut BTreeSet<String>) {
    let help = bench.run(&format!("{path} --help")).out;
    found.insert(format!("bdp {path}").trim().to_owned());
    // Those of bdp itself are in groups.
    let begins = |line: &&str| *line == "Commands:" || path.is_empty() && *line == "Between machines:";
    let listed = help.lines().skip_while(|l| !begins(l)).skip(1);
    let listed = listed.take_while(|l| if path.is_empty() { *l != "Options:" } else { !l.is_empty() });
    // What is indented further is the rest of a text.
    for line in listed.filter(|l| l.starts_with("  ") && !l.starts_with("   ")) {
        let name = line.split_whitespace().next().unwrap();
        subcommands(bench, format!("{path} {name}").trim(), found);
    }
}

#[test]
fn every_subcommand_has_its_page_and_no_page_has_a_flaw() {
    let bench = Bench::new();
    let mut commands = BTreeSet::new();
    subcommands(&bench, "", &mut commands);
    assert!(commands.len() > 15 && commands.contains("bdp lab run"), "{commands:?}");
    assert_eq!(bench.run("man --dir pages/man1").code(), 0);
    let groff = has("groff", &["--version"]);
    let mut files: BTreeSet<String> = fs::read_dir(bench.path("pages/man1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for command in &commands {
        let file = format!("{}.1", command.replace(' ', "-"));
        assert!(files.remove(&file), "{command} has no page");
        let page = fs::read_to_string(bench.path("pages/man1").join(&file)).unwrap();
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "SEE ALSO"] {
            assert!(
                page.lines().any(|l| l == format!(".SH {section}") || l == format!(".SH \"{section}\"")),
                "{file} has no {section}"
            );
        }
        let printed = bench.run(&format!("man {}", command.trim_start_matches("bdp").trim()));
        assert_eq!(printed.out, page, "printed as it is written: {command}");
        if groff {
            check(&bench, &file);
        }
    }
    assert!(files.is_empty(), "pages of nothing: {files:?}");
}

/// groff renders the page, warns of nothing, and shows its headings.
fn check(bench: &Bench, file: &str) {
    assert!(rendered(bench, &format!("pages/man1/{file}")).contains("SYNOPSIS"), "{file}");
}

fn rendered(bench: &Bench, file: &str) -> String {
    let output = Command::new("groff")
        .args(["-man", "-Tutf8", "-Kutf8", "-P-cbou", "-ww"])
        .arg(bench.path(file))
        .output()
        .unwrap();
    let warnings = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && warnings.is_empty(), "{file}: {warnings}");
    String::from_utf8(output.stdout).unwrap()
}

/// What `bdp help` prints is read by man, too: a page for each topic that is prose.
#[test]
fn every_topic_has_its_page_in_section_7() {
    let bench = Bench::new();
    assert_eq!(bench.run("man --topics --dir pages/man7").code(), 0);
    let groff = has("groff", &["--version"]);
    let mut count = 0;
    for line in bench.run("help topics").out.lines() {
        let name = line.split_whitespace().next().unwrap();
        let file = format!("pages/man7/bdp-{name}.7");
        if name.ends_with(".schema") {
            assert!(!bench.path(&file).exists(), "{file}");
            continue;
        }
        count += 1;
        assert_eq!(fs::read_to_string(bench.path(&file)).unwrap(), bench.run(&format!("man {name}")).out);
        if groff {
            assert!(rendered(&bench, &file).contains("DESCRIPTION"), "{file}");
        }
    }
    assert_eq!(fs::read_dir(bench.path("pages/man7")).unwrap().count(), count);
    let page = bench.run("man units").out;
    for part in
        [".TH BDP-UNITS 7 \" \" \"bdp ", "bdp\\-units \\- notation of rates", "bdp measure ams1 \\-t 30s"]
    {
        assert!(page.contains(part), "no {part} in\n{page}");
    }
    assert!(bench.run("man --topics").refusal(2).contains("--dir"));
}

#[test]
fn the_page_of_bdp_has_what_a_reader_looks_for() {
    let page = Bench::new().run("man").out;
    for part in ["bdp.sqlite", "NO_COLOR", "XDG_DATA_HOME", "bdp\\-lab(1)", "INVALID", "tshark"] {
        assert!(page.contains(part), "no {part} in\n{page}");
    }
    let run = Bench::new().run("man lab run").out;
    for part in ["\\-\\-capture", "EXAMPLES", "bdp lab run s3\\-30k", "bdp\\-lab(1)"] {
        assert!(run.contains(part), "no {part} in\n{run}");
    }
}

#[test]
fn a_page_of_nothing_and_a_folder_that_can_not_be_made_are_refused() {
    let bench = Bench::new();
    let ended = bench.run("man lab rum");
    assert!(ended.refusal(2).contains("'rum'"), "{}", ended.err);
    bench.write("file", "");
    let ended = bench.run("man --dir file/man1");
    assert!(ended.refusal(3).contains("'file/man1'"), "{}", ended.err);
    bench.run("completions tcsh").refusal(2);
}

#[test]
fn shells_take_their_scripts() {
    let bench = Bench::new();
    for (shell, arguments) in [("bash", &["-n"][..]), ("zsh", &["-n"][..]), ("fish", &["--no-execute"][..])] {
        let script = bench.run(&format!("completions {shell}")).out;
        assert!(script.contains("selftest") && script.contains("capture"), "{shell}: {script}");
        if !has(shell, &["--version"]) {
            continue;
        }
        let mut child = Command::new(shell)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && complaint.is_empty(), "{shell}: {complaint}");
    }
}

/// As a user meets it: the words that bash offers behind `bdp lab r`.
#[test]
fn bash_completes_a_subcommand() {
    if !has("bash", &["--version"]) {
        return;
    }
    let bench = Bench::new();
    bench.write("bdp.bash", bench.run("completions bash").out);
    let output = Command::new("bash")
        .args(["--norc", "-c"])
        .arg(". ./bdp.bash; COMP_WORDS=(bdp lab r); COMP_CWORD=2; _bdp bdp r lab; echo \"${COMPREPLY[@]}\"")
        .current_dir(bench.folder())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.trim(), "run", "{}", String::from_utf8_lossy(&output.stderr));
}

/// What bash offers at the end of a line, with bdp where the scripts look for it.
fn offered(bench: &Bench, line: &str) -> Vec<String> {
    bench.write("bdp.bash", bench.run("completions bash").out);
    let words: Vec<&str> = line.split(' ').collect();
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let script = format!(
        "bdp() {{ '{}' \"$@\"; }}; . ./bdp.bash; COMP_WORDS=(bdp {}); COMP_CWORD={}; _bdp bdp '{}' ''; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        crate::support::BDP,
        quoted.join(" "),
        words.len(),
        words[words.len() - 1]
    );
    let mut command = Command::new("bash");
    command.args(["--norc", "-c", &script]).current_dir(bench.folder()).env("XDG_DATA_HOME", bench.folder());
    let output = command.output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().filter(|l| !l.is_empty()).map(str::to_owned).collect()
}

#[test]
fn bash_offers_runs_labels_scenarios_and_topics() {
    if !has("bash", &["--version"]) {
        return;
    }
    let bench = Bench::new();
    fs::create_dir(bench.path("bdp")).unwrap();
    let mut store = SqliteStore::open(bench.store()).unwrap();
    let mut labelled = |label: &str| {
        store.begin_run(&NewRun { label: Some(label.to_owned()), ..NewRun::default() }).unwrap()
    };
    // Ids are hexadecimal: none begins like these.
    let (id, _) = (labelled("quiet"), labelled("two words"));
    assert_eq!(offered(&bench, "show qu"), ["quiet"]);
    assert!(offered(&bench, &format!("measure ams1 --baseline {}", &id[..3])).contains(&id));
    assert_eq!(offered(&bench, "compare quiet qu"), ["quiet"]);
    assert_eq!(offered(&bench, "lab run s3-3"), ["s3-30k"]);
    assert_eq!(offered(&bench, "help wind"), ["windows"]);
    assert!(offered(&bench, "measure ams1 -C ").iter().any(|name| name == "reno" || name == "cubic"));
    // What the script knows itself, and another store.
    assert!(offered(&bench, "show --js").contains(&"--json".to_owned()));
    assert!(offered(&bench, "show --store ./absent.sqlite qu").is_empty());
}

#[test]
fn every_document_is_a_topic_of_help() {
    let bench = Bench::new();
    let list = bench.run("help topics").out;
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut printed: Vec<String> = list
        .lines()
        .map(|line| bench.run(&format!("help {}", line.split_whitespace().next().unwrap())).out)
        .collect();
    for entry in fs::read_dir(docs).unwrap() {
        let path = entry.unwrap().path();
        // One has tables wider than any terminal, one lists the pages.
        let left_out =
            ["comparison.md", "SUMMARY.md", "images", "decisions"].iter().any(|name| path.ends_with(name));
        if !left_out {
            let text = fs::read_to_string(&path).unwrap();
            // A schema as it is, and of a document the heading that it begins with.
            let begins = |topic: &String| match text.strip_prefix("# ") {
                Some(text) => topic.lines().next() == text.lines().next(),
                None => *topic == text,
            };
            let at = printed.iter().position(begins);
            printed.swap_remove(at.unwrap_or_else(|| panic!("{} is no topic", path.display())));
        }
    }
    assert!(printed.is_empty(), "{printed:?}");
    assert_eq!(bench.run("help Windows").out, bench.run("help window").out);
    assert!(bench.run("help nonsense").refusal(2).contains("bdp help topics"));
    // What a text of help points to is there, and no subcommand's help hides it.
    let mut commands = BTreeSet::new();
    subcommands(&bench, "", &mut commands);
    let mut named = 0;
    for command in &commands {
        let help = bench.run(&format!("{} --help", command.trim_start_matches("bdp").trim())).out;
        let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for topic in words.split("'bdp help ").skip(1).filter_map(|rest| rest.split('\'').next()) {
            assert!(list.contains(&format!("  {topic} ")), "{command}: {topic}");
            assert!(!commands.contains(&format!("bdp {topic}")), "{command}: {topic}");
            named += 1;
        }
    }
    assert!(named > 8, "{named}");
}
