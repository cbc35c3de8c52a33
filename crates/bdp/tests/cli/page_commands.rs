//! The page's commands: jobs of each kind, answers, captures, what if, and what it refuses.

use serde_json::{Value, json};

use crate::page::{Page, open};
use crate::support::guests::guests_boot;
use crate::support::machine::{is_installed, own_lab};
use crate::support::schema::assert_in_schema;
use crate::support::serving::serve;
use crate::support::{Bench, start};

const SWEEP: &str = include_str!("../../../../docs/sweep.schema.json");

fn words(line: &str) -> Value {
    json!({ "command": line.split_whitespace().collect::<Vec<_>>() })
}

/// The result and the outcome of a job.
fn result(page: &Page, line: &str) -> (Value, Value) {
    let events = page.events(&page.start(line));
    let [.., result, outcome] = &events[..] else { panic!("{line}: {events:?}") };
    assert_eq!(
        (&result["schema"], &result["event"]),
        (&json!("bdp.event/1"), &json!("result")),
        "{line}: {outcome}"
    );
    (result["document"].clone(), outcome.clone())
}

fn refusal(page: &Page, path: &str, body: &Value) -> (u16, String) {
    let (status, refused) = page.json(&format!("POST /api/{path}"), body);
    (status, refused["error"]["message"].as_str().unwrap_or_else(|| panic!("{body}: {refused}")).to_owned())
}

/// A capture with one packet: a SYN from 10.0.0.1 to 10.0.0.2.
fn capture() -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 40, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    packet.extend([3, 232, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0]);
    let header: [u32; 6] = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 101];
    let record: [u32; 4] = [1, 0, 40, 40];
    let mut bytes: Vec<u8> = header.iter().chain(&record).flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend(packet);
    bytes
}

#[test]
fn each_job_ends_with_what_its_command_prints_as_json() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let page = open(&bench, "");
    let host = format!("127.0.0.1:{}", server.port);
    for label in ["before", "after"] {
        let events = page.events(&page.start(&format!("measure {host} -t 0.3 --idle 0.1 --label {label}")));
        let ended = events.iter().filter(|event| event["event"] == "measurement_ended").count();
        assert_eq!((ended, &events.last().unwrap()["ending"]), (1, &json!("done")));
    }
    let (compared, _) = result(&page, "compare before after");
    assert_eq!(compared, bench.run("compare before after --json").json());
    let (swept, outcome) = result(&page, &format!("sweep {host} --window 64K,256K -t 0.2 -O 0.1 --forward"));
    assert_in_schema(&swept, SWEEP);
    assert_eq!(swept, bench.run(&format!("show {} --json", outcome["run"].as_str().unwrap())).json());
    let (pinged, _) = result(&page, &format!("ping {host} -c 2 -i 0.01"));
    assert_eq!(pinged["schema"], "bdp.ping/1");
    let (traced, _) = result(&page, &format!("path {host} -c 2 --flows 1 --no-mtu"));
    assert_eq!(traced["schema"], "bdp.path/1");
    let (verified, _) = result(&page, "verify before");
    assert_eq!(verified["schema"], "bdp.verification/1");
    let (twins, _) = result(&page, "twin before --no-run");
    assert_eq!(twins, bench.run("twin before --no-run --json").json());
    // A panel finds its newest job after a reload.
    let (_, jobs) = page.json("GET /api/jobs", &Value::Null);
    let kinds: Vec<_> = jobs.as_array().unwrap().iter().map(|job| job["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["twin", "verify", "path", "ping", "sweep", "compare", "measure", "measure"]);
    let (_, commands) = page.json("GET /api/commands", &Value::Null);
    let names: Vec<_> = commands.as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"lab run") && names.contains(&"fix"), "{names:?}");
}

