//! What determines the contents of a hostile block and of the book before it.

use kernel::Dice;
use serde_json::{Value, json};

/// The contents of a block: each gene from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Genes([f64; GENES.len()]);

/// The genes by name.
const GENES: [&str; 17] = [
    "offers",
    "cancels",
    "missed cancels",
    "payments",
    "new accounts",
    "overdrafts",
    "conflicts",
    "exact orders",
    "replaces",
    "shape",
    "assets",
    "spread of limits",
    "spread of amounts",
    "equal limits",
    "one account",
    "crossing",
    "ends",
];

/// The kinds of transactions: the first genes, which are their weights.
pub(super) const KINDS: &[&str] = GENES.split_at(9).0;

/// Starting points of the search; genes that are not named are 0. Each has offers that all cross by a little.
pub(super) const BEGINNINGS: [&[(&str, f64)]; 6] = [
    // Any asset for any other: the largest number of trades.
    &[("shape", 0.7)],
    // The same with a few accounts that act often: the worst known block at 200 assets. A few offers decide.
    &[("shape", 0.7), ("conflicts", 0.2869113548237391), ("one account", 0.08141465400346082)],
    // Rings, with many offers and with few: the worst known block at 50 assets.
    &[("shape", 0.5), ("conflicts", 0.2869113548237391), ("one account", 0.08141465400346082)],
    // Orders for exact amounts beside offers, of which many cannot fit.
    &[("shape", 0.7), ("exact orders", 1.0)],
    // A book that ends with the block, and offers for one batch.
    &[("shape", 0.7), ("ends", 1.0)],
    &[("shape", 0.5), ("payments", 1.0), ("new accounts", 1.0), ("overdrafts", 1.0), ("missed cancels", 1.0)],
];

impl Genes {
    /// One of [`BEGINNINGS`].
    pub(super) fn beginning(number: usize) -> Genes {
        let named = BEGINNINGS[number].iter().chain(&[("offers", 1.0), ("assets", 1.0), ("crossing", 1.0)]);
        let gene = |name: &str| named.clone().find(|(other, _)| *other == name).map_or(0.0, |(_, gene)| *gene);
        Genes(std::array::from_fn(|at| gene(GENES[at])))
    }

    pub(super) fn random(random: &mut Dice) -> Genes {
        Genes(std::array::from_fn(|_| random.unit()))
    }

    pub(super) fn get(&self, name: &str) -> f64 {
        self.0[GENES.iter().position(|gene| *gene == name).expect("a gene of that name")]
    }

    /// Draws one or two genes anew, or moves them a little.
    pub(super) fn changed(&self, random: &mut Dice) -> Genes {
        let mut changed = self.clone();
        for _ in 0..=random.below(2) {
            let gene = &mut changed.0[random.below(GENES.len() as u64) as usize];
            *gene = match random.below(3) {
                0 => random.unit(),
                1 => {
                    if random.below(2) == 0 {
                        0.0
                    } else {
                        1.0
                    }
                }
                _ => (*gene + random.between(-0.2, 0.2)).clamp(0.0, 1.0),
            };
        }
        changed
    }

    /// With every digit, so that the block can be made again.
    pub(super) fn json(&self) -> Value {
        GENES.iter().zip(self.0).map(|(name, gene)| (name.to_string(), json!(gene))).collect()
    }
}
