//! The test peer of a subject: it controls every sequence number and sends exactly what it is told to.

use bdp_model::units::Nanos;

use super::segment::{ACK, Options, RST, SYN, Segment};
use super::subject::{COUNTERPART, Miss, SUBJECT, Subject};
use crate::pattern::byte_at;
use crate::{Command, SocketOptions, SocketReport, SocketState, StackError};

/// The subject's socket.
const SOCKET: u32 = 1;
/// Port on which it listens.
const LISTENING: u16 = 5_001;
/// Port from which it connects, and the peer's port.
const CONNECTING: u16 = 40_001;
const OWN_PORT: u16 = 9_000;
/// Initial sequence number of the peer, unless a point sets another.
const FIRST: u32 = 1_000_000;
/// Delay of acknowledgements while data is taken, as no path has a round trip of zero.
const DISTANCE: Nanos = Nanos::millis(1);
/// Time limit for an answer that needs no timer.
const SOON: Nanos = Nanos::secs(1);

/// A subject and the peer's state of the connection.
pub(super) struct Bench<'a> {
    subject: &'a mut dyn Subject,
    /// Segments received but not yet examined.
    came: std::collections::VecDeque<(Nanos, Segment)>,
    subject_port: u16,
    /// Next sequence number of the peer.
    pub(super) next: u32,
    /// Next sequence number expected from the subject.
    pub(super) expected: u32,
    /// Sequence number of the subject's first byte of data.
    pub(super) data_begins: u32,
    /// Window that the peer announces.
    pub(super) window: u16,
    /// Options of the subject's SYN.
    pub(super) offered: Options,
    /// Shift count of the subject's windows.
    pub(super) scale: u8,
    timestamps: bool,
    /// Latest timestamp of the subject.
    echo: u32,
}

impl<'a> Bench<'a> {
    pub(super) fn new(subject: &'a mut dyn Subject) -> Self {
        Self {
            subject,
            came: Default::default(),
            subject_port: LISTENING,
            next: FIRST,
            expected: 0,
            data_begins: 0,
            window: 65_535,
            offered: Options::default(),
            scale: 0,
            timestamps: false,
            echo: 0,
        }
    }

    pub(super) fn now(&self) -> Nanos {
        self.subject.now()
    }

    pub(super) fn state(&mut self) -> Result<SocketReport, StackError> {
        self.subject.socket(SOCKET)
    }

    pub(super) fn listen(&mut self) -> Result<(), StackError> {
        self.subject.command(Command::Listen {
            socket: SOCKET,
            port: LISTENING,
            options: SocketOptions::default(),
        })
    }

    pub(super) fn connect(&mut self, options: SocketOptions) -> Result<(), StackError> {
        self.subject_port = CONNECTING;
        self.subject.command(Command::Connect {
            socket: SOCKET,
            from: (SUBJECT, CONNECTING).into(),
            to: (COUNTERPART, OWN_PORT).into(),
            options,
        })
    }

    pub(super) fn send_data(&mut self, bytes: u64) -> Result<(), StackError> {
        self.subject.command(Command::Send { socket: SOCKET, bytes: Some(bytes) })
    }

    pub(super) fn read(&mut self, bytes: Option<u64>) -> Result<(), StackError> {
        self.subject.command(Command::Receive { socket: SOCKET, bytes })
    }

    pub(super) fn finish(&mut self) -> Result<(), StackError> {
        self.subject.command(Command::Finish { socket: SOCKET })
    }

    pub(super) fn abort(&mut self) -> Result<(), StackError> {
        self.subject.command(Command::Abort { socket: SOCKET })
    }

    /// Returns a segment of the peer with these flags, at its next sequence number.
    pub(super) fn segment(&self, flags: u8) -> Segment {
        let timestamps = self.timestamps.then(|| ((self.now().as_ns() / 1_000_000) as u32, self.echo));
        Segment {
            from_port: OWN_PORT,
            to_port: self.subject_port,
            sequence: self.next,
            acknowledgement: if flags & ACK != 0 { self.expected } else { 0 },
            flags,
            window: self.window,
            options: Options { timestamps, ..Options::default() },
            payload: Vec::new(),
        }
    }

