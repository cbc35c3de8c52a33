//! Topics of help: the documents that ship with the program.

use crate::exit::{self, Outcome};
use crate::{output, prose, roff};

/// What a topic is called, which is no subcommand's name; what it is about, and its text.
struct Topic {
    name: &'static str,
    /// Of the document.
    file: &'static str,
    about: &'static str,
    text: &'static str,
}

macro_rules! topics {
    ($($name:literal $file:literal $about:literal,)*) => {
        [$(Topic { name: $name, file: $file, about: $about, text: include_str!(concat!("../../../docs/", $file)) }),*]
    };
}

static TOPICS: &[Topic] = &topics! {
    "guide" "guide.md" "from the first measurement to a report",
    "windows" "window.md" "the window on the wire, and how it is set",
    "units" "units.md" "how rates, sizes, times and shares are typed and printed",
    "exit-codes" "exit-codes.md" "what the exit code says, and errors as JSON",
    "store" "runs.md" "the store: labels, export, import, files in the place of runs",
    "measurement" "measurement.md" "what 'bdp measure' reports, member by member",
    "measurement-stream" "measurement-stream.md" "'bdp measure --json-stream'",
    "metrics" "metrics.md" "metrics for Prometheus",
    "round-trips" "ping.md" "round trips, and what their time is from and to",
    "latency" "latency.md" "latency beside throughput: probes, RPM, one way, host and path",
    "hops" "path.md" "the hops of a path, and what each does",
    "findings" "findings.md" "each finding: what it means, what was seen, what to do",
    "time-spent" "time.md" "where the time of a transfer went",
    "captures" "captures.md" "captures of packets: what limits the connections in them",
    "tcptrace" "tcptrace.md" "captures as tcptrace prints them, and where bdp differs",
    "tshark" "tshark.md" "packets as Wireshark names them, and where bdp differs",
    "watching" "watch.md" "sockets of other programs, while they run",
    "settings" "settings.md" "settings of TCP and of network cards: defaults by kernel, and stale advice",
    "sweeps" "sweep.md" "curves, knees and what to choose",
    "twins" "twin.md" "a measured path as an emulated one, and how closely it repeats",
    "comparisons" "compare.md" "two runs with intervals of confidence",
    "reports" "report.md" "pages and CSV",
    "download" "download.md" "servers of the web as the other end",
    "interop" "interop.md" "iperf3 and iperf2",
    "server" "serve.md" "the server: who may use it and how much",
    "ssh" "ssh.md" "a server for one measurement, by ssh",
    "speed" "speed.md" "how fast bdp itself can be",
    "scenario" "scenario.md" "the file of a scenario",
    "profiles" "profiles.md" "links by name: DSL, LTE, satellites and others",
    "evaluations" "evaluations.md" "comparisons of congestion controls with standard traffic",
    "accuracy" "accuracy.md" "how often bdp is right about a limit, beside NDT, T-RAT and TAPO",
    "exec" "exec.md" "your own programs on an emulated path",
    "virtual-clock" "virtual-clock.md" "the lab in virtual time: the same bits on any machine",
    "stacks" "stacks.md" "the kernels and other stacks that hosts run, and one suite for all",
    "stack-contract" "stack-contract.md" "how a TCP stack of your own is attached",
    "loop" "loop.md" "measure, plan, rehearse, apply, verify: the whole loop",
    "tuning" "tune.md" "changes of settings that can be undone",
    "record" "record.md" "what a case of a scenario produces, member by member",
    "fidelity" "fidelity.md" "how well the emulator kept its promise: INVALID",
    "emulator" "emulator.md" "how the lab emulates a path",
    "queues" "queues.md" "queues that manage themselves, beside the kernel's",
    "virtual-clock-validation" "virtual-clock-validation.md" "how exact the emulator is by the virtual clock, and beside netem",
    "s4" "s4.md" "TCP of three kernels under loss and reverse traffic, 6,000 cases of 60 s",
    "export" "export.md" "plans as scripts and files for other hosts",
    "protocol" "protocol.md" "what bdp says to bdp",
    "jobs" "jobs.md" "what runs, as data: jobs, events and outcomes in JSON",
    "measurement.schema" "measurement.schema.json" "JSON Schema of 'bdp measure --json'",
    "measurement-stream.schema" "measurement-stream.schema.json" "JSON Schema of 'bdp measure --json-stream'",
    "lab-run.schema" "lab-run.schema.json" "JSON Schema of 'bdp lab run --json'",
    "sweep.schema" "sweep.schema.json" "JSON Schema of 'bdp sweep --json'",
    "twin.schema" "twin.schema.json" "JSON Schema of 'bdp twin --json'",
    "comparison.schema" "comparison.schema.json" "JSON Schema of 'bdp compare --json'",
    "ping.schema" "ping.schema.json" "JSON Schema of 'bdp ping --json'",
    "pcap.schema" "pcap.schema.json" "JSON Schema of 'bdp pcap --json'",
    "path.schema" "path.schema.json" "JSON Schema of 'bdp path --json'",
    "watch.schema" "watch.schema.json" "JSON Schema of a line of 'bdp watch --json'",
    "tune-show.schema" "tune-show.schema.json" "JSON Schema of 'bdp tune show --json'",
    "selftest.schema" "selftest.schema.json" "JSON Schema of 'bdp selftest --json'",
    "stacks.schema" "stacks.schema.json" "JSON Schema of 'bdp lab stacks --json'",
    "conformance.schema" "conformance.schema.json" "JSON Schema of 'bdp lab conformance --json'",
    "tune.schema" "tune.schema.json" "JSON Schema of 'bdp tune apply', 'confirm', 'revert' and 'journal' --json",
    "tune-journal.schema" "tune-journal.schema.json" "JSON Schema of a journal of changed settings",
    "plan.schema" "plan.schema.json" "JSON Schema of 'bdp tune plan --json'",
    "rehearsal.schema" "rehearsal.schema.json" "JSON Schema of 'bdp rehearse --json'",
    "verification.schema" "verification.schema.json" "JSON Schema of 'bdp verify --json'",
    "job.schema" "job.schema.json" "JSON Schema of jobs, events and outcomes",
    "error.schema" "error.schema.json" "JSON Schema of an error",
};

