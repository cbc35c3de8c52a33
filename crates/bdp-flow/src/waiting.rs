//! What the thread of a flow's first stream waited for: its socket, or its program's next action.
//!
//! The clock is read around each wait. In a guest, where a reading is a system call and only waits take time, the
//! reading that the thread takes anyway before the next wait is used.

use bdp_sys::still_clock;

use crate::pause::looks_seldom;

/// The reason for a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitFor {
    /// Room to write, or data to read.
    Socket,
    /// The program's next write or read, or an answer that it needs first.
    Program,
}

/// Waiting time so far; none for a thread that does not count.
#[derive(Debug, Clone, Copy, Default)]
pub struct Waiting {
    counts: bool,
    /// The last reading of the clock.
    now_ns: u64,
    under_way: Option<(u64, WaitFor)>,
    for_socket_ns: u64,
    for_program_ns: u64,
}

impl Waiting {
    /// Creates it for a thread that begins now.
    pub fn counted_from(now_ns: u64) -> Self {
        Self { counts: true, now_ns, ..Self::default() }
    }

    /// Begins a wait.
    pub fn begin(&mut self, what: WaitFor) {
        if self.counts {
            let now_ns = if looks_seldom() { self.now_ns } else { still_clock::now_ns() };
            self.under_way = Some((now_ns, what));
        }
    }

    /// Ends the wait.
    pub fn end(&mut self) {
        if self.counts && !looks_seldom() {
            self.note_time(still_clock::now_ns());
        }
    }

    /// Takes a reading of the clock, which ends the current wait.
    pub fn note_time(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        if let Some((began_ns, what)) = self.under_way.take() {
            let waited_ns = now_ns.saturating_sub(began_ns);
            match what {
                WaitFor::Socket => self.for_socket_ns += waited_ns,
                WaitFor::Program => self.for_program_ns += waited_ns,
            }
        }
    }

    /// Returns the time waited for the socket so far.
    pub fn for_socket_ns(&self) -> Option<u64> {
        self.counts.then_some(self.for_socket_ns)
    }

    /// Returns the time waited for the program so far.
    pub fn for_program_ns(&self) -> Option<u64> {
        self.counts.then_some(self.for_program_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_goes_to_what_it_is_for_and_is_counted_once() {
        let mut waiting = Waiting::counted_from(100);
        for (began, what, ended) in
            [(100, WaitFor::Socket, 130), (130, WaitFor::Program, 200), (200, WaitFor::Socket, 205)]
        {
            waiting.under_way = Some((began, what));
            waiting.note_time(ended);
            waiting.note_time(ended + 50);
        }
        assert_eq!((waiting.for_socket_ns(), waiting.for_program_ns()), (Some(35), Some(70)));
        let mut other = Waiting::default();
        other.begin(WaitFor::Socket);
        other.end();
        assert_eq!((other.for_socket_ns(), other.for_program_ns()), (None, None));
    }

    #[test]
    fn the_clock_is_read_around_a_wait() {
        let mut waiting = Waiting::counted_from(still_clock::now_ns());
        waiting.begin(WaitFor::Program);
        std::thread::sleep(std::time::Duration::from_millis(20));
        waiting.end();
        assert!(waiting.for_program_ns().unwrap() >= 20_000_000 && waiting.for_socket_ns() == Some(0));
    }
}