    pub(super) fn say(&mut self, segment: &Segment) -> Result<(), StackError> {
        self.subject.arrive(segment.encode(COUNTERPART, SUBJECT))
    }

    /// Sends a segment with a wrong checksum.
    pub(super) fn say_damaged(&mut self, segment: &Segment) -> Result<(), StackError> {
        let mut packet = segment.encode(COUNTERPART, SUBJECT);
        if let Some(last) = packet.last_mut() {
            *last ^= 0x55;
        }
        self.subject.arrive(packet)
    }

    /// Acknowledges all data received in order so far.
    pub(super) fn acknowledge(&mut self) -> Result<(), StackError> {
        let segment = self.segment(ACK);
        self.say(&segment)
    }

    /// Returns data of the peer from a position in its stream, whose first byte has sequence number `first`.
    pub(super) fn data(&self, first: u32, position: u64, bytes: usize) -> Segment {
        let mut segment = self.segment(ACK);
        segment.sequence = first.wrapping_add(position as u32);
        segment.payload = (position..position + bytes as u64).map(byte_at).collect();
        segment
    }

    /// Returns the next segment that the subject sends within a time; `None` if there is none.
    pub(super) fn next_within(&mut self, longest: Nanos) -> Result<Option<(Nanos, Segment)>, StackError> {
        let until = self.now() + longest;
        loop {
            if let Some((at, segment)) = self.came.pop_front() {
                if let Some((value, _)) = segment.options.timestamps {
                    self.echo = value;
                }
                return Ok(Some((at, segment)));
            }
            let came = self.subject.advance(until)?;
            if came.is_empty() && self.now() >= until {
                return Ok(None);
            }
            self.keep(came);
        }
    }

    /// Lets time pass and keeps the segments received.
    fn let_pass(&mut self, time: Nanos) -> Result<(), StackError> {
        let until = self.now() + time;
        while self.now() < until {
            let came = self.subject.advance(until)?;
            self.keep(came);
        }
        Ok(())
    }

    fn keep(&mut self, came: Vec<(Nanos, Vec<u8>)>) {
        let ours = came.into_iter().filter_map(|(at, packet)| Some((at, Segment::decode(&packet)?)));
        self.came.extend(ours.filter(|(_, segment)| segment.to_port == OWN_PORT));
    }

    /// Returns the next segment that is `wanted` within a time, skipping others.
    pub(super) fn await_within(
        &mut self,
        longest: Nanos,
        wanted: impl Fn(&Segment) -> bool,
    ) -> Result<Option<(Nanos, Segment)>, StackError> {
        let until = self.now() + longest;
        loop {
            let left = until.saturating_sub(self.now());
            match self.next_within(left)? {
                Some(one) if wanted(&one.1) => return Ok(Some(one)),
                Some(_) if self.now() <= until => {}
                _ => return Ok(None),
            }
        }
    }

    /// Returns the next segment that is `wanted`, which must arrive soon.
    pub(super) fn expect(&mut self, what: &str, wanted: impl Fn(&Segment) -> bool) -> Result<Segment, Miss> {
        match self.await_within(SOON, wanted)? {
            Some((_, segment)) => Ok(segment),
            None => Err(Miss::Differs(format!("no {what} within {} s", SOON.as_secs_f64()))),
        }
    }

    /// Returns all segments that arrive within a time.
    pub(super) fn all_within(&mut self, longest: Nanos) -> Result<Vec<(Nanos, Segment)>, StackError> {
        let until = self.now() + longest;
        let mut all = Vec::new();
        loop {
            let left = until.saturating_sub(self.now());
            match self.next_within(left)? {
                Some(one) => all.push(one),
                None => return Ok(all),
            }
        }
    }

    /// Waits until the subject is idle, discarding its segments.
    pub(super) fn settle(&mut self) -> Result<(), StackError> {
        self.all_within(Nanos::millis(500)).map(drop)
    }

