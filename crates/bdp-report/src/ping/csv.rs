//! Probes as comma-separated values (RFC 4180), one row each.

use bdp_model::probes::ping::{Fate, Ping};

/// Returns `probe,due_ns,sent_ns,outcome,rtt_ns,from_due_ns`, oldest first: times since the first probe was due, the last two
/// empty if no answer arrived.
pub fn csv_of_ping(ping: &Ping) -> String {
    let mut text = String::from("probe,due_ns,sent_ns,outcome,rtt_ns,from_due_ns\r\n");
    for sample in &ping.samples {
        let (rtt, from_due) = match sample.outcome {
            Fate::Answered(rtt) => {
                (rtt.to_string(), (rtt + sample.sent_ns.saturating_sub(sample.due_ns)).to_string())
            }
            _ => Default::default(),
        };
        let outcome = sample.outcome.name();
        text.push_str(&format!(
            "{},{},{},{outcome},{rtt},{from_due}\r\n",
            sample.number, sample.due_ns, sample.sent_ns
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_row_for_each_probe() {
        assert_eq!(
            super::csv_of_ping(&super::super::tests::example()),
            "probe,due_ns,sent_ns,outcome,rtt_ns,from_due_ns\r\n\
             0,0,700,answered,24000000,24000700\r\n\
             1,200000000,200000100,lost,,\r\n"
        );
    }
}
