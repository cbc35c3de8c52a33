//! Deadlines of many items. The earliest is found in constant time, and changing one takes logarithmic time.

/// A deadline in nanoseconds for each of a fixed number of items; an item may have none.
#[derive(Debug, Clone, Default)]
pub struct Agenda {
    /// A tree in an array, the root at 1: each node is the earliest deadline below it. The last `leaves` elements are the items.
    least: Vec<u64>,
    leaves: usize,
}

const NEVER: u64 = u64::MAX;

impl Agenda {
    /// Creates an agenda for this many items without deadlines.
    pub fn new(things: usize) -> Self {
        let leaves = things.next_power_of_two();
        Self { least: vec![NEVER; 2 * leaves], leaves }
    }

    /// Sets or clears the deadline of an item.
    pub fn set(&mut self, thing: usize, at: Option<u64>) {
        if thing >= self.leaves {
            self.grow(thing + 1);
        }
        let mut node = self.leaves + thing;
        self.least[node] = at.unwrap_or(NEVER);
        while node > 1 {
            node /= 2;
            let least = self.least[2 * node].min(self.least[2 * node + 1]);
            if std::mem::replace(&mut self.least[node], least) == least {
                break;
            }
        }
    }

    /// Returns the earliest deadline.
    pub fn earliest(&self) -> Option<u64> {
        self.least.get(1).copied().filter(|&at| at != NEVER)
    }

    /// Returns the first item from `from` on that is due by `now`.
    pub fn due(&self, now: u64, from: usize) -> Option<usize> {
        let (now, mut node) = (now.min(NEVER - 1), self.leaves + from);
        if from >= self.leaves {
            return None;
        }
        loop {
            if self.least[node] <= now {
                while node < self.leaves {
                    node *= 2;
                    node += usize::from(self.least[node] > now);
                }
                return Some(node - self.leaves);
            }
            // Goes to the next branch on the right, which begins where this one ends.
            while node % 2 == 1 {
                node /= 2;
                if node == 0 {
                    return None;
                }
            }
            node += 1;
        }
    }

    fn grow(&mut self, things: usize) {
        let mut larger = Self::new(things);
        for thing in 0..self.leaves {
            larger.set(thing, Some(self.least[self.leaves + thing]));
        }
        *self = larger;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_due_come_in_their_order() {
        let mut agenda = Agenda::new(5);
        assert_eq!((agenda.earliest(), agenda.due(100, 0)), (None, None));
        for (thing, at) in [(4, 10), (0, 30), (2, 20)] {
            agenda.set(thing, Some(at));
        }
        assert_eq!(agenda.earliest(), Some(10));
        assert_eq!((agenda.due(9, 0), agenda.due(10, 0)), (None, Some(4)));
        let all = |agenda: &Agenda, now| {
            let mut due = vec![];
            while let Some(thing) = agenda.due(now, due.last().map_or(0, |last| last + 1)) {
                due.push(thing);
            }
            due
        };
        assert_eq!((all(&agenda, 20), all(&agenda, u64::MAX)), (vec![2, 4], vec![0, 2, 4]));
        agenda.set(4, None);
        assert_eq!((agenda.earliest(), all(&agenda, 40)), (Some(20), vec![0, 2]));
    }

    #[test]
    fn it_grows_and_agrees_with_a_list() {
        let (mut agenda, mut list) = (Agenda::default(), vec![None; 37]);
        let mut state = 1u64;
        let mut draw = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % most
        };
        for _ in 0..2_000 {
            let (thing, at) = (draw(37) as usize, Some(draw(50)).filter(|&at| at > 4));
            agenda.set(thing, at);
            list[thing] = at;
            let (now, from) = (draw(50), draw(40) as usize);
            assert_eq!(agenda.earliest(), list.iter().copied().flatten().min());
            let due = (from..37).find(|&i| list[i].is_some_and(|at| at <= now));
            assert_eq!(agenda.due(now, from), due);
        }
    }
}
