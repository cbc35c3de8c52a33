//! `docs/guide.md` and `README.md`, carried out: every command of them, in its order, against a server on loopback, and what they show held
//! against what comes.
//!
//! A block marked `console` has commands, after `$ `, and what they print; one marked `text` is what the command before it
//! printed on a path that loopback is not, of which the layout is held; one marked `toml` is a file whose first line is its
//! name. What is not run here says why behind its mark, `sh not-run: REASON` or `text not-run: REASON`. A block without a mark fails.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::machine::shared_lab;
use crate::support::serving::free_port;
use crate::support::untested::not_judged;
use crate::support::{Bench, Running, start};

/// What is shortened: a reader has time, a test has not, and on loopback other figures can be relied upon.
const SHORTER: [(&str, &str); 10] = [
    ("-t 5 -O 1", "-O 0.1"),
    ("bdp measure ams1 -n 20M", "bdp measure --idle 0.1 ams1 -n 20M"),
    ("bdp measure ams1", "bdp measure ams1 -t 0.3 --idle 0.1"),
    ("bdp path ams1", "bdp path ams1 -c 3 -i 0.05"),
    ("bdp sweep ams1", "bdp sweep ams1 -t 0.2 -O 0.1 --idle 0.1 --no-refine"),
    ("bdp sweep --in", "bdp sweep -t 1.2 -O 0.1 --no-refine --in"),
    ("bdp lab run", "bdp lab run --attempts 1 --set flow.duration=1.2s --set flow.omit=0.1s"),
    (">=900M", ">=1M"),
    // So few probes have no 95th percentile.
    ("rtt.idle.p95<=30ms", "rtt.idle.p50<=3s"),
    (">=40G", ">=40000G"),
];

/// Commands that may end with another code than 0, and why.
const MAY_END: [(&str, &[i32], &str); 4] = [
    ("--baseline", &[0, 1], "goodput may really be less on a machine that is busier than before"),
    ("bdp compare", &[0, 1], "the same"),
    ("bdp lab run", &[0, 1, 5], "on a busy machine a case may be INVALID, and so short it may miss its bar"),
    ("bdp sweep --in", &[0, 5], "on a busy machine a case may be INVALID"),
];

/// The mark of a block that is not run; its reason follows.
const NOT_RUN: &str = " not-run: ";

/// What follows a number, whatever its size.
const UNITS: [&str; 13] =
    ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "ns", "us", "ms", "s", "B", "KiB", "MiB", "GiB", "%"];

/// Lines of a layout that depend on the figures: what can't be recommended or resolved has none, nor slow start over loopback, nor what needs no experiment.
const NOT_ALWAYS: [&str; 10] =
    ["below:", "throughput", "latency", "memory", "start", "time", "tried", "RPM", "one", "spread"];

/// The whole guide may take so long, on a busy machine.
const LONGEST: Duration = Duration::from_secs(240);

#[derive(Debug, PartialEq)]
enum Step {
    Command { line: String, shown: Vec<String>, layout: Vec<String> },
    File { name: String, text: String },
    NotRun { why: String },
}

/// The blocks of a page in their order.
fn steps(markdown: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut fence: Option<&str> = None;
    for line in markdown.lines() {
        if let Some(mark) = line.strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(mark) };
            if let Some((_, why)) = fence.and_then(|mark| mark.split_once(NOT_RUN)) {
                assert!(why.trim().len() > 10, "'{line}' has no reason");
                steps.push(Step::NotRun { why: why.trim().to_owned() });
            }
            if fence == Some("toml") {
                steps.push(Step::File { name: String::new(), text: String::new() });
            }
            continue;
        }
        match (fence, steps.last_mut()) {
            (None, _) => {}
            (Some(mark), _) if mark.contains(NOT_RUN) => {}
            (Some("console"), last) => match (line.strip_prefix("$ "), last) {
                (Some(command), _) => {
                    steps.push(Step::Command {
                        line: command.to_owned(),
                        shown: Vec::new(),
                        layout: Vec::new(),
                    });
                }
                (None, Some(Step::Command { shown, .. })) => shown.push(line.to_owned()),
                (None, _) => panic!("'{line}' stands before the first command"),
            },
            (Some("text"), Some(Step::Command { layout, .. })) => layout.extend(heading(line)),
            (Some("toml"), Some(Step::File { name, text })) => {
                if name.is_empty() {
                    *name = line.strip_prefix("# ").expect("a file begins with its name").to_owned();
                }
                *text += &format!("{line}\n");
            }
            (Some(other), _) => panic!(
                "'{line}' is in a block marked '{other}', and not console, text or toml, nor 'sh{NOT_RUN}REASON'"
            ),
        }
    }
    steps
}

