//! Resting hostile offers stop only the market that they are in.

use clearing::workload::hostile::within_minimum;
use ledger::{Applied, Genesis, Ledger, Listing, Signatures};
use primitives::{
    Address, AssetId, Body, Fraction, MAX_ISSUED, Operation, Price, Signature, SubBlock, Superblock, Transaction,
};

use crate::world::{address, key};

/// Assets of which the attacker has none.
const HONEST: u32 = 2;
const HOSTILE: u32 = 20;
/// The attacker, and the two accounts that trade beside it.
const ATTACKER: u8 = 1;
const TRADERS: [u8; 2] = [2, 3];
const BLOCKS: u64 = 100;

struct Market {
    ledger: Ledger,
    /// Sequence numbers used by each person.
    sequences: [u64; 4],
}

impl Market {
    fn new() -> Market {
        let listing = |asset: u32| Listing::new(format!("A{asset}"), 6, Address::default());
        let traders = TRADERS.iter().flat_map(|one| (0..HONEST).map(|asset| (address(*one), AssetId(asset), 1 << 50)));
        let attacker = (HONEST..HONEST + HOSTILE).map(|asset| (address(ATTACKER), AssetId(asset), MAX_ISSUED));
        let genesis = Genesis {
            chain: 1,
            epsilon: Fraction::power_of_two(15),
            mu: Fraction::power_of_two(10),
            assets: (0..HONEST + HOSTILE).map(listing).collect(),
            balances: traders.chain(attacker).collect(),
            ..Genesis::default()
        };
        Market { ledger: Ledger::new(&genesis).expect("sound"), sequences: [0; 4] }
    }

    fn offer(&mut self, person: u8, (sell, buy): (u32, u32), amount: u64, limit: Price) -> Transaction {
        let sequence = &mut self.sequences[usize::from(person)];
        *sequence += 1;
        let operation = Operation::offer(AssetId(sell), AssetId(buy), amount, limit);
        let body = Body { chain: 1, account: address(person), sequence: *sequence, until: 50_000, operation };
        Transaction::by_key(body, key(person).public(), Signature([0; 64]))
    }

    /// Two offers that meet.
    fn honest(&mut self) -> Vec<Transaction> {
        let limit = |text: &str| text.parse().expect("a price");
        let [one, other] = TRADERS;
        vec![self.offer(one, (0, 1), 1_000_000, limit("0.99")), self.offer(other, (1, 0), 1_000_000, limit("0.99"))]
    }

    fn block(&mut self, native: Vec<Transaction>) -> Applied {
        let (height, parent) = (self.ledger.height() + 1, self.ledger.last_block());
        let sub_blocks = vec![SubBlock { native, ..SubBlock::default() }];
        let block = Superblock { height, parent, sub_blocks, ..Superblock::default() };
        self.ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("applies")
    }
}

/// Counts the blocks of which a part was not full. Besides, two offers match in every block.
fn blocks_with_obstacles(seed: u64) -> u64 {
    let mut market = Market::new();
    let mut obstructed = 0;
    for block in 0..BLOCKS {
        let mut native = market.honest();
        if block == 0 {
            for offer in within_minimum(seed, HOSTILE, 60, 5_000).offers {
                let pair = (offer.sell.0 + HONEST, offer.buy.0 + HONEST);
                native.push(market.offer(ATTACKER, pair, offer.amount, offer.limit));
            }
        }
        let applied = market.block(native);
        let met = applied.batch.fills.iter().filter(|fill| fill.pair.sell.0 < HONEST).count();
        assert_eq!(met, 2, "seed {seed}, block {block}: {:?}", applied.report);
        let report = applied.report.expect("something is for sale");
        let honest = |asset: &AssetId| asset.0 < HONEST;
        assert!(!report.obstacles.iter().any(|obstacle| obstacle.assets.iter().any(honest)));
        obstructed += u64::from(!report.obstacles.is_empty());
    }
    obstructed
}

#[test]
fn a_hostile_book_at_rest_stops_no_other_market() {
    let obstructed = [16, 27, 50, 81, 207].map(blocks_with_obstacles);
    // For some seeds, a part has no full clearing as long as the hostile offers rest.
    let stays = obstructed.iter().filter(|blocks| **blocks >= BLOCKS / 2).count();
    assert!(stays >= 2, "{obstructed:?}");
}
