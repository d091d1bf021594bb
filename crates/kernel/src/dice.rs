//! Random numbers that a seed decides.

/// The step of SplitMix64: 2^64 over the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64 (Steele, Lea and Flood 2014): a small generator whose sequence is fixed by its definition.
#[derive(Clone, Debug, Default)]
pub struct Dice(u64);

impl Dice {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// Another sequence, which depends on where this one is and on a seed.
    pub fn branch(&self, seed: u64) -> Dice {
        Dice(self.0 ^ seed.wrapping_mul(STEP))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A whole number below `end`, which is not zero.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// A place in a list of this length, which is not empty.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number in [`low`, `high`).
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// An index, each with probability proportional to its weight.
    pub fn weighted(&mut self, weights: &[f64]) -> usize {
        let mut rest = self.unit() * weights.iter().sum::<f64>();
        let chosen = weights.iter().position(|weight| {
            rest -= weight;
            rest < 0.0
        });
        chosen.unwrap_or(weights.len() - 1)
    }

    /// Puts a list into any order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.index(at + 1));
        }
    }
}

/// The sequence of [`Dice`], reduced by remainders. Seeds of older tests mean what these draw; others use [`Dice`].
#[derive(Clone, Debug)]
pub struct RemainderDice(Dice);

impl RemainderDice {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> RemainderDice {
        RemainderDice(Dice::new(seed))
    }

    /// A whole number below `end`, which is not zero.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0.bits() % end
    }

    /// A place in a list of this length, which is not empty.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of a list, which is not empty.
    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.index(all.len())]
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        self.0.unit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers for the seed 1234567, as Java's `SplittableRandom` and the reference in C give them.
    #[test]
    fn dice_are_splitmix64() {
        let mut dice = Dice::new(1_234_567);
        let drawn: [u64; 5] = std::array::from_fn(|_| dice.bits());
        let known = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(drawn, known);
    }

    /// A seed keeps its meaning: what each draw makes of the same bits.
    #[test]
    fn seeds_of_dice_keep_their_meaning() {
        let mut dice = Dice::new(7);
        let drawn = (dice.below(1_000), dice.index(10), dice.unit(), dice.weighted(&[1.0, 2.0, 1.0]), dice.bits());
        let mut bits = Dice::new(7);
        let mut next = || bits.bits();
        let unit = |bits: u64| (bits >> 11) as f64 / (1u64 << 53) as f64;
        let high = |bits: u64, end: u64| ((u128::from(bits) * u128::from(end)) >> 64) as u64;
        let below = high(next(), 1_000);
        let index = high(next(), 10) as usize;
        let first = unit(next());
        let at = unit(next()) * 4.0;
        let weighted = if at < 1.0 {
            0
        } else if at < 3.0 {
            1
        } else {
            2
        };
        assert_eq!(drawn, (below, index, first, weighted, next()));
        assert_eq!(RemainderDice::new(7).below(1_000), Dice::new(7).bits() % 1_000);
    }
}
