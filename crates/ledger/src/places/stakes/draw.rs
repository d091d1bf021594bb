//! A draw by stake without replacement, in whole numbers.

use blake3::OutputReader;
use primitives::{Amount, Digest};

const CONTEXT: &str = "walras 2026 committee draw v1";

/// The holder whose part of the stakes contains the lot.
fn holder(stakes: &[Amount], left: &[usize], mut lot: Amount) -> usize {
    for (at, one) in left.iter().enumerate() {
        match lot.checked_sub(stakes[*one]) {
            Some(rest) => lot = rest,
            None => return at,
        }
    }
    unreachable!("a lot is below the sum of the stakes")
}

/// Numbers that no one can choose without choosing the seed.
pub(crate) struct Lots(OutputReader);

impl Lots {
    pub(crate) fn new(seed: &Digest, epoch: u64) -> Lots {
        let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
        Lots(hasher.update(&seed.0).update(&epoch.to_le_bytes()).finalize_xof())
    }

    /// Draws up to `size` holders of `stakes`, whose sum is below 2^64: in each turn every remaining holder is drawn
    /// with a probability of its part in the remaining stakes. Returns positions in the order in which they are drawn.
    pub(crate) fn draw(&mut self, stakes: &[Amount], size: usize) -> Vec<usize> {
        let mut left: Vec<usize> = (0..stakes.len()).filter(|at| stakes[*at] > 0).collect();
        let mut sum: Amount = stakes.iter().sum();
        let mut drawn = Vec::with_capacity(size.min(left.len()));
        while drawn.len() < size && !left.is_empty() {
            let at = holder(stakes, &left, self.below(sum));
            let one = left.remove(at);
            sum -= stakes[one];
            drawn.push(one);
        }
        drawn
    }

    /// All of these in an order in which each has the same chance at each place.
    pub(crate) fn shuffle(&mut self, all: &[usize]) -> Vec<usize> {
        self.draw(&vec![1; all.len()], all.len()).into_iter().map(|at| all[at]).collect()
    }

    /// A number below `bound`, each with the same probability: numbers above the last multiple of it are discarded.
    fn below(&mut self, bound: u64) -> u64 {
        let last = u64::MAX - (u64::MAX % bound + 1) % bound;
        loop {
            let mut bytes = [0; 8];
            self.0.fill(&mut bytes);
            let number = u64::from_le_bytes(bytes);
            if number <= last {
                return number % bound;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seed(number: u64) -> Digest {
        Digest::of("walras test seeds v1", &number.to_le_bytes())
    }

    fn draw(seed: &Digest, epoch: u64, stakes: &[Amount], size: usize) -> Vec<usize> {
        Lots::new(seed, epoch).draw(stakes, size)
    }

    #[test]
    fn a_draw_is_known() {
        let stakes = [10, 20, 30, 0, 40];
        let large = [u64::MAX / 2, u64::MAX / 3, 1, u64::MAX / 9];
        let draws =
            [(1, 1), (2, 1), (2, 2), (2, 3), (2, 4)].map(|(number, epoch)| draw(&seed(number), epoch, &stakes, 5));
        assert_eq!(draws, [[4, 2, 0, 1], [4, 2, 1, 0], [4, 2, 1, 0], [4, 2, 1, 0], [2, 1, 4, 0]]);
        assert_eq!([1, 2, 3].map(|number| draw(&seed(number), 7, &large, 2)), [[1, 0], [0, 1], [0, 1]]);
        assert!(draw(&seed(1), 1, &[], 4).is_empty() && draw(&seed(1), 1, &[0], 4).is_empty());
    }

    /// Chances of a draw of two without replacement, by the plain sum over first draws.
    fn chance(stakes: &[u64], at: usize) -> f64 {
        let sum: u64 = stakes.iter().sum();
        let part = |units: u64, of: u64| units as f64 / of as f64;
        let second = |first: usize| part(stakes[first], sum) * part(stakes[at], sum - stakes[first]);
        part(stakes[at], sum) + (0..stakes.len()).filter(|first| *first != at).map(second).sum::<f64>()
    }

    #[test]
    fn chances_are_those_of_the_stakes() {
        const DRAWS: u64 = 20_000;
        let stakes = [1, 5, 10, 24, 60];
        let (mut first, mut in_two) = ([0u64; 5], [0u64; 5]);
        for number in 0..DRAWS {
            let drawn = draw(&seed(number), 1, &stakes, 2);
            first[drawn[0]] += 1;
            drawn.iter().for_each(|at| in_two[*at] += 1);
        }
        for at in 0..5 {
            for (count, chance) in [(first[at], stakes[at] as f64 / 100.0), (in_two[at], chance(&stakes, at))] {
                let (mean, deviation) = (DRAWS as f64 * chance, (DRAWS as f64 * chance * (1.0 - chance)).sqrt());
                assert!(
                    (count as f64 - mean).abs() < 4.0 * deviation,
                    "{at}: {count}, and {mean} ± {deviation} expected"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn nobody_is_drawn_twice_or_for_nothing(
            stakes in proptest::collection::vec(prop_oneof![Just(0), 1..9u64, Just(1 << 40)], 0..20),
                size in 0..25usize, number in any::<u64>()
        ) {
            let drawn = draw(&seed(number), 3, &stakes, size);
            let candidates = stakes.iter().filter(|stake| **stake > 0).count();
            prop_assert_eq!(drawn.len(), size.min(candidates));
            let mut sorted = drawn.clone();
            sorted.sort_unstable();
            sorted.dedup();
            prop_assert_eq!(sorted.len(), drawn.len());
            prop_assert!(drawn.iter().all(|at| stakes[*at] > 0));
            // The first ones drawn do not depend on how many are drawn.
            prop_assert_eq!(&draw(&seed(number), 3, &stakes, size / 2)[..], &drawn[..drawn.len().min(size / 2)]);
        }
    }
}
