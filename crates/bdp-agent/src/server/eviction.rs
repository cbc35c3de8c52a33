//! Chooses who is evicted if no place is left.

use std::collections::HashMap;
use std::net::IpAddr;

use super::access::origin;

/// Returns, from held places by increasing number and address, the oldest one of the address that holds most.
pub fn oldest_of_most(held: impl Iterator<Item = (u64, IpAddr)>) -> Option<u64> {
    let mut of: HashMap<IpAddr, (usize, u64)> = HashMap::new();
    for (number, address) in held {
        let (count, oldest) = of.entry(origin(address)).or_insert((0, number));
        *count += 1;
        *oldest = number.min(*oldest);
    }
    // Of two with equal counts, the one that has held a place for longer.
    let most = of.into_values().max_by_key(|&(count, oldest)| (count, std::cmp::Reverse(oldest)));
    most.map(|(_, oldest)| oldest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_of_the_address_with_most_is_evicted() {
        let held = |list: &[(u64, &str)]| {
            oldest_of_most(list.iter().map(|&(number, address)| (number, address.parse().unwrap())))
        };
        assert_eq!(held(&[]), None);
        assert_eq!(held(&[(5, "192.0.2.1"), (3, "192.0.2.2")]), Some(3));
        assert_eq!(held(&[(1, "192.0.2.1"), (3, "192.0.2.2"), (2, "192.0.2.2")]), Some(2));
        // A network's worth of addresses is one host's to choose from.
        assert_eq!(held(&[(1, "192.0.2.1"), (3, "2001:db8::1"), (4, "2001:db8::ffff:2")]), Some(3));
    }
}
