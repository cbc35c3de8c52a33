//! Manual pages and completions: one for every subcommand, and what reads them has nothing to say.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::Bench;
use crate::support::machine::has;

/// Every subcommand, as `bdp ... --help` lists them, with what leads to it.
fn subcommands(bench: &Bench, path: &str, found: &mut BTreeSet<String>) {
    let help = bench.run(&format!("{path} --help")).out;
    found.insert(format!("bdp {path}").trim().to_owned());
    let listed = help.lines().skip_while(|l| *l != "Commands:").skip(1).take_while(|l| !l.is_empty());
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
    let output = Command::new("groff")
        .args(["-man", "-Tascii", "-P-cbou", "-ww"])
        .arg(bench.path("pages/man1").join(file))
        .output()
        .unwrap();
    let warnings = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && warnings.is_empty(), "{file}: {warnings}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("SYNOPSIS"), "{file}");
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
