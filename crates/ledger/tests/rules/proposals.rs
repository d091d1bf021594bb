//! What validators vote about, with real signatures: parameters, assets with plain names, ends of assets. Each history
//! is applied once more from a snapshot after every block. All short histories of two parameters are in the model of
//! `charter::proposals`.

use ledger::{
    CharterTerms, Genesis, Ledger, Limits, Listing, ListingPolicy, ListingTerms, Member, Membership, Refusal, Restart,
    RestartError, Restore, Roots, Signatures, Snapshot, SnapshotError,
};
use primitives::{
    AssetControl, AssetId, AssetListing, Body, Closing, Digest, Height, Operation, Parameter, PlainListing,
    ProposalWord, ProposedChange, RULES_OF_LISTINGS, RULES_OF_PROPOSALS, Stake, Transaction,
};

use crate::charter::{NETWORK, World, account, genesis as plain, key, node};

const USD: AssetId = AssetId(0);
const EUR: AssetId = AssetId(1);
const BANK: u8 = 4;
const NOTICE: Height = 8;

/// Four validators; committees of epoch k begin at 10k + 5.
pub fn genesis() -> Genesis {
    let plain = plain();
    let assets = vec![Listing::new("USD", 2, account(0)), Listing::new("EUR", 2, account(BANK))];
    let held = |person: u8| [USD, EUR].map(|asset| (account(person), asset, 10_000_000));
    let membership = plain.membership.map(|mut membership| {
        (membership.terms.reward, membership.reward_pool) = (10, 100_000);
        membership
    });
    Genesis {
        rules: RULES_OF_PROPOSALS,
        assets,
        balances: (0..6).flat_map(held).collect(),
        listings: ListingTerms { policy: ListingPolicy::Voted, fees: 3, assets_max: 8, notice: NOTICE },
        limits: Limits::default().with_contracts(4),
        membership,
        ..plain
    }
}

pub fn sets(parameter: Parameter, value: u64) -> ProposedChange {
    ProposedChange::Parameter { parameter, value }
}

pub fn plain_listing(symbol: &str) -> PlainListing {
    PlainListing {
        issuer: account(BANK),
        symbol: symbol.into(),
        decimals: 2,
        control: AssetControl::Open,
        least_units: 4_096,
        supply_max: 1_000_000,
        document: Digest([16; 32]),
    }
}

pub fn propose(change: &ProposedChange) -> Operation {
    Operation::Propose(Box::new(change.clone()))
}

pub fn says(proposal: Digest, word: ProposalWord) -> Operation {
    Operation::Vote { proposal, word }
}

/// What these people ask for, all of it admitted; the ids.
pub fn ask(world: &mut World, asked: &[(u8, ProposedChange)]) -> Vec<Digest> {
    let native: Vec<Transaction> = asked.iter().map(|(person, change)| world.sign(*person, propose(change))).collect();
    let ids = native.iter().map(Transaction::id).collect();
    let refused = world.apply(native);
    assert!(refused.iter().all(Option::is_none), "{asked:?}: {refused:?}");
    ids
}

/// These people want all of this.
pub fn want(world: &mut World, people: &[u8], ids: &[Digest]) {
    let all = ids.iter().flat_map(|id| people.iter().map(|person| (*person, *id)));
    let native = all.map(|(person, id)| world.sign(person, says(id, ProposalWord::Yes))).collect();
    let refused = world.apply(native);
    assert!(refused.iter().all(Option::is_none), "{refused:?}");
}

/// What one person is told about a proposal now.
fn told(world: &mut World, person: u8, change: ProposedChange) -> Result<(), Refusal> {
    let transaction = world.sign(person, propose(&change));
    world.ledger.admit(&transaction)
}

fn restored(ledger: &Ledger) -> Ledger {
    let mut restore = Restore::default();
    Snapshot::of(ledger).for_each(|chunk| restore.push(&chunk).expect("a snapshot's own chunk"));
    restore.finish().expect("sound")
}

