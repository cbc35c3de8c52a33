//! The guest kernel that is nearest to those of the measured hosts.

use bdp_lab::kernel;
use bdp_model::ends::End;
use bdp_model::twin::{Twin, Unseen};

/// With the kernel of those built here whose release is nearest to the sender's, and a note of each host whose own is another.
pub fn with_nearest(mut twin: Twin) -> Twin {
    let sender = twin.host(Twin::sender(twin.direction)).kernel.clone();
    let built = kernel::list().into_iter().filter_map(|(name, found)| Some((name, found.ok()?.version)));
    let nearest = built.min_by_key(|(_, version)| distance(&sender, version));
    if let Some((name, version)) = nearest {
        for end in [End::Near, End::Far] {
            let measured = twin.host(end).kernel.clone();
            if series(&measured) != series(&version) {
                twin.unseen.push(Unseen::Kernel { end, measured, twin: version.clone() });
            }
        }
        twin.stack = Some(name);
    }
    twin
}

/// Major and minor number of a release.
fn series(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// How far two releases are apart, the major number first.
fn distance(measured: &str, built: &str) -> (u32, u32) {
    let (a, b) = (series(measured).unwrap_or_default(), series(built).unwrap_or_default());
    (a.0.abs_diff(b.0), a.1.abs_diff(b.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_their_series() {
        assert_eq!(series("6.1.0-37-amd64"), Some((6, 1)));
        assert_eq!(series(""), None);
        assert!(distance("6.8.0-45-generic", "6.12.3") < distance("6.8.0-45-generic", "6.1.192"));
        assert!(distance("5.15.0", "6.1.192") < distance("5.15.0", "7.2.0"));
    }
}
