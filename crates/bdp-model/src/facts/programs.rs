//! What the programs and the machines at both ends did: who waited for whom, and who had the processor.

use super::{End, Facts};
use crate::ends::Task;
use crate::host_counters::StackCounters;
use crate::record::ReceiverSample;
use crate::stats::median;
use crate::threshold::SAMPLES_MIN;

impl Facts {
    /// Part of the time after omit in which the sending program had bytes to write and its socket took none: what is behind it
    /// limits the transfer, and not the program.
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

    /// Part of the time after omit in which the receiving program did not read because it was to hold back.
    pub fn receiver_held_back(&self) -> Option<f64> {
        self.part_of_receiving(|s| s.read_paused_ns)
    }

    /// Bytes that had come and were not read, first stream: median after omit.
    pub fn unread_bytes(&self) -> Option<f64> {
        let mut unread: Vec<f64> =
            self.received_after_omit().filter_map(|s| s.unread_bytes).map(|bytes| bytes as f64).collect();
        (unread.len() >= SAMPLES_MIN).then(|| median(&mut unread)).flatten()
    }

    /// Part of the time after omit in which a thread of an end was ready to run while others had its processor: that of the
    /// thread that waited longest.
    pub fn waited_for_processor(&self, task: Task) -> Option<f64> {
        match task {
            Task::Sending => self.part_of_sending(|s| s.run_wait_ns),
            Task::Receiving => self.part_of_receiving(|s| s.run_wait_ns),
        }
    }

    /// Processor time of the busiest thread of an end / time, from each sample after omit to the next: when, since the flow's
    /// start by that end's samples, and how much.
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

    /// Readings at the receiver after omit.
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

/// What a time that is counted from the start on grew by, as a part of the time from the first reading to the last.
fn part(mut readings: impl DoubleEndedIterator<Item = (u64, Option<u64>)>) -> Option<f64> {
    let (from, first) = readings.next()?;
    let (to, last) = readings.next_back()?;
    let grew = last?.checked_sub(first?)?;
    (to > from).then(|| (grew as f64 / (to - from) as f64).min(1.0))
}

impl End {
    /// Part of the machine's processor time that a hypervisor took.
    pub fn steal(&self) -> Option<f64> {
        self.host.cpu_steal
    }

    /// Part of the time in which the control group of its process was held back by its quota.
    pub fn throttled(&self) -> Option<f64> {
        self.host.counters.as_ref()?.throttled()
    }

    /// Received packets that found the kernel's backlog full, and times that a processor could not take in all at once.
    pub fn softnet(&self) -> Option<(u64, u64)> {
        let counters = self.host.counters.as_ref()?;
        Some((counters.softnet_dropped?, counters.softnet_squeezed?))
    }

    /// What its network stack counted.
    pub fn stack(&self) -> Option<StackCounters> {
        self.host.counters.as_ref()?.stack
    }
}