/// Applies a world's blocks again, from the snapshot after each block, to the same state.
pub fn replay(genesis: &Genesis, world: &World) {
    let mut ledger = Ledger::new(genesis).expect("sound");
    for block in &world.blocks {
        ledger = restored(&ledger);
        assert_eq!(Roots::of(&ledger).parts().root(), block.parent_root);
        ledger.apply(block, Signatures::Unchecked, &mut |_| {}).expect("applies");
    }
    assert_eq!(Snapshot::digest(&ledger), Snapshot::digest(&world.ledger));
}

/// Three of four seats with three quarters of the stake pass it at 10; it acts from the first height of epoch 2 on.
#[test]
fn a_parameter_that_passes_acts_from_the_next_epoch_on() {
    let mut world = World::new(&genesis());
    world.until(2);
    let ids = ask(&mut world, &[(0, sets(Parameter::Fee, 10))]);
    want(&mut world, &[0, 1, 2], &ids);
    assert_eq!((world.ledger.fee(), world.ledger.dearest_fee()), (5, 5));
    world.until(10);
    let coming: Vec<_> = world.ledger.proposals().coming().iter().map(|one| (one.acts, one.values.fee())).collect();
    assert_eq!((coming, world.ledger.dearest_fee()), (vec![(25, 10)], 10));
    world.until(23);
    let balance = |world: &World| world.ledger.accounts().get(&account(5)).expect("there").balance(USD);
    let pay = || Operation::Pay { to: account(1), asset: USD, amount: 7 };
    for fee in [5, 10, 10] {
        let (before, native) = (balance(&world), vec![world.sign(5, pay())]);
        assert_eq!(world.apply(native), [None]);
        assert_eq!(before - balance(&world), 7 + fee, "at {}", world.ledger.height());
    }
    assert_eq!((world.ledger.fee(), world.ledger.founded().0), (10, 5));
    replay(&genesis(), &world);
}

/// What is read from the limits, the registry and the terms of listings, from one height on.
#[test]
fn every_parameter_acts_where_it_is_read() {
    let mut world = World::new(&genesis());
    let first = world.ledger.parameters();
    let value = |parameter| match parameter {
        Parameter::ListingPolicy => 1,
        parameter => first.get(parameter) * 2,
    };
    for three in Parameter::ALL.chunks(4) {
        let asked: Vec<(u8, ProposedChange)> =
            (0..4).zip(three).map(|(person, one)| (person, sets(*one, value(*one)))).collect();
        let ids = ask(&mut world, &asked);
        want(&mut world, &[0, 1, 3], &ids);
        let next = world.ledger.height() / 10 * 10 + 10;
        world.until(next);
    }
    // The last ones passed at 30 and act from 45 on.
    world.until(44);
    let ledger = &world.ledger;
    Parameter::ALL.into_iter().for_each(|one| assert_eq!(ledger.parameters().get(one), value(one), "{one:?}"));
    let (limits, terms, listings) = (ledger.limits(), ledger.validators().terms, ledger.listings().terms());
    assert_eq!((limits.validators, limits.until_max, limits.open_pairs), (512, 200_000, 1 << 17));
    assert_eq!((terms.minimum_stake, terms.reward, ledger.fee()), (200, 20, 10));
    assert_eq!((listings.policy, listings.fees, listings.assets_max), (ListingPolicy::Priced, 6, 16));
    let stake = Stake::new(150, "v5:1".into(), 1, &account(5), &node(5));
    let stake = world.sign(5, Operation::Stake(Box::new(stake)));
    assert_eq!(world.apply(vec![stake]), [Some(Refusal::STAKE_TOO_SMALL)]);
    replay(&genesis(), &world);
}

