//! The recorded chain of rules 16: parameters change by vote, an asset is listed under a plain name, and one closes.
//! How chains are recorded and replayed is in [`crate::recorded`].

use ledger::{Genesis, Refusal, Snapshot};
use primitives::{AssetId, Closing, Operation, Parameter, ProposalWord, ProposedChange, RULES_OF_PROPOSALS};

use crate::charter::{World, account};
use crate::proposals::{ask, genesis as voted, plain_listing, propose, says, sets, want};
use crate::recorded::{History, Seen, upgrade};

const BANK: u8 = 4;
const EUR: AssetId = AssetId(1);

/// Before rules 16 no genesis says that a vote lists assets.
fn genesis() -> Genesis {
    let voted = voted();
    let listings = ledger::ListingTerms { policy: ledger::ListingPolicy::Priced, ..voted.listings };
    Genesis { rules: RULES_OF_PROPOSALS - 1, listings, ..voted }
}

/// One block with these operations, and what became of them.
fn block(world: &mut World, operations: &[(u8, Operation)]) -> Vec<Option<Refusal>> {
    let native = operations.iter().map(|(person, operation)| world.sign(*person, operation.clone())).collect();
    world.apply(native)
}

/// Blocks follow up to the next boundary.
fn boundary(world: &mut World) {
    let next = world.ledger.height() / 10 * 10 + 10;
    world.until(next);
}

pub fn of_proposals() -> History {
    let mut world = World::new(&genesis());
    let state = Snapshot::of(&world.ledger).collect();
    world.until(2);
    let early = propose(&sets(Parameter::Fee, 6));
    assert_eq!(block(&mut world, &[(0, early)]), [Some(Refusal::RULES_TO_COME)]);
    upgrade(&mut world, RULES_OF_PROPOSALS);
    boundary(&mut world);
    changes_parameters(&mut world);
    lists_and_closes(&mut world);
    let height = world.ledger.height();
    world.until(height + 20);
    (state, world.blocks)
}

/// A fee, the policy of listings and a limit; what is refused on the way, and what too few want.
fn changes_parameters(world: &mut World) {
    let asked = [
        (0, sets(Parameter::Fee, 8)),
        (1, sets(Parameter::ListingPolicy, 2)),
        (2, sets(Parameter::RestingOffers, 1 << 24)),
        (3, sets(Parameter::Reward, 20)),
    ];
    let ids = ask(world, &asked);
    want(world, &[0, 1, 2], &ids[..3]);
    let wrong = [
        (0, propose(&sets(Parameter::Fee, 5))),
        (1, propose(&sets(Parameter::Fee, 11))),
        (2, propose(&sets(Parameter::Reward, 21))),
        (3, says(ids[0], ProposalWord::No)),
        (BANK, says(ids[0], ProposalWord::Yes)),
    ];
    let refused = [Refusal::CHANGES_NOTHING, Refusal::STEP_TOO_LARGE, Refusal::OUT_OF_BOUNDS].map(Some);
    assert_eq!(block(world, &wrong), [&refused[..], &[None, Some(Refusal::NO_SAY)]].concat());
    boundary(world);
    assert_eq!(block(world, &[(0, propose(&sets(Parameter::Fee, 9)))]), [Some(Refusal::CHANGED_LATELY)]);
    boundary(world);
    let height = world.ledger.height();
    world.until(height + 5);
    assert_eq!(world.ledger.fee(), 8);
}

/// An asset is listed for nothing, and the bank's own closes against its will.
fn lists_and_closes(world: &mut World) {
    let (yen, euro) = (ProposedChange::List(plain_listing("JPY")), ProposedChange::Close { asset: EUR });
    let ids = ask(world, &[(0, yen), (1, euro)]);
    want(world, &[0, 2, 3], &ids);
    boundary(world);
    boundary(world);
    let height = world.ledger.height();
    world.until(height + 5);
    let jpy = AssetId(2);
    assert_eq!(world.ledger.assets()[2].symbol, "JPY");
    let done = [
        (BANK, Operation::Issue { to: account(5), asset: jpy, amount: 1_000 }),
        (BANK, Operation::CloseAsset { asset: EUR, closing: Closing::Revoke }),
    ];
    assert_eq!(block(world, &done), [None, Some(Refusal::CLOSED_BY_VOTE)]);
}

#[test]
fn the_chain_of_rules_16_has_all_that_they_brought_and_crosses_their_first_height() {
    let seen = Seen::of(RULES_OF_PROPOSALS);
    let refused = [
        Refusal::RULES_TO_COME,
        Refusal::CHANGES_NOTHING,
        Refusal::STEP_TOO_LARGE,
        Refusal::OUT_OF_BOUNDS,
        Refusal::NO_SAY,
        Refusal::CHANGED_LATELY,
        Refusal::CLOSED_BY_VOTE,
    ];
    seen.has(&["propose_parameter", "propose_listing", "propose_closing", "vote", "issue"], &refused);
}
