//! Facts about time: programs and their turns, the start of a transfer, CPUs.

use bdp_model::finding::fact::{Beginning, Processors, Time, TimeShare, WaitedForProgram};

use super::super::quantity::{percent, size, time};
use super::seen::Seen;
use crate::time_spent;

pub fn of_time(seen: &Seen<'_>, fact: Time) -> String {
    let (value, host, share) = (seen.value, seen.host(), seen.share());
    match fact {
        Time::WaitedForProgram(WaitedForProgram { time: spent, waits }) => {
            let waits = if waits > 0 { format!(", in {waits} waits") } else { String::new() };
            format!("waited for the program on {host} for {}, {share} of the time{waits}", time(spent))
        }
        Time::TurnsTook(took) => format!(
            "{} turns of {} took {}, {share} of the time",
            took.turns,
            time(took.round_trip),
            time(took.time)
        ),
        Time::StoppedAtAmount(stopped) => format!(
            "{value:.0} times {} went out, and no more until the other end had asked",
            size(stopped.amount.0)
        ),
        Time::SentInVain(sent) => {
            format!("data was retransmitted {value:.0} times in {} and never acknowledged", time(sent.time))
        }
        Time::SynsSent(sent) => {
            let again = match value > 1.0 {
                true => format!("{value:.0} SYNs in {}", time(sent.time)),
                false => "a SYN".to_owned(),
            };
            format!("{again} to {host}")
        }
        Time::LeftOpen(left) => format!(
            "all was said, and the connection was left open for {}, {share} of the time",
            time(left.time)
        ),
        Time::CaptureLacks(_) => format!("the capture lacks {share} of the bytes that passed"),
        Time::TimeShare(TimeShare { time: spent }) => {
            let state = time_spent::named(seen.name());
            match spent.filter(|spent| spent.0 > 0) {
                Some(spent) => format!("{state} took {}, {share} of the time", time(spent)),
                None => format!("{state} took {share} of the time"),
            }
        }
        Time::NothingToSend(_) => {
            format!("the kernel of {host} waited for the program's next bytes for {share} of the time")
        }
        Time::ReadingPaused(_) => {
            format!("the program on {host} held back its reading for {share} of the time")
        }
        Time::SmallWriteHeld(write) => format!(
            "{} waited in the send buffer in {share} of the samples though both windows had room: less than a segment of {}",
            size(write.held.0),
            size(write.segment.0)
        ),
    }
}

pub fn of_beginning(seen: &Seen<'_>, fact: Beginning) -> String {
    let value = seen.value;
    match fact {
        Beginning::TookRoundTrips(took) => {
            format!("{} took {value:.1} round trips of {}", size(took.transferred.0), time(took.round_trip))
        }
        Beginning::WindowAsked(_) => format!("{} asks for a window of {}", seen.name(), size(value)),
        Beginning::StillInSlowStart(_) => {
            "nothing was lost, and the congestion window had not left slow start at the end".to_owned()
        }
        Beginning::WindowGrew(grew) => {
            format!("the congestion window grew from {} to {value:.0} segments", grew.from)
        }
    }
}

pub fn of_processor(seen: &Seen<'_>, fact: Processors) -> String {
    let (host, share) = (seen.host(), seen.share());
    match fact {
        Processors::SendingThread(_) => format!("a sending thread used {share} of a processor"),
        Processors::ReceivingThread(_) => format!("a receiving thread used {share} of a processor"),
        Processors::BusiestThread(_) => {
            let by = seen.evidence.name.as_ref().map_or_else(String::new, |name| format!(", by {name}"));
            format!("its busiest thread used {share} of a processor{by}")
        }
        Processors::SendingThreadReady(thread) => format!(
            "the sending thread on {host} ran {} of the time, and was ready to run or running for {share} of it",
            percent(thread.ran.0)
        ),
        Processors::ReceivingThreadReady(thread) => format!(
            "the receiving thread on {host} ran {} of the time, and was ready to run or running for {share} of it",
            percent(thread.ran.0)
        ),
        Processors::Throttled(_) => {
            format!("the quota of its control group held it back {share} of the time")
        }
        Processors::Stolen(_) => format!("the hypervisor of {host} took {share} of its processor time"),
        Processors::ReceiverPaused(paused) => format!(
            "the receiving process took no sample for {}, at an interval of {}: it did not run",
            seen.time(),
            time(paused.interval)
        ),
        Processors::HostPaused(_) => format!(
            "a host kept the test's own programs from running for {}, and this may be of that",
            seen.time()
        ),
        Processors::ThroughTunnel(_) => {
            "ssh encrypts, and holds data back by windows of its own (RFC 4254, section 5.2)".to_owned()
        }
    }
}
