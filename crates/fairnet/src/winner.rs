//! A tournament over a fixed number of places: the least value in O(1), a change in O(log places).

/// Values by place, and where the least is; of equal ones the lowest place.
#[derive(Clone, Debug)]
pub(crate) struct Winner<K> {
    values: Vec<K>,
    /// A complete binary tree of places, the root at 1, the leaves from `leaves` on.
    winners: Vec<u32>,
    leaves: usize,
}

impl<K: Copy + Ord> Winner<K> {
    /// All places have this value.
    pub(crate) fn new(places: usize, value: K) -> Winner<K> {
        let leaves = places.next_power_of_two();
        let mut winners: Vec<u32> = (0..2 * leaves).map(|node| node.saturating_sub(leaves) as u32).collect();
        (1..leaves).rev().for_each(|node| winners[node] = winners[2 * node]);
        Winner { values: vec![value; leaves], winners, leaves }
    }

    /// Changes the value of a place.
    #[inline]
    pub(crate) fn set(&mut self, place: usize, value: K) {
        self.values[place] = value;
        let mut node = (self.leaves + place) / 2;
        while node >= 1 {
            let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
            let is_left = self.values[left as usize] <= self.values[right as usize];
            let winner = if is_left { left } else { right };
            // Another place won here and still does: nothing above depends on this one.
            if std::mem::replace(&mut self.winners[node], winner) == winner && winner as usize != place {
                return;
            }
            node /= 2;
        }
    }

    /// The place with the least value.
    #[inline]
    pub(crate) fn min(&self) -> (usize, K) {
        let place = self.winners[1] as usize;
        (place, self.values[place])
    }
}
