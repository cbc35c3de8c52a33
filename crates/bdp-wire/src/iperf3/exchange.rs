//! Valid sequences of states at either end.

use super::{Iperf3Error, State};

/// The client's next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Send its parameters.
    SendParameters,
    /// Open its streams.
    OpenStreams,
    /// Prepare its senders.
    Prepare,
    /// Send and receive.
    Run,
    /// Send its results, then read the server's.
    ExchangeResults,
    /// Send [`State::IperfDone`] and disconnect.
    Leave,
    /// Stop: the server refuses the client.
    Denied,
    /// Read a [`super::Failure`], then stop.
    ReadFailure,
    /// Stop: the server was terminated.
    Ended,
}

/// The client's side of a test, driven by the states that the server sends.
#[derive(Debug, Clone, Default)]
pub struct ClientExchange {
    done: usize,
}

/// The server's states in order, each with the client's step and its name.
const ORDER: [(State, Step, &str); 6] = [
    (State::ParamExchange, Step::SendParameters, "the request for parameters (9)"),
    (State::CreateStreams, Step::OpenStreams, "the request for streams (10)"),
    (State::TestStart, Step::Prepare, "the start (1)"),
    (State::TestRunning, Step::Run, "the run (2)"),
    (State::ExchangeResults, Step::ExchangeResults, "the request for results (13)"),
    (State::DisplayResults, Step::Leave, "the end (14)"),
];

impl ClientExchange {
    /// Handles the server's next state.
    pub fn take(&mut self, byte: u8) -> Result<Step, Iperf3Error> {
        match State::of(byte) {
            Some(State::AccessDenied) => return Ok(Step::Denied),
            Some(State::ServerError) => return Ok(Step::ReadFailure),
            Some(State::ServerTerminate) => return Ok(Step::Ended),
            _ => {}
        }
        match ORDER.get(self.done) {
            Some((state, step, _)) if State::of(byte) == Some(*state) => {
                self.done += 1;
                Ok(*step)
            }
            due => {
                let expected = due.map_or("nothing more", |(_, _, name)| *name);
                Err(Iperf3Error::State { state: byte as i8, expected })
            }
        }
    }
}

/// A client's message to the server while a test runs or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// The test is over.
    TestEnd,
    /// The client has received the results.
    Done,
    /// The client was terminated or gave up.
    Terminated,
}

/// Whether a client's byte ends the test before the streams are connected: a client that fails sends `IperfDone`.
pub fn is_goodbye(byte: u8) -> bool {
    matches!(State::of(byte), Some(State::IperfDone | State::ClientTerminate))
}

/// Interprets a client's byte: `running` during the test, otherwise after the results.
pub fn hear(byte: u8, running: bool) -> Result<Word, Iperf3Error> {
    match (State::of(byte), running) {
        (Some(State::TestEnd), true) => Ok(Word::TestEnd),
        (Some(State::IperfDone), false) => Ok(Word::Done),
        (Some(State::ClientTerminate), _) | (Some(State::IperfDone), true) => Ok(Word::Terminated),
        (_, true) => Err(Iperf3Error::State { state: byte as i8, expected: "the end of the test (4)" }),
        (_, false) => Err(Iperf3Error::State { state: byte as i8, expected: "the farewell (16)" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_goes_its_way_once() {
        let mut client = ClientExchange::default();
        let steps: Vec<Step> = [9, 10, 1, 2, 13, 14].map(|byte| client.take(byte).unwrap()).to_vec();
        assert_eq!(steps[0], Step::SendParameters);
        assert_eq!(steps[5], Step::Leave);
        assert!(client.take(9).unwrap_err().to_string().contains("nothing more"));
    }

    #[test]
    fn out_of_order_is_refused_and_refusals_come_at_any_time() {
        let mut client = ClientExchange::default();
        for wrong in [10, 1, 2, 13, 14, 4, 16, 12, 0, 99, 0x80] {
            assert!(client.take(wrong).is_err(), "{wrong}");
        }
        assert_eq!(client.take(9), Ok(Step::SendParameters));
        assert!(client.take(9).unwrap_err().to_string().contains("streams (10)"));
        assert_eq!(client.take(0xff), Ok(Step::Denied));
        assert_eq!(client.take(0xfe), Ok(Step::ReadFailure));
        assert_eq!(client.take(11), Ok(Step::Ended));
    }

    #[test]
    fn a_server_hears_what_is_due() {
        assert_eq!(hear(4, true), Ok(Word::TestEnd));
        assert_eq!(hear(16, false), Ok(Word::Done));
        assert_eq!(hear(12, true), Ok(Word::Terminated));
        // A client that fails after its test has begun sends `IperfDone`.
        assert_eq!(hear(16, true), Ok(Word::Terminated));
        assert!(hear(4, false).is_err() && hear(77, true).is_err());
        assert!(is_goodbye(16) && is_goodbye(12) && !is_goodbye(4) && !is_goodbye(0xfe));
    }
}
