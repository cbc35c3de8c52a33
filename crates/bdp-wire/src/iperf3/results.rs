//! Results that each end reports of a test.

use serde_json::{Map, Value, json};

use super::members::Members;
use super::{Iperf3Error, MOST_STREAMS};

/// Results of one end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Results {
    /// CPU use of the process.
    pub cpu: CpuUse,
    /// Whether this end counts retransmissions; `None` if it only receives.
    pub has_retransmits: Option<bool>,
    /// Congestion control in use.
    pub congestion: Option<String>,
    /// Output that the server would have printed.
    pub server_output: Option<ServerOutput>,
    /// Results per stream, in order.
    pub streams: Vec<StreamResults>,
}

/// CPU time of a process divided by elapsed time, per cent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuUse {
    /// Total.
    pub total: f64,
    /// User mode.
    pub user: f64,
    /// Kernel mode.
    pub system: f64,
}

/// Output that a server would have printed.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerOutput {
    /// Lines of text.
    Text(String),
    /// JSON document.
    Json(Value),
}

/// Results of one stream at one end, after omit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StreamResults {
    /// Stream id, as in [`super::stream_id`].
    pub id: i64,
    /// Bytes sent or received.
    pub bytes: u64,
    /// Retransmitted segments; `None` at a receiver.
    pub retransmits: Option<u64>,
    /// Jitter of datagrams (RFC 3550, section 6.4.1), seconds.
    pub jitter_s: f64,
    /// Datagrams lost.
    pub errors: u64,
    /// Datagrams lost before counting began.
    pub omitted_errors: u64,
    /// Datagrams sent, by the highest number received.
    pub packets: u64,
    /// Datagrams sent before counting began.
    pub omitted_packets: u64,
    /// Start, seconds from the beginning of the test.
    pub start_s: f64,
    /// End, seconds from the beginning of the test.
    pub end_s: f64,
}

/// Value that stands for an unknown number.
const UNKNOWN: i64 = -1;

impl Results {
    /// Parses the other end's results for a test of `streams` streams.
    pub fn parse(value: &Value, streams: usize) -> Result<Self, Iperf3Error> {
        let members = Members::of(value, "results")?;
        let list = members.list("streams")?;
        if list.len() > 2 * MOST_STREAMS as usize {
            return Err(Iperf3Error::Range {
                member: "streams",
                found: format!("of {}", list.len()),
                least: 0,
                most: 2 * u64::from(MOST_STREAMS),
            });
        }
        let parsed: Vec<_> = list.iter().map(StreamResults::parse).collect::<Result<_, _>>()?;
        for (index, stream) in parsed.iter().enumerate() {
            if stream.id != super::stream_id(index) || index >= streams {
                return Err(Iperf3Error::Meaning("results of an unknown stream"));
            }
        }
        Ok(Self {
            cpu: CpuUse {
                total: members.real("cpu_util_total")?,
                user: members.real("cpu_util_user")?,
                system: members.real("cpu_util_system")?,
            },
            has_retransmits: members.count("sender_has_retransmits")?.map(|n| n > 0),
            congestion: members.text("congestion_used", 100)?,
            server_output: match (
                members.text("server_output_text", super::LONGEST_RESULTS)?,
                members.value("server_output_json"),
            ) {
                (_, Some(document)) => Some(ServerOutput::Json(document.clone())),
                (Some(text), None) => Some(ServerOutput::Text(text)),
                (None, None) => None,
            },
            streams: parsed,
        })
    }

    /// Returns the results as sent.
    pub fn to_json(&self) -> Value {
        let mut all = Map::new();
        let mut put = |member: &str, value: Value| drop(all.insert(member.to_owned(), value));
        put("cpu_util_total", json!(self.cpu.total));
        put("cpu_util_user", json!(self.cpu.user));
        put("cpu_util_system", json!(self.cpu.system));
        put("sender_has_retransmits", json!(self.has_retransmits.map_or(UNKNOWN, i64::from)));
        if let Some(congestion) = &self.congestion {
            put("congestion_used", json!(congestion));
        }
        match &self.server_output {
            Some(ServerOutput::Text(text)) => put("server_output_text", json!(text)),
            Some(ServerOutput::Json(document)) => put("server_output_json", document.clone()),
            None => {}
        }
        put("streams", self.streams.iter().copied().map(StreamResults::to_json).collect());
        Value::Object(all)
    }
}

