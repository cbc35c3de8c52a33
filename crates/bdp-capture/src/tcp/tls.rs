//! Progress of the TLS handshake, by record headers (RFC 8446, RFC 5246).

use crate::decode::Record;

/// State of the handshake.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Step {
    /// No ClientHello yet.
    #[default]
    None,
    /// ClientHello sent; the value is the client's side.
    Hello(usize),
    /// The server has answered.
    Answered(usize),
    /// The client has sent its key exchange (up to TLS 1.2, without resumption): the server's last message is outstanding.
    Exchanged(usize),
    /// Application data may follow.
    Done,
}

/// Change caused by a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Begins,
    Ends,
}

/// TLS handshake of a connection, possibly in its middle (STARTTLS).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Setup {
    step: Step,
}

impl Setup {
    /// Whether the handshake is over.
    pub const fn is_over(&self) -> bool {
        matches!(self.step, Step::Done)
    }

    /// Adds new data of a side that begins with this record.
    pub fn data(&mut self, side: usize, record: Record) -> Option<Change> {
        let is_client = |client: usize| side == client;
        let (next, change) = match (self.step, record) {
            (Step::None, Record::ClientHello) => (Step::Hello(side), Some(Change::Begins)),
            // A second ClientHello, after HelloRetryRequest.
            (Step::Answered(client), Record::ClientHello) if is_client(client) => (Step::Hello(client), None),
            (Step::Hello(client) | Step::Answered(client) | Step::Exchanged(client), Record::Alert)
                if !is_client(client) =>
            {
                (Step::Done, Some(Change::Ends))
            }
            (Step::Hello(client), _) if !is_client(client) => (Step::Answered(client), None),
            (Step::Answered(client), Record::Handshake) if is_client(client) => {
                (Step::Exchanged(client), None)
            }
            // The client's message was the last: in TLS 1.3, with resumption, or without an answer.
            (Step::Answered(client), Record::ChangeCipherSpec | Record::Data | Record::Alert)
                if is_client(client) =>
            {
                (Step::Done, Some(Change::Ends))
            }
            // The server's message was the last, or the client does not wait for it.
            (Step::Exchanged(client), _) if !is_client(client) => (Step::Done, Some(Change::Ends)),
            (Step::Exchanged(_), Record::Data) => (Step::Done, Some(Change::Ends)),
            (step, _) => (step, None),
        };
        self.step = next;
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Record::{Alert, ChangeCipherSpec, ClientHello, Data, Handshake, None as Rest};

    /// Returns the segments (`0` is the client) after which the handshake began and ended.
    fn found(segments: &[(usize, Record)]) -> [Option<usize>; 2] {
        let mut setup = Setup::default();
        let mut found = [None; 2];
        for (place, &(side, record)) in segments.iter().enumerate() {
            match setup.data(side, record) {
                Some(Change::Begins) => found[0] = Some(place),
                Some(Change::Ends) => found[1] = Some(place),
                None => {}
            }
        }
        assert_eq!(setup.is_over(), found[1].is_some());
        found
    }

    #[test]
    fn setup_ends_with_the_last_message_of_the_handshake() {
        let hello = [(0, ClientHello), (1, Handshake), (1, Rest)];
        let with = |more: &[(usize, Record)]| [&hello[..], more].concat();
        let kinds: [(&str, Vec<_>, usize); 9] = [
            ("TLS 1.2", with(&[(0, Handshake), (0, ChangeCipherSpec), (1, ChangeCipherSpec), (0, Data)]), 5),
            ("TLS 1.2 with a new ticket", with(&[(0, Handshake), (1, Handshake), (1, ChangeCipherSpec)]), 4),
            ("TLS 1.2, false start", with(&[(0, Handshake), (0, Data), (1, ChangeCipherSpec)]), 4),
            ("TLS 1.2, resumed", with(&[(0, ChangeCipherSpec), (0, Data)]), 3),
            ("TLS 1.3", with(&[(0, ChangeCipherSpec), (0, Data), (1, Data)]), 3),
            ("TLS 1.3, nothing for middleboxes", with(&[(1, Data), (0, Data)]), 4),
            ("HelloRetryRequest", with(&[(0, ClientHello), (1, Handshake), (0, ChangeCipherSpec)]), 5),
            ("no common cipher", vec![(0, ClientHello), (1, Alert), (1, Data)], 1),
            ("certificate that is not trusted", with(&[(0, Alert), (1, Data)]), 3),
        ];
        for (kind, segments, end) in kinds {
            assert_eq!(found(&segments), [Some(0), Some(end)], "{kind}");
        }
        // In the middle of a connection, also of one whose beginning was not captured.
        let begun = [(1, Rest), (0, Rest), (0, ClientHello), (1, Handshake), (0, Data), (1, Data)];
        assert_eq!(found(&begun), [Some(2), Some(4)]);
        assert_eq!(found(&[(0, Data), (1, Data), (0, Alert)]), [None, None]);
    }
}