/// What those are called that are texts.
pub fn texts() -> Vec<&'static str> {
    TOPICS.iter().filter(|topic| !topic.is_schema()).map(|topic| topic.name).collect()
}

/// What each is called.
pub fn names() -> impl Iterator<Item = &'static str> {
    TOPICS.iter().map(|topic| topic.name)
}

/// Prints the topic of this name, laid out in so many columns; `None` where there is none.
pub fn print(name: &str, columns: usize) -> Option<Outcome> {
    match name {
        "topics" => Some(output::print(&list())),
        name => find(name).map(|topic| match topic.is_schema() {
            true => output::print(topic.text),
            false => output::print(&prose::laid_out(&topic.prose(), columns)),
        }),
    }
}

/// The manual page of the topic of this name; `None` where there is none.
pub fn page(name: &str) -> Option<String> {
    find(name).map(Topic::page)
}

/// The manual pages: what each is called, and its text. A schema has none.
pub fn pages() -> impl Iterator<Item = (String, String)> {
    let prose = TOPICS.iter().filter(|topic| !topic.is_schema());
    prose.map(|topic| (format!("bdp-{}.7", topic.name), topic.page()))
}

impl Topic {
    fn is_schema(&self) -> bool {
        self.name.ends_with(".schema")
    }

    /// Its text, with the commands that print other documents where it names their files.
    fn prose(&self) -> String {
        let mut text = self.text.to_owned();
        for topic in TOPICS {
            let link = format!("[{0}]({0}", topic.file);
            while let Some(at) = text.find(&link) {
                let end = text[at..].find(')').map_or(text.len(), |length| at + length + 1);
                text.replace_range(at..end, &format!("`bdp help {}`", topic.name));
            }
        }
        text
    }

    fn page(&self) -> String {
        let text = if self.is_schema() { format!("```\n{}\n```\n", self.text) } else { self.prose() };
        roff::page(&format!("bdp-{}", self.name), self.about, &text)
    }
}

fn find(name: &str) -> Option<&'static Topic> {
    let name = name.to_ascii_lowercase();
    TOPICS.iter().find(|topic| topic.name == name || topic.name.trim_end_matches('s') == name)
}

/// What there is, a line each.
fn list() -> String {
    TOPICS.iter().map(|topic| format!("  {:<26}{}\n", topic.name, topic.about)).collect()
}

/// What is neither a subcommand nor a topic.
pub fn unknown(name: &str) -> anyhow::Error {
    let name = output::tame(name);
    exit::usage(format!(
        "'{name}' is neither a subcommand nor a help topic; 'bdp help topics' lists topics"
    ))
}
