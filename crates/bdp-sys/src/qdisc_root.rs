//! The root queueing discipline of a device: its owner, and `fq` in place of the kernel's default.

use std::io;

use crate::netlink::{KIND, Netlink, ROOT, TCMSG_BYTES, find_attribute, push_attribute};
use crate::qdisc::{OPTIONS, RTM_NEWQDISC};
use crate::{Result, SysError};

/// `RTM_DELQDISC` and `RTM_GETQDISC` of linux/rtnetlink.h.
const RTM_DELQDISC: u16 = 37;
const RTM_GETQDISC: u16 = 38;
/// Handle of bdp's discipline: `tc qdisc` shows it as `bd9:`.
const OWN_HANDLE: u32 = 0x0bd9_0000;
/// `TCA_FQ_PLIMIT` and `TCA_FQ_FLOW_MAX_RATE` of linux/pkt_sched.h, the second in bytes per second.
const FQ_LIMIT: u16 = 1;
const FQ_MAX_RATE: u16 = 7;

/// Owner of a root discipline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootOwner {
    /// The kernel's default: handle `0:`.
    Kernel,
    /// bdp.
    Bdp,
    /// Somebody else.
    Other,
}

/// A root discipline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootQdisc {
    /// Its kind, for example `fq_codel` or `mq`.
    pub kind: String,
    /// For `fq`, the largest rate of a flow, bytes per second; `None` without a limit, and for other kinds.
    pub max_rate_bytes: Option<u32>,
    /// Its owner.
    pub owner: RootOwner,
}

impl RootQdisc {
    fn read(body: &[u8], device: u32) -> Option<Self> {
        let word = |at: usize| body.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
        if word(4)? != device || word(12)? != ROOT {
            return None;
        }
        let attributes = body.get(TCMSG_BYTES..)?;
        let kind = find_attribute(attributes, KIND)?.split(|&byte| byte == 0).next()?;
        let kind = String::from_utf8_lossy(kind).into_owned();
        let rate = || {
            let rate = find_attribute(find_attribute(attributes, OPTIONS)?, FQ_MAX_RATE)?;
            Some(u32::from_ne_bytes(rate.get(..4)?.try_into().ok()?)).filter(|&rate| rate != u32::MAX)
        };
        let max_rate_bytes = if kind == "fq" { rate() } else { None };
        let owner = match word(8)? {
            0 => RootOwner::Kernel,
            OWN_HANDLE => RootOwner::Bdp,
            _ => RootOwner::Other,
        };
        Some(Self { kind, max_rate_bytes, owner })
    }
}

impl Netlink {
    /// Returns the root discipline of a device; `None` if it has none, for example while it is down.
    pub fn root_qdisc(&mut self, device: &str) -> Result<Option<RootQdisc>> {
        let index = self.index(device)?;
        let mut root = None;
        self.dump(RTM_GETQDISC, &[0; TCMSG_BYTES], |body| {
            root = root.take().or(RootQdisc::read(body, index))
        })
        .map_err(|e| SysError::new("read the queueing discipline of", device, e))?;
        Ok(root)
    }

    /// Makes `fq` the root discipline of a device, with this maximum rate per flow in bytes per second.
    pub fn set_fq(&mut self, device: &str, max_rate_bytes: Option<u32>) -> Result<()> {
        let mut options = Vec::new();
        push_attribute(&mut options, FQ_MAX_RATE, &max_rate_bytes.unwrap_or(u32::MAX).to_ne_bytes());
        self.new_fq(device, &options).map_err(|e| SysError::new("set fq of device", device, e))
    }

    /// Whether this kernel has `fq`: requests one with an invalid limit, which is refused before anything is changed.
    pub fn knows_fq(&mut self, device: &str) -> Result<bool> {
        let mut options = Vec::new();
        push_attribute(&mut options, FQ_LIMIT, &[0]);
        Ok(self.new_fq(device, &options).err().is_none_or(|error| error.kind() != io::ErrorKind::NotFound))
    }

    /// Removes the root discipline of a device, which restores the kernel's default.
    pub fn remove_root_qdisc(&mut self, device: &str) -> Result<()> {
        let mut body = vec![0; TCMSG_BYTES];
        body[4..8].copy_from_slice(&self.index(device)?.to_ne_bytes());
        body[12..16].copy_from_slice(&ROOT.to_ne_bytes());
        self.request(RTM_DELQDISC, 0, &body)
            .map(drop)
            .map_err(|e| SysError::new("remove the queueing discipline of", device, e))
    }

    fn new_fq(&mut self, device: &str, options: &[u8]) -> io::Result<()> {
        let index = self.index(device).map_err(|e| e.source)?;
        let mut body = vec![0; TCMSG_BYTES];
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        body[8..12].copy_from_slice(&OWN_HANDLE.to_ne_bytes());
        body[12..16].copy_from_slice(&ROOT.to_ne_bytes());
        push_attribute(&mut body, KIND, b"fq\0");
        push_attribute(&mut body, OPTIONS, options);
        let flags = (libc::NLM_F_CREATE | libc::NLM_F_REPLACE) as u16;
        self.request(RTM_NEWQDISC, flags, &body).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(handle: u32, parent: u32, kind: &[u8], rate: Option<u32>) -> Vec<u8> {
        let mut body = vec![0; TCMSG_BYTES];
        body[4..8].copy_from_slice(&3u32.to_ne_bytes());
        body[8..12].copy_from_slice(&handle.to_ne_bytes());
        body[12..16].copy_from_slice(&parent.to_ne_bytes());
        push_attribute(&mut body, KIND, kind);
        let mut options = Vec::new();
        if let Some(rate) = rate {
            push_attribute(&mut options, FQ_MAX_RATE, &rate.to_ne_bytes());
        }
        push_attribute(&mut body, OPTIONS, &options);
        body
    }

    #[test]
    fn a_root_says_whose_it_is() {
        for (handle, owner) in
            [(0, RootOwner::Kernel), (OWN_HANDLE, RootOwner::Bdp), (0x8001_0000, RootOwner::Other)]
        {
            let root = RootQdisc::read(&body(handle, ROOT, b"fq\0", Some(125)), 3).unwrap();
            assert_eq!(root, RootQdisc { kind: "fq".to_owned(), max_rate_bytes: Some(125), owner });
        }
        let without = RootQdisc::read(&body(0, ROOT, b"fq\0", Some(u32::MAX)), 3).unwrap();
        assert_eq!(without.max_rate_bytes, None);
        assert_eq!(RootQdisc::read(&body(0, 1, b"fq\0", None), 3), None);
        assert_eq!(RootQdisc::read(&body(0, ROOT, b"fq\0", None), 4), None);
        assert_eq!(RootQdisc::read(&[0; 19], 0), None);
    }
}