/// What a line of a layout begins with, where that is a word and its place is at the edge.
fn heading(line: &str) -> Option<String> {
    let first = line.split(' ').next()?;
    (!first.is_empty() && !words(first).is_empty() && !NOT_ALWAYS.contains(&first)).then(|| first.to_owned())
}

/// The words of a line without figures and what depends on their size.
fn words(line: &str) -> Vec<&str> {
    line.split_whitespace()
        .filter(|word| !word.starts_with("...") && !word.contains(|c: char| c.is_ascii_digit()))
        .filter(|word| !UNITS.contains(&word.trim_matches(|c: char| ",;()".contains(c))))
        .collect()
}

/// Whether the words of a line come in this order in one line of the output.
fn is_in(shown: &str, output: &str) -> bool {
    output.lines().any(|line| {
        let mut there = line.split_whitespace();
        words(shown).into_iter().all(|word| match word.strip_suffix("...") {
            Some(beginning) => there.any(|w| w.starts_with(beginning)),
            None => there.any(|w| w == word),
        })
    })
}

/// Whether a line is to come as it stands, figures included.
fn is_exact(command: &str, shown: &str) -> bool {
    let measures = command.contains("measure ams1") || command == "bdp";
    !shown.contains("...") && (!measures || shown.starts_with("exit code"))
}

fn squeeze(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What the guide shows and the output has not.
fn missing<'a>(command: &str, shown: &'a [String], output: &str, far: &str) -> Vec<&'a str> {
    let exact = |line: &str| {
        let wanted = squeeze(&line.replace("ams1", far));
        output.lines().any(|there| squeeze(there) == wanted)
    };
    shown
        .iter()
        .map(String::as_str)
        .filter(|line| !line.trim().is_empty() && *line != "...")
        .filter(|line| if is_exact(command, line) { !exact(line) } else { !is_in(line, output) })
        .collect()
}

fn shorter(line: &str, far: &str) -> String {
    let line = SHORTER.iter().fold(line.to_owned(), |line, (long, short)| line.replace(long, short));
    line.split(' ').map(|word| if word == "ams1" { far } else { word }).collect::<Vec<_>>().join(" ")
}

fn serve(bench: &Bench, line: &str, far: &str, shown: &[String]) -> Running {
    let options = line.strip_prefix("bdp ").unwrap().replace("serve", &format!("serve --listen {far}"));
    let mut server = start(bench.bdp(&options));
    server.wait_until("it listens", |p| !p.out().is_empty());
    assert_eq!(missing(line, shown, &server.out(), far), [""; 0], "{}", server.out());
    server
}

fn end(server: Running) {
    server.signal("TERM");
    let ended = server.wait();
    assert_eq!(ended.code(), 0, "{}", ended.err);
}

/// A page of this repository.
fn page(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}

#[test]
fn every_command_of_the_guide_works() {
    let commands = carry_out(&page("docs/guide.md"), None);
    assert!(commands > 30, "only {commands} commands found");
}

#[test]
fn every_command_of_the_readme_works() {
    // The line that starts the server is the guide's.
    let commands = carry_out(&page("README.md"), Some("bdp serve --open"));
    assert!(commands >= 3, "only {commands} commands found");
}

