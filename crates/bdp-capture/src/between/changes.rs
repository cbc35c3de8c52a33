//! Changes made between the two places, by comparing each packet at both.

use std::collections::BTreeMap;

use bdp_model::capture::pair::{Change, Changed, ChangedValue};

use super::direction::Direction;
use super::log::Passed;
use crate::decode::{Flags, Options};

/// Most pairs of values of a field counted separately.
const VALUES_MOST: usize = 8;

type Values = (Option<u64>, Option<u64>);

/// Returns the changes of one direction by kind. `offset` is the difference of its sequence numbers from those at the first capture.
pub(super) fn of(way: &Direction<'_>, direction: usize, terminated: bool) -> Vec<Change> {
    let mut found = Found { direction, counts: BTreeMap::new(), of: BTreeMap::new() };
    for (near, far) in way.packets() {
        let (sent, arrived) = (way.near(near), way.far(far));
        if let (Some(ours), Some(theirs)) = (way.near_log().options_of(near), way.far_log().options_of(far)) {
            handshake(&mut found, [ours, theirs], [sent, arrived]);
        }
        let class = |passed: &Passed| Some(u64::from(passed.class & 3));
        found.note(Changed::Ecn, (class(sent), class(arrived)));
        let dscp = |passed: &Passed| Some(u64::from(passed.class >> 2));
        found.note(Changed::Dscp, (dscp(sent), dscp(arrived)));
        let hops = |passed: &Passed| Some(u64::from(passed.hop_limit));
        found.note(Changed::HopLimit, (hops(sent), hops(arrived)));
        if sent.stamps().is_some() || arrived.stamps().is_some() {
            let stamps = |passed: &Passed| passed.stamps().map(|(stamp, _)| u64::from(stamp));
            found.note(Changed::Timestamps, (stamps(sent), stamps(arrived)));
        }
        if !terminated {
            found.note(Changed::Window, (Some(u64::from(sent.window)), Some(u64::from(arrived.window))));
        }
        let is_super = way.is_super(sent) || way.is_super(arrived);
        if sent.payload > 0 && !is_super {
            let payload = |passed: &Passed| Some(u64::from(passed.payload));
            found.note(Changed::Segments, (payload(sent), payload(arrived)));
        }
    }
    found.finish()
}

fn handshake(found: &mut Found, options: [&Options; 2], passed: [&Passed; 2]) {
    let mut each = |what, of: &dyn Fn(usize) -> Option<u64>| found.note(what, (of(0), of(1)));
    each(Changed::Mss, &|i| options[i].mss.map(u64::from));
    each(Changed::WindowScale, &|i| options[i].window_scale.map(u64::from));
    each(Changed::SackPermitted, &|i| options[i].sack_permitted.then_some(1));
    each(Changed::TimestampsOffered, &|i| options[i].timestamps.map(|_| 1));
    each(Changed::EcnOffered, &|i| {
        let flags = Flags::new(passed[i].flags);
        Some(u64::from(flags.ece() && (flags.ack() || flags.cwr())))
    });
}

struct Found {
    direction: usize,
    counts: BTreeMap<Changed, Vec<(Values, u64)>>,
    of: BTreeMap<Changed, u64>,
}

impl Found {
    fn note(&mut self, what: Changed, values: Values) {
        *self.of.entry(what).or_default() += 1;
        if values.0 == values.1 {
            return;
        }
        let all = self.counts.entry(what).or_default();
        // A field that changes with every packet has a single example.
        let is_one = |known: &Values| match what {
            Changed::Window | Changed::Segments => true,
            Changed::Timestamps => {
                known.1.is_some() == values.1.is_some() && known.0.is_some() == values.0.is_some()
            }
            Changed::HopLimit => difference(known) == difference(&values),
            _ => *known == values,
        };
        match all.iter().position(|(known, _)| is_one(known)) {
            Some(place) => all[place].1 += 1,
            None if all.len() < VALUES_MOST => all.push((values, 1)),
            None => {}
        }
    }

    fn finish(self) -> Vec<Change> {
        let number = |value: Option<u64>| value.map(ChangedValue::Number);
        let mut changes = Vec::new();
        for (what, all) in self.counts {
            for ((sent, arrived), packets) in all {
                let (sent, arrived) = (number(sent), number(arrived));
                changes.push(Change {
                    what,
                    direction: self.direction,
                    sent,
                    arrived,
                    packets,
                    of: self.of[&what],
                });
            }
        }
        changes
    }
}

fn difference(&(sent, arrived): &Values) -> i64 {
    sent.unwrap_or(0) as i64 - arrived.unwrap_or(0) as i64
}
