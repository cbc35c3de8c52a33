//! JSON Schemas of the documents made in this crate: derived from their types, with the wording added next to the types' members.

use bdp_model::capture::pair::CapturePair;
use bdp_model::capture::{CaptureSummary, CapturedFlow};
use bdp_model::finding::Finding;
use bdp_model::measurement::Measurement;
use bdp_model::measurement::expectation::Judgement;
use bdp_model::measurement::instrument::Instrument;
use bdp_model::probes::hops::PathReport;
use bdp_model::probes::ping::Ping;
use bdp_model::schema::{About, Draft, add, remove};
use bdp_model::tuning::{Plan, Rehearsal, Verification};
use bdp_model::twin::TwinReport;
use bdp_model::watch::{SocketReading, SocketTotal, WATCH_SCHEMA, WatchSummary};
use serde_json::{Value, json};

use crate::capture::CAPTURE_SCHEMA;
use crate::comparison;
use crate::json::Cases;
use crate::measurement::Measurements;
use crate::sweep_report;
use crate::time_spent::Spent;
use crate::tuning::show_json;

/// Returns each document's schema name and schema.
pub fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("measurement", measurement()),
        ("lab-run", lab_run()),
        ("ping", ping()),
        ("path", path()),
        ("selftest", selftest()),
        ("sweep", sweep()),
        ("comparison", comparison()),
        ("tune-show", tune_show()),
        ("pcap", pcap()),
        ("watch", watch()),
        ("plan", plan()),
        ("rehearsal", rehearsal()),
        ("verification", verification()),
        ("twin", twin()),
    ]
}

fn measurement() -> Value {
    let mut draft = Draft::of::<Measurements<'_>>();
    let one = draft.refer::<Measurement>();
    let several = draft.nest("Measurements");
    draft.root()["oneOf"] = json!([one, several]);
    word_transfers(&mut draft, "DirectionResult");
    let of_others = PING_CAVEATS.iter().chain(&INSTRUMENT_CAVEATS);
    caveats(&mut draft, |kind| !of_others.clone().any(|other| *other == kind));
    draft.finish(About {
        id: "measurement:1",
        title: "Output of bdp measure --json",
        first: ": the measurements and a summary; $defs/measurement is one of them, as --json-stream prints it too",
        page: "measurement.md",
    })
}

fn lab_run() -> Value {
    let mut draft = Draft::of::<Cases<'_>>();
    word_transfers(&mut draft, "FlowRecord");
    if let Some(fidelity) = draft.definition("Fidelity") {
        add(
            fidelity,
            "broken",
            json!({ "type": "array", "items": words(), "description": "Each bound that was broken, with the measured value." }),
        );
        add(
            fidelity,
            "cause",
            json!({ "type": ["string", "null"], "description": "What broke them, if known, and what to do about it." }),
        );
        add(
            fidelity,
            "next",
            json!({ "type": ["string", "null"], "description": "The command that runs the case by the virtual clock; null if it is valid or ran so." }),
        );
    }
    if let Some(record) = draft.definition("Record") {
        record["properties"]["params"]["additionalProperties"] = json!({ "not": { "type": "null" } });
    }
    selftest_of_lab(&mut draft);
    contradictions(&mut draft);
    draft.finish(About { id: "cases:1", title: "Output of bdp lab run --json", first: "", page: "record.md" })
}

