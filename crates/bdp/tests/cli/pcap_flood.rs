//! `bdp pcap` of floods: memory that stays small, a bound that holds, and an answer in a sentence.

use std::fs;
use std::io::{Read, Write};
use std::process::Stdio;

use serde_json::Value;

use crate::support::schema::assert_in_schema;
use crate::support::{BDP, Bench};

const SCHEMA: &str = include_str!("../../../../docs/pcap.schema.json");
const FLOOD: u32 = 200_000;
/// Flows of a kind that is too small to be counted together.
const OTHERS: u32 = 600;

/// A capture of SYNs with forged sources to one port, and of a few others to another one.
fn flood(bench: &Bench, name: &str) {
    let path = bench.folder().join(name);
    let mut file = std::io::BufWriter::new(fs::File::create(path).unwrap());
    let word = |value: u32| value.to_le_bytes();
    // pcap with times in microseconds, of raw IP.
    let head: Vec<u8> = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 101].into_iter().flat_map(word).collect();
    file.write_all(&head).unwrap();
    for number in 0..FLOOD + OTHERS {
        let at_us = 10 * number;
        let about = [1_700_000_000 + at_us / 1_000_000, at_us % 1_000_000, 40, 40];
        file.write_all(&about.into_iter().flat_map(word).collect::<Vec<u8>>()).unwrap();
        let port = if number < FLOOD { 80u16 } else { 22 };
        let mut packet = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0];
        packet.extend((0x0B00_0000 + number * 7).to_be_bytes());
        packet.extend([10, 255, 0, 1]);
        packet.extend((1024 + (number % 60_000) as u16).to_be_bytes());
        packet.extend(port.to_be_bytes());
        packet.extend(number.to_be_bytes());
        packet.extend([0, 0, 0, 0, 0x50, 2, 0xFF, 0xFF, 0, 0, 0, 0]);
        file.write_all(&packet).unwrap();
    }
    file.flush().unwrap();
}

/// What a process had at the most, MiB.
fn peak_mib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim_end_matches("kB").trim().parse::<u64>().unwrap() / 1024
}

#[test]
fn flood_of_syns_is_a_sentence_in_little_memory() {
    let bench = Bench::new();
    flood(&bench, "flood.pcap");
    let text = bench.run("pcap flood.pcap");
    assert_eq!(text.code(), 0, "{}", text.err);
    let sentence = "  200,000 SYNs to 10.255.0.1:80 unanswered, from 200,000 addresses in 2.00 s (100,00";
    assert!(text.out.lines().nth(1).is_some_and(|line| line.starts_with(sentence)), "{}", text.out);
    assert!(
        text.out.starts_with("flood.pcap: 200600 packets, 7.65 MiB in 2.01 s, 200600 flows\n"),
        "{}",
        text.out
    );
    assert!(text.out.contains("and 580 more with fewer bytes"), "{}", text.out);

    let mut json =
        bench.shell(&format!("exec {BDP} pcap flood.pcap --json")).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = json.stdout.take().unwrap();
    let mut document = vec![0];
    // It writes, so that all is known; and it has more to write than a pipe takes.
    out.read_exact(&mut document).unwrap();
    let peak = peak_mib(json.id());
    out.read_to_end(&mut document).unwrap();
    assert!(json.wait().unwrap().success());
    assert!(document.len() > 1 << 18, "{}", document.len());
    assert!(peak < 150, "{peak} MiB for {FLOOD} flows");
    let document: Value = serde_json::from_slice(&document).unwrap();
    assert_in_schema(&document, SCHEMA);
    let capture = &document["captures"][0];
    assert_eq!(capture["flows"].as_array().unwrap().len(), OTHERS as usize);
    let all = &capture["attempts"][0];
    assert_eq!(capture["attempts"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&all["outcome"], &all["to"], &all["port"]),
        (&"unanswered".into(), &"10.255.0.1".into(), &80.into())
    );
    assert_eq!((&all["flows"], &all["sources"], &all["from"]), (&FLOOD.into(), &FLOOD.into(), &Value::Null));
}

#[test]
fn memory_limit_is_said_and_counters_go_on() {
    let bench = Bench::new();
    flood(&bench, "flood.pcap");
    let text = bench.run("pcap flood.pcap --memory 4M");
    assert_eq!(text.code(), 0, "{}", text.err);
    let words: String = text.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("further packets to it were counted and not followed"), "{}", text.out);
    assert!(words.contains("the memory for flows was used up (4.00 MiB; --memory sets it)"), "{}", text.out);
    let document = bench.run("pcap flood.pcap --memory 4M --json").json();
    assert_in_schema(&document, SCHEMA);
    let capture = &document["captures"][0];
    assert_eq!(capture["memory_limit_reached_bytes"], 4 << 20);
    assert_eq!(capture["packets"], FLOOD + OTHERS);
    let all = &capture["attempts"][0];
    let number = |member: &str| all[member].as_u64().unwrap();
    assert_eq!(number("flows") + number("further_packets"), u64::from(FLOOD));
    let refused = bench.run("pcap flood.pcap --memory 1K");
    assert_eq!((refused.code(), refused.err.lines().count()), (2, 1), "{}", refused.err);
    assert!(refused.err.contains("is less than 1 MiB"), "{}", refused.err);
}
