//! Processors for guests, coordinated between all bdp processes of this machine: each guest is pinned, and two on one
//! processor beside an idle one would take twice as long.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Most guests on one processor that are counted.
const PLACES: usize = 8;

/// A guest's place on a processor, until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Seat {
    /// The processor; `None` if every place is taken or none is possible: the kernel then places the guest.
    pub cpu: Option<usize>,
    _place: Option<UnixDatagram>,
}

impl Seat {
    /// Takes a place on the processor with the fewest guests.
    pub(crate) fn take(cpus: &[usize]) -> Self {
        Self::named("bdp-guest", cpus)
    }

    fn named(name: &str, cpus: &[usize]) -> Self {
        let mut best: Option<(usize, Vec<UnixDatagram>)> = None;
        for &cpu in cpus {
            let free: Vec<_> = (0..PLACES).filter_map(|place| hold(name, cpu, place)).collect();
            let is_empty = free.len() == PLACES;
            if free.len() > best.as_ref().map_or(0, |(_, most)| most.len()) {
                best = Some((cpu, free));
            }
            if is_empty {
                break;
            }
        }
        let (cpu, place) = best.map(|(cpu, mut free)| (cpu, free.swap_remove(0))).unzip();
        Self { cpu, _place: place }
    }
}

/// A name that one process holds at a time, in no file system; gone with it, however it ends.
fn hold(name: &str, cpu: usize, place: usize) -> Option<UnixDatagram> {
    let address = SocketAddr::from_abstract_name(format!("{name}-{cpu}-{place}")).ok()?;
    UnixDatagram::bind_addr(&address).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_of_all_processes_are_spread() {
        let name = format!("bdp-test-{}", std::process::id());
        let take = || Seat::named(&name, &[3, 5]);
        let cpus = |seats: &[Seat]| seats.iter().map(|seat| seat.cpu).collect::<Vec<_>>();
        let mut seats: Vec<Seat> = (0..4).map(|_| take()).collect();
        assert_eq!(cpus(&seats), [3, 5, 3, 5].map(Some));
        // Both of the remaining two are on the second.
        seats.remove(2);
        seats.remove(0);
        assert_eq!([take(), take()].map(|seat| seat.cpu), [Some(3), Some(3)]);
        seats.extend((0..2 * PLACES - 2).map(|_| take()));
        assert_eq!(take().cpu, None);
        drop(seats);
        assert_eq!(take().cpu, Some(3));
        assert_eq!(Seat::named(&name, &[]).cpu, None);
    }
}
