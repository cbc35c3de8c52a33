//! Filters on the sockets that the kernel lists: conditions in the bytecode of inet_diag (`struct
//! inet_diag_bc_op`), so that it neither examines nor copies the others.

use std::net::IpAddr;

/// `INET_DIAG_BC_JMP`, `_S_COND`, `_D_COND` of linux/inet_diag.h.
const JUMP: u8 = 1;
const LOCAL: u8 = 7;
const REMOTE: u8 = 8;
/// Maximum number of conditions: their jumps have 16 bits.
pub const MOST_CONDITIONS: usize = 1024;

/// Condition that a listed socket meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Condition {
    /// Local port.
    LocalPort(u16),
    /// Remote port.
    RemotePort(u16),
    /// Remote address, and the remote port if given.
    Remote(IpAddr, Option<u16>),
}

impl Condition {
    /// The operation without its jumps, and its length.
    fn operation(self) -> Vec<u8> {
        let (code, address, port) = match self {
            Self::LocalPort(port) => (LOCAL, None, Some(port)),
            Self::RemotePort(port) => (REMOTE, None, Some(port)),
            Self::Remote(address, port) => (REMOTE, Some(address), port),
        };
        let octets = match address {
            None => Vec::new(),
            Some(IpAddr::V4(a)) => a.octets().to_vec(),
            Some(IpAddr::V6(a)) => a.octets().to_vec(),
        };
        let family = match address {
            None => libc::AF_UNSPEC,
            Some(IpAddr::V4(_)) => libc::AF_INET,
            Some(IpAddr::V6(_)) => libc::AF_INET6,
        };
        // struct inet_diag_hostcond: family, bits, two bytes unused, port or -1, address.
        let mut bytes = vec![code, 0, 0, 0, family as u8, (octets.len() * 8) as u8, 0, 0];
        bytes.extend(port.map_or(-1, i32::from).to_ne_bytes());
        bytes.extend(octets);
        bytes
    }
}

/// Bytecode that accepts sockets that meet any of these; `None` if there are none, or too many, and all are listed.
pub(super) fn bytecode(conditions: &[Condition]) -> Option<Vec<u8>> {
    if conditions.is_empty() || conditions.len() > MOST_CONDITIONS {
        return None;
    }
    /// Bytes of a jump.
    const JUMPS: usize = 4;
    let operations: Vec<Vec<u8>> = conditions.iter().map(|c| c.operation()).collect();
    let last = operations.len() - 1;
    let total: usize = operations.iter().map(Vec::len).sum::<usize>() + last * JUMPS;
    let mut code = Vec::with_capacity(total);
    for (index, mut operation) in operations.into_iter().enumerate() {
        let length = operation.len();
        let left = total - code.len();
        // If met: on to the jump, or out at the end, which accepts. If not met: past the jump, or past the end.
        let no = if index == last { left + 4 } else { length + JUMPS };
        operation[1] = length as u8;
        operation[2..4].copy_from_slice(&(no as u16).to_ne_bytes());
        code.extend(operation);
        if index < last {
            let to_end = (total - code.len()) as u16;
            code.extend([JUMP, JUMPS as u8]);
            code.extend(to_end.to_ne_bytes());
        }
    }
    Some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_condition_ends_at_the_end_or_past_it() {
        let code = bytecode(&[Condition::LocalPort(5201)]).unwrap();
        assert_eq!(code[..4], [LOCAL, 12, 16, 0].map(|b: u8| b.to_ne_bytes()[0]));
        assert_eq!(code.len(), 12);
    }

    #[test]
    fn every_jump_of_several_leads_to_an_operation_or_to_the_end() {
        let conditions = [
            Condition::LocalPort(1),
            Condition::Remote("192.0.2.1".parse().unwrap(), None),
            Condition::Remote("2001:db8::1".parse().unwrap(), Some(443)),
            Condition::RemotePort(2),
        ];
        let code = bytecode(&conditions).unwrap();
        let half = |at: usize| usize::from(u16::from_ne_bytes([code[at + 2], code[at + 3]]));
        let (mut at, mut starts) = (0, vec![code.len(), code.len() + 4]);
        while at < code.len() {
            starts.push(at);
            at += usize::from(code[at + 1]);
        }
        assert_eq!(at, code.len());
        for &start in starts.iter().filter(|&&start| start < code.len()) {
            assert!(starts.contains(&(start + half(start))), "from {start} to {}", start + half(start));
        }
        // Only the last unmet condition rejects.
        let rejecting = starts.iter().filter(|&&s| s < code.len() && s + half(s) == code.len() + 4).count();
        assert_eq!(rejecting, 1);
        assert_eq!(bytecode(&[]), None);
        assert!(bytecode(&[conditions[2]; MOST_CONDITIONS]).unwrap().len() <= usize::from(u16::MAX) - 8);
        assert_eq!(bytecode(&[conditions[0]; MOST_CONDITIONS + 1]), None);
    }
}