#[test]
fn the_lab_runs_shipped_scenarios_and_what_if_and_is_stopped() {
    let bench = Bench::new();
    if !guests_boot(&bench) {
        return;
    }
    let page = open(&bench, "");
    let short = "--clock virtual --set flow.duration=2s --set flow.omit=1s";
    let (records, outcome) = result(&page, &format!("lab run s3-30k {short} --repetitions 1"));
    assert_eq!(
        (records["schema"].as_str(), records["run"].as_str()),
        (Some("bdp.cases/1"), outcome["run"].as_str())
    );
    let (swept, _) = result(
        &page,
        "sweep --in s3-30k --window 8K,30K -t 0.5 -O 0.2 --no-refine --clock virtual --label windows",
    );
    assert_in_schema(&swept, SWEEP);
    // A path of 10 Mbit/s carries in the lab what the models say.
    let wish = json!({ "rate_bps": 1e7, "rtt_ns": 40_000_000, "window_bytes": 20_000 });
    let (_, answer) = page.json("POST /api/what-if", &wish);
    assert_eq!(answer["limits"][0]["limit"], "window", "{answer}");
    let modelled = answer["goodput_bps"].as_f64().unwrap();
    let (_, lab) = page.json("POST /api/what-if/lab", &wish);
    let command: Vec<_> = lab["command"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
    assert_eq!(command[..2], ["lab", "run"]);
    let (records, _) = result(&page, &command.join(" "));
    let goodput = records["cases"][0]["flows"][0]["goodput_bps"].as_f64().unwrap();
    assert!((goodput / modelled - 1.0).abs() < 0.2, "{goodput} for {modelled}");
    // Stopped, it begins no further case, and can be resumed.
    let id = page.start(&format!("lab run s3-30k {short} --repetitions 20 --jobs 1"));
    let events = page.send(&format!("GET /api/jobs/{id}/events"), "");
    let mut lines = std::io::BufRead::lines(events).map_while(Result::ok);
    assert!(lines.any(|line| line.contains("case_started")));
    assert_eq!(page.ask(&format!("POST /api/jobs/{id}/cancel"), "{}").0, 202);
    let outcome: Value = lines
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .find(|event: &Value| event["schema"] == "bdp.outcome/1")
        .unwrap();
    assert_eq!(outcome["ending"], "cancelled", "{outcome}");
    assert!(outcome["kept"].as_u64().unwrap() < 5, "{outcome}");
    let runs = bench.run("runs --json").json();
    assert_eq!(runs["runs"][0]["state"], "unfinished");
}

#[test]
fn answers_are_what_the_command_prints_as_json() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let page = open(&bench, "");
    page.events(&page.start(&format!("measure 127.0.0.1:{} -t 0.3 --idle 0.1 --label one", server.port)));
    for (line, terminal) in [
        ("calc bdp --rate 1G --rtt 41ms", "calc bdp --rate 1G --rtt 41ms"),
        ("calc loss --rtt 100ms --loss 1e-4", "calc loss --rtt 100ms --loss 1e-4"),
        ("lab list", "lab list"),
        ("lab profiles", "lab list --profiles"),
        ("tune show tcp_rmem", "tune show tcp_rmem"),
        ("tune plan one", "tune plan one"),
        ("explain one", "explain one"),
        ("twin one --no-run", "twin one --no-run"),
        ("runs", "runs"),
    ] {
        let (status, answer) = page.json("POST /api/answer", &words(line));
        let printed = bench.run(&format!("{terminal} --json"));
        let printed: Value = serde_json::from_str(&printed.out).unwrap();
        assert_eq!((status, answer), (200, printed), "{line}");
    }
    let (status, why) = refusal(&page, "answer", &words("calc bdp --rate x --rtt 1ms"));
    assert_eq!(status, 400);
    assert!(why.contains("'x'") && why.ends_with("see 'bdp calc bdp --help'"), "{why}");
    assert!(refusal(&page, "answer", &words("twin one")).1.contains("--no-run"));
    // The window of an autotuned path is null, an absent parameter is as measured.
    let wish = json!({ "run": "one", "rate_bps": 1e8, "rtt_ns": 40_000_000, "queue_bytes": 10_000, "congestion_control": "reno" });
    let (status, answer) = page.json("POST /api/what-if", &wish);
    assert_eq!((status, &answer["given"]["streams"]), (200, &json!(1)), "{answer}");
    assert_eq!(answer["limits"][0]["limit"], "queue");
    assert_eq!(answer["goodput_bps"], answer["limits"][0]["goodput_bps"]);
    assert!(answer["measured"]["goodput_bps"].as_f64().unwrap() > 1e6);
    assert!(answer["sentence"].as_str().unwrap().ends_with("The short queue limits it."), "{answer}");
    for (wrong, part) in [
        (json!({ "rtt_ns": 1_000_000 }), "rate_bps and rtt_ns"),
        (json!({ "rate_bps": 1, "rtt_ns": 1_000_000 }), "out of range"),
        (json!({ "rate": 1 }), "not as expected"),
        (json!({ "run": "/etc/passwd" }), "no run '/etc/passwd'"),
    ] {
        let (status, why) = refusal(&page, "what-if", &wrong);
        assert!(status == 400 && why.contains(part), "{why}");
    }
}

