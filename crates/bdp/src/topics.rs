//! Help topics: the documents that ship with the program.

use crate::exit::{self, Outcome};
use crate::{output, prose, roff};

/// Name of a topic, which is no subcommand's; its subject and its text.
struct Topic {
    name: &'static str,
    /// File of the document.
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
    "guide" "guide.md" "guide from the first measurement to a report",
    "windows" "window.md" "the window on the wire and how bdp sets it",
    "units" "units.md" "notation of rates, sizes, times and shares",
    "exit-codes" "exit-codes.md" "exit codes, and errors as JSON",
    "store" "runs.md" "the run store: labels, export, import, files instead of runs",
    "measurement" "measurement.md" "output of 'bdp measure': JSON, experiments, searches, caveats, rules",
    "measurement-members" "json-measurement.md" "members of the JSON of 'bdp measure', one by one",
    "measurement-stream" "measurement-stream.md" "events of 'bdp measure --json-stream'",
    "metrics" "metrics.md" "Prometheus metrics",
    "round-trips" "ping.md" "'bdp ping': round-trip times and where they are measured",
    "round-trip-members" "json-ping.md" "members of the JSON of 'bdp ping', one by one",
    "latency" "latency.md" "latency under load: probes, RPM, one-way delay, host and path delay",
    "hops" "path.md" "'bdp path': the hops of a path and their behaviour",
    "hop-members" "json-path.md" "members of the JSON of 'bdp path', one by one",
    "findings" "findings.md" "findings: meaning, evidence and remedies",
    "time-spent" "time.md" "what a transfer spent its time on",
    "captures" "captures.md" "'bdp pcap': limits of connections in packet captures",
    "capture-members" "json-pcap.md" "members of the JSON of 'bdp pcap', one by one",
    "tcptrace" "tcptrace.md" "output like tcptrace, and differences",
    "tshark" "tshark.md" "packet labels like Wireshark's, and differences",
    "watching" "watch.md" "'bdp watch': TCP sockets of running programs",
    "watching-members" "json-watch.md" "members of the JSON of 'bdp watch', one by one",
    "settings" "settings.md" "TCP and network card settings: defaults by kernel, outdated advice",
    "sweeps" "sweep.md" "'bdp sweep': curves, their knees and recommended values",
    "sweep-members" "json-sweep.md" "members of the JSON of 'bdp sweep', one by one",
    "twin-members" "json-twin.md" "members of the JSON of 'bdp twin', one by one",
    "plan-members" "json-plan.md" "members of the JSON of 'bdp tune plan', one by one",
    "rehearsal-members" "json-rehearsal.md" "members of the JSON of 'bdp rehearse', one by one",
    "verification-members" "json-verification.md" "members of the JSON of 'bdp verify', one by one",
    "tune-members" "json-tune.md" "members of the JSON of 'bdp tune apply', one by one",
    "tune-show-members" "json-tune-show.md" "members of the JSON of 'bdp tune show', one by one",
    "job-members" "json-job.md" "members of the JSON of jobs, events and outcomes, one by one",
    "twins" "twin.md" "'bdp twin': emulating a measured path, and the accuracy",
    "comparisons" "compare.md" "'bdp compare': two runs with confidence intervals",
    "comparison-members" "json-comparison.md" "members of the JSON of 'bdp compare', one by one",
    "reports" "report.md" "'bdp report': HTML pages and CSV",
    "browser" "page.md" "'bdp page': the page in a browser, and its HTTP interface",
    "visitors" "visitors.md" "'bdp serve --page': browsers test the path to a server",
    "download" "download.md" "measuring to web servers by download",
    "interop" "interop.md" "interoperation with iperf3 and iperf2",
    "server" "serve.md" "'bdp serve': access control and limits",
    "ssh" "ssh.md" "starting a server for one measurement by ssh",
    "speed" "speed.md" "the maximum speed of bdp itself",
    "scenario" "scenario.md" "the format of scenario files",
    "profiles" "profiles.md" "link profiles: DSL, LTE, satellites and others",
    "evaluations" "evaluations.md" "comparisons of congestion controls with standard traffic",
    "accuracy" "accuracy.md" "accuracy of findings, compared with NDT, T-RAT and TAPO",
    "exec" "exec.md" "running your own programs on an emulated path",
    "virtual-clock" "virtual-clock.md" "the lab in virtual time: identical results on any machine",
    "stacks" "stacks.md" "kernels and other TCP stacks for hosts, and their conformance suite",
    "stack-contract" "stack-contract.md" "the interface for attaching your own TCP stack",
    "loop" "loop.md" "'bdp fix': measure, plan, rehearse, apply, verify",
    "tuning" "tune.md" "'bdp tune': reversible changes of settings",
    "record" "record.md" "the JSON of 'bdp lab run': records of cases and their summary",
    "record-members" "json-lab-run.md" "members of the JSON of 'bdp lab run', one by one",
    "fidelity" "fidelity.md" "accuracy of the emulator: INVALID cases, arithmetic, netem",
    "emulator" "emulator.md" "how the lab emulates a path",
    "queues" "queues.md" "AQM queues, compared with the kernel's",
    "s4" "s4.md" "TCP of three kernels under loss and reverse traffic, 6,000 cases of 60 s",
    "export" "export.md" "exporting plans as scripts and files for other hosts",
    "protocol" "protocol.md" "the protocol between bdp client and server",
    "jobs" "jobs.md" "jobs, events and outcomes in JSON",
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

/// Names of the topics that are texts.
pub fn texts() -> Vec<&'static str> {
    TOPICS.iter().filter(|topic| !topic.is_schema()).map(|topic| topic.name).collect()
}

/// Names of all topics.
pub fn names() -> impl Iterator<Item = &'static str> {
    TOPICS.iter().map(|topic| topic.name)
}

/// Prints the topic of this name, in `columns` columns; `None` if there is none.
pub fn print(name: &str, columns: usize) -> Option<Outcome> {
    match name {
        "topics" => Some(output::print(&list())),
        name => find(name).map(|topic| match topic.is_schema() {
            true => output::print(topic.text),
            false => output::print(&prose::laid_out(&topic.prose(), columns)),
        }),
    }
}

/// The manual page of the topic of this name; `None` if there is none.
pub fn page(name: &str) -> Option<String> {
    find(name).map(Topic::page)
}

/// Names and texts of the manual pages. A schema has none.
pub fn pages() -> impl Iterator<Item = (String, String)> {
    let prose = TOPICS.iter().filter(|topic| !topic.is_schema());
    prose.map(|topic| (format!("bdp-{}.7", topic.name), topic.page()))
}

impl Topic {
    fn is_schema(&self) -> bool {
        self.name.ends_with(".schema")
    }

    /// Its text, with file names of other documents replaced by the commands that print them.
    fn prose(&self) -> String {
        let mut text: String =
            self.text.split_inclusive('\n').filter(|line| !line.starts_with("<!--")).collect();
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

/// The list of topics, one per line.
fn list() -> String {
    TOPICS.iter().map(|topic| format!("  {:<26}{}\n", topic.name, topic.about)).collect()
}

/// Error for a name that is neither a subcommand nor a topic.
pub fn unknown(name: &str) -> anyhow::Error {
    let name = output::tame(name);
    exit::usage(format!("'{name}' is neither a subcommand nor a help topic; 'bdp help topics' lists topics"))
}
