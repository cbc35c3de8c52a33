//! Long headers of QUIC: the version-independent part (RFC 8999), and packets of versions 1 (RFC 9000, section 17.2) and 2 (RFC 9369).

/// Version 1; also drafts with the same headers.
const VERSION_1: u32 = 1;
const DRAFTS: std::ops::RangeInclusive<u32> = 0xff00_001d..=0xff00_0022;
/// Version 2.
const VERSION_2: u32 = 0x6b33_43cf;
/// Longest connection ID in these versions, bytes.
const LONGEST_ID: usize = 20;

/// A connection ID.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Id {
    length: u8,
    bytes: [u8; LONGEST_ID],
}

impl Id {
    fn new(bytes: &[u8]) -> Option<Self> {
        let mut id = Self { length: u8::try_from(bytes.len()).ok()?, bytes: [0; LONGEST_ID] };
        id.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(id)
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// Type of a packet with a long header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Initial,
    ZeroRtt,
    Handshake,
    Retry,
    VersionNegotiation,
    /// Of an unknown version.
    Unknown,
}

/// A long header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Long {
    pub kind: Kind,
    pub version: u32,
    pub destination: Id,
    pub source: Id,
    /// Length of the packet, bytes, if another may follow it in the datagram (RFC 9000, section 12.2).
    pub length: Option<usize>,
}

/// Why there is no long header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotLong {
    /// The captured bytes end within it.
    Cut,
    /// It is not a long header.
    Other,
}

/// Parses the long header at the start of the captured bytes, of `whole` originally.
pub(super) fn long(kept: &[u8], whole: usize) -> Result<Long, NotLong> {
    // A header that ends early without truncation is invalid.
    let short = if kept.len() < whole { NotLong::Cut } else { NotLong::Other };
    let mut bytes = Reader { rest: kept, short };
    let [first, a, b, c, d] = bytes.array()?;
    if first & 0x80 == 0 {
        return Err(NotLong::Other);
    }
    let version = u32::from_be_bytes([a, b, c, d]);
    let destination = bytes.id()?;
    let source = bytes.id()?;
    let kind = kind(first, version);
    let is_known = !matches!(kind, Kind::VersionNegotiation | Kind::Unknown);
    // The fixed bit, which only an established connection may clear (RFC 9287).
    if is_known && first & 0x40 == 0 {
        return Err(NotLong::Other);
    }
    let length = match kind {
        Kind::Initial | Kind::ZeroRtt | Kind::Handshake => {
            if kind == Kind::Initial {
                let token = bytes.varint()?;
                bytes.skip(token, whole)?;
            }
            let payload = bytes.varint()?;
            let header = kept.len() - bytes.rest.len();
            // Packet number and authentication tag take at least 17 bytes; the header protection sample needs 20 (RFC 9001, 5.4.2).
            let length = usize::try_from(payload).ok().and_then(|payload| header.checked_add(payload));
            let length = length.filter(|&length| payload >= 20 && length <= whole).ok_or(NotLong::Other)?;
            Some(length)
        }
        // A tag of 16 bytes after the token (RFC 9001, section 5.8).
        Kind::Retry if whole.saturating_sub(kept.len() - bytes.rest.len()) < 16 => {
            return Err(NotLong::Other);
        }
        Kind::Retry | Kind::VersionNegotiation | Kind::Unknown => None,
    };
    Ok(Long { kind, version, destination, source, length })
}

fn kind(first: u8, version: u32) -> Kind {
    let number = first >> 4 & 3;
    match version {
        0 => Kind::VersionNegotiation,
        VERSION_2 => [Kind::Retry, Kind::Initial, Kind::ZeroRtt, Kind::Handshake][usize::from(number)],
        _ if version == VERSION_1 || DRAFTS.contains(&version) => {
            [Kind::Initial, Kind::ZeroRtt, Kind::Handshake, Kind::Retry][usize::from(number)]
        }
        _ => Kind::Unknown,
    }
}