#[test]
fn the_page_opens_no_files_and_starts_no_programs() {
    let bench = Bench::new();
    bench.write("mine.toml", "title = \"mine\"\n");
    bench.write("run.json", "{}");
    let page = open(&bench, "");
    for (line, part) in [
        ("pcap /etc/passwd", "only captures that were chosen"),
        ("pcap -", "only captures that were chosen"),
        ("pcap capture:c9", "choose the file again"),
        ("pcap --live lo", "--live is for a terminal"),
        ("lab run mine.toml", "no built-in scenario 'mine.toml'"),
        ("lab run /etc/passwd", "no built-in scenario"),
        ("sweep --in ./mine.toml --window 1K,2K", "no built-in scenario"),
        ("lab run s3-30k --set link.rate={trace=\"mine.toml\"}", "reads no traces"),
        ("lab run s3-30k --clock virtual --set stack=kernel:/bin/sh", "starts no programs"),
        ("lab run s3-30k --capture here", "--capture is for a terminal"),
        ("lab exec s3-30k -- true", "the page does not run 'bdp lab exec'"),
        ("compare run.json run.json", "no run 'run.json'"),
        ("twin ./run.json", "no run './run.json'"),
        ("twin one --output here", "--output is for a terminal"),
        ("measure ams1 --baseline=run.json", "no run 'run.json'"),
        ("measure ams1 --token-file run.json", "--token-file is for a terminal"),
        ("fix ams1 --tune-token x", "--tune-token is for a terminal"),
        ("fix ams1 --journal here", "--journal is for a terminal"),
        ("ping ams1 --prometheus here", "--prometheus is for a terminal"),
        ("runs", "the page does not run 'bdp runs'"),
        ("serve", "the page does not run 'bdp serve'"),
    ] {
        let (status, why) = refusal(&page, "jobs", &words(line));
        assert!(status == 400 && why.contains(part), "{line}: {why}");
    }
    for (line, part) in [
        ("tune show --file run.json", "--file is for a terminal"),
        ("tune confirm --persist", "--persist is for a terminal"),
        ("tune journal --at ams1 --tune-token x", "--tune-token is for a terminal"),
        ("explain run.json", "no run 'run.json'"),
        ("runs remove 7f3a", "the page does not run 'bdp runs remove'"),
        ("measure ams1", "the page does not run 'bdp measure'"),
    ] {
        let (status, why) = refusal(&page, "answer", &words(line));
        assert!(status == 400 && (why.contains(part) || line == "measure ams1"), "{line}: {why}");
    }
    assert!(!bench.path("here").exists() && !bench.path("bdp-captures").exists());
}

#[test]
fn a_capture_is_explained_by_the_name_of_its_file() {
    let bench = Bench::new();
    bench.write("syn.pcap", capture());
    let page = open(&bench, "");
    let (status, sent) = page.upload("slow%20path.pcap", &capture());
    assert_eq!((status, &sent["id"], &sent["name"]), (201, &json!("c1"), &json!("slow path.pcap")));
    let (explained, _) = result(&page, "pcap capture:c1");
    assert_eq!(page.json("GET /api/jobs", &Value::Null).1[0]["command"], "bdp pcap 'slow path.pcap'");
    let mut printed = bench.run("pcap syn.pcap --json").json();
    printed["captures"][0]["name"] = json!("slow path.pcap");
    assert_eq!(explained, printed);
    page.upload("notes.txt", b"no capture at all");
    let events = page.events(&page.start("pcap capture:c2"));
    let error = events.last().unwrap()["error"].as_str().unwrap();
    assert!(error.starts_with("notes.txt: not pcap"), "{error}");
    assert_eq!(page.ask("DELETE /api/captures/c1", "").0, 204);
    assert!(refusal(&page, "jobs", &words("pcap capture:c1")).1.contains("choose the file again"));
}