/// Seats without stake, and stake without seats, decide nothing; and after four boundaries it is over.
#[test]
fn what_too_few_want_is_over_after_four_boundaries() {
    let mut world = World::new(&genesis());
    let ids = ask(&mut world, &[(0, sets(Parameter::Fee, 10)), (1, sets(Parameter::Reward, 20))]);
    want(&mut world, &[0, 1], &ids);
    world.until(39);
    assert_eq!(world.ledger.proposals().open().len(), 2);
    world.until(40);
    assert!(world.ledger.proposals().open().is_empty() && world.ledger.proposals().coming().is_empty());
    let late = world.sign(2, says(ids[0], ProposalWord::Yes));
    assert_eq!(world.apply(vec![late]), [Some(Refusal::UNKNOWN_PROPOSAL)]);
    replay(&genesis(), &world);
}

/// The attack: voters see one value, and the proposer exchanges it for another one.
#[test]
fn a_newer_proposal_has_no_votes_of_the_older_one() {
    let mut world = World::new(&genesis());
    let ids = ask(&mut world, &[(0, sets(Parameter::Fee, 6))]);
    want(&mut world, &[0, 1, 2, 3], &ids);
    let newer = world.sign(0, propose(&sets(Parameter::Fee, 10)));
    let vote = world.sign(1, says(ids[0], ProposalWord::Yes));
    assert_eq!(world.apply(vec![vote, newer]), [None, None], "the word is about what is gone");
    world.until(30);
    assert_eq!(world.ledger.fee(), 5);
    assert_eq!(world.ledger.proposals().open()[&account(0)].votes.len(), 0);
}

/// Of several words of an account in a block the last one counts, and the order of the block means nothing.
#[test]
fn the_order_of_proposals_and_votes_means_nothing() {
    let mut world = World::new(&genesis());
    let id = ask(&mut world, &[(0, sets(Parameter::Fee, 6))])[0];
    let mut native: Vec<Transaction> = vec![
        world.sign(1, says(id, ProposalWord::Yes)),
        world.sign(1, says(id, ProposalWord::No)),
        world.sign(2, says(id, ProposalWord::Yes)),
        world.sign(3, propose(&sets(Parameter::Fee, 7))),
        world.sign(3, propose(&sets(Parameter::Fee, 8))),
    ];
    let mut states = Vec::new();
    for _ in 0..native.len() {
        native.rotate_left(2);
        let mut ledger = world.ledger.clone();
        ledger.apply(&world.block(native.clone()), Signatures::Unchecked, &mut |_| {}).expect("applies");
        states.push(ledger.proposals().clone());
    }
    assert!(states.iter().all(|state| *state == states[0]));
    let open = states[0].open();
    let words = &open[&account(0)].votes;
    assert_eq!((words[&account(1)], words[&account(2)]), (ProposalWord::No, ProposalWord::Yes));
    assert_eq!(open[&account(3)].change, sets(Parameter::Fee, 8));
}