/// Adds the members of `bdp lab selftest --json`.
fn selftest_of_lab(draft: &mut Draft) {
    let side = json!({
        "type": "object",
        "description": "Results of the TCP flow, means over its repetitions.",
        "properties": {
            "goodput_bps": { "type": "number", "description": "Goodput." },
            "goodput_sd_bps": { "type": ["number", "null"], "description": "Standard deviation between repetitions; null if there is only one." },
            "retransmits": { "type": "number", "description": "Retransmitted segments." },
            "retransmits_sd": { "type": ["number", "null"], "description": "Standard deviation between repetitions; null if there is only one." },
            "rtt_loaded_ns": { "type": "number", "description": "Median round trip of probes beside the flow." },
        },
        "required": ["goodput_bps", "goodput_sd_bps", "retransmits", "retransmits_sd", "rtt_loaded_ns"],
    });
    let all = |mut object: Value| {
        let names = object["properties"].as_object().into_iter().flat_map(|members| members.keys().cloned());
        object["required"] = names.collect();
        object["type"] = "object".into();
        object
    };
    let check = all(json!({ "properties": {
        "what": described(words(), "What was checked."),
        "measured": { "type": "string", "description": "The value that was measured, with its unit." },
        "bound": { "type": "string", "description": "The bound, with its unit; `-` if there is none." },
        "held": { "type": "boolean", "description": "Whether it passed." },
    } }));
    let cell = all(json!({ "properties": {
        "rate_bps": { "type": "integer", "minimum": 1, "description": "Rate of the link." },
        "delay_ns": { "type": "integer", "minimum": 0, "description": "Delay of the link, one way." },
        "limit_packets": { "type": "integer", "minimum": 1, "description": "Limit of the queue." },
        "loss": { "type": "number", "description": "Probability of loss." },
        "congestion_control": { "type": "string", "description": "Congestion control of the sender." },
        "duration_ns": { "type": "integer", "minimum": 1, "description": "Duration of each flow." },
        "repetitions": { "type": "integer", "minimum": 1, "description": "Number of flows." },
        "emulator": side,
        "netem": side,
        "goodput_ratio": { "type": ["number", "null"], "description": "Goodput over the emulator / goodput over netem." },
        "tolerance": { "type": "string", "description": "The largest difference of the goodputs that counts as agreement." },
        "agrees": { "type": "boolean", "description": "Whether they agree." },
    } }));
    draft.root()["properties"]["checks"] = json!({
        "type": "array",
        "minItems": 0,
        "description": "Checks of the emulator; only from `bdp lab selftest`.",
        "items": check,
    });
    draft.root()["properties"]["beside_netem"] = json!({
        "type": "array",
        "minItems": 0,
        "description": "A TCP flow over the emulator and over netem under each condition; only from `bdp lab selftest --netem`.",
        "items": cell,
    });
    let row = all(json!({ "properties": {
        "queue": { "type": "string", "description": "The kind of queue." },
        "train": { "type": "string", "description": "The queue's options and the train." },
        "kernel": { "type": "string", "description": "The kernel's version, or why there was none." },
        "frames": { "type": "integer", "minimum": 0, "description": "Frames offered." },
        "dropped": { "type": "integer", "minimum": 0, "description": "Frames dropped by the emulator." },
        "kernel_dropped": { "type": "integer", "minimum": 0, "description": "Frames dropped by the kernel." },
        "marked": { "type": "integer", "minimum": 0, "description": "Frames marked by the emulator." },
        "kernel_marked": { "type": "integer", "minimum": 0, "description": "Frames marked by the kernel." },
        "drawn": { "type": "boolean", "description": "Whether the queue draws random numbers, so that shares are compared instead of frames." },
        "unlike": { "type": "integer", "minimum": 0, "description": "Frames that one of them dropped or marked and the other did not." },
        "apart_ns": { "type": "integer", "minimum": 0, "description": "Largest difference between departures of the same frame." },
        "bound_ns": { "type": "integer", "minimum": 0, "description": "Largest difference allowed." },
        "delay_ns": { "type": "integer", "minimum": 0, "description": "Mean time from arrival to departure in the emulator." },
        "kernel_delay_ns": { "type": "integer", "minimum": 0, "description": "Mean time from arrival to departure in the kernel." },
        "sigma": { "type": "number", "description": "Mean difference of the numbers dropped and marked per second, in standard deviations of that mean." },
        "agrees": { "type": "boolean", "description": "Whether both agree: exactly, or, if drawn, within what equal probabilities allow." },
    } }));
    let mut queues = all(json!({ "properties": {
        "kernel": { "type": "string", "description": "Version of the kernel." },
        "rows": { "type": "array", "description": "A train of frames through each queue.", "items": row },
    } }));
    queues["description"] =
        "Queues of the emulator and of the kernel; only from `bdp lab selftest --queues`.".into();
    draft.root()["properties"]["beside_kernel_queues"] = queues;
}

