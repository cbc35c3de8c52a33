//! Routes with all of their attributes, as the kernel lists them, so that one can be copied, changed in one metric and restored (rtnetlink).

use std::io;
use std::net::IpAddr;

use crate::netlink::{Netlink, TYPE_MASK, attributes, find_attribute, octets, push_attribute};
use crate::{Result, SysError};

/// `rtm_protocol` of the routes that bdp adds: `ip route` shows it as `proto 98`. No routing daemon of /etc/iproute2/rt_protos uses it.
const OWN_PROTOCOL: u8 = 98;
/// `RTM_F_FIB_MATCH` of linux/rtnetlink.h: the answer is the table's entry instead of the lookup's result.
const FIB_MATCH: u32 = 0x2000;
/// `RTNH_F_ONLINK`, the only flag that is a setting and not a state.
const ONLINK: u32 = 4;
/// Bytes of `struct rtmsg`.
const RTMSG_BYTES: usize = 12;
/// `RTA_*` of linux/rtnetlink.h.
mod attribute {
    pub(super) const DESTINATION: u16 = 1;
    pub(super) const OUT_DEVICE: u16 = 4;
    pub(super) const GATEWAY: u16 = 5;
    pub(super) const PRIORITY: u16 = 6;
    pub(super) const METRICS: u16 = 8;
    pub(super) const MULTIPATH: u16 = 9;
    pub(super) const CACHE_INFO: u16 = 12;
    pub(super) const TABLE: u16 = 15;
    pub(super) const VIA: u16 = 18;
    pub(super) const EXPIRES: u16 = 23;
    pub(super) const ENCAP_TYPE: u16 = 21;
    pub(super) const ENCAP: u16 = 22;
    pub(super) const NEXTHOP: u16 = 30;
}

/// A metric of a route that TCP reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum RouteMetric {
    /// `RTAX_INITCWND`, segments.
    InitialWindow = 11,
    /// `RTAX_RTO_MIN`, milliseconds.
    MinimumRto = 13,
    /// `RTAX_INITRWND`, segments.
    InitialReceiveWindow = 14,
    /// `RTAX_CC_ALGO`, a name.
    CongestionControl = 16,
}

/// The value of a metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetricValue {
    /// A number, in the metric's unit.
    Number(u32),
    /// A name.
    Name(String),
}

/// A route of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    header: [u8; RTMSG_BYTES],
    attributes: Vec<(u16, Vec<u8>)>,
}

impl Route {
    fn read(body: &[u8]) -> Option<Self> {
        let header = body.get(..RTMSG_BYTES)?.try_into().ok()?;
        let mut attributes = Vec::new();
        let mut rest = &body[RTMSG_BYTES..];
        while let (Some(length), Some(kind)) = (rest.get(..2), rest.get(2..4)) {
            let length = usize::from(u16::from_ne_bytes(length.try_into().ok()?));
            if length < 4 {
                return None;
            }
            attributes.push((u16::from_ne_bytes(kind.try_into().ok()?), rest.get(4..length)?.to_vec()));
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        }
        Some(Self { header, attributes })
    }

    /// Whether it leads to a single address.
    pub fn is_of_one_host(&self) -> bool {
        self.header[1] == if self.header[0] == libc::AF_INET as u8 { 32 } else { 128 }
    }

    /// Whether packets leave by it: it is no local, broadcast or rejecting route.
    pub fn is_unicast(&self) -> bool {
        self.header[7] == libc::RTN_UNICAST
    }

    /// Whether it leads to an address of this machine.
    pub fn is_local(&self) -> bool {
        self.header[7] == libc::RTN_LOCAL
    }

    /// Whether bdp added it.
    pub fn is_own(&self) -> bool {
        self.header[5] == OWN_PROTOCOL
    }

    /// Value of one of its metrics; `None` if it is not set.
    pub fn metric(&self, metric: RouteMetric) -> Option<MetricValue> {
        let value = find_attribute(self.attribute(attribute::METRICS)?, metric as u16)?;
        if metric == RouteMetric::CongestionControl {
            let name = value.split(|&byte| byte == 0).next().unwrap_or_default();
            return Some(MetricValue::Name(String::from_utf8_lossy(name).into_owned()));
        }
        Some(MetricValue::Number(u32::from_ne_bytes(value.get(..4)?.try_into().ok()?)))
    }