impl StreamResults {
    fn parse(value: &Value) -> Result<Self, Iperf3Error> {
        let members = Members::of(value, "streams")?;
        let count = |member| Ok(members.count(member)?.unwrap_or(0));
        Ok(Self {
            id: members
                .number("id", 1, u64::from(2 * MOST_STREAMS) + 2)?
                .ok_or(Iperf3Error::Missing { member: "id" })? as i64,
            bytes: members.number("bytes", 0, u64::MAX)?.ok_or(Iperf3Error::Missing { member: "bytes" })?,
            retransmits: members.count("retransmits")?,
            jitter_s: members.real("jitter")?,
            errors: count("errors")?,
            omitted_errors: count("omitted_errors")?,
            packets: count("packets")?,
            omitted_packets: count("omitted_packets")?,
            start_s: members.real("start_time")?,
            end_s: members.real("end_time")?,
        })
    }

    fn to_json(self) -> Value {
        json!({
            "id": self.id,
            "bytes": self.bytes,
            "retransmits": self.retransmits.map_or(UNKNOWN, |n| i64::try_from(n).unwrap_or(i64::MAX)),
            "jitter": self.jitter_s,
            "errors": self.errors,
            "omitted_errors": self.omitted_errors,
            "packets": self.packets,
            "omitted_packets": self.omitted_packets,
            "start_time": self.start_s,
            "end_time": self.end_s,
        })
    }

    /// Returns the counted duration, seconds.
    pub fn seconds(&self) -> f64 {
        (self.end_s - self.start_s).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_release_sends_is_read() {
        let text = r#"{"cpu_util_total":21.07,"cpu_util_user":0.08,"cpu_util_system":20.99,
            "sender_has_retransmits":18446744073709551615,"congestion_used":"bbr","streams":[{"id":1,
            "bytes":722206720,"retransmits":18446744073709551615,"jitter":0,"errors":0,"packets":0,
            "start_time":0,"end_time":1.043218}]}"#;
        let results = Results::parse(&serde_json::from_str(text).unwrap(), 1).unwrap();
        assert_eq!((results.has_retransmits, results.streams[0].retransmits), (None, None));
        assert_eq!((results.streams[0].bytes, results.streams[0].seconds()), (722_206_720, 1.043218));
        assert_eq!(results.congestion.as_deref(), Some("bbr"));
    }

    #[test]
    fn what_is_sent_comes_back() {
        let stream = |index, retransmits| StreamResults {
            id: super::super::stream_id(index),
            bytes: 7,
            retransmits,
            jitter_s: 0.25,
            errors: 1,
            omitted_errors: 2,
            packets: 3,
            omitted_packets: 4,
            start_s: 0.5,
            end_s: 1.5,
        };
        let results = Results {
            cpu: CpuUse { total: 3.0, user: 1.0, system: 2.0 },
            has_retransmits: Some(true),
            congestion: Some("cubic".to_owned()),
            server_output: Some(ServerOutput::Text("a line\n".to_owned())),
            streams: vec![stream(0, Some(5)), stream(1, None)],
        };
        assert_eq!(Results::parse(&results.to_json(), 2), Ok(results.clone()));
        assert!(Results::parse(&results.to_json(), 1).is_err(), "a stream too many");
        let json = Results { server_output: Some(ServerOutput::Json(json!({"start": {}}))), ..results };
        assert_eq!(Results::parse(&json.to_json(), 2), Ok(json));
    }

    #[test]
    fn wrong_types_are_named() {
        for (value, part) in [
            (json!(7), "'results' is a number"),
            (json!({}), "'streams' is missing"),
            (json!({"streams": {}}), "'streams' is an object"),
            (json!({"streams": [7]}), "'streams' is a number"),
            (json!({"streams": [{"id": 1}]}), "'bytes' is missing"),
            (json!({"streams": [{"id": 2, "bytes": 1}]}), "of an unknown stream"),
            (json!({"streams": [{"id": "1", "bytes": 1}]}), "'id' is a text"),
            (json!({"streams": [{"id": 1, "bytes": -1}]}), "'bytes' is -1"),
            (json!({"streams": [{"id": 1, "bytes": 1, "jitter": []}]}), "'jitter' is a list"),
            (json!({"streams": [], "congestion_used": 1}), "'congestion_used' is a number"),
            (json!({"streams": vec![json!({"id": 1, "bytes": 1}); 300]}), "of 300"),
        ] {
            let error = Results::parse(&value, 1).unwrap_err().to_string();
            assert!(error.contains(part), "{value}: {error}");
        }
    }
}