/// Adds constraints between the members of a record.
fn contradictions(draft: &mut Draft) {
    if let Some(record) = draft.definition("Record") {
        record["allOf"] = json!([
            {
                "$comment": "A record that counts kept every bound, ran to its end and has a goodput.",
                "if": { "properties": { "valid": { "const": true } }, "not": { "anyOf": [{ "required": ["programs"] }, { "required": ["traffic"] }] } },
                "then": { "properties": {
                    "error": { "type": "null" },
                    "goodput_bps": { "type": "number" },
                    "fidelity": { "properties": { "valid": { "const": true } } },
                    "flows": { "minItems": 1 },
                } },
            },
            {
                "$comment": "One that does not count says why: an error, or a bound that was broken.",
                "if": { "properties": { "valid": { "const": false }, "error": { "type": "null" } }, "not": { "required": ["skipped"] } },
                "then": { "properties": { "fidelity": { "properties": { "valid": { "const": false }, "broken": { "minItems": 1 } } } } },
            },
        ]);
    }
    if let Some(fidelity) = draft.definition("Fidelity") {
        fidelity["if"] = json!({ "properties": { "valid": { "const": true } } });
        fidelity["then"] = json!({ "properties": { "broken": { "maxItems": 0 } } });
    }
    if let Some(summary) = draft.definition("Summary") {
        let all = |names: &[&str], kind: &str| -> Value {
            names.iter().map(|name| ((*name).to_owned(), json!({ "type": kind }))).collect()
        };
        let goodput = ["goodput_median_bps", "goodput_min_bps", "goodput_max_bps", "goodput_mean_bps"];
        let rest = [
            "goodput_sd_bps",
            "goodput_mean_interval_bps",
            "loss_models",
            "expected_median_bps",
            "model_ratio_median",
            "rtt_idle_min_ns",
            "on_the_wire_median_bytes",
        ];
        summary["if"] = json!({ "properties": { "n_valid": { "const": 0 } } });
        summary["then"] = json!({ "properties": all(&[&goodput[..], &rest].concat(), "null") });
        summary["then"]["properties"]["n_missed"] = json!({ "const": 0 });
        summary["else"] = json!({ "properties": all(&goodput, "number") });
    }
}

fn ping() -> Value {
    let mut draft = Draft::of::<Ping>();
    add(draft.root(), "method", described(words(), "How a round trip was made, in a sentence."));
    let judged = draft.refer::<Vec<Judgement>>();
    let error = json!({ "type": ["string", "null"] });
    add(draft.root(), "run", described(json!({ "type": "null" }), "Always null: nothing is stored."));
    add(draft.root(), "expectations", described(judged, "The outcome of each `--expect`, in their order."));
    add(
        draft.root(),
        "error",
        described(error, "Why no probe was answered, and what to do; null if one was."),
    );
    caveats(&mut draft, |kind| PING_CAVEATS.contains(&kind));
    draft.finish(About { id: "ping:1", title: "Output of bdp ping --json", first: "", page: "ping.md" })
}

fn path() -> Value {
    let mut draft = Draft::of::<PathReport>();
    if let Some(method) = draft.definition("ProbeMethod") {
        add(method, "text", described(words(), "The same in a sentence."));
    }
    let sentence = json!({
        "type": "object",
        "required": ["about", "text"],
        "properties": {
            "about": { "enum": ["queue", "loss", "MTU", "branches", "marks", "NOTE"], "description": "Its subject." },
            "text": described(words(), "The sentence."),
        },
    });
    add(
        draft.root(),
        "verdict",
        json!({ "type": "array", "items": sentence, "description": "The conclusions, as printed." }),
    );
    draft.finish(About { id: "path:1", title: "Output of bdp path --json", first: "", page: "path.md" })
}

fn selftest() -> Value {
    let mut draft = Draft::of::<Instrument>();
    add(draft.root(), "run", described(json!({ "type": "null" }), "Always null: nothing is stored."));
    caveats(&mut draft, |kind| INSTRUMENT_CAVEATS.contains(&kind));
    draft.finish(About {
        id: "selftest:1",
        title: "Output of bdp selftest --json",
        first: "",
        page: "ping.md",
    })
}

fn sweep() -> Value {
    let mut draft = Draft::of::<sweep_report::Document<'_>>();
    let members = &mut draft.root()["properties"];
    let complete = |required: &[&str]| json!({ "type": "object", "required": required });
    members["cases"]["items"] = complete(&["schema", "valid", "params"]);
    members["measurements"]["items"] = complete(&["schema", "request", "directions"]);
    draft.finish(About { id: "sweep:1", title: "Output of bdp sweep --json", first: "", page: "sweep.md" })
}

