//! Random histories: units are conserved, nothing of a frozen holder rests, and the order of a block does not matter.

use primitives::{AssetControl, Life, Operation, PoolKey, PoolOperation, Transaction};

use super::super::HolderStanding;
use super::world::*;

const POOL: PoolKey = PoolKey { a: USD, b: CTL, class: 0 };

/// Dice of a fixed seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn act(dice: &mut Dice) -> (u8, Operation) {
    let (person, other) = (1 + dice.below(4) as u8, 1 + dice.below(4) as u8);
    let life = [Life::Rests, Life::OneBatch][dice.below(2) as usize];
    let (units, price) = (5_000 + dice.below(90_000), 60 + dice.below(60));
    let pool = |operation| Operation::Pool(Box::new(operation));
    let (pool_key, shares) = (POOL, 1 + dice.below(1 << 18));
    match dice.below(12) {
        0..=1 => (ISSUER, freeze(person)),
        2 => (ISSUER, unfreeze(person)),
        3 => (person, offer(CTL, EUR, units, price, life)),
        4 => (person, offer(EUR, CTL, units, price, life)),
        5 => (person, offer(CTL, USD, units, price, life)),
        6 => (person, offer(USD, CTL, units, price, life)),
        7 => (person, pay(other, CTL, units)),
        8 => (person, pool(PoolOperation::Provide { pool: pool_key, shares, most_a: 1 << 24, most_b: 1 << 24 })),
        9 => (person, pool(PoolOperation::Leave { pool: pool_key, shares, least_a: 0, least_b: 0 })),
        10 => (ISSUER, Operation::Issue { to: account(person), asset: CTL, amount: units }),
        _ => (person, pay(other, EUR, units)),
    }
}

/// Nothing of a frozen holder rests, in offers or in pools.
fn check_home(world: &World) {
    let controls = world.ledger.controls();
    for (pair, offers) in world.ledger.book().iter().filter(|(pair, _)| pair.sell == CTL || pair.buy == CTL) {
        for offer in offers.iter() {
            assert_eq!(controls.standing(CTL, &offer.place.account), HolderStanding::Open, "{pair:?}");
        }
    }
    let pools = world.ledger.pools().expect("pools");
    for ((_, holder), _) in pools.holdings() {
        assert_eq!(controls.standing(CTL, holder), HolderStanding::Open);
    }
}

#[test]
fn histories_conserve_units_leave_nothing_of_the_frozen_and_commute() {
    let (mut fills, mut frozen) = (0, 0);
    for seed in 0..12 {
        let control = [AssetControl::Freezable, AssetControl::Admitted][seed as usize % 2];
        let (mut world, mut dice) = (World::new(control), Dice(seed));
        let open = PoolOperation::Open { pool: POOL, x: 1 << 26, y: 1 << 26 };
        world.done(vec![(ISSUER, Operation::Pool(Box::new(open)))]);
        for _ in 0..40 {
            let acts: Vec<_> = (0..1 + dice.below(6)).map(|_| act(&mut dice)).collect();
            let block: Vec<Transaction> = acts.into_iter().map(|(who, one)| world.signed(who, one)).collect();
            let mut shuffled = block.clone();
            shuffled.rotate_left(dice.below(block.len() as u64) as usize);
            let mut other = world.clone();
            let applied = world.block(block, Vec::new());
            other.block(shuffled, Vec::new());
            assert_eq!(state(&mut world), state(&mut other));
            fills += applied.batch.fills.len();
            frozen += applied.batch.ended.iter().filter(|one| one.why == proofs::EndReason::Frozen).count();
            check_home(&world);
        }
    }
    assert!(fills > 100 && frozen > 20, "{fills} fills, {frozen} offers of the frozen");
}

/// The parts of the root but the last block's digest, which differs with the order.
fn state(world: &mut World) -> Vec<proofs::RootPart> {
    let contracts = proofs::RootPart::CONTRACTS;
    world.roots.parts().list().iter().filter(|part| part.tag != contracts).copied().collect()
}
