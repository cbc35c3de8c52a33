//! Names of addresses, with a time limit for each lookup.

use std::net::IpAddr;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use bdp_flow::session::error::Result;

/// How long all of them may take.
const DEADLINE: Duration = Duration::from_secs(5);
/// Addresses that are looked up at once.
const AT_ONCE: usize = 16;

/// Returns the names of these addresses, as far as the resolver returns them in time.
pub fn look_up(addresses: &[IpAddr]) -> Result<Vec<(IpAddr, String)>> {
    let until = Instant::now() + DEADLINE;
    let mut found = Vec::new();
    for some in addresses.chunks(AT_ONCE) {
        let (give, take) = mpsc::channel();
        for &address in some {
            let give = give.clone();
            bdp_flow::worker::start(move || {
                let name = bdp_sys::names::name_of(address);
                // If it took too long, nobody receives it any longer.
                drop(give.send((address, name)));
            })?;
        }
        drop(give);
        while let Ok((address, name)) = take.recv_timeout(until.saturating_duration_since(Instant::now())) {
            found.extend(name.map(|name| (address, name)));
        }
    }
    Ok(found)
}