    /// Opens a connection to a listening subject, with these options in the peer's SYN.
    pub(super) fn open_to_it(&mut self, options: Options) -> Result<Segment, Miss> {
        self.listen()?;
        let syn = Segment { options: options.clone(), ..self.segment(SYN) };
        self.say(&syn)?;
        let answer = self.expect("SYN-ACK", |s| s.has(SYN | ACK))?;
        if answer.acknowledgement != self.next.wrapping_add(1) {
            return Err(Miss::Differs("the SYN-ACK acknowledges another number".to_owned()));
        }
        self.next = self.next.wrapping_add(1);
        self.agree(&answer, &options);
        self.acknowledge()?;
        self.is_open()?;
        Ok(answer)
    }

    /// Accepts a connection from the subject, with these options in the peer's SYN-ACK.
    pub(super) fn open_from_it(&mut self, own: SocketOptions, options: Options) -> Result<Segment, Miss> {
        self.connect(own)?;
        let syn = self.expect("SYN", |s| s.has(SYN) && !s.has(ACK))?;
        self.agree(&syn, &options);
        let answer = Segment { options, ..self.segment(SYN | ACK) };
        self.say(&answer)?;
        self.next = self.next.wrapping_add(1);
        self.is_open()?;
        Ok(syn)
    }

    /// Applies the options that both ends offered.
    pub(super) fn agree(&mut self, theirs: &Segment, ours: &Options) {
        self.expected = theirs.sequence.wrapping_add(1);
        self.data_begins = self.expected;
        self.offered = theirs.options.clone();
        self.scale = if ours.scale.is_some() { theirs.options.scale.unwrap_or(0) } else { 0 };
        self.timestamps = ours.timestamps.is_some() && theirs.options.timestamps.is_some();
        self.echo = theirs.options.timestamps.map_or(0, |(value, _)| value);
    }

    pub(super) fn is_open(&mut self) -> Result<(), Miss> {
        match self.state()?.state {
            SocketState::Open => Ok(()),
            other => {
                Err(Miss::Differs(format!("after the handshake its socket is {other:?}").to_lowercase()))
            }
        }
    }

    /// Acknowledges the subject's data in order until this many bytes of its stream have arrived, checking each segment.
    pub(super) fn take(&mut self, bytes: u64, longest: Nanos) -> Result<(), Miss> {
        let until = self.now() + longest;
        let have = |bench: &Self| u64::from(bench.expected.wrapping_sub(bench.data_begins));
        while have(self) < bytes {
            let left = until.saturating_sub(self.now());
            let Some((_, segment)) = self.next_within(left)? else {
                return Err(Miss::Differs(format!(
                    "only {} of {bytes} bytes arrived within {} s",
                    have(self),
                    longest.as_secs_f64()
                )));
            };
            if segment.has(RST) {
                return Err(Miss::Differs(format!("a reset after {} of {bytes} bytes", have(self))));
            }
            if segment.payload.is_empty() {
                continue;
            }
            self.look(&segment)?;
            if segment.sequence == self.expected {
                self.expected = segment.end();
            }
            self.let_pass(DISTANCE)?;
            self.acknowledge()?;
        }
        Ok(())
    }

    /// Compares the bytes of a segment with the pattern.
    pub(super) fn look(&self, segment: &Segment) -> Result<(), Miss> {
        // Streams of the suite are shorter than 4 GiB.
        let position = u64::from(segment.sequence.wrapping_sub(self.data_begins));
        let right = segment.payload.iter().zip(position..).all(|(&byte, at)| byte == byte_at(at));
        if right { Ok(()) } else { Err(Miss::Differs(format!("wrong bytes from {position} on"))) }
    }

    /// Checks that the subject has read this many bytes by now, with the right content.
    pub(super) fn has_read(&mut self, bytes: u64) -> Result<(), Miss> {
        let report = self.state()?;
        if report.received_bytes != bytes {
            return Err(Miss::Differs(format!("it read {} of {bytes} bytes", report.received_bytes)));
        }
        if report.received_crc != crate::crc_of(bytes) {
            return Err(Miss::Differs("it read other bytes than those sent".to_owned()));
        }
        Ok(())
    }
}
