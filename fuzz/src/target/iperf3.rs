//! What iperf3's clients and servers say.

use bdp_wire::iperf3::auth::{Login, Users};
use bdp_wire::iperf3::base64;
use bdp_wire::iperf3::datagram::{self, Header};
use bdp_wire::iperf3::exchange::{ClientExchange, hear};
use bdp_wire::iperf3::{Parameters, Results};
use serde_json::Value;

use super::text;
use crate::parser::Target;

/// Targets of the protocol of iperf3.
pub const IPERF3: &[Target] = &[
    Target { name: "iperf3-parameters", run: parameters, seeds: parameter_seeds },
    Target { name: "iperf3-results", run: results, seeds: result_seeds },
    Target { name: "iperf3-auth", run: logins, seeds: login_seeds },
    Target { name: "iperf3-states", run: states, seeds: state_seeds },
];

/// What is taken is written as what is taken, and that as the same.
fn parameters(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return };
    match Parameters::parse(&value) {
        Ok(parameters) => {
            let written = parameters.to_json();
            match Parameters::parse(&written) {
                Ok(again) => assert_eq!(again.to_json(), written),
                Err(error) => panic!("{written}: {error}"),
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn parameter_seeds() -> Vec<Vec<u8>> {
    [
        r#"{"tcp":true,"omit":0,"time":10,"num":0,"blockcount":0,"parallel":1,"len":131072,"client_version":"3.12"}"#,
        r#"{"udp":true,"omit":1,"time":10,"parallel":4,"reverse":true,"len":1448,"bandwidth":1048576,"udp_counters_64bit":1}"#,
        r#"{"tcp":true,"bidirectional":true,"MSS":1400,"window":65536,"nodelay":true,"TOS":184,"congestion":"cubic","num":1000000,
            "get_server_output":1,"authtoken":"AAAA","title":"t","parallel":128,"len":1024}"#,
    ]
    .map(|seed| seed.as_bytes().to_vec())
    .to_vec()
}

fn results(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return };
    for streams in [1, 2] {
        let Ok(results) = Results::parse(&value, streams) else { continue };
        let written = results.to_json();
        let again = Results::parse(&written, streams).expect("what is written is read");
        assert_eq!(again.to_json(), written);
    }
}

fn result_seeds() -> Vec<Vec<u8>> {
    let stream = |id: u32| {
        format!(
            r#"{{"id":{id},"bytes":1000000,"retransmits":3,"jitter":0.001,"errors":1,"omitted_errors":0,"packets":700,
            "omitted_packets":0,"start_time":0,"end_time":10.0}}"#
        )
    };
    let whole = |streams: String| {
        format!(
            r#"{{"cpu_util_total":1.5,"cpu_util_user":0.5,"cpu_util_system":1,"sender_has_retransmits":18446744073709551615,
            "congestion_used":"cubic","server_output_text":"x","streams":[{streams}]}}"#
        )
    };
    vec![whole(stream(1)).into_bytes(), whole(format!("{},{}", stream(1), stream(3))).into_bytes()]
}

/// A login that was read is written as one that reads the same, and so is base64; a file of users is read or refused.
fn logins(bytes: &[u8]) {
    let text = text(bytes);
    if let Some(decoded) = base64::decode(text) {
        assert_eq!(base64::encode(&decoded), text, "no two texts are of the same bytes");
    }
    let users = Users::parse(text);
    if let Some(login) = Login::parse(text) {
        let again = Login::parse(&login.to_text()).map(|again| again.to_text());
        assert_eq!(again, Some(login.to_text()));
        if let Ok(users) = &users {
            users.know(&login);
        }
    }
}

fn login_seeds() -> Vec<Vec<u8>> {
    let digest = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8";
    vec![
        b"user: a\npwd:  b\nts:   1700000000".to_vec(),
        format!("# users\nme,{digest}\nyou , {digest}\n").into_bytes(),
        b"Zm9vYg==".to_vec(),
        b"Zm9vYmFyZm9vYmFy".to_vec(),
    ]
}

/// Whatever bytes a server or a client sends as states, and as datagrams.
fn states(bytes: &[u8]) {
    let mut exchange = ClientExchange::default();
    for &byte in bytes.iter().take(64) {
        if exchange.take(byte).is_err() {
            break;
        }
    }
    for &byte in bytes.iter().take(64) {
        let _ = (hear(byte, true), hear(byte, false));
    }
    assert!(datagram::answer(bytes).is_none_or(|answer| datagram::is_answer(&answer)));
    for wide in [false, true] {
        if let Some(header) = Header::decode(wide, bytes) {
            let mut written = [0; 16];
            header.encode(wide, &mut written);
            assert_eq!(Header::decode(wide, &written).map(|h| h.number), Some(header.number));
        }
    }
}

fn state_seeds() -> Vec<Vec<u8>> {
    vec![
        vec![9, 10, 1, 2, 13, 14],
        vec![0xff],
        vec![0xfe, 0, 0, 0, 1, 0, 0, 0, 2],
        b"9876".to_vec(),
        vec![4, 16, 12],
    ]
}
