//! What the programs and hosts at both ends did: who waited for whom, and who had the processor.

use super::{End, Facts};
use crate::finding::threshold::SAMPLES_MIN;
use crate::measurement::ends::Task;
use crate::measurement::host_counters::StackCounters;
use crate::record::ReceiverSample;
use crate::statistics::median;

impl Facts {
    /// Part of the time after omit in which the sending program had data and its socket accepted none: the transfer is limited by
    /// what lies behind the socket, not by the program.
    pub fn sender_blocked(&self) -> Option<f64> {
        self.part_of_sending(|s| s.write_blocked_ns)
    }

    /// Part of the time after omit in which the sending program had nothing to write, or was to write later.
    pub fn sender_idle(&self) -> Option<f64> {
        self.part_of_sending(|s| s.write_idle_ns)
    }

    /// Part of the time after omit in which the receiving program waited for data.
    pub fn receiver_waited(&self) -> Option<f64> {
        self.part_of_receiving(|s| s.read_waited_ns)
    }

    /// Part of the time after omit in which the receiving program deliberately did not read, to limit its rate.
    pub fn receiver_held_back(&self) -> Option<f64> {
        self.part_of_receiving(|s| s.read_paused_ns)
    }

    /// Bytes received but not read, first stream: median after omit.
    pub fn unread_bytes(&self) -> Option<f64> {
        let mut unread: Vec<f64> =
            self.received_after_omit().filter_map(|s| s.unread_bytes).map(|bytes| bytes as f64).collect();
        (unread.len() >= SAMPLES_MIN).then(|| median(&mut unread)).flatten()
    }

    /// Part of the time after omit in which a thread of an end was runnable while others had its processor, for the
    /// thread that waited longest.
    pub fn waited_for_processor(&self, task: Task) -> Option<f64> {
        match task {
            Task::Sending => self.part_of_sending(|s| s.run_wait_ns),
            Task::Receiving => self.part_of_receiving(|s| s.run_wait_ns),
        }
    }

    /// Processor time of an end's busiest thread / time, between samples after omit, each with its time since the flow's
    /// start by that end's samples.
    pub fn thread_cpu_over_time(&self, task: Task) -> Vec<(u64, f64)> {
        let used: Vec<(u64, u64)> = match task {
            Task::Sending => {
                self.sent_after_omit().filter_map(|s| Some((s.at_ns, s.thread_cpu_ns?))).collect()
            }
            Task::Receiving => {
                self.received_after_omit().filter_map(|s| Some((s.at_ns, s.thread_cpu_ns?))).collect()
            }
        };
        let rate = |w: &[(u64, u64)]| {
            let (took, cpu) = (w[1].0.saturating_sub(w[0].0), w[1].1.saturating_sub(w[0].1));
            (took > 0).then(|| (w[1].0, cpu as f64 / took as f64))
        };
        used.windows(2).filter_map(rate).collect()
    }

    /// The receiver's samples after omit.
    pub fn received_after_omit(&self) -> impl DoubleEndedIterator<Item = &ReceiverSample> + Clone {
        self.received.iter().filter(|s| s.at_ns >= self.omit_ns)
    }

    fn part_of_sending(&self, time_ns: impl Fn(&crate::record::SenderSample) -> Option<u64>) -> Option<f64> {
        part(self.sent_after_omit().map(|s| (s.at_ns, time_ns(s))))
    }

    fn part_of_receiving(&self, time_ns: impl Fn(&ReceiverSample) -> Option<u64>) -> Option<f64> {
        part(self.received_after_omit().map(|s| (s.at_ns, time_ns(s))))
    }
}

/// The growth of a cumulative time, as a part of the time from the first sample to the last.
fn part(mut readings: impl DoubleEndedIterator<Item = (u64, Option<u64>)>) -> Option<f64> {
    let (from, first) = readings.next()?;
    let (to, last) = readings.next_back()?;
    let grew = last?.checked_sub(first?)?;
    (to > from).then(|| (grew as f64 / (to - from) as f64).min(1.0))
}

impl End {
    /// Part of the host's processor time taken by a hypervisor (steal).
    pub fn steal(&self) -> Option<f64> {
        self.host.cpu_steal
    }

    /// Part of the time in which its quota throttled the control group of the process.
    pub fn throttled(&self) -> Option<f64> {
        self.host.counters.as_ref()?.throttled()
    }

    /// Packets dropped from the kernel's full backlog, and times that a processor could not process all packets at once.
    pub fn softnet(&self) -> Option<(u64, u64)> {
        let counters = self.host.counters.as_ref()?;
        Some((counters.softnet_dropped?, counters.softnet_squeezed?))
    }

    /// The counters of the network stack.
    pub fn stack(&self) -> Option<StackCounters> {
        self.host.counters.as_ref()?.stack
    }
}