fn comparison() -> Value {
    let draft = Draft::of::<comparison::Document<'_>>();
    draft.finish(About {
        id: "comparison:1",
        title: "Output of bdp compare --json",
        first: "",
        page: "compare.md",
    })
}

fn tune_show() -> Value {
    let draft = Draft::of::<show_json::Document<'_>>();
    draft.finish(About {
        id: "tune-show:1",
        title: "Output of bdp tune show --json",
        first: "",
        page: "settings.md",
    })
}

fn pcap() -> Value {
    let mut draft = Draft::of::<CaptureSummary>();
    let flow = draft.refer::<CapturedFlow>();
    let finding = draft.refer::<Finding>();
    let spent = draft.refer::<Option<Spent>>();
    let pair = draft.refer::<CapturePair>();
    word_findings(&mut draft);
    let capture = draft.root();
    let list = |items: Value, about: &str| json!({ "type": "array", "items": items, "description": about });
    let text = json!({ "type": ["string", "null"] });
    add(capture, "name", json!({ "type": "string", "description": "The file." }));
    add(
        capture,
        "broke",
        described(text, "Why it could not be read to its end; what was read before then counts."),
    );
    add(capture, "caveats", list(words(), "Reasons for caution, in words."));
    add(capture, "flows", list(flow, "Its flows, the one with the most bytes first."));
    capture["description"] = "A capture, or several of one place.".into();
    if let Some(direction) = draft.definition("CapturedDirection") {
        add(direction, "findings", list(finding, "What limits it, the binding limit first."));
        add(direction, "time_spent", described(spent, "Where its time went; null if unknown."));
    }
    let capture = draft.nest("Capture");
    *draft.root() = json!({
        "type": "object",
        "properties": {
            "schema": { "const": CAPTURE_SCHEMA, "description": "Name and version of the document's format." },
            "captures": list(capture, "One for each file, in order."),
            "pairs": list(
                pair,
                "Captures of one path that hold the same connections, two by two; empty if there are none, and with --separate.",
            ),
        },
        "required": ["schema", "captures", "pairs"],
        "$defs": draft.root()["$defs"],
    });
    draft.finish(About { id: "pcap:1", title: "Output of bdp pcap --json", first: "", page: "captures.md" })
}

fn watch() -> Value {
    let mut draft = Draft::of::<SocketReading>();
    let socket = draft.nest("Socket");
    let total = draft.refer::<SocketTotal>();
    let end = draft.refer::<WatchSummary>();
    word_findings(&mut draft);
    let reading = draft.definition("Socket").map_or(Value::Null, |socket| socket.clone());
    let took = json!({ "type": "integer", "minimum": 0, "description": "Length of the interval." });
    let note = json!({ "type": "object", "properties": {}, "required": [], "description": "A process that ended, or a reading that failed." });
    draft.root()["$defs"]["Note"] = note;
    if let Some(note) = draft.definition("Note") {
        add(note, "text", described(words(), "What happened."));
    }
    if let Some(socket) = draft.definition("Socket") {
        add(socket, "took_ns", took);
    }
    // The last figures of a total lack the members of a line.
    draft.root()["$defs"]["SocketReading"] = reading;
    if let Some(end) = draft.definition("WatchSummary") {
        for absent in ["sockets", "took_ns"] {
            remove(end, absent);
        }
        end["description"] = "The last line.".into();
    }
    for (name, kind) in
        [("Socket", "socket"), ("Note", "note"), ("SocketTotal", "total"), ("WatchSummary", "end")]
    {
        let Some(line) = draft.definition(name) else { continue };
        add(
            line,
            "schema",
            json!({ "const": WATCH_SCHEMA, "description": "Name and version of the line's format." }),
        );
        add(line, "kind", json!({ "const": kind, "description": "Kind of line." }));
        add(
            line,
            "at_ns",
            json!({ "type": "integer", "minimum": 0, "description": "Time since watching began." }),
        );
    }
    let note = json!({ "$ref": "#/$defs/Note" });
    draft.root()["oneOf"] = json!([socket, note, total, end]);
    draft.finish(About { id: "watch:1", title: "A line of bdp watch --json", first: "", page: "watch.md" })
}

fn plan() -> Value {
    let draft = Draft::of::<Plan>();
    draft.finish(About {
        id: "plan:1",
        title: "Output of bdp tune plan --json",
        first: ": the smallest change of settings for a path, what else would do, and what was left alone; bdp tune apply and bdp tune export read it",
        page: "loop.md",
    })
}

