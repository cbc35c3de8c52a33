//! Routes that change while a case runs: the hosts' kernels and the driver get the new ones at each moment.

use std::net::IpAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bdp_sys::clock;
use bdp_sys::netlink::{HostRoute, Netlink};
use bdp_wire::setup::RouteSetup;

use crate::driver::{Forwarding, Router};
use crate::{LabError, Result};

/// Changes at a moment.
#[derive(Debug)]
pub(crate) struct Change {
    /// Time since flows could start.
    pub(crate) at_ns: u64,
    /// Changes in the hosts' kernels.
    pub(crate) hosts: Vec<HostChange>,
    /// All routers that the driver forwards for.
    pub(crate) routers: Vec<Router>,
}

/// Changes in a host's kernel.
#[derive(Debug)]
pub(crate) struct HostChange {
    /// Its name.
    pub(crate) host: String,
    /// New routes, replacing those to the same addresses.
    pub(crate) new: Vec<RouteSetup>,
    /// Addresses that it no longer has a route to, except by the prefixes of its devices.
    pub(crate) gone: Vec<IpAddr>,
}

impl HostChange {
    /// The changes from one set of a host's routes to another.
    pub(crate) fn between(host: &str, before: &[RouteSetup], after: &[RouteSetup]) -> Self {
        let gone = before.iter().map(|route| route.to).filter(|to| after.iter().all(|route| route.to != *to));
        let new = after.iter().filter(|route| !before.contains(route)).cloned();
        Self { host: host.to_owned(), new: new.collect(), gone: gone.collect() }
    }
}

/// The changes of a case, and the sockets that make them.
#[derive(Debug)]
pub(crate) struct Rerouting(Mutex<State>);

#[derive(Debug)]
enum State {
    Waiting { changes: Vec<Change>, sockets: Vec<(String, Netlink)>, forwarding: Forwarding },
    Running { stop: Sender<()>, thread: JoinHandle<Result<()>> },
    Over,
}

impl Rerouting {
    /// Creates it with changes in order of time, of hosts that each have a socket.
    pub(crate) fn new(changes: Vec<Change>, sockets: Vec<(String, Netlink)>, forwarding: Forwarding) -> Self {
        Self(Mutex::new(State::Waiting { changes, sockets, forwarding }))
    }

    /// Sets time zero, once.
    pub(crate) fn start(&self, zero_ns: u64) -> Result<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let State::Waiting { changes, mut sockets, forwarding } = std::mem::replace(&mut *state, State::Over)
        else {
            return Ok(());
        };
        if changes.is_empty() {
            return Ok(());
        }
        let (stop, stopped) = channel();
        let make = move || {
            for change in changes {
                if !wait(zero_ns.saturating_add(change.at_ns), &stopped) {
                    break;
                }
                change.make(&mut sockets, &forwarding)?;
            }
            Ok(())
        };
        let thread = std::thread::Builder::new().name("bdp-routes".to_owned()).spawn(make);
        let thread = thread.map_err(|e| LabError::Topology(format!("start a thread for routes: {e}")))?;
        *state = State::Running { stop, thread };
        Ok(())
    }

    /// Stops making changes; returns the first failure.
    pub(crate) fn finish(&self) -> Result<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let State::Running { stop, thread } = std::mem::replace(&mut *state, State::Over) else {
            return Ok(());
        };
        drop(stop);
        thread.join().unwrap_or_else(|_| Err(LabError::Topology("the thread of routes panicked".to_owned())))
    }
}

impl Drop for Rerouting {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

impl Change {
    fn make(self, sockets: &mut [(String, Netlink)], forwarding: &Forwarding) -> Result<()> {
        for HostChange { host, new, gone } in self.hosts {
            let Some((_, netlink)) = sockets.iter_mut().find(|(name, _)| *name == host) else { continue };
            for RouteSetup { to, via, device, initial_window } in &new {
                let route = HostRoute { to: *to, via: *via, device, initial_window: *initial_window };
                netlink.replace_route(&route)?;
            }
            for to in gone {
                netlink.remove_route(to)?;
            }
        }
        self.routers.into_iter().try_for_each(|router| forwarding.route(router))
    }
}

/// Waits for a moment; `false` if stopped before.
fn wait(until_ns: u64, stopped: &Receiver<()>) -> bool {
    loop {
        let left = until_ns.saturating_sub(clock::monotonic_ns());
        if left == 0 {
            return true;
        }
        if stopped.recv_timeout(Duration::from_nanos(left)) != Err(RecvTimeoutError::Timeout) {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(to: [u8; 4], via: [u8; 4]) -> RouteSetup {
        RouteSetup { to: to.into(), via: Some(via.into()), device: "link0".to_owned(), initial_window: None }
    }

    #[test]
    fn what_differs_is_changed_and_nothing_else() {
        let (kept, before) = (route([1; 4], [9; 4]), route([2; 4], [9; 4]));
        let (after, direct) = (route([2; 4], [8; 4]), route([3; 4], [9; 4]));
        let change = HostChange::between("r", &[kept.clone(), before, direct], &[kept, after.clone()]);
        assert_eq!(change.new, [after]);
        assert_eq!(change.gone, [IpAddr::from([3; 4])]);
    }
}
