//! A last look: a validator that reads the orders of a batch before it proposes its own, and trades on them.
//!
//! In each batch makers quote around the value that everybody knows. An informed trader knows the next value, and
//! buys or sells. The *copycat* has a validator: it sees what is pending, copies a direction that it can read, and its
//! order is in the same batch at the same price. Where the informed order is in an envelope it reads who pays, when and
//! how much space it takes. So it guesses, or follows what the last batch opened. Ledger and envelopes are those of a
//! node; people are drawn from a seed.
//!
//! What a batch brought is what it changed in an account's balances, at the next value. An order that goes the wrong
//! way trades against the informed one, so guessing costs more than it brings.

use blst::min_sig::SecretKey as Scalar;
use kernel::Dice;
use ledger::{Applied, Genesis, Ledger, Listing, Signatures, Unsealing};
use primitives::{
    Address, AssetId, Body, ClientId, Enclosure, Fraction, Life, Operation, Price, SecretKey, Sequence, SubBlock,
    Superblock, Transaction,
};
use sealing::{EnvelopeTerms, OpeningKey, SEALING_TAG, SealedText, SealingKey, seal};

const USD: AssetId = AssetId(0);
const EUR: AssetId = AssetId(1);
const MAKER: u8 = 1;
const INFORMED: u8 = 2;
const COPYCAT: u8 = 3;
/// Pays for the envelopes of the informed trader.
const PAYER: u8 = 4;
const START: u64 = 1 << 50;
/// Units of EUR of an order, and of a quote.
const ORDER: u64 = 1_000_000;
const QUOTE: u64 = 400_000;
/// Quotes on each side, this share of the value apart.
const QUOTES: u32 = 12;
const STEP: f64 = 0.000_5;
/// The number of the committee's key.
const KEY: u64 = 1;

/// What the copycat does where it can read no direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blind {
    /// A coin says.
    Guesses,
    /// The direction that the last batch opened.
    Follows,
}

/// What became of the copycat and of the one that it copies, in units of USD.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LastLook {
    /// The copycat's profit after each batch.
    pub profits: Vec<f64>,
    /// The profit of the informed trader.
    pub informed: f64,
    /// In how many batches the copycat went the same way.
    pub right: usize,
}

/// A direction, and the price up to which an order trades.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Intent {
    buys: bool,
    limit: f64,
}

/// A chain whose committee is one secret, which opens all that its rules open.
struct World {
    ledger: Ledger,
    secret: Scalar,
    sequences: [Sequence; PAYER as usize + 1],
}

fn key(person: u8) -> SecretKey {
    SecretKey::from_seed([person; 32])
}

fn address(person: u8) -> Address {
    key(person).public().address()
}

impl World {
    fn new() -> World {
        let assets = ["USD", "EUR"].map(|symbol| Listing::new(symbol, 2, address(MAKER))).to_vec();
        let held = |person| [USD, EUR].map(|asset| (address(person), asset, START));
        let balances = (MAKER..=PAYER).flat_map(held).collect();
        let (chain, fee, mu) = (1, 1, Fraction::power_of_two(10));
        let ledger = Ledger::new(&Genesis { chain, fee, mu, assets, balances, ..Genesis::default() }).expect("sound");
        let secret = Scalar::key_gen(&[1; 32], &[]).expect("32 bytes are enough");
        World { ledger, secret, sequences: [0; PAYER as usize + 1] }
    }

    fn sealing_key(&self) -> SealingKey {
        SealingKey::parse(&self.secret.sk_to_pk().compress()).expect("a public key is a point")
    }

    fn body(&mut self, person: u8, operation: Operation) -> Body {
        let sequence = &mut self.sequences[usize::from(person)];
        *sequence += 1;
        let until = self.ledger.height() + 8;
        Body { chain: self.ledger.chain(), account: address(person), sequence: *sequence, until, operation }
    }

    fn plain(&mut self, person: u8, intent: Intent, units: u64) -> Transaction {
        let network = self.ledger.network();
        self.body(person, order(intent, units)).sign(&network, &key(person))
    }

    /// The order of a person in an envelope that another one pays.
    fn sealed(&mut self, person: u8, intent: Intent, units: u64, drawn: [u8; 32]) -> Transaction {
        let (network, signer, to) = (self.ledger.network(), key(PAYER), self.sealing_key());
        let (payer, sequence) = (address(PAYER), self.sequences[usize::from(PAYER)] + 1);
        let inside = self.body(person, order(intent, units));
        let inside = inside.sign_sealed(&network, &Enclosure { payer, sequence }, &key(person));
        let until = self.ledger.height() + 8;
        let terms = EnvelopeTerms { network, signer: signer.public(), key: KEY, payer, sequence, until };
        let envelope = seal(&to, &terms, &SealedText(vec![inside]), &drawn).expect("it fits");
        self.body(PAYER, Operation::Sealed(Box::new(envelope.to_bytes(KEY)))).sign(&network, &signer)
    }

    fn apply(&mut self, native: Vec<Transaction>) -> Applied {
        let (height, parent) = (self.ledger.height() + 1, self.ledger.last_block());
        let sub_blocks = vec![SubBlock { native, ..SubBlock::default() }];
        let block = Superblock { height, parent, sub_blocks, ..Superblock::default() };
        let opened = self.ledger.opening(&block, None, &[KEY]).opened;
        let key = |label: &[u8]| OpeningKey(self.secret.sign(label, SEALING_TAG, &[]).compress());
        let keys: Vec<OpeningKey> = opened.iter().map(|one| key(&one.label.0.0)).collect();
        let in_force = [(KEY, self.sealing_key())];
        let unsealing = Unsealing { in_force: &in_force, keys: &keys, are_checked: true };
        let ledger = &mut self.ledger;
        ledger.apply_unsealed(&block, None, &unsealing, Signatures::Valid, &mut |_| {}).expect("it applies")
    }