#[test]
fn what_cannot_be_proposed_is_refused_by_name() {
    let mut world = World::new(&genesis());
    world.until(2);
    let pairs = u64::from(world.ledger.limits().open_pairs);
    let cases = [
        (sets(Parameter::Fee, 5), Refusal::CHANGES_NOTHING),
        (sets(Parameter::Fee, 0), Refusal::OUT_OF_BOUNDS),
        (sets(Parameter::Fee, u64::MAX), Refusal::OUT_OF_BOUNDS),
        (sets(Parameter::Fee, 11), Refusal::STEP_TOO_LARGE),
        (sets(Parameter::Fee, 2), Refusal::STEP_TOO_LARGE),
        (sets(Parameter::Reward, 4), Refusal::OUT_OF_BOUNDS),
        (sets(Parameter::UntilMax, 99_999), Refusal::OUT_OF_BOUNDS),
        (sets(Parameter::Validators, 255), Refusal::OUT_OF_BOUNDS),
        (sets(Parameter::AssetsMax, 16_385), Refusal::OUT_OF_BOUNDS),
        (sets(Parameter::ListingPolicy, 3), Refusal::OUT_OF_BOUNDS),
        (sets(Parameter::OpenPairs, 2 * pairs + 1), Refusal::STEP_TOO_LARGE),
        (ProposedChange::List(plain_listing("u5d")), Refusal::LOOK_ALIKE),
        (ProposedChange::List(PlainListing { least_units: 1, ..plain_listing("JPY") }), Refusal::LISTED_LEAST_UNITS),
        (ProposedChange::List(plain_listing("J.Y")), Refusal::ASSET_TERMS),
        (ProposedChange::Close { asset: USD }, Refusal::FIRST_ASSET),
        (ProposedChange::Close { asset: AssetId(2) }, Refusal::UNKNOWN_ASSET),
    ];
    for (change, why) in cases {
        assert_eq!(told(&mut world, 0, change.clone()), Err(why), "{change:?}");
    }
    assert_eq!(told(&mut world, 5, sets(Parameter::Fee, 6)), Err(Refusal::NO_SAY));
    let vote = world.sign(5, says(Digest([1; 32]), ProposalWord::Yes));
    assert_eq!(world.ledger.admit(&vote), Err(Refusal::NO_SAY));
    let vote = world.sign(0, says(Digest([1; 32]), ProposalWord::Yes));
    assert_eq!(world.ledger.admit(&vote), Err(Refusal::UNKNOWN_PROPOSAL));
    // It costs a thousand fees.
    let balance = |world: &World| world.ledger.accounts().get(&account(1)).expect("there").balance(USD);
    let before = balance(&world);
    let ids = ask(&mut world, &[(1, sets(Parameter::Fee, 6))]);
    assert_eq!(before - balance(&world), 5_000);
    want(&mut world, &[0, 1, 2], &ids);
    world.until(10);
    assert_eq!(told(&mut world, 0, sets(Parameter::Fee, 7)), Err(Refusal::CHANGED_LATELY));
    // Under policy `priced` a vote lists nothing.
    let listings = ListingTerms { policy: ListingPolicy::Priced, ..genesis().listings };
    let mut priced = World::new(&Genesis { listings, ..genesis() });
    let listing = ProposedChange::List(plain_listing("JPY"));
    assert_eq!(told(&mut priced, 0, listing), Err(Refusal::NOT_LISTED_BY_VOTE));
}

/// The attack: each value could be, and together they could not: fewer offers than pairs.
#[test]
fn of_values_that_fit_alone_and_not_together_the_lower_id_wins() {
    let limits = Limits { resting_offers: 200_000, open_pairs: 131_072, ..genesis().limits };
    let genesis = Genesis { limits, ..genesis() };
    let mut world = World::new(&genesis);
    let asked = [(0, sets(Parameter::RestingOffers, 140_000)), (1, sets(Parameter::OpenPairs, 190_000))];
    let ids = ask(&mut world, &asked);
    want(&mut world, &[0, 1, 2], &ids);
    world.until(25);
    let limits = world.ledger.limits();
    let expected = if ids[0] < ids[1] { (140_000, 131_072) } else { (200_000, 190_000) };
    assert_eq!((limits.resting_offers, limits.open_pairs), expected);
}

/// The attack: a stranger stakes so much that the minimum stake would be too low for a genesis.
#[test]
fn a_large_stake_forbids_no_other_change() {
    let mut world = World::new(&genesis());
    let stake = Stake::new(5_000_000, "v5:1".into(), 1, &account(5), &node(5));
    let stake = world.sign(5, Operation::Stake(Box::new(stake)));
    assert_eq!(world.apply(vec![stake]), [None]);
    assert_eq!(told(&mut world, 0, sets(Parameter::Fee, 6)), Ok(()));
    assert_eq!(told(&mut world, 0, sets(Parameter::MinimumStake, 99)), Err(Refusal::OUT_OF_BOUNDS));
    assert_eq!(told(&mut world, 0, sets(Parameter::MinimumStake, 200)), Ok(()));
}