/// Runs every command of a page, in its order, beside a server that is started first where the page starts none; how many there are.
fn carry_out(markdown: &str, server: Option<&str>) -> usize {
    let steps = steps(markdown);
    let bench = Bench::new();
    let port = free_port();
    let far = format!("127.0.0.1:{port}");
    let lab = shared_lab();
    let began = Instant::now();
    let mut server: Option<Running> = server.map(|line| serve(&bench, line, &far, &[]));
    let mut commands = 0;
    for step in &steps {
        match step {
            Step::NotRun { why } => println!("not run: {why}"),
            Step::File { name, text } => drop(bench.write(name, text)),
            Step::Command { line, shown, .. } if line.starts_with("bdp serve") => {
                server.take().into_iter().for_each(end);
                server = Some(serve(&bench, line, &far, shown));
                commands += 1;
            }
            Step::Command { line, .. }
                if lab.is_none() && (line.contains("lab run") || line.contains("--in ")) => {}
            Step::Command { line, shown, layout } => {
                let ended = start(bench.shell(&shorter(line, &far))).wait();
                let codes = MAY_END.iter().find(|(part, ..)| line.contains(part));
                let codes = codes.map_or(&[0][..], |(_, codes, _)| codes);
                let output = format!("{}{}", ended.out, ended.err);
                println!("{:6.2} s  exit {}  {line}", began.elapsed().as_secs_f64(), ended.code());
                // A machine that stands still for a second can make a case fail, too, which is said in a line.
                let failed = codes.contains(&5) && ended.code() == 3 && output.contains("\nFAILED  ");
                match ended.code() {
                    3 if failed => not_judged("a command of the guide", "a case FAILED"),
                    5 if codes.contains(&5) => assert!(!ended.every_case_is_valid()),
                    code => assert!(codes.contains(&code), "{line}: exit {code}\n{output}"),
                }
                let missing = missing(line, shown, &output, &far);
                assert!(missing.is_empty(), "{line} did not print {missing:#?} but:\n{output}");
                for wanted in layout {
                    let there = output.lines().any(|line| heading(line).as_ref() == Some(wanted));
                    assert!(there, "{line} has no line that begins with '{wanted}' but:\n{output}");
                }
                commands += 1;
            }
        }
    }
    server.into_iter().for_each(end);
    assert!(began.elapsed() < LONGEST, "it took {:?}", began.elapsed());
    commands
}

#[test]
fn what_is_shown_is_held_against_the_output() {
    let shown = |text: &str| vec![text.to_owned()];
    let output = "knee  11.3 MiB on the wire: 40 Gbit/s\nexit code 3\nbdp measure 127.0.0.1:7 --token k\n";
    let far = "127.0.0.1:7";
    for good in
        ["knee  2 KiB on the ...", "knee ... the wire: 1 kbit/s", "exit code 3", "bdp measure ams1 --token k"]
    {
        assert!(missing("bdp calc", &shown(good), output, far).is_empty(), "{good}");
    }
    for bad in ["knee ... nowhere", "wire: ... knee", "exit code 1", "bdp measure ams1 --token other"] {
        assert_eq!(missing("bdp calc", &shown(bad), output, far), [bad]);
    }
    assert_eq!(missing("bdp measure ams1", &shown("exit code 1"), output, far), ["exit code 1"]);
    assert_eq!(
        shorter("bdp measure ams1 -R -t 5 -O 1", far),
        "bdp measure 127.0.0.1:7 -t 0.3 --idle 0.1 -R -O 0.1"
    );
}

#[test]
fn a_guide_is_read_by_its_marks() {
    let text = "a\n```console\n$ x\ny\n$ z\n```\n```text\npath  1\n  x\n12 a\n```\n```toml\n# f\nk = 1\n```\n```sh not-run: it builds the program\nmake x\n```\n";
    let command = |line: &str, shown: &[&str]| Step::Command {
        line: line.to_owned(),
        shown: shown.iter().map(|&s| s.to_owned()).collect(),
        layout: if line == "z" { vec!["path".to_owned()] } else { Vec::new() },
    };
    assert_eq!(
        steps(text),
        [
            command("x", &["y"]),
            command("z", &[]),
            Step::File { name: "f".to_owned(), text: "# f\nk = 1\n".to_owned() },
            Step::NotRun { why: "it builds the program".to_owned() },
        ]
    );
}

#[test]
fn block_without_a_mark_or_without_a_reason_fails() {
    for text in ["```\nbdp\n```\n", "```sh\nbdp\n```\n", "```sh not-run: \nbdp\n```\n"] {
        assert!(std::panic::catch_unwind(|| steps(text)).is_err(), "{text}");
    }
}