    /// What an account has, at a value of EUR in USD.
    fn worth(&self, person: u8, value: f64) -> f64 {
        let account = self.ledger.accounts().get(&address(person)).expect("it is in the genesis");
        let has = |asset| account.balance(asset) as f64 - START as f64;
        has(USD) + value * has(EUR)
    }
}

/// An order for one batch.
fn order(intent: Intent, units: u64) -> Operation {
    let (sell, buy, amount, limit) = match intent.buys {
        true => (USD, EUR, (units as f64 * intent.limit) as u64, 1.0 / intent.limit),
        false => (EUR, USD, units, intent.limit),
    };
    let limit = Price::from_f64(limit).expect("in range");
    Operation::CreateOffer { sell, buy, amount, limit, life: Life::OneBatch, client: ClientId::NONE }
}

/// The first direction of somebody else than the makers that can be read in transactions.
fn read<'a>(mut transactions: impl Iterator<Item = &'a Transaction>) -> Option<Intent> {
    transactions.find_map(|one| match one.body.operation {
        Operation::CreateOffer { sell, limit, .. } if one.body.account != address(MAKER) => {
            let limit = limit.to_f64();
            Some(Intent { buys: sell == USD, limit: if sell == USD { 1.0 / limit } else { limit } })
        }
        _ => None,
    })
}

/// Runs so many batches; the seed determines values and coins.
pub(crate) fn last_look(seed: u64, batches: usize, blind: Option<Blind>) -> LastLook {
    // The values are the same, whatever the copycat does.
    let (mut dice, mut coins) = (Dice::new(seed), Dice::new(!seed));
    let (mut world, mut seen, mut value) = (World::new(), LastLook::default(), 1.0);
    let (mut profit, mut opened) = (0.0, None);
    for _ in 0..batches {
        let buys = dice.once_in(2);
        let moves = 0.002 + 0.000_01 * dice.below(400) as f64;
        let next: f64 = value * if buys { 1.0 + moves } else { 1.0 - moves };
        let informed = Intent { buys, limit: next };
        let mut pending: Vec<Transaction> = (1..=QUOTES)
            .flat_map(|at| [true, false].map(|buys| (buys, f64::from(at) * if buys { -STEP } else { STEP })))
            .map(|(buys, apart)| world.plain(MAKER, Intent { buys, limit: value * (1.0 + apart) }, QUOTE))
            .collect();
        let drawn = std::array::from_fn(|_| coins.below(256) as u8);
        pending.push(match blind {
            None => world.plain(INFORMED, informed, ORDER),
            Some(_) => world.sealed(INFORMED, informed, ORDER, drawn),
        });
        let guessed = match blind {
            Some(Blind::Follows) => opened.unwrap_or(true),
            _ => coins.once_in(2),
        };
        let usual = Intent { buys: guessed, limit: value * if guessed { 1.004 } else { 0.996 } };
        let copied = read(pending.iter()).unwrap_or(usual);
        seen.right += usize::from(copied.buys == buys);
        pending.push(world.plain(COPYCAT, copied, ORDER));
        let before = [COPYCAT, INFORMED, PAYER].map(|person| world.worth(person, next));
        let applied = world.apply(pending);
        opened = read(applied.opened.iter().map(|one| &one.transaction)).map(|intent| intent.buys);
        let [copycat, own, paid] = [COPYCAT, INFORMED, PAYER].map(|person| world.worth(person, next));
        profit += copycat - before[0];
        seen.informed += own - before[1] + paid - before[2];
        seen.profits.push(profit);
        value = next;
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The attack: a last look. Plain it is worth half of what the informed trader knew; sealed it costs.
    #[test]
    fn a_copycat_profits_from_plain_orders_and_loses_where_they_are_sealed() {
        let runs = [None, Some(Blind::Guesses), Some(Blind::Follows)];
        for seed in 0..3 {
            let [plain, guesses, follows] = runs.map(|blind| last_look(seed, 120, blind));
            let last = |run: &LastLook| *run.profits.last().expect("a batch");
            assert!(plain.right == 120 && last(&plain) > 0.0, "{plain:?}");
            assert!(last(&guesses) < 0.0 && last(&follows) < 0.0, "{guesses:?} {follows:?}");
            assert!(guesses.right.abs_diff(60) < 30, "a coin: {}", guesses.right);
            assert!(guesses.informed > 1.2 * plain.informed, "{} and {}", guesses.informed, plain.informed);
        }
    }

    #[test]
    fn a_seed_determines_everything_and_an_envelope_is_read_by_nobody() {
        assert_eq!(last_look(7, 20, Some(Blind::Guesses)), last_look(7, 20, Some(Blind::Guesses)));
        let mut world = World::new();
        let intent = Intent { buys: true, limit: 1.25 };
        let envelope = world.sealed(INFORMED, intent, ORDER, [3; 32]);
        assert_eq!(read([envelope].iter()), None);
        let plain = world.plain(INFORMED, intent, ORDER);
        assert!(read([plain].iter()).is_some_and(|read| read.buys && (read.limit - 1.25).abs() < 1e-6));
    }
}
