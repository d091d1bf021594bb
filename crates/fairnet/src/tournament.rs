//! A tournament of streams by merge key, kept by its losers: the next of many streams in O(log streams), without a
//! branch that depends on keys. Which of two streams is next cannot be predicted, so a branch would cost more than all
//! the rest.

use crate::key::MergeKey;

/// A place and its key, as numbers of which the first decides.
type Entry = [u64; 4];

fn entry(place: usize, key: MergeKey) -> Entry {
    [key.mid, key.stamp, u64::from(key.source) << 32 | u64::from(key.sub), place as u64]
}

#[inline(always)]
fn is_before(one: &Entry, other: &Entry) -> bool {
    let wide = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
    let (high, other_high) = (wide(one[0], one[1]), wide(other[0], other[1]));
    (high < other_high) | ((high == other_high) & (wide(one[2], one[3]) < wide(other[2], other[3])))
}

/// Keys by place, and which is least; of equal ones that of the lowest place.
#[derive(Clone, Debug)]
pub(crate) struct Tournament {
    /// Losers of a complete binary tree, whose root is 1 and whose leaves would be from `losers.len()` on.
    losers: Vec<Entry>,
    least: Entry,
}

impl Tournament {
    /// All places have the last key of all.
    pub(crate) fn new(places: usize) -> Tournament {
        let leaves = places.next_power_of_two();
        let mut tournament = Tournament { losers: vec![entry(0, MergeKey::END); leaves], least: [0; 4] };
        tournament.play((0..leaves).map(|place| entry(place, MergeKey::END)).collect());
        tournament
    }

    /// The place with the least key.
    #[inline(always)]
    pub(crate) fn min(&self) -> (usize, MergeKey) {
        let [mid, stamp, low, place] = self.least;
        (place as usize, MergeKey { mid, stamp, source: (low >> 32) as u32, sub: low as u32 })
    }

    /// The least place gets a key that is not lower.
    #[inline(always)]
    pub(crate) fn raise(&mut self, key: MergeKey) {
        let mut winner = entry(self.least[3] as usize, key);
        let mut node = (self.losers.len() + self.least[3] as usize) / 2;
        while let Some(loser) = self.losers.get_mut(node).filter(|_| node > 0) {
            // All ones if they change places, otherwise zero.
            let mask = u64::from(is_before(loser, &winner)).wrapping_neg();
            for (loser, winner) in loser.iter_mut().zip(&mut winner) {
                let difference = (*loser ^ *winner) & mask;
                *loser ^= difference;
                *winner ^= difference;
            }
            node /= 2;
        }
        self.least = winner;
    }

    /// Changes any key; O(places), for what is rare.
    pub(crate) fn set(&mut self, place: usize, key: MergeKey) {
        let mut entries = vec![[0; 4]; self.losers.len()];
        for known in self.losers[1..].iter().chain([&self.least]) {
            entries[known[3] as usize] = *known;
        }
        entries[place] = entry(place, key);
        self.play(entries);
    }

    /// Plays all matches, level by level.
    fn play(&mut self, mut round: Vec<Entry>) {
        while round.len() > 1 {
            let first = round.len() / 2;
            for (node, pair) in (first..).zip(round.chunks_exact(2)) {
                self.losers[node] = if is_before(&pair[1], &pair[0]) { pair[0] } else { pair[1] };
            }
            round = round.chunks_exact(2).map(|pair| pair[0].min(pair[1])).collect();
        }
        self.least = round[0];
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn tournament_is_won_by_the_least_key_of_the_lowest_place(
            places in 1usize..40,
            moves in proptest::collection::vec((any::<bool>(), 0usize..40, 0u64..9, 0u64..9, 0u32..4, 0u32..4), 0..200),
        ) {
            let (mut tournament, mut keys) = (Tournament::new(places), vec![MergeKey::END; places]);
            for (is_raised, place, mid, stamp, source, sub) in moves {
                let key = MergeKey { mid, stamp, source, sub };
                let least = tournament.min();
                if is_raised {
                    let key = key.max(least.1);
                    tournament.raise(key);
                    keys[least.0] = key;
                } else {
                    tournament.set(place % places, key);
                    keys[place % places] = key;
                }
                let found = tournament.min();
                let wanted = (0..places).map(|place| (keys[place], place)).min().expect("a place");
                prop_assert_eq!((found.1, found.0), wanted);
            }
        }
    }
}
