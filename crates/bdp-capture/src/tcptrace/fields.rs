//! Fields of a connection with the values of each direction, named and rounded as in tcptrace.

use super::connection::Connection;
use super::direction::Direction;
use super::times::Times;

/// A field of the long output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Name.
    pub name: &'static str,
    /// Unit; empty if there is none.
    pub unit: &'static str,
    /// Value of each direction.
    pub values: [String; 2],
    /// What precedes it in the text.
    pub(super) above: Above,
}

/// What precedes a field in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Above {
    /// Nothing.
    Nothing,
    /// An empty line.
    Space,
    /// Explanation of the times of ambiguous acknowledgements.
    Ambiguous,
}

const NA: &str = "NA";

/// Collects the fields of a connection.
struct Fields<'a> {
    connection: &'a Connection,
    fields: Vec<Field>,
}

impl Fields<'_> {
    fn add(&mut self, name: &'static str, unit: &'static str, value: impl Fn(&Direction) -> String) {
        let [a, b] = &self.connection.directions;
        let values = [value(a), value(b)];
        self.fields.push(Field { name, unit, values, above: Above::Nothing });
    }

    fn count(&mut self, name: &'static str, unit: &'static str, value: impl Fn(&Direction) -> u64) {
        self.add(name, unit, |direction| value(direction).to_string());
    }

    fn ms(&mut self, name: &'static str, value: impl Fn(&Direction) -> f64) {
        self.add(name, "ms", |direction| format!("{:.1}", value(direction)));
    }

    /// Adds the four figures of times, with these names.
    fn times(&mut self, names: [&'static str; 4], times: impl Fn(&Direction) -> &Times) {
        self.ms(names[0], |direction| times(direction).min());
        self.ms(names[1], |direction| times(direction).max());
        self.ms(names[2], |direction| times(direction).mean());
        self.ms(names[3], |direction| times(direction).deviation());
    }

    /// Sets what precedes the next field.
    fn above(&mut self, above: Above, add: impl FnOnce(&mut Self)) {
        let index = self.fields.len();
        add(self);
        if let Some(field) = self.fields.get_mut(index) {
            field.above = above;
        }
    }

    fn any(&self, has: impl Fn(&Direction) -> bool) -> bool {
        self.connection.directions.iter().any(has)
    }

    fn packets(&mut self) {
        self.count("total packets", "", |d| d.packets);
        if self.any(|d| d.resets > 0) {
            self.count("resets sent", "", |d| d.resets);
        }
        self.count("ack pkts sent", "", |d| d.acks);
        self.count("pure acks sent", "", |d| d.pure_acks);
        self.count("sack pkts sent", "", |d| d.sack_packets);
        self.count("dsack pkts sent", "", |d| d.dsack_packets);
        self.count("max sack blks/ack", "", |d| d.sack_blocks_most as u64);
        self.count("unique bytes sent", "", |d| d.unique_bytes);
        self.count("actual data pkts", "", |d| d.data_packets);
        self.count("actual data bytes", "", |d| d.data_bytes);
        self.count("rexmt data pkts", "", |d| d.again_packets);
        self.count("rexmt data bytes", "", |d| d.again_bytes);
        self.count("zwnd probe pkts", "", |d| d.probe_packets);
        self.count("zwnd probe bytes", "", |d| d.probe_bytes);
        self.count("outoforder pkts", "", |d| d.out_of_order);
        self.count("pushed data pkts", "", |d| d.pushed);
        self.add("SYN/FIN pkts sent", "", |d| format!("{}/{}", d.syns, d.fins));
    }

    fn options(&mut self) {
        let letter = |is: bool| if is { 'Y' } else { 'N' };
        if self.any(|d| d.window_scale.is_some() || d.timestamps) {
            self.add("req 1323 ws/ts", "", |d| {
                format!("{}/{}", letter(d.window_scale.is_some()), letter(d.timestamps))
            });
        }
        if self.any(|d| d.window_scale.is_some()) {
            // Valid only if both ends request it.
            let is_used = !self.any(|d| d.window_scale.is_none());
            self.count("adv wind scale", "", |d| d.window_scale.filter(|_| is_used).unwrap_or(0).into());
        }
        if self.any(|d| d.sack_permitted) {
            self.add("req sack", "", |d| letter(d.sack_permitted).to_string());
            self.count("sacks sent", "", |d| d.sacks);
        }
        self.count("urgent data pkts", "pkts", |d| d.urgent_packets);
        self.count("urgent data bytes", "bytes", |d| d.urgent_bytes);
        self.count("mss requested", "bytes", |d| d.mss.into());
    }

    fn sizes(&mut self) {
        self.count("max segm size", "bytes", |d| d.largest.into());
        self.count("min segm size", "bytes", |d| d.smallest.into());
        self.count("avg segm size", "bytes", |d| d.data_bytes.checked_div(d.data_packets).unwrap_or(0));
        self.count("max win adv", "bytes", |d| d.windows.max);
        self.count("min win adv", "bytes", |d| d.windows.min);
        self.count("zero win adv", "times", |d| d.zero_windows);
        self.count("avg win adv", "bytes", |d| d.windows.mean());
        self.count("max owin", "bytes", |d| d.outstanding.max);
        self.count("min non-zero owin", "bytes", |d| d.outstanding.min);
        self.count("avg owin", "bytes", |d| d.outstanding.mean());
        let (from, to) = (self.connection.from_us, self.connection.to_us);
        self.add("wavg owin", if to > from { "bytes" } else { "" }, |d| {
            d.outstanding.mean_over_time(from, to).map_or(NA.into(), |bytes| bytes.to_string())
        });
        self.count("initial window", "bytes", |d| d.initial_bytes);
        self.count("initial window", "pkts", |d| d.initial_packets);
        let known = |bytes: Option<u64>| bytes.map_or(NA.into(), |bytes| bytes.to_string());
        self.add("ttl stream length", "bytes", |d| known(d.stream_length()));
        self.add("missed data", "bytes", |d| {
            known(d.stream_length().map(|length| length.saturating_sub(d.unique_bytes)))
        });
        self.count("truncated data", "bytes", |d| d.truncated_bytes);
        self.count("truncated packets", "pkts", |d| d.truncated_packets);
    }

    fn rates(&mut self) {
        self.add("data xmit time", "secs", |d| {
            format!("{:.3}", d.data_us.map_or(0, |(from, to)| to.saturating_sub(from)) as f64 / 1e6)
        });
        self.add("idletime max", "ms", |d| {
            d.last_us.map_or(NA.into(), |_| format!("{:.1}", d.idle_most_us as f64 / 1e3))
        });
        if self.any(|d| d.copies > 0) {
            self.count("hardware dups", "segs", |d| d.copies);
        }
        match self.connection.elapsed_us() {
            0 => self.add("throughput", "", |_| NA.into()),
            elapsed => self.add("throughput", "Bps", |d| {
                format!("{:.0}", d.unique_bytes as f64 / (elapsed as f64 / 1e6))
            }),
        }
    }

    fn round_trips(&mut self) {
        self.above(Above::Space, |f| f.count("RTT samples", "", |d| d.sequence.rtt.count));
        self.times(["RTT min", "RTT max", "RTT avg", "RTT stdev"], |d| &d.sequence.rtt);
        self.above(Above::Space, |f| f.ms("RTT from 3WHS", |d| d.sequence.rtt_handshake_us as f64 / 1e3));
        self.above(Above::Space, |f| f.count("RTT full_sz smpls", "", |d| d.sequence.rtt_full.count));
        let names = ["RTT full_sz min", "RTT full_sz max", "RTT full_sz avg", "RTT full_sz stdev"];
        self.times(names, |d| &d.sequence.rtt_full);
        self.above(Above::Space, |f| f.count("post-loss acks", "", |d| d.sequence.post_loss));
        if self.any(|d| d.sequence.rtt_again.count > 0) {
            self.above(Above::Ambiguous, |f| f.count("ambiguous acks", "", |d| d.sequence.rtt_again.count));
            let names = ["RTT min (last)", "RTT max (last)", "RTT avg (last)", "RTT sdv (last)"];
            self.times(names, |d| &d.sequence.rtt_again);
        }
        self.count("segs cum acked", "", |d| d.sequence.cumulative);
        self.count("duplicate acks", "", |d| d.sequence.duplicates);
        self.count("triple dupacks", "", |d| d.sequence.triples);
        self.count("max # retrans", "", |d| d.sequence.most_again.into());
        let names = ["min retr time", "max retr time", "avg retr time", "sdv retr time"];
        self.times(names, |d| &d.sequence.again);
    }
}

impl Connection {
    /// Returns all fields in the order of the text. Resets, options, hardware duplicates and ambiguous acknowledgements are included only
    /// if a direction has any.
    pub fn fields(&self) -> Vec<Field> {
        let mut fields = Fields { connection: self, fields: Vec::new() };
        fields.packets();
        fields.options();
        fields.sizes();
        fields.rates();
        fields.round_trips();
        fields.fields
    }
}