    /// Returns the route with another value of a metric, or without it.
    pub fn with_metric(&self, metric: RouteMetric, value: Option<&MetricValue>) -> Self {
        let mut metrics = Vec::new();
        for (kind, content) in attributes(self.attribute(attribute::METRICS).unwrap_or(&[])) {
            let Some(content) = content else { break };
            if kind & TYPE_MASK != metric as u16 {
                push_attribute(&mut metrics, kind, content);
            }
        }
        match value {
            Some(MetricValue::Number(number)) => {
                push_attribute(&mut metrics, metric as u16, &number.to_ne_bytes());
            }
            Some(MetricValue::Name(name)) => {
                push_attribute(&mut metrics, metric as u16, &[name.as_bytes(), &[0]].concat());
            }
            None => {}
        }
        let mut route = self.clone();
        route.attributes.retain(|(kind, _)| kind & TYPE_MASK != attribute::METRICS);
        if !metrics.is_empty() {
            route.attributes.push((attribute::METRICS, metrics));
        }
        route
    }

    /// Returns a route of bdp's own to one address, which forwards packets as this one does.
    pub fn copy_to(&self, to: IpAddr) -> Self {
        let mut route = self.clone();
        route.header[1] = if to.is_ipv4() { 32 } else { 128 };
        route.header[5] = OWN_PROTOCOL;
        let left_out = [attribute::DESTINATION, attribute::PRIORITY, attribute::EXPIRES];
        route.attributes.retain(|(kind, _)| !left_out.contains(&(kind & TYPE_MASK)));
        route.attributes.insert(0, (attribute::DESTINATION, octets(to)));
        route
    }

    fn attribute(&self, wanted: u16) -> Option<&[u8]> {
        self.attributes.iter().find(|(kind, _)| kind & TYPE_MASK == wanted).map(|(_, value)| &value[..])
    }

    /// Encodes it as the message that adds it.
    fn encode(&self) -> Vec<u8> {
        let mut body = self.header.to_vec();
        let flags = u32::from_ne_bytes([body[8], body[9], body[10], body[11]]) & ONLINK;
        body[8..].copy_from_slice(&flags.to_ne_bytes());
        // A route with a next hop object also lists its parts, and the kernel accepts only one of the two.
        let has_object = self.attribute(attribute::NEXTHOP).is_some();
        let parts = [
            attribute::OUT_DEVICE,
            attribute::GATEWAY,
            attribute::MULTIPATH,
            attribute::VIA,
            attribute::ENCAP,
            attribute::ENCAP_TYPE,
        ];
        for (kind, value) in &self.attributes {
            let plain = kind & TYPE_MASK;
            if plain != attribute::CACHE_INFO && !(has_object && parts.contains(&plain)) {
                push_attribute(&mut body, *kind, value);
            }
        }
        body
    }
}

impl Netlink {
    /// Returns the route of packets to an address; `None` if there is none.
    pub fn route_to(&mut self, to: IpAddr) -> Result<Option<Route>> {
        let (family, bits) = if to.is_ipv4() { (libc::AF_INET, 32) } else { (libc::AF_INET6, 128) };
        let mut body = vec![family as u8, bits, 0, 0, 0, 0, 0, 0];
        body.extend_from_slice(&FIB_MATCH.to_ne_bytes());
        push_attribute(&mut body, attribute::DESTINATION, &octets(to));
        let none = [libc::ENETUNREACH, libc::EHOSTUNREACH, libc::ESRCH];
        match self.request(libc::RTM_GETROUTE, 0, &body) {
            Ok(answer) => Ok(answer.as_deref().and_then(Route::read)),
            Err(error) if error.raw_os_error().is_some_and(|code| none.contains(&code)) => Ok(None),
            Err(error) => Err(SysError::new("read route", format!("to {to}"), error)),
        }
    }

    /// Whether packets to an address leave by this device.
    pub fn leaves_by(&mut self, to: IpAddr, device: &str) -> Result<bool> {
        let (family, bits) = if to.is_ipv4() { (libc::AF_INET, 32) } else { (libc::AF_INET6, 128) };
        let mut body = vec![0; RTMSG_BYTES];
        (body[0], body[1]) = (family as u8, bits);
        push_attribute(&mut body, attribute::DESTINATION, &octets(to));
        let failed = |error| SysError::new("read route", format!("to {to}"), error);
        let answer = self.request(libc::RTM_GETROUTE, 0, &body).map_err(failed)?;
        let route = answer.as_deref().and_then(Route::read);
        let index = self.index(device)?;
        let leaves_by = route.as_ref().and_then(|route| route.attribute(attribute::OUT_DEVICE));
        Ok(leaves_by == Some(&index.to_ne_bytes()[..]))
    }