/// A vote lists an asset under a plain name, which nobody can copy in between.
#[test]
fn a_vote_lists_under_a_plain_name() {
    let mut world = World::new(&genesis());
    let (yen, other) = (ProposedChange::List(plain_listing("JPY")), ProposedChange::List(plain_listing("J-PY")));
    let ids = ask(&mut world, &[(0, yen.clone()), (1, other), (2, sets(Parameter::ListingPolicy, 1))]);
    want(&mut world, &[0, 1, 2], &ids);
    world.until(10);
    assert_eq!(world.ledger.proposals().coming()[0].lists.len(), 1, "the other looks like it");
    assert_eq!(told(&mut world, 3, yen), Err(Refusal::LOOK_ALIKE));
    let listing = |symbol: &str, fees| {
        let PlainListing { decimals, control, least_units, supply_max, document, .. } = plain_listing(symbol);
        let symbol = symbol.into();
        Operation::ListAsset(Box::new(AssetListing {
            symbol,
            decimals,
            control,
            least_units,
            supply_max,
            document,
            fees,
        }))
    };
    // Nobody pays for a listing yet; and a listing that comes too early is no fault of a proposer.
    let early = world.sign(BANK, listing("CHF", 3));
    assert_eq!(world.ledger.admit(&early), Err(Refusal::NOT_PRICED));
    assert!(!Refusal::NOT_PRICED.is_false());
    world.until(23);
    assert_eq!(world.ledger.assets().len(), 2);
    world.until(24);
    // One of eight takes an eighth.
    assert_eq!(world.ledger.listing_fees(), 6);
    let asset = world.ledger.assets().last().expect("three").clone();
    assert_eq!((asset.symbol.as_str(), asset.issuer, world.ledger.assets().len()), ("JPY", account(BANK), 3));
    let native = vec![
        world.sign(BANK, Operation::Issue { to: account(5), asset: AssetId(2), amount: 1_000_000 }),
        world.sign(5, listing("jpy", 3)),
        world.sign(3, listing("CHF", 6)),
    ];
    assert_eq!(world.apply(native), [None, Some(Refusal::LOOK_ALIKE), None]);
    let more = world.sign(BANK, Operation::Issue { to: account(5), asset: AssetId(2), amount: 1 });
    assert_eq!(world.apply(vec![more]), [Some(Refusal::ISSUE_TOO_LARGE)]);
    replay(&genesis(), &world);
}

/// The attack: an issuer announces a closing that is voted on, and revokes it when the vote is over.
#[test]
fn an_issuer_cannot_take_back_what_a_vote_closes() {
    let mut world = World::new(&genesis());
    let announce = |closing| Operation::CloseAsset { asset: EUR, closing };
    let own = world.sign(BANK, announce(Closing::Announce));
    assert_eq!(world.apply(vec![own]), [None]);
    let last = world.ledger.listings().closes(EUR).expect("announced");
    let ids = ask(&mut world, &[(0, ProposedChange::Close { asset: EUR })]);
    // The closing that the issuer announced is revoked before the vote passes, and once more after it.
    let revoke = world.sign(BANK, announce(Closing::Revoke));
    assert_eq!(world.apply(vec![revoke]), [None]);
    want(&mut world, &[0, 1, 2], &ids);
    world.until(10);
    assert_eq!(world.ledger.listings().closes(EUR), None);
    world.until(24);
    let voted = world.ledger.listings().closes(EUR);
    assert_eq!(voted, Some(24 + NOTICE));
    let revoke = world.sign(BANK, announce(Closing::Revoke));
    assert_eq!(world.ledger.admit(&revoke), Err(Refusal::CLOSED_BY_VOTE));
    assert_eq!(told(&mut world, 1, ProposedChange::Close { asset: EUR }), Err(Refusal::CLOSES_ALREADY));
    assert!(last < 24);
    replay(&genesis(), &world);
}