fn rehearsal() -> Value {
    let draft = Draft::of::<Rehearsal>();
    draft.finish(About {
        id: "rehearsal:1",
        title: "Output of bdp rehearse --json",
        first: ": a plan and its alternatives on the emulated twin of a measured path",
        page: "loop.md",
    })
}

fn verification() -> Value {
    let draft = Draft::of::<Verification>();
    draft.finish(About {
        id: "verification:1",
        title: "Output of bdp verify --json",
        first: ": a measurement after a change beside the one before it and the prediction",
        page: "loop.md",
    })
}

fn twin() -> Value {
    let draft = Draft::of::<TwinReport>();
    draft.finish(About { id: "twin:1", title: "Output of bdp twin --json", first: "", page: "twin.md" })
}

fn words() -> Value {
    json!({ "type": "string", "minLength": 1 })
}

fn described(mut schema: Value, description: &str) -> Value {
    schema["description"] = description.into();
    schema
}

/// Adds to a transfer its findings in words, its time shares and its segment shares.
fn word_transfers(draft: &mut Draft, of: &str) {
    word_findings(draft);
    // The note has words on its own, but none as evidence of a caveat.
    if let Some(mut note) = draft.definition("WindowShortfall").map(|note| note.clone()) {
        word(Some(&mut note));
        draft.root()["$defs"]["WindowNote"] = note;
        let note = json!({ "anyOf": [{ "$ref": "#/$defs/WindowNote" }, { "type": "null" }] });
        draft.definition("WindowReport").into_iter().for_each(|window| add(window, "note", note.clone()));
    }
    let spent = draft.refer::<Option<Spent>>();
    let Some(transfer) = draft.definition(of) else { return };
    let share = |of: &str| json!({ "type": ["number", "null"], "minimum": 0, "description": of });
    add(
        transfer,
        "retransmit_ratio",
        share(
            "Retransmitted segments / segments sent, omit included; null for datagrams, and if it is not known.",
        ),
    );
    add(
        transfer,
        "loss_ratio",
        share(
            "Segments retransmitted but not needlessly / segments sent, an upper bound of the loss; of datagrams, lost / sent. Null if it is not known.",
        ),
    );
    let about = "Where the time of the first stream went; null for datagrams, and if the sender's kernel does not count it.";
    add(transfer, "time_spent", described(spent, about));
}

/// Adds words to the findings and each of their parts.
fn word_findings(draft: &mut Draft) {
    if let Some(finding) = draft.definition("Finding") {
        add(finding, "subject", described(words(), "What limits it, as a noun."));
        add(finding, "summary", described(words(), "The finding in a sentence."));
    }
    for part in ["Evidence", "Next", "Remedy", "Missing"] {
        if let Some(part) = draft.definition(part) {
            add(part, "text", described(words(), "The same in words."));
        }
    }
}

/// Caveats only in `bdp ping`.
const PING_CAVEATS: [&str; 4] = ["answers_dropped", "syn_retransmitted", "probes_left_out", "samples_capped"];

/// Caveats only in `bdp selftest`.
const INSTRUMENT_CAVEATS: [&str; 3] = ["one_processor", "clock_went_back", "processors_taken"];

/// Restricts the caveats to the kinds of this document, each with its words.
fn caveats(draft: &mut Draft, is_of_document: impl Fn(&str) -> bool) {
    word(draft.definition("Caveat"));
    for list in ["oneOf", "anyOf"] {
        if let Some(Value::Array(kinds)) = draft.definition("Caveat").and_then(|caveat| caveat.get_mut(list))
        {
            kinds.retain(|kind| kind["properties"]["kind"]["const"].as_str().is_some_and(&is_of_document));
        }
    }
}

/// Adds words to each kind of evidence; evidence given only in words has the kind `text`.
fn word(kinds: Option<&mut Value>) {
    let Some(kinds) = kinds else { return };
    let list = ["oneOf", "anyOf"].into_iter().find(|list| kinds[list].is_array()).unwrap_or("oneOf");
    for kind in kinds.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
        if kind["type"] == "string" {
            let about = kind["description"].take();
            *kind = json!({ "type": "object", "properties": { "kind": { "const": "text" } }, "required": ["kind"], "description": about });
        }
        add(kind, "text", described(words(), "The same in words."));
    }
}