struct Reader<'a> {
    rest: &'a [u8],
    short: NotLong,
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], NotLong> {
        let (taken, rest) = self.rest.split_at_checked(n).ok_or(self.short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], NotLong> {
        let taken = self.take(N)?;
        Ok(std::array::from_fn(|i| taken[i]))
    }

    /// Reads a length and an ID; longer ones than in these versions may belong to others.
    fn id(&mut self) -> Result<Id, NotLong> {
        let [length] = self.array()?;
        if usize::from(length) > LONGEST_ID {
            return Err(NotLong::Other);
        }
        Id::new(self.take(usize::from(length))?).ok_or(NotLong::Other)
    }

    /// RFC 9000, section 16.
    fn varint(&mut self) -> Result<u64, NotLong> {
        let [first] = self.array()?;
        let more = self.take((1 << (first >> 6)) - 1)?;
        Ok(more.iter().fold(u64::from(first & 0x3f), |value, &byte| value << 8 | u64::from(byte)))
    }

    /// A length beyond the end of the datagram is invalid.
    fn skip(&mut self, n: u64, whole: usize) -> Result<(), NotLong> {
        let n = usize::try_from(n).ok().filter(|&n| n <= whole).ok_or(NotLong::Other)?;
        self.take(n).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unhex(text: &str) -> Vec<u8> {
        let text: String = text.split_whitespace().collect();
        (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
    }

    fn id(text: &str) -> Id {
        Id::new(&unhex(text)).unwrap()
    }

    /// RFC 9001, A.2: the client's Initial, protected, of 1200 bytes.
    #[test]
    fn the_initial_packets_of_rfc_9001_are_read() {
        let client = unhex("c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11");
        let expected = Long {
            kind: Kind::Initial,
            version: 1,
            destination: id("8394c8f03e515708"),
            source: id(""),
            length: Some(1200),
        };
        assert_eq!(long(&client, 1200), Ok(expected));
        // A.3: the server's, of 135 bytes.
        let server = unhex(
            "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a5816b6394100f37a1c69797554780bb3\
             8cc5a99f5ede4cf73c3ec2493a1839b3dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84\
             022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc42158407dd074ee",
        );
        let read = long(&server, server.len()).unwrap();
        assert_eq!((read.kind, read.source, read.length), (Kind::Initial, id("f067a5502a4262b5"), Some(135)));
        assert_eq!(read.destination, id(""));
        // A.4: Retry, with its token and tag.
        let retry = unhex("ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba");
        let read = long(&retry, retry.len()).unwrap();
        assert_eq!((read.kind, read.length), (Kind::Retry, None));
    }

    /// RFC 9369, A.2 to A.4.
    #[test]
    fn version_2_numbers_its_packets_otherwise() {
        let client = unhex("d76b3343cf088394c8f03e5157080000449ea0c95e82ffe67b6abcdb4298b485");
        let read = long(&client, 1200).unwrap();
        assert_eq!((read.kind, read.version, read.length), (Kind::Initial, VERSION_2, Some(1200)));
        let retry = unhex("cf6b3343cf0008f067a5502a4262b5746f6b656ec8646ce8bfe33952d955543665dcc7b6");
        assert_eq!(long(&retry, retry.len()).unwrap().kind, Kind::Retry);
    }

    #[test]
    fn what_is_cut_is_told_from_what_is_none() {
        let client = unhex("c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11");
        for kept in 0..18 {
            assert_eq!(long(&client[..kept], 1200), Err(NotLong::Cut), "{kept}");
            assert_eq!(long(&client[..kept], kept), Err(NotLong::Other), "{kept}");
        }
        // A length past the end of the datagram, an ID that is too long, no fixed bit.
        assert_eq!(long(&client, 1199), Err(NotLong::Other));
        for (at, value) in [(5, 21), (0, 0x80), (0, 0x40)] {
            let mut broken = client.clone();
            broken[at] = value;
            assert_eq!(long(&broken, 1200), Err(NotLong::Other), "{at}");
        }
    }
}