/// The attack: accounts with the least stake fill all places, so that nobody else can propose.
#[test]
fn whoever_stakes_more_finds_a_place_among_the_open_proposals() {
    let plain = genesis();
    let founder = |person: u8| {
        let stake = 1_000 + u64::from(person == 70) * 100;
        Member { account: account(person), key: node(person).public(), address: format!("v{person}:1"), stake }
    };
    let membership = plain.membership.clone().map(|of| Membership { founders: (6..=71).map(founder).collect(), ..of });
    let balances = (0..72).map(|person| (account(person), USD, 100_000)).collect();
    let mut world = World::new(&Genesis { membership, balances, ..plain });
    let proposes = |person: u8| {
        let (account, operation) = (account(person), propose(&sets(Parameter::Fee, 6)));
        Body { chain: 1, account, sequence: 1, until: 50_000, operation }.sign(&NETWORK, &key(person))
    };
    assert!(world.apply((6..70).map(proposes).collect()).iter().all(Option::is_none));
    let (open, rank) = (|world: &World| world.ledger.proposals().open().len(), |person: u8| account(person));
    assert_eq!(open(&world), 64);
    let highest = (6..70).map(rank).max().expect("some");
    // One that stakes as much finds a place only if its address is lower than another one's.
    let other = if rank(71) > highest { Err(Refusal::TOO_MANY_PROPOSALS) } else { Ok(()) };
    assert_eq!(world.ledger.admit(&proposes(71)), other);
    assert_eq!(world.apply(vec![proposes(70)]), [None]);
    assert_eq!(open(&world), 64);
    let proposals = world.ledger.proposals().open();
    assert!(proposals.contains_key(&account(70)) && !proposals.contains_key(&highest));
}

#[test]
fn the_operator_of_one_node_changes_parameters_after_its_notice() {
    let charter = CharterTerms { operator: account(0), notice_min: 3, patience: 40 };
    let genesis = Genesis { membership: None, charter, ..genesis() };
    let mut world = World::new(&genesis);
    assert_eq!(told(&mut world, 1, sets(Parameter::Fee, 6)), Err(Refusal::NO_SAY));
    ask(&mut world, &[(0, sets(Parameter::Fee, 6))]);
    ask(&mut world, &[(0, ProposedChange::List(plain_listing("JPY")))]);
    assert_eq!(told(&mut world, 0, sets(Parameter::Fee, 7)), Err(Refusal::CHANGED_LATELY));
    world.until(2);
    assert_eq!(world.ledger.fee(), 5);
    world.until(3);
    assert_eq!((world.ledger.fee(), world.ledger.assets().len()), (6, 2));
    world.until(4);
    assert_eq!((world.ledger.fee(), world.ledger.assets().len()), (6, 3));
    replay(&genesis, &world);
}

/// What is in force stays, what is open or waits is dropped; and no older rules follow.
#[test]
fn a_restart_keeps_the_record_in_force_and_drops_what_waits() {
    let mut world = World::new(&genesis());
    let ids = ask(&mut world, &[(0, sets(Parameter::Fee, 6)), (1, ProposedChange::Close { asset: EUR })]);
    want(&mut world, &[0, 1, 2], &ids);
    world.until(24);
    let ids = ask(&mut world, &[(0, sets(Parameter::Reward, 20)), (1, sets(Parameter::MinimumStake, 200))]);
    want(&mut world, &[0, 1, 2], &ids[..1]);
    world.until(30);
    assert_eq!((world.ledger.proposals().coming().len(), world.ledger.proposals().open().len()), (1, 1));
    let restart = |rules| Restart {
        number: 1,
        snapshot: Snapshot::digest(&world.ledger),
        committee: Vec::new(),
        lane: None,
        rules,
    };
    let mut ledger = world.ledger.clone();
    let older = ledger.begin_again(&NETWORK, &restart(Some(RULES_OF_LISTINGS)), None);
    assert_eq!(older, Err(RestartError::Proposals(RULES_OF_LISTINGS)));
    ledger.begin_again(&NETWORK, &restart(None), None).expect("agreed");
    let proposals = ledger.proposals();
    assert!(proposals.open().is_empty() && proposals.coming().is_empty());
    assert_eq!((ledger.fee(), ledger.parameters().get(Parameter::Reward)), (6, 10));
    assert!(proposals.closes(EUR) && proposals.changed(Parameter::Fee) == Some(10));
    ledger.audit().expect("sound");
    assert_eq!(Snapshot::digest(&restored(&ledger)), Snapshot::digest(&ledger));
}