    /// Adds a route, replacing any to the same addresses.
    pub fn put_route(&mut self, route: &Route, to: IpAddr) -> Result<()> {
        let flags = (libc::NLM_F_CREATE | libc::NLM_F_REPLACE) as u16;
        self.request(libc::RTM_NEWROUTE, flags, &route.encode())
            .map(drop)
            .map_err(|e| SysError::new("set route", format!("to {to}"), e))
    }

    /// Removes a route that bdp added; one already gone is no error.
    pub fn remove_own_route(&mut self, route: &Route, to: IpAddr) -> Result<()> {
        let mut body = route.header.to_vec();
        body[5] = OWN_PROTOCOL;
        body[8..].fill(0);
        push_attribute(&mut body, attribute::DESTINATION, &octets(to));
        if let Some(table) = route.attribute(attribute::TABLE) {
            push_attribute(&mut body, attribute::TABLE, table);
        }
        match self.request(libc::RTM_DELROUTE, 0, &body) {
            Err(error) if error.raw_os_error() != Some(libc::ESRCH) => {
                Err(SysError::new("remove route", format!("to {to}"), error))
            }
            _ => Ok(()),
        }
    }

    /// Whether the calling process may change routes and devices here: the kernel checks permission before the request's content.
    pub fn may_change(&mut self) -> bool {
        let refused = self.request(libc::RTM_DELROUTE, 0, &[]);
        refused.err().is_none_or(|error| error.kind() != io::ErrorKind::PermissionDenied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route() -> Route {
        let mut body = vec![libc::AF_INET as u8, 0, 0, 0, 254, 3, 0, 1, 0x10, 0, 0, 0];
        push_attribute(&mut body, attribute::TABLE, &254u32.to_ne_bytes());
        push_attribute(&mut body, attribute::GATEWAY, &[192, 0, 2, 1]);
        push_attribute(&mut body, attribute::OUT_DEVICE, &2u32.to_ne_bytes());
        let mut metrics = Vec::new();
        push_attribute(&mut metrics, 2, &1400u32.to_ne_bytes());
        push_attribute(&mut body, attribute::METRICS, &metrics);
        Route::read(&body).unwrap()
    }

    #[test]
    fn a_copy_keeps_all_but_where_it_leads() {
        let to = "198.51.100.7".parse().unwrap();
        let copy = route().copy_to(to);
        assert!(copy.is_of_one_host() && copy.is_own() && copy.is_unicast() && !copy.is_local());
        assert_eq!(copy.attribute(attribute::DESTINATION), Some(&[198, 51, 100, 7][..]));
        for kind in [attribute::GATEWAY, attribute::OUT_DEVICE, attribute::METRICS, attribute::TABLE] {
            assert_eq!(copy.attribute(kind), route().attribute(kind));
        }
        // The next hop's state is no setting.
        assert_eq!(&copy.encode()[8..12], &[0; 4]);
    }

    #[test]
    fn a_metric_is_set_replaced_and_taken_away_beside_the_others() {
        let number = |n| Some(MetricValue::Number(n));
        let bbr = MetricValue::Name("bbr".to_owned());
        let set = route()
            .with_metric(RouteMetric::InitialWindow, number(20).as_ref())
            .with_metric(RouteMetric::InitialWindow, number(30).as_ref())
            .with_metric(RouteMetric::CongestionControl, Some(&bbr));
        assert_eq!(set.metric(RouteMetric::InitialWindow), number(30));
        assert_eq!(set.metric(RouteMetric::CongestionControl), Some(bbr));
        assert_eq!(set.metric(RouteMetric::MinimumRto), None);
        let back = set
            .with_metric(RouteMetric::InitialWindow, None)
            .with_metric(RouteMetric::CongestionControl, None);
        assert_eq!(back.encode(), route().encode());
    }

    #[test]
    fn what_is_cut_short_is_no_route_or_a_shorter_one() {
        let body = route().encode();
        for cut in 0..body.len() {
            if let Some(route) = Route::read(&body[..cut]) {
                let _ = route.with_metric(RouteMetric::InitialWindow, None).metric(RouteMetric::MinimumRto);
            }
        }
    }

    #[test]
    fn the_machines_own_address_is_local() {
        let route = Netlink::open().unwrap().route_to("127.0.0.1".parse().unwrap()).unwrap().unwrap();
        assert!(route.is_local() && !route.is_unicast());
    }

    #[test]
    fn packets_to_the_machine_itself_leave_by_loopback() {
        let to = "127.0.0.1".parse().unwrap();
        assert!(Netlink::open().unwrap().leaves_by(to, "lo").unwrap());
        assert!(Netlink::open().unwrap().leaves_by(to, "nosuch0").is_err());
    }
}