#[test]
fn the_far_end_is_asked_by_the_tune_token_of_the_request() {
    let bench = Bench::new();
    let server = serve(&bench, "--token measuring --allow-tune --tune-token tuning --journal j");
    let page = open(&bench, "");
    let far = format!("127.0.0.1:{}", server.port);
    let mut order = words(&format!("tune journal --at {far}"));
    assert!(refusal(&page, "answer", &order).1.contains("--at needs the tune token"));
    order["secrets"] = json!({ "tune_token": "tuning" });
    let (status, listed) = page.json("POST /api/answer", &order);
    assert_eq!((status, &listed["at"], &listed["journals"]), (200, &json!(far), &json!([])), "{listed}");
    order["secrets"] = json!({ "tune_token": "guessed" });
    assert!(refusal(&page, "answer", &order).1.contains("wrong tune token"));
}

#[test]
fn a_tune_token_is_nowhere_but_in_its_job() {
    let bench = Bench::new();
    let server = serve(&bench, "");
    let page = open(&bench, "");
    let secret = "correct-horse-battery";
    let mut order = words(&format!("fix 127.0.0.1:{} -t 0.3 --rate 1G", server.port));
    order["secrets"] = json!({ "tune_token": secret });
    let (status, checked) = page.json("POST /api/check", &order);
    assert_eq!(status, 200, "{checked}");
    let (status, job) = page.json("POST /api/jobs", &order);
    assert_eq!(status, 201, "{job}");
    let id = job["id"].as_str().unwrap();
    loop {
        let (_, state) = page.json(&format!("GET /api/jobs/{id}"), &Value::Null);
        if state["state"] == "ended" {
            break;
        }
        if !state["question"].is_null() {
            assert!(state["question"]["words"].as_str().unwrap().starts_with("apply "), "{state}");
            let answer = json!({ "question": state["question"]["number"], "yes": false });
            page.ask(&format!("POST /api/jobs/{id}/answer"), &answer.to_string());
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let events = page.events(id);
    assert!(events.iter().any(|event| event["event"] == "plan"), "{events:?}");
    page.process.signal("TERM");
    let log = page.process.wait();
    let stored = String::from_utf8_lossy(&std::fs::read(bench.store()).unwrap()).into_owned();
    assert!(stored.contains("bdp fix 127.0.0.1"), "the store has the command");
    for text in [checked.to_string(), job.to_string(), json!(events).to_string(), stored, log.out, log.err] {
        assert!(!text.contains(secret));
    }
}

#[test]
fn a_path_is_fixed_by_the_page_and_put_back() {
    if !is_installed("curl") {
        return;
    }
    let Some(_lab) = own_lab() else { return };
    let bench = Bench::new();
    bench.write(
        "path.toml",
        "title = \"a small receive buffer\"\n[hosts.near]\nreceive_buffer = \"128K\"\n[[link]]\nbetween = [\"near\", \"far\"]\nrate = \"25M\"\ndelay = \"20ms\"\nlimit = 100\n",
    );
    bench.write("fix.sh", include_str!("page_fix.sh"));
    let line = "bdp lab exec path.toml -q --store none --serve 'far=bdp serve --token t' --host near -- sh -e fix.sh";
    let ended = start(bench.shell(line)).wait();
    assert_eq!(ended.code(), 0, "{}{}", ended.out, ended.err);
    let read = |name| std::fs::read_to_string(bench.path(name)).unwrap();
    let settings = ["before", "asked", "fixed", "reverted"].map(read);
    assert_eq!(settings[0], settings[1], "nothing changes before the answer");
    assert_ne!(settings[0], settings[2]);
    assert_eq!(settings[0], settings[3]);
    let questions = read("questions");
    assert!(questions.contains("\"words\":\"apply net.ipv4.tcp_rmem on near: 4096"), "{questions}");
    assert!(questions.contains("\"about\":\"keep\""), "{questions}");
    assert!(read("events").contains("\"event\":\"kept\""), "{}", read("events"));
    let reverted: Value = serde_json::from_str(&read("revert.json")).unwrap();
    assert_eq!(reverted["put_back"][0]["target"]["name"], "net.ipv4.tcp_rmem", "{reverted}");
}