/// The attack: whoever serves a state to a validator that lags writes another fee into its head, which no root covers.
#[test]
fn a_state_whose_head_is_not_the_record_in_force_is_refused() {
    let mut world = World::new(&genesis());
    ask(&mut world, &[(0, sets(Parameter::Fee, 6))]);
    let mut chunks: Vec<Vec<u8>> = Snapshot::of(&world.ledger).collect();
    // Tag, format, rules, chain, fee.
    let fee = 1 + 1 + 4 + 8;
    assert_eq!(chunks[0][fee..fee + 8], 5u64.to_le_bytes());
    chunks[0][fee] = 4;
    let mut restore = Restore::default();
    chunks.iter().for_each(|chunk| restore.push(chunk).expect("a chunk"));
    let refused = restore.finish().map(|_| ()).expect_err("another fee");
    assert!(
        matches!(&refused, SnapshotError::Unsound(why) if why.to_string().contains("record in force")),
        "{refused}"
    );
}

/// The values in force and to come are proved by the state root, and no others are.
#[test]
fn parameters_are_proved_by_the_state_root() {
    let mut world = World::new(&genesis());
    let proved = |world: &World| {
        let mut roots = Roots::of(&world.ledger);
        (roots.prove_parameters(&world.ledger), roots.parts().root())
    };
    let (none, root) = proved(&world);
    assert_eq!(none.verify(&root), Ok(None));
    let ids = ask(&mut world, &[(0, sets(Parameter::Fee, 10))]);
    want(&mut world, &[0, 1, 2], &ids);
    world.until(10);
    let (proof, root) = proved(&world);
    let record = proof.verify(&root).expect("sound").expect("something was proposed").clone();
    let fee = |height| record.at(height)[Parameter::Fee as usize];
    assert_eq!((record.first[0], fee(24), fee(25)), (5, 5, 10));
    // The attack: a node shows another value, another height, that nothing was proposed, or an old proof.
    let change = |change: fn(&mut ledger::ParametersRecord)| {
        let mut other = proof.clone();
        change(&mut other.record.as_mut().expect("there").0);
        other
    };
    let changed = [
        change(|record| record.first[0] += 1),
        change(|record| record.now[0] += 1),
        change(|record| record.coming[0].0 += 1),
        change(|record| record.coming.clear()),
        ledger::ParametersProof { record: None, ..proof.clone() },
        none,
    ];
    assert!(changed.iter().all(|other| other.verify(&root).is_err()));
}

/// Until something is proposed the charter is as it was before there were proposals.
#[test]
fn a_chain_without_proposals_has_the_charter_of_older_rules() {
    let mut world = World::new(&genesis());
    world.until(12);
    let parts = Roots::of(&world.ledger).parts();
    let part = parts.list().iter().find(|part| part.tag == ledger::RootPart::CHARTER).expect("there");
    assert_eq!(part.root, world.ledger.charter().digest());
    ask(&mut world, &[(0, sets(Parameter::Fee, 6))]);
    let parts = Roots::of(&world.ledger).parts();
    let part = parts.list().iter().find(|part| part.tag == ledger::RootPart::CHARTER).expect("there");
    assert_ne!(part.root, world.ledger.charter().digest());
}
